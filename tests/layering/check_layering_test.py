#!/usr/bin/env python3
"""The layering check must catch what it is for: run on small trees made here."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).with_name("check_layering.py")
LARGE = "tests/layering/large.json"

CLEAN = {
    "include/nvlsim/units/units.hpp": "#include <vector>\n",
    "include/nvlsim/config/value.hpp": '#include "nvlsim/units/units.hpp"\n',
    "include/nvlsim/network/ports.hpp": "",
    "include/nvlsim/compute/gemm.hpp": "",
    "src/units/text.hpp": "",
    "src/units/text.cpp": '#include "units/text.hpp"\n#include <fmt/format.h>\n',
    "src/config/reader.cpp": '#include "nvlsim/config/value.hpp"\n#include <nlohmann/json.hpp>\n',
    "src/collectives/ring.cpp": '#include "nvlsim/network/ports.hpp"\n#include "nvlsim/compute/gemm.hpp"\n',
    "src/simulator/run.cpp": '#include <simgrid/s4u.hpp>\n#include "helper.hpp"\n',
    "src/simulator/helper.hpp": "// #include \"cli/app.hpp\"\n/* #include <CLI/CLI.hpp>\n*/\n",
    "src/output/json.cpp": "#include <nlohmann/json.hpp>\n",
    "src/calibration/fit.cpp": "#include <Eigen/Dense>\n",
    "src/cli/app.hpp": "#include <CLI/CLI.hpp>\n",
}
PAGE = """# Architecture

| module | does | includes |
|---|---|---|
| `units` | quantities | |
| `config` | reading | `units` |
| `platform` | hardware | `units`, `config` |

```mermaid
flowchart BT
  config --> units
  platform --> config
```
"""
DRAWN = {
    "include/nvlsim/units/units.hpp": "",
    "include/nvlsim/config/value.hpp": '#include "nvlsim/units/units.hpp"\n',
    "src/platform/load.cpp": '#include "nvlsim/units/units.hpp"\n#include "nvlsim/config/value.hpp"\n',
}


def check(files, *options):
    """Exit code and output of the check on a tree of those files, and its page afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, str(CHECK), folder, *options], capture_output=True, text=True, check=False)
        page = Path(folder) / "docs/architecture.md"
        return done.returncode, done.stdout, page.read_text(encoding="utf-8") if page.is_file() else ""


