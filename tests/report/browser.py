"""Headless Chromium over its debugging pipe: no driver, no port, no package beside the browser."""
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-first-run")


class Browser:
    def __enter__(self):
        program = next((p for p in map(shutil.which, NAMES) if p), None)
        if not program:
            raise SystemExit(f"no browser: install the Debian package {NAMES[0]}")
        self.folder = tempfile.mkdtemp()
        commands, self.commands = os.pipe()
        events, self.events_in = os.pipe()
        self.stream = os.fdopen(events, "rb", 0)

        def descriptors():  # the browser reads 3 and writes 4
            ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (commands, self.events_in)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen([program, *FLAGS, f"--user-data-dir={self.folder}"], preexec_fn=descriptors,
                                        close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(self.events_in)
        self.calls, self.rest, self.events = 0, b"", []
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.commands)
        self.stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self):
        while b"\0" not in self.rest:
            more = self.stream.read(1 << 16)
            if not more:
                raise RuntimeError("the browser ended")
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        self.calls += 1
        call = {"id": self.calls, "method": method, "params": parameters}
        if session:
            call["sessionId"] = session
        os.write(self.commands, json.dumps(call).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.calls:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def page(self, url, width=1100, height=900, scheme="light"):
        return Page(self, url, width, height, scheme)


class Page:
    def __init__(self, browser, url, width, height, scheme):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=url)
        for _ in range(600):
            if self.value("document.readyState === 'complete' && location.href !== 'about:blank'"):
                return
            time.sleep(0.05)
        raise RuntimeError(f"{url} does not load")

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def value(self, expression):
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def point_at(self, expression):
        """Moves the mouse to the middle of the element that an expression gives."""
        x, y = self.value(f"(() => {{ const e = {expression}; e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
                          "return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def heard(self, method):
        return [e["params"] for e in self.browser.events if e.get("method") == method and e.get("sessionId") == self.session]
