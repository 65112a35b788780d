"""Archives opened for random access."""

from __future__ import annotations

import csv
import io
import os
import pickle
import random
import threading
import unittest

import refrain
from support import InDirectory, passage


class Directories(InDirectory):
    def setUp(self) -> None:
        super().setUp()
        self.source = self.project()
        self.file = self.path("p.rfn")
        refrain.compress(self.source, self.file)
        self.archive = refrain.open(self.file)

    def test_entries(self) -> None:
        entries = {entry.path: entry for entry in self.archive.entries}
        self.assertEqual(entries["docs/b.bin"].size, 300_000)
        self.assertEqual(entries["link.csv"].kind, "symlink")
        self.assertEqual(entries["link.csv"].link_target, "docs/deep/c.csv")
        self.assertEqual(entries["docs"].kind, "directory")
        stated = os.stat(self.path("project/a.txt"))
        self.assertEqual(entries["a.txt"].modified_ns, stated.st_mtime_ns)
        self.assertEqual(entries["a.txt"].mode, stated.st_mode & 0o7777)
        self.assertIn("docs/b.bin", self.archive.entries)
        self.assertIn(b"papers", self.archive.entries)
        self.assertIn(entries["link.csv"], self.archive.entries)
        self.assertNotIn("papers/b.bin", self.archive.entries)
        self.assertEqual(len(self.archive.entries), self.archive.members[0].entry_count)

    def test_read(self) -> None:
        for path in ("docs/b.bin", b"docs/b.bin", "./docs//b.bin", "papers/b.bin"):
            self.assertEqual(self.archive.read(path), passage(1, 300_000))
        self.assertEqual(self.archive.read("docs/b.bin", 1000, 10), passage(1, 300_000)[1000:1010])
        self.assertEqual(self.archive.read("link.csv"), b"x,y\n1,2\n3,4\n")
        self.assertEqual(self.archive.read("same.txt"), b"alpha\n" * 100)
        self.assertEqual(self.archive.read("a.txt", 9999), b"")

    def test_missing(self) -> None:
        for path in ("none", "docs/none", "escape", "a.txt/x", "../project/a.txt", ""):
            with self.subTest(path), self.assertRaises(OSError):
                self.archive.read(path)
        with self.assertRaises(FileNotFoundError):
            self.archive.read("none")
        with self.assertRaisesRegex(refrain.PathError, "paths begin inside 'project'"):
            self.archive.read("project/a.txt")
        with self.assertRaises(IsADirectoryError):
            self.archive.read("docs")

    def test_children(self) -> None:
        names = [os.path.basename(child.path) for child in self.archive.children()]
        expected = ["a.txt", "docs", "escape", "link.csv", "papers", "same.txt"]
        self.assertEqual(names, expected)
        names = [child.path for child in self.archive.children("docs/deep/")]
        self.assertEqual(names, ["docs/deep/c.csv"])
        with self.assertRaises(NotADirectoryError):
            self.archive.children("a.txt")

    def test_open(self) -> None:
        with self.archive.open("docs/deep/c.csv") as file:
            self.assertTrue(file.seekable() and file.readable() and not file.writable())
            self.assertEqual(list(csv.reader(io.TextIOWrapper(file))), [["x", "y"], ["1", "2"], ["3", "4"]])

    def test_extract(self) -> None:
        self.assertEqual(self.archive.extract(self.path("out")), [])
        with open(self.path("out/docs/b.bin"), "rb") as file:
            self.assertEqual(file.read(), passage(1, 300_000))
        self.assertEqual(os.readlink(self.path("out/link.csv")), "docs/deep/c.csv")
        self.assertEqual(
            os.stat(self.path("out/a.txt")).st_mtime_ns,
            os.stat(self.path("project/a.txt")).st_mtime_ns,
        )
        self.archive.extract(self.path("part"), ["docs/deep"])
        self.assertEqual(os.listdir(self.path("part")), ["docs"])
        self.assertEqual(os.listdir(self.path("part/docs")), ["deep"])

    def test_pickle(self) -> None:
        again = pickle.loads(pickle.dumps(self.archive))
        self.assertEqual(again.read("a.txt"), self.archive.read("a.txt"))
        file = self.archive.open("docs/b.bin", buffering=0)
        file.seek(1000)
        self.assertEqual(pickle.loads(pickle.dumps(file)).read(10), passage(1, 300_000)[1000:1010])
        with open(self.file, "rb") as file, self.assertRaises(TypeError):
            pickle.dumps(refrain.open(file))

    def test_several_members(self) -> None:
        path = self.path("m.rfn")
        refrain.compress({"p": self.source, "q/r": b"data", "p.txt": b"text"}, path)
        with refrain.open(path) as archive:
            self.assertEqual(archive.read("p/a.txt"), b"alpha\n" * 100)
            self.assertEqual(archive.read("p/papers/deep/c.csv"), b"x,y\n1,2\n3,4\n")
            self.assertEqual(archive.read("q/r"), b"data")
            self.assertEqual([child.name for child in archive.children()], ["p", "q/r", "p.txt"])
            self.assertIn("p/docs/b.bin", [entry.path for entry in archive.entries])
            self.assertIn("p/docs/b.bin", archive.entries)
            self.assertNotIn("docs/b.bin", archive.entries)
            with self.assertRaises(refrain.UsageError):
                archive.read()
            archive.extract(self.path("all"))
            with open(self.path("all", "q", "r"), "rb") as file:
                self.assertEqual(file.read(), b"data")
            archive.extract(self.path("good"), ["p/docs/deep/c.csv", "p.txt"])
            self.assertEqual(sorted(os.listdir(self.path("good"))), ["p", "p.txt"])


