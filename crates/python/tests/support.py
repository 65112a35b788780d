"""Data for tests."""

from __future__ import annotations

import os
import random
import tempfile
import unittest


def passage(seed: int, length: int) -> bytes:
    """Bytes without repeats, equal for equal seeds."""
    return random.Random(seed).randbytes(length)


class InDirectory(unittest.TestCase):
    """A test with a directory of its own."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, *names: str) -> str:
        return os.path.join(self.directory, *names)

    def write(self, name: str, data: bytes) -> str:
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def project(self) -> str:
        """A small directory with links."""
        self.write("project/a.txt", b"alpha\n" * 100)
        self.write("project/docs/b.bin", passage(1, 300_000))
        self.write("project/docs/deep/c.csv", b"x,y\n1,2\n3,4\n")
        os.symlink("docs/deep/c.csv", self.path("project/link.csv"))
        os.symlink("docs", self.path("project/papers"))
        os.symlink("../outside", self.path("project/escape"))
        os.link(self.path("project/a.txt"), self.path("project/same.txt"))
        return self.path("project")