class Includes(unittest.TestCase):
    def assert_violation(self, file, text, expected):
        code, out, _ = check({**CLEAN, file: text})
        self.assertEqual(out, expected + "\n")
        self.assertEqual(code, 1)

    def test_clean_tree_passes(self):
        self.assertEqual(check(CLEAN)[:2], (0, "layering: ok\n"))

    def test_upward_include(self):
        self.assert_violation("src/units/text.hpp", '\n  #  include "config/a.hpp"\n',
                              'src/units/text.hpp:2: no such file in src/ or include/: "config/a.hpp"')
        self.assert_violation("src/units/text.hpp", '#include "cli/app.hpp"\n',
                              "src/units/text.hpp:1: module units includes src/cli/app.hpp of module cli, "
                              "which is not before it")

    def test_upward_include_by_relative_path_and_angle_brackets(self):
        wrong = "src/units/text.hpp:1: module units includes src/cli/app.hpp of module cli, which is not before it"
        self.assert_violation("src/units/text.hpp", '#include "../cli/app.hpp"\n', wrong)
        self.assert_violation("src/units/text.hpp", "#include <cli/app.hpp>\n", wrong)

    def test_upward_include_of_a_public_header(self):
        self.assert_violation("include/nvlsim/units/units.hpp", "#include <nvlsim/config/value.hpp>\n",
                              "include/nvlsim/units/units.hpp:1: module units includes "
                              "include/nvlsim/config/value.hpp of module config, which is not before it")

    def test_siblings(self):
        self.assert_violation("src/compute/gemm.cpp", '#include "nvlsim/network/ports.hpp"\n',
                              "src/compute/gemm.cpp:1: module compute includes include/nvlsim/network/ports.hpp "
                              "of module network, which is not before it")

    def test_public_header_includes_private_one(self):
        self.assert_violation("include/nvlsim/config/value.hpp", '#include "units/text.hpp"\n',
                              "include/nvlsim/config/value.hpp:1: a public header includes the private "
                              "src/units/text.hpp")

    def test_private_header_of_another_module(self):
        self.assert_violation("src/config/reader.cpp", '#include "units/text.hpp"\n',
                              "src/config/reader.cpp:1: module config includes src/units/text.hpp, which is private "
                              "to module units: make it a public header or move it")

    def test_libraries_outside_their_place(self):
        for file, header, expected in [
            ("src/compute/gemm.cpp", "simgrid/s4u.hpp", "SimGrid may be included only in src/simulator/"),
            ("src/network/ports.cpp", "xbt/log.h", "SimGrid may be included only in src/simulator/"),
            ("src/simulator/run.cpp", "nlohmann/json_fwd.hpp",
             "nlohmann/json may be included only in src/config/ and src/output/"),
            ("src/output/json.cpp", "CLI/App.hpp", "CLI11 may be included only in src/cli/"),
            ("src/run/a.cpp", "Eigen/Core", "Eigen may be included only in src/calibration/"),
            ("include/nvlsim/units/units.hpp", "fmt/core.h", "fmt may be included only in src/"),
            ("include/nvlsim/config/value.hpp", "nlohmann/json_fwd.hpp",
             "nlohmann/json may be included only in src/config/ and src/output/"),
        ]:
            with self.subTest(file=file, header=header):
                self.assert_violation(file, f"#include <{header}>\n", f"{file}:1: {expected}")

    def test_one_name_in_two_headers(self):
        for text in ("inline constexpr int limit = 2;\n", "inline constexpr range<int> limit{1, 2};\n",
                     "struct limit {\n", "enum class limit { a };\n", "inline int limit = 1;\n",
                     "template <class T> struct limit {\n"):
            inside = "namespace nvlsim {\nnamespace x {\n}  // namespace x\n" + text
            files = {"include/nvlsim/config/a.hpp": inside, "src/units/b.hpp": inside}
            self.assertIn("src/units/b.hpp:4: include/nvlsim/config/a.hpp defines nvlsim::limit too", check(files)[1])
            self.assertEqual(check({**files, "src/units/b.hpp": "namespace nvlsim::other {\n" + text})[0], 0)

    def test_unknown_module_and_header(self):
        for file in "src/misc/a.cpp", "include/nvlsim/odd.hpp", "include/nvlsim/misc/odd.hpp":
            with self.subTest(file=file):
                self.assert_violation(file, "\n",
                                      f"{file}:1: belongs to no module; name its module in check_layering.py")

    def test_every_violation_is_listed(self):
        code, out, _ = check({**CLEAN, "src/units/text.hpp": "#include <CLI/CLI.hpp>\n#include <xbt/log.h>\n"})
        self.assertEqual((code, out.count("\n")), (1, 2))

    def test_large_modules(self):
        many = {f"src/config/a{i}.cpp": "" for i in range(41)}
        self.assertIn("src/config: 43 files", check({**CLEAN, **many})[1])
        self.assert_violation("src/config/long.cpp", "\n" * 6001,
                              "src/config: 3 files and 6004 lines, more than 40 or 6000: take it apart, or state a "
                              f"reason and a ceiling in {LARGE}")

    def test_exceptions_for_large_modules(self):
        def sized(lines, **exceptions):
            return check({**CLEAN, "src/config/long.cpp": "\n" * (lines - 3), LARGE: json.dumps(exceptions)})[1]
        ceiling = {"files": 40, "lines": 6100, "reason": "a list"}
        self.assertEqual(sized(6100, config=ceiling), "layering: ok\n")
        self.assertEqual(sized(6101, config=ceiling),
                         "src/config: 3 files and 6101 lines, more than 40 or 6100: take it apart, or state a reason "
                         f"and a ceiling in {LARGE}\n")
        self.assertEqual(sized(6000, config=ceiling),
                         f"{LARGE}: config has 3 files and 6000 lines and needs no exception: remove it\n")
        self.assertEqual(sized(6100, config=ceiling, old=ceiling), f"{LARGE}: there is no module old\n")

    def test_wrong_usage(self):
        done = subprocess.run([sys.executable, str(CHECK)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)


class Page(unittest.TestCase):
    def assert_page(self, page, *expected, files=None):
        code, out, _ = check({**DRAWN, **(files or {}), "docs/architecture.md": page})
        self.assertEqual(out.splitlines(), [f"docs/architecture.md: {e}" for e in expected] or ["layering: ok"])
        self.assertEqual(code, 1 if expected else 0)

    def test_page_that_agrees(self):
        self.assert_page(PAGE)

    def test_arrow_that_no_include_bears_out(self):
        self.assert_page(PAGE.replace("config --> units", "config --> units\n  units --> config"),
                         "the drawing has an arrow units --> config that no include bears out")

    def test_arrow_that_follows_from_others(self):
        self.assert_page(PAGE.replace("platform --> config", "platform --> config\n  platform --> units"),
                         "the drawing has an arrow platform --> units that follows from others")

    def test_missing_arrow_and_row(self):
        self.assert_page(PAGE.replace("  platform --> config\n", ""), "the drawing lacks the arrow platform --> config")
        self.assert_page(PAGE.replace("`units`, `config` |", "`config` |"),
                         "the table does not say that platform includes units")
        self.assert_page(PAGE.replace("| `units` | quantities | |\n", ""),
                         "the table lists config, platform; the modules are units, config, platform")

    def test_include_that_is_gone(self):
        self.assert_page(PAGE, "the table says that platform includes units, which it does not",
                         files={"src/platform/load.cpp": '#include "nvlsim/config/value.hpp"\n'})

    def test_page_is_renewed(self):
        stale = PAGE.replace("`units`, `config` |", "|").replace("platform --> config", "platform --> units")
        code, out, page = check({**DRAWN, "docs/architecture.md": stale}, "--write")
        self.assertEqual((code, out, page), (0, "layering: ok\n", PAGE))


if __name__ == "__main__":
    unittest.main()