class Random(InDirectory):
    """Random reads by every way, compared with the bytes themselves."""

    def check(self, archive: refrain.Archive, data: bytes) -> None:
        chance = random.Random(5)
        file = archive.open()
        raw = archive.open(buffering=0)
        for _ in range(100):
            start = chance.randrange(len(data) + 10)
            length = chance.choice([0, 1, 100, 4096, 300_000])
            expected = data[start : start + length]
            file.seek(start)
            raw.seek(start)
            buffer = bytearray(length)
            count = raw.readinto(buffer)
            self.assertEqual(buffer[:count], expected)
            self.assertEqual(file.read(length), expected)
            self.assertEqual(raw.pread(length, start), expected)
            self.assertEqual(archive.read(None, start, length), expected)
        self.assertEqual(raw.seek(-10, os.SEEK_END), len(data) - 10)
        self.assertEqual(raw.readall(), data[-10:])

    def test_sources(self) -> None:
        class Odd(io.BytesIO):
            """Neither a plain buffer nor a plain file, and it returns less than it is asked for."""

            def read(self, size: int | None = -1) -> bytes:
                return super().read(min(size, 50_000) if size is not None and size >= 0 else size)

        data = passage(1, 2_000_000) + bytes(1_000_000) + passage(1, 500_000)
        archive = refrain.compress(data)
        path = self.write("x.rfn", archive)
        with open(path, "rb") as plain:
            for source in (path, archive, io.BytesIO(archive), plain, Odd(archive)):
                with self.subTest(type(source)), refrain.open(source) as opened:
                    self.check(opened, data)

    def test_threads(self) -> None:
        data = passage(2, 5_000_000)
        file = refrain.open(refrain.compress(data)).open(buffering=0)
        wrong = []

        def read(seed: int) -> None:
            chance = random.Random(seed)
            for _ in range(300):
                start = chance.randrange(len(data))
                if file.pread(4096, start) != data[start : start + 4096]:
                    wrong.append(start)

        threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(wrong, [])

    def test_file_objects_that_fail(self) -> None:
        class Failing(io.BytesIO):
            mode = "good"

            def read(self, size: int | None = -1) -> bytes:
                if self.mode == "raise":
                    raise ZeroDivisionError("mine")
                if self.mode == "less":
                    return super().read((size + 1) // 2)
                data = super().read(size)
                return data + b"more" if self.mode == "more" else data

        data = passage(3, 3_000_000)
        file = Failing(refrain.compress(data))
        archive = refrain.open(file, memory=24 << 20)
        file.mode = "raise"
        with self.assertRaises(ZeroDivisionError):
            archive.read(None, 1_500_000, 100_000)
        file.mode = "less"
        self.assertEqual(refrain.open(file).read(None, 0, 1000), data[:1000])
        file.mode = "more"
        with self.assertRaises(OSError):
            refrain.open(file).read()
        file.close()
        with self.assertRaises((ValueError, OSError)):
            refrain.open(file)


class Closed(unittest.TestCase):
    def test_closed_handles(self) -> None:
        archive = refrain.open(refrain.compress(b"data"))
        file = archive.open(buffering=0)
        buffered = archive.open()
        closed = archive.open(buffering=0)
        closed.close()
        for call in (lambda: closed.read(), lambda: closed.pread(1, 0), lambda: closed.seek(0)):
            with self.assertRaises(ValueError):
                call()
        archive.close()
        archive.close()
        self.assertTrue(archive.closed)
        for call in (
            lambda: archive.members,
            lambda: archive.entries,
            lambda: archive.read(),
            lambda: archive.extract("/nowhere"),
            lambda: file.read(1),
            lambda: file.readinto(bytearray(1)),
            lambda: buffered.read(1),
        ):
            with self.assertRaises(ValueError):
                call()

    def test_wrong_arguments(self) -> None:
        archive = refrain.open(refrain.compress(b"data"))
        file = archive.open(buffering=0)
        for call, error in [
            (lambda: archive.open(None, "r"), TypeError),
            (lambda: archive.extract("nowhere", "data"), TypeError),
            (lambda: refrain.compress(b"data", password=[1]), TypeError),
            (lambda: refrain.compress({"a": b"data"}, name="b"), ValueError),
            (lambda: file.seek(-1), ValueError),
            (lambda: file.seek(0, 7), ValueError),
            (lambda: file.pread(-1, 0), ValueError),
            (lambda: file.readinto(b"constant"), BufferError),
            (lambda: file.readinto(3), TypeError),
            (lambda: file.write(b"x"), OSError),
        ]:
            with self.assertRaises(error):
                call()
        self.assertEqual(file.readinto(bytearray()), 0)
        self.assertEqual(file.pread(1 << 60, 0), b"data")
        self.assertEqual(archive.read(None, 1, None), b"ata")
        self.assertEqual(file.pread(10, 1 << 62), b"")

    def test_many(self) -> None:
        data = refrain.compress(b"data" * 100)
        for _ in range(2000):
            with refrain.open(data) as archive:
                self.assertEqual(archive.read(None, 0, 4), b"data")
        self.assertLess(len(os.listdir("/proc/self/fd")), 100)


if __name__ == "__main__":
    unittest.main()
