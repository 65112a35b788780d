"""RefrainFile, as gzip.GzipFile and lzma.LZMAFile are used."""

from __future__ import annotations

import bz2
import csv
import gc
import gzip
import io
import lzma
import os
import sys
import tarfile
import threading
import unittest

import refrain
from refrain import RefrainFile
from support import InDirectory, passage


class OnlyForward(io.RawIOBase):
    """A file that cannot seek."""

    def __init__(self, data: bytes) -> None:
        self.inner = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]
        return self.inner.readinto(buffer)


class Written(InDirectory):
    def test_written_and_read(self) -> None:
        path = self.path("x.rfn")
        pieces = [passage(seed, size) for seed, size in enumerate([0, 1, 1000, 400_000, 3, 2_000_000])]
        with RefrainFile(path, "wb", level=1) as file:
            self.assertTrue(file.writable() and not file.readable() and not file.seekable())
            for piece in pieces:
                self.assertEqual(file.write(piece), len(piece))
            self.assertEqual(file.tell(), sum(map(len, pieces)))
            self.assertFalse(os.path.exists(path))
        data = b"".join(pieces)
        with RefrainFile(path) as file:
            self.assertTrue(file.readable() and file.seekable() and not file.writable())
            self.assertEqual(file.read(1000), data[:1000])
            self.assertEqual(file.seek(-5, os.SEEK_END), len(data) - 5)
            self.assertEqual(file.read(), data[-5:])
            file.seek(0)
            self.assertEqual(file.read(), data)
        with open(path, "rb") as inner, RefrainFile(fileobj=inner) as file:
            self.assertEqual(file.read(), data)

    def test_forward(self) -> None:
        data = passage(1, 3_000_000)
        archive = refrain.compress(data, io.BytesIO()) and refrain.compress(data)
        with RefrainFile(OnlyForward(archive)) as file:
            self.assertEqual(file.read(100), data[:100])
            self.assertEqual(file.read(), data[100:])
            self.assertEqual(file.read(), b"")
            self.assertFalse(file.seekable())
        with RefrainFile(OnlyForward(archive)) as file:
            file.read(10)  # The rest is not wanted.
        with self.assertRaises(refrain.RefrainError):
            RefrainFile(OnlyForward(archive[:-1000])).read()
        with self.assertRaises(refrain.UsageError):
            refrain.open(OnlyForward(archive))

    def test_lines(self) -> None:
        path = self.path("x.rfn")
        with refrain.open_file(path, "wt", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([number, f"é{number}"] for number in range(10_000))
        with refrain.open_file(path, "rt", encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[9_999], ["9999", "é9999"])
        with RefrainFile(path) as file:
            self.assertEqual(next(file), "0,é0\r\n".encode())
            self.assertEqual(sum(1 for _ in file), 9_999)

    def test_tar(self) -> None:
        source = self.project()
        path = self.path("p.tar.rfn")
        with RefrainFile(path, "wb") as file, tarfile.open(fileobj=file, mode="w|") as tar:
            tar.add(source, "project")
        with RefrainFile(path) as file, tarfile.open(fileobj=file) as tar:
            self.assertEqual(tar.extractfile("project/link.csv").read(), b"x,y\n1,2\n3,4\n")
        refrain.compress(source, self.path("p.rfn"))
        with RefrainFile(self.path("p.rfn")) as file, tarfile.open(fileobj=file) as tar:
            self.assertEqual(tar.extractfile("docs/b.bin").read(), passage(1, 300_000))

    def test_an_exception_leaves_nothing(self) -> None:
        path = self.path("x.rfn")
        before = threading.active_count()
        with self.assertRaises(ZeroDivisionError), RefrainFile(path, "wb") as file:
            file.write(passage(1, 2_000_000))
            raise ZeroDivisionError
        self.assertEqual(os.listdir(self.directory), [])
        self.assertEqual(threading.active_count(), before)

    def test_modes(self) -> None:
        path = self.write("kept", b"old")
        for mode in ("xb", "wb"):
            with self.assertRaises(IsADirectoryError):
                RefrainFile(self.directory, mode)
        with self.assertRaises(FileExistsError):
            RefrainFile(path, "xb")
        with RefrainFile(path, "wb") as file:
            file.write(b"new")
        self.assertEqual(RefrainFile(path).read(), b"new")
        for mode in ("ab", "r+", "", "q"):
            with self.assertRaises(ValueError):
                RefrainFile(path, mode)
        with self.assertRaises(FileNotFoundError):
            RefrainFile(self.path("none/x.rfn"), "wb")
        with self.assertRaises(ValueError):
            refrain.open_file(path, "rb", encoding="utf-8")
        with self.assertRaises(TypeError):
            refrain.open_file(path, "wb", 9)
        with self.assertRaises(FileNotFoundError):
            RefrainFile(self.path("none"))
        with self.assertRaises(TypeError):
            RefrainFile(3)

    def test_what_nobody_closed_is_no_archive(self) -> None:
        path = self.write("x.rfn", b"kept")
        before = threading.active_count()
        with self.assertWarns(ResourceWarning):
            RefrainFile(path, "wb").write(passage(1, 2_000_000))
            gc.collect()
        self.assertEqual(threading.active_count(), before)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), b"kept")

    def test_threads_share_a_writer(self) -> None:
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        sys.setswitchinterval(1e-5)
        archive = io.BytesIO()
        with RefrainFile(fileobj=archive, mode="wb", level=1) as file:

            def write(number: int) -> None:
                for _ in range(2000):
                    file.write(bytes([number]) * 1000)

            threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(file.tell(), 8_000_000)
        data = refrain.decompress(archive.getvalue())
        self.assertEqual([data.count(number) for number in range(4)], [2_000_000] * 4)

    def test_other_formats(self) -> None:
        text = b"some text\n" * 100_000
        for pack in (gzip.compress, bz2.compress, lzma.compress):
            packed = pack(text)
            path = self.write("packed", packed)
            for file in (path, io.BytesIO(packed)):
                with RefrainFile(file) as opened:
                    self.assertEqual(opened.read(), text)
                with refrain.open(file) as archive:
                    self.assertEqual(archive.read(), text)
                    self.assertEqual(archive.read(None, 5, 9), text[5:14])
                    with self.assertRaises(refrain.UnsupportedError):
                        archive.open()

    def test_writers_that_fail(self) -> None:
        class Full(io.RawIOBase):
            def write(self, data: object) -> int:
                raise OSError(28, "No space left on device")

        with self.assertRaises(OSError) as caught:
            with RefrainFile(fileobj=Full(), mode="wb", level=1) as file:
                for seed in range(30):
                    file.write(passage(seed, 1_000_000))
        self.assertEqual(caught.exception.errno, 28)

    def test_closed(self) -> None:
        file = RefrainFile(self.path("x.rfn"), "wb")
        file.close()
        file.close()
        for call in (lambda: file.write(b"x"), lambda: file.read(), lambda: file.tell()):
            with self.assertRaises(ValueError):
                call()

    def test_members(self) -> None:
        path = self.path("m.rfn")
        refrain.compress({"a": b"one", "b": b"two"}, path)
        self.assertEqual(RefrainFile(path, member="b").read(), b"two")
        with self.assertRaises(refrain.UsageError):
            RefrainFile(path)


if __name__ == "__main__":
    unittest.main()
