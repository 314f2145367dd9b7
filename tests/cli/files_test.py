"""Files that are none of what is asked for, and places that cannot be written. Usage: files_test.py NVLSIM SOURCE_DIR"""
import os
import subprocess
import threading

import sanitizer
from program import NVLSIM, Case, main, run

READERS = [["run"], ["explain"], ["compare", "train.json"], ["report", "-o", "page.html"], ["pareto"], ["search", "--gpus", "8"], ["sweep", "plan", "-o", "points"],
           ["platform", "show"], ["model", "show"], ["stack", "show"], ["scenario", "check"], ["model", "check"],
           ["validate"], ["fit", "training", "-o", "fitted"], ["fit", "kernels", "-o", "fitted"], ["fit", "collectives", "-o", "fitted"],
           ["run", "serve.json", "--set", "/workload/load/kind=trace", "--set"]]
NONSENSE = {"empty.json": b"", "list.json": b"[]", "text.json": b'"x"', "cut.json": b'{"a": [1, 2', "utf16.json": "{}".encode("utf-16"),
            "latin.json": b'{"a\xff": 1}', "deep.json": b"[" * 100_000, "noise.json": bytes(range(256)) * 400,
            "result.json": b'[{"schema": "nvlsim.result/1"}]', "header.csv": b"id,model\n", "empty.jsonl": b"", "word.jsonl": b"x\n",
            "escape.csv": b"\x1b]0;title\x07,b\n1\n2\n3,4,5\n"}


class Files(Case):
    def test_nonsense_is_refused_briefly(self):
        for name, content in NONSENSE.items():
            (self.folder / name).write_bytes(content)
        (self.folder / "folder.json").mkdir()
        (self.folder / "page.html").write_text("kept")
        for name in [*NONSENSE, "folder.json", "absent.json"]:
            for reader in READERS:
                file = f"/workload/load/file={name}" if reader[-1] == "--set" else name
                done = run(*reader, file, cwd=self.folder)
                with self.subTest(command=" ".join(reader), file=name):
                    self.assertIn(done.returncode, (2, 4), done.stderr)
                    self.assertEqual(done.stdout, "")
                    self.assertTrue(0 < len(done.stderr) < 12_000, len(done.stderr))
                    self.assertNotIn("internal", done.stderr)
                    if len(done.stderr.splitlines()) > 100:
                        self.assertRegex(done.stderr, "and [0-9]+ more problems\n$")
                    self.assertNotRegex(done.stderr, "[\x00-\x09\x0b-\x1f]")
        self.assertEqual((self.folder / "page.html").read_text(), "kept")

    def test_a_full_disk_is_told(self):
        base = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", **sanitizer.options()}
        for command in (["run", "train.json"], ["run", "train.json", "--format", "json"], ["explain", "train.json"], ["model", "list"], ["completion", "zsh"],
                        ["compare", "train.json", "train.json"], ["--help"], ["run", "--help"], ["--version"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([NVLSIM, *command], cwd=self.folder, env=base, stdout=full, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, b"cannot write to standard output" in done.stderr), (4, True), command)

    def test_pipes_and_links_are_written_into(self):
        heard = []
        pipe, link = self.folder / "pipe", self.folder / "link.html"
        os.mkfifo(pipe)
        reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
        reader.start()
        done = run("report", "train.json", "-o", pipe, cwd=self.folder)
        reader.join(20)
        self.assertEqual((done.returncode, done.stderr, pipe.is_fifo()), (0, "", True))
        self.assertTrue(heard[0].startswith(b"<!doctype html>"))
        link.symlink_to("page.html")
        self.assertEqual(run("report", "train.json", "-o", link, cwd=self.folder).returncode, 0)
        self.assertTrue(link.is_symlink())
        self.assertEqual((self.folder / "page.html").read_bytes(), heard[0])

    def test_places_that_cannot_be_written_are_named(self):
        (self.folder / "file").write_text("")
        for command in (["run", "train.json", "-o", "file"], ["run", "train.json", "-o", "file/in"], ["run", "train.json", "--trace", "file/t.json"],
                        ["run", "serve.json", "--requests", "no/r.jsonl"], ["report", "train.json", "-o", "no/page.html"], ["man", "file"],
                        ["fit", "kernels", "absent.csv", "-o", "file"]):
            done = run(*command, cwd=self.folder)
            self.assertEqual(done.returncode, 4, command)
            self.assertIn(command[-1].split("/")[0], done.stderr)


if __name__ == "__main__":
    main()
