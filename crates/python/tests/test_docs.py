"""The examples of docs/python.md and of the package's documentation."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import unittest
from pathlib import Path

import refrain
from support import InDirectory

DOCS = Path(__file__).parents[3] / "docs"


def can_run(block: str) -> bool:
    """Whether all packages that an example imports are installed."""
    modules = re.findall(r"import (\w+)", block)
    return all(importlib.util.find_spec(module) for module in modules)


class Documents(InDirectory):
    def check(self, name: str, directory: Path = DOCS) -> None:
        text = (directory / name).read_text()
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        blocks = [block for block in blocks if can_run(block)]
        self.assertTrue(blocks)
        flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        before = os.getcwd()
        os.chdir(self.directory)
        self.addCleanup(os.chdir, before)
        runner = doctest.DocTestRunner(optionflags=flags)
        code = "\n".join(blocks)
        runner.run(doctest.DocTestParser().get_doctest(code, {}, name, name, 0))
        self.assertEqual(runner.summarize().failed, 0)

    def test_description(self) -> None:
        self.check("DESCRIPTION.md", Path(__file__).parents[1])

    def test_python(self) -> None:
        self.check("python.md")

    def test_python_data(self) -> None:
        try:
            import fsspec

            fsspec.get_filesystem_class("refrain")
        except (ImportError, ValueError):
            self.skipTest("fsspec, or the metadata of an installed package, is missing")
        self.check("python-data.md")

    def test_package(self) -> None:
        self.assertEqual(doctest.testmod(refrain).failed, 0)


if __name__ == "__main__":
    unittest.main()
