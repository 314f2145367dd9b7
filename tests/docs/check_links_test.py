#!/usr/bin/env python3
"""check_links.py on made-up trees."""
import tempfile
import unittest
from pathlib import Path

from check_links import anchors_of, check_tree


def problems(files):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name, text in files.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        (root / "CMakeLists.txt").touch()
        return [p.replace(f"{root}/", "") for p in check_tree(root)]


class Links(unittest.TestCase):
    def test_good_links(self):
        self.assertEqual(problems({
            "README.md": "[a](docs/a.md) ![p](docs/p.svg) [b](docs/a.md#a-b) [web](https://x.y/z.md#q) [here](#top)\n# Top\n",
            "docs/a.md": "# A, `b`\n[up](../README.md) [folder](.)\n",
            "docs/p.svg": "<svg/>",
            "src/x.cpp": "// [docs/a.md#a-b]\n",
        }), [])

    def test_missing_file(self):
        self.assertEqual(problems({"README.md": "\n[a](docs/a.md)\n"}), ["README.md:2: no such file: docs/a.md"])

    def test_missing_section(self):
        self.assertEqual(problems({"docs/a.md": "# A\n", "README.md": "[a](docs/a.md#b)"}),
                         ["README.md:1: no section #b in docs/a.md"])

    def test_missing_section_of_its_own(self):
        self.assertEqual(problems({"docs/a.md": "# A\n\n[a](#b)\n"}), ["docs/a.md:3: no section #b in docs/a.md"])

    def test_code_and_data_are_held_to_it(self):
        self.assertEqual(problems({
            "docs/a.md": "# A\n",
            "src/m/x.cpp": "int x;  // [docs/a.md#gone]\n",
            "platforms/p.json": '{"source": "see docs/b.md"}\n',
        }), ["src/m/x.cpp:1: no section #gone in docs/a.md", "platforms/p.json:1: no such file: docs/b.md"])

    def test_code_in_documents_is_no_link(self):
        self.assertEqual(problems({"docs/a.md": "`[a](gone.md)`\n```\n[a](gone.md)\n# B\n```\n"}), [])


class Anchors(unittest.TestCase):
    def test_slugs_are_those_of_github(self):
        self.assertEqual(anchors_of("# Memory-bound\n## `/gpu` of [a](b), SimGrid's\n### Energy & cost\n"),
                         {"memory-bound", "gpu-of-a-simgrids", "energy--cost"})

    def test_repeated_headings_are_numbered(self):
        self.assertEqual(anchors_of("# A\n# A\n"), {"a", "a-1"})

    def test_explicit_anchors(self):
        self.assertEqual(anchors_of('<a id="x"></a>\n'), {"x"})


if __name__ == "__main__":
    unittest.main()
