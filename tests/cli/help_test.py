"""Every page of --help fits a terminal and ends in examples that are read as they stand."""
import re
import shlex

from program import Case, main, run


def read_pages():
    """Words of a command, and its help, for every command."""
    todo = [[]]
    while todo:
        words = todo.pop()
        text = run(*words, "--help").stdout
        yield words, text
        commands = re.search(r"\ncommands\n((?:  .*\n)+)", text)
        if commands:
            todo += [words + [name] for name in re.findall(r"^  ([a-z]+) ", commands[1], re.M)]


PAGES = list(read_pages())


class Help(Case):
    def test_pages(self):
        for words, text in PAGES:
            with self.subTest(command=" ".join(words)):
                self.assertIn(f"usage: {' '.join(['nvlsim', *words])} ", text)
                self.assertIn("--help", text)
                head, _, examples = text.partition("\nexample")
                for line in head.splitlines():
                    self.assertLessEqual(len(line), 80, line)
                if " COMMAND ..." in text:
                    continue
                shown = re.findall(r"^  (nvlsim .*|source .*)$", examples, re.M)
                self.assertTrue(shown, "no example")
                for line in shown:
                    self.assertIn(" ".join(words), line)
        self.assertGreater(len(PAGES), 25)

    def test_options_of_examples_exist(self):
        for words, text in PAGES:
            known = set(re.findall(r"(?:^  |, )(--?[a-z][\w-]*)", text, re.M))
            for line in re.findall(r"^  (nvlsim .*)$", text.partition("\nexample")[2], re.M):
                used = [w.split("=")[0] for w in shlex.split(line.split(" > ")[0]) if re.match(r"--?[a-z]", w)]
                if words:
                    self.assertLessEqual(set(used), known, line)


if __name__ == "__main__":
    main()
