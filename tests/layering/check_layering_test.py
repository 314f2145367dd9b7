#!/usr/bin/env python3
"""The layering check must catch what it is for: run on small trees made here."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).with_name("check_layering.py")

CLEAN = {
    "include/nvlsim/units.hpp": "#include <vector>\n",
    "include/nvlsim/value.hpp": '#include "nvlsim/units.hpp"\n',
    "src/units/text.hpp": "",
    "src/units/text.cpp": '#include "units/text.hpp"\n#include <fmt/format.h>\n',
    "src/config/reader.cpp": '#include "nvlsim/value.hpp"\n#include <nlohmann/json.hpp>\n#include "units/text.hpp"\n',
    "src/network/simgrid_zone.cpp": "#include <simgrid/s4u.hpp>\n",
    "src/network/ports.hpp": "",
    "src/compute/gemm.hpp": "",
    "src/collectives/ring.cpp": '#include "network/ports.hpp"\n#include "compute/gemm.hpp"\n',
    "src/engine/run.cpp": '#include <simgrid/s4u.hpp>\n#include "helper.hpp"\n',
    "src/engine/helper.hpp": "// #include \"cli/app.hpp\"\n/* #include <CLI/CLI.hpp>\n*/\n",
    "src/output/json.cpp": "#include <nlohmann/json.hpp>\n",
    "src/cli/app.hpp": "#include <CLI/CLI.hpp>\n",
}


class Layering(unittest.TestCase):
    def check(self, **changed):
        """Runs the check on the clean tree with files (`a__b__c_hpp=text`) changed."""
        with tempfile.TemporaryDirectory() as folder:
            files = dict(CLEAN)
            files.update(changed.pop("files", {}))
            for name, text in files.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, str(CHECK), folder], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def assert_violation(self, file, text, expected):
        code, out = self.check(files={file: text})
        self.assertEqual(out, expected + "\n")
        self.assertEqual(code, 1)

    def test_clean_tree_passes(self):
        self.assertEqual(self.check(), (0, "layering: ok\n"))

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
        self.assert_violation("include/nvlsim/units.hpp", "#include <nvlsim/value.hpp>\n",
                              "include/nvlsim/units.hpp:1: module units includes include/nvlsim/value.hpp "
                              "of module config, which is not before it")

    def test_siblings(self):
        self.assert_violation("src/compute/gemm.hpp", '#include "network/ports.hpp"\n',
                              "src/compute/gemm.hpp:1: module compute includes src/network/ports.hpp "
                              "of module network, which is not before it")

    def test_public_header_includes_private_one(self):
        self.assert_violation("include/nvlsim/value.hpp", '#include "units/text.hpp"\n',
                              "include/nvlsim/value.hpp:1: a public header includes the private src/units/text.hpp")

    def test_libraries_outside_their_place(self):
        for file, header, expected in [
            ("src/compute/gemm.hpp", "simgrid/s4u.hpp",
             "SimGrid may be included only in src/engine/ and src/network/simgrid_zone."),
            ("src/network/ports.hpp", "xbt/log.h",
             "SimGrid may be included only in src/engine/ and src/network/simgrid_zone."),
            ("src/engine/run.cpp", "nlohmann/json_fwd.hpp",
             "nlohmann/json may be included only in src/config/ and src/output/"),
            ("src/output/json.cpp", "CLI/App.hpp", "CLI11 may be included only in src/cli/"),
            ("include/nvlsim/units.hpp", "fmt/core.h", "fmt may be included only in src/"),
            ("include/nvlsim/value.hpp", "nlohmann/json_fwd.hpp",
             "nlohmann/json may be included only in src/config/ and src/output/"),
        ]:
            with self.subTest(file=file, header=header):
                self.assert_violation(file, f"#include <{header}>\n", f"{file}:1: {expected}")

    def test_unknown_module_and_header(self):
        self.assert_violation("src/misc/a.cpp", "\n",
                              "src/misc/a.cpp:1: belongs to no module; name its module in check_layering.py")
        self.assert_violation("include/nvlsim/odd.hpp", "\n",
                              "include/nvlsim/odd.hpp:1: belongs to no module; name its module in check_layering.py")

    def test_every_violation_is_listed(self):
        code, out = self.check(files={"src/units/text.hpp": "#include <CLI/CLI.hpp>\n#include <xbt/log.h>\n"})
        self.assertEqual((code, out.count("\n")), (1, 2))

    def test_wrong_usage(self):
        done = subprocess.run([sys.executable, str(CHECK)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
