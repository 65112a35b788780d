"""The examples of docs/python.md and of the package's documentation."""

from __future__ import annotations

import doctest
import os
import re
import unittest
from pathlib import Path

import refrain
from support import InDirectory

DOCS = Path(__file__).parents[3] / "docs"


class Documents(InDirectory):
    def check(self, name: str, modules: tuple[str, ...] = ()) -> None:
        for module in modules:
            try:
                __import__(module)
            except ImportError:
                self.skipTest(f"{module} is not installed")
        text = (DOCS / name).read_text()
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertTrue(blocks)
        flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        before = os.getcwd()
        os.chdir(self.directory)
        self.addCleanup(os.chdir, before)
        runner = doctest.DocTestRunner(optionflags=flags)
        code = "\n".join(blocks)
        runner.run(doctest.DocTestParser().get_doctest(code, {}, name, name, 0))
        self.assertEqual(runner.summarize().failed, 0)

    def test_python(self) -> None:
        self.check("python.md")

    def test_package(self) -> None:
        self.assertEqual(doctest.testmod(refrain).failed, 0)


if __name__ == "__main__":
    unittest.main()
