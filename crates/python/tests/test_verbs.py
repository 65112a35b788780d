"""compress, decompress, test: every kind of input and output, and what goes wrong."""

from __future__ import annotations

import array
import io
import os
import unittest

import refrain
from support import InDirectory, passage


class Buffers(unittest.TestCase):
    def test_kinds_of_buffers(self) -> None:
        data = passage(1, 100_000)
        numbers = array.array("d", range(1000))
        for given in (data, bytearray(data), memoryview(data), memoryview(data)[10:], numbers):
            with self.subTest(type(given)):
                expected = memoryview(given).tobytes()
                self.assertEqual(refrain.decompress(refrain.compress(given)), expected)

    def test_empty(self) -> None:
        for given in (b"", bytearray(), memoryview(b""), [], iter(()), io.BytesIO()):
            self.assertEqual(refrain.decompress(refrain.compress(given)), b"")

    def test_scattered_buffers_are_refused(self) -> None:
        with self.assertRaises(BufferError):
            refrain.compress(memoryview(bytes(100))[::2])

    def test_numpy(self) -> None:
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        matrix = numpy.arange(100_000, dtype="int32").reshape(100, 1000)
        content = refrain.decompress(refrain.compress(matrix))
        self.assertEqual(content, matrix.tobytes())
        with refrain.open(refrain.compress(matrix)) as archive:
            target = numpy.empty(1000, dtype="int32")
            self.assertEqual(archive.open(buffering=0).readinto(target), 4000)
            self.assertTrue((target == matrix[0]).all())

    def test_same_bytes_for_any_threads(self) -> None:
        data = passage(2, 3_000_000) * 2
        archives = {refrain.compress(data, threads=threads) for threads in (1, 2, 5)}
        self.assertEqual(len(archives), 1)

    def test_the_second_passage_costs_nothing(self) -> None:
        data = passage(3, 1_000_000)
        self.assertLess(len(refrain.compress(data + b"!" + data)), 1_010_000)


class Options(unittest.TestCase):
    def test_wrong_values(self) -> None:
        wrong = [
            ({"level": 10}, refrain.UsageError),
            ({"codec": "zip"}, refrain.UsageError),
            ({"purpose": "fun"}, refrain.UsageError),
            ({"memory": 1}, refrain.RefrainError),
            ({"level": "high"}, TypeError),
            ({"levels": 3}, TypeError),
            ({"recipients": ["nobody"]}, refrain.UsageError),
            ({"recipients": []}, refrain.UsageError),
            ({"level": -1}, refrain.UsageError),
            ({"threads": 1 << 70}, refrain.UsageError),
        ]
        for options, error in wrong:
            with self.subTest(options), self.assertRaises(error):
                refrain.compress(b"data", **options)

    def test_options_that_do_not_exist(self) -> None:
        calls = [
            (lambda: refrain.compress(b"", levels=3), "compress has no option 'levels'"),
            (lambda: refrain.test(b"", level=3), "test has no option 'level'"),
            (lambda: refrain.open_file(io.BytesIO(), level=3), "to read, has no option 'level'"),
        ]
        for call, text in calls:
            with self.assertRaisesRegex(TypeError, text):
                call()

    def test_types_have_all_options(self) -> None:
        from refrain import _types, _verbs

        for types, function in (
            (_types.ReadingOptions, _verbs.reading_options),
            (_types.WritingOptions, _verbs.writing_options),
        ):
            self.assertEqual(tuple(types.__annotations__), _verbs.parameters(function))

    def test_password(self) -> None:
        archive = refrain.compress(b"secret" * 100, password="word")
        self.assertEqual(refrain.decompress(archive, password="word"), b"secret" * 100)
        self.assertEqual(refrain.open(archive, password=b"word").read()[:6], b"secret")
        for password in (None, "other"):
            with self.assertRaises(refrain.LockedError):
                refrain.decompress(archive, password=password)

    def test_levels(self) -> None:
        data = b"a few words, again and again; " * 3000
        for level in range(1, 10):
            self.assertEqual(refrain.decompress(refrain.compress(data, level=level)), data)


class Files(InDirectory):
    def test_paths(self) -> None:
        data = passage(4, 500_000)
        source = self.write("data", data)
        summary = refrain.compress(source, self.path("data.rfn"))
        self.assertEqual(summary.content_bytes, len(data))
        self.assertEqual(summary.archive_bytes, os.path.getsize(self.path("data.rfn")))
        with refrain.open(self.path("data.rfn")) as archive:
            self.assertEqual(archive.members[0].name, "data")
        refrain.decompress(self.path("data.rfn"), self.path("copy"))
        with open(self.path("copy"), "rb") as file:
            self.assertEqual(file.read(), data)

    def test_existing_files_are_kept(self) -> None:
        path = self.write("kept", b"old")
        with self.assertRaises(FileExistsError):
            refrain.compress(b"data", path)
        refrain.compress(b"data", path, overwrite=True)
        self.assertEqual(refrain.decompress(path), b"data")
        with self.assertRaises(FileExistsError):
            refrain.decompress(path, path)

    def test_missing_files(self) -> None:
        for verb in (refrain.compress, refrain.decompress, refrain.open, refrain.test):
            with self.assertRaises(FileNotFoundError):
                verb(self.path("missing"))

    def test_file_objects(self) -> None:
        data = passage(5, 3_000_000)
        path = self.write("data", data)
        with open(path, "rb") as file:
            archive = refrain.compress(file)
        out = io.BytesIO()
        refrain.decompress(io.BytesIO(archive), out)
        self.assertEqual(out.getvalue(), data)
        with open(path, "rb") as file:
            file.seek(1000)
            self.assertEqual(refrain.decompress(refrain.compress(file)), data[1000:])

    def test_iterables(self) -> None:
        pieces = [passage(seed, seed * 1000) for seed in range(60)]
        archive = refrain.compress(iter(pieces))
        self.assertEqual(refrain.decompress(archive), b"".join(pieces))
        cut = [archive[start : start + 1000] for start in range(0, len(archive), 1000)]
        self.assertEqual(refrain.decompress(cut), b"".join(pieces))

    def test_mapping(self) -> None:
        archive = refrain.compress({"a": b"one", "b": io.BytesIO(b"two"), "c": [b"th", b"ree"]})
        with refrain.open(archive) as opened:
            self.assertEqual([member.name for member in opened.members], ["a", "b", "c"])
            self.assertEqual([opened.read(name) for name in "abc"], [b"one", b"two", b"three"])
        with self.assertRaises(refrain.UsageError):
            refrain.decompress(archive)

    def test_other_formats(self) -> None:
        import bz2
        import gzip
        import lzma

        for module in (bz2, gzip, lzma):
            self.assertEqual(refrain.decompress(module.compress(b"data" * 1000)), b"data" * 1000)

    def test_directory(self) -> None:
        refrain.compress(self.project(), self.path("p.rfn"))
        tar = refrain.decompress(self.path("p.rfn"))
        import tarfile

        names = tarfile.open(fileobj=io.BytesIO(tar)).getnames()
        self.assertTrue(any(name.endswith("docs/deep/c.csv") for name in names), names)


class OwnOutput(InDirectory):
    def test_an_archive_in_its_directory_is_no_part_of_the_next(self) -> None:
        self.write("d/a", b"content")
        for _ in range(2):
            refrain.compress(self.path("d"), self.path("d/out.rfn"), overwrite=True)
            with refrain.open(self.path("d/out.rfn")) as archive:
                self.assertEqual([entry.path for entry in archive.entries], [".", "a"])


class Progress(unittest.TestCase):
    def test_callback(self) -> None:
        calls: list[tuple[int, int | None, int]] = []
        data = passage(6, 20_000_000)
        archive = refrain.compress(data, progress=lambda *numbers: calls.append(numbers))
        self.assertEqual(calls[-1][0], len(data))
        self.assertEqual(calls[-1][2], len(archive))
        calls.clear()
        refrain.decompress(archive, progress=lambda *numbers: calls.append(numbers))
        done = [call[0] for call in calls]
        self.assertEqual(done, sorted(done))
        self.assertEqual(calls[-1][:2], (len(data), len(data)))

    def test_exception_ends_the_run(self) -> None:
        def stop(*_: object) -> None:
            raise KeyError("enough")

        data = passage(7, 20_000_000)
        with self.assertRaises(KeyError):
            refrain.compress(data, progress=stop)
        with self.assertRaises(KeyError):
            refrain.decompress(refrain.compress(data), progress=stop)


class Imports(unittest.TestCase):
    def test_nothing_else_is_imported(self) -> None:
        import subprocess
        import sys

        code = "import refrain, sys; print(*sorted({'fsspec', 'numpy', 'threading'} & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("\n", ""))


class Broken(InDirectory):
    def test_damage(self) -> None:
        archive = bytearray(refrain.compress(passage(8, 100_000)))
        archive[len(archive) // 2] ^= 1
        for verb in (refrain.decompress, refrain.test):
            with self.assertRaises(refrain.DamagedError):
                verb(bytes(archive))
        with self.assertRaises(OSError):
            refrain.open(bytes(archive)).read()

    def damaged_project(self) -> bytes:
        """An archive of which a file of several has a damaged block, and nothing else."""
        for number in range(3):
            self.write(f"many/{number}.bin", passage(20 + number, 300_000))
        archive = bytearray(refrain.compress(self.path("many"), block_bytes=1 << 18))
        archive[archive.index(passage(21, 300_000)[150_000:150_100])] ^= 1
        return bytes(archive)

    def test_recover(self) -> None:
        archive = self.damaged_project()
        with self.assertRaises(refrain.DamagedError):
            refrain.open(archive).extract(self.path("all"))
        found = refrain.recover(archive, self.path("left"))
        self.assertTrue(found.is_damaged)
        self.assertEqual([problem.path for problem in found.problems], ["1.bin"])
        [(start, end)] = found.problems[0].missing
        self.assertTrue(start <= 150_000 < end)
        self.assertEqual(sorted(os.listdir(self.path("left"))), ["0.bin", "2.bin"])

        kept = refrain.recover(archive, self.path("kept"), keep_broken=True)
        self.assertTrue(kept.problems[0].is_kept)
        with open(self.path("kept", "1.bin"), "rb") as file:
            data = file.read()
        whole = passage(21, 300_000)
        self.assertEqual(data, whole[:start] + bytes(end - start) + whole[end:])

        intact = refrain.recover(refrain.compress(self.path("many")), self.path("intact"))
        self.assertEqual((intact.problems, intact.is_damaged), ([], False))
        with self.assertRaises(refrain.DamagedError):
            refrain.recover(passage(1, 1000), self.path("none"))

    def test_recover_what_is_cut_off_and_several_members(self) -> None:
        archive = refrain.compress({"a": passage(1, 300_000), "b": passage(2, 300_000)})
        cut = refrain.recover(archive[:400_000], self.path("cut"))
        self.assertTrue(cut.is_damaged)
        self.assertEqual(os.listdir(self.path("cut")), ["a"])
        with open(self.path("cut", "a"), "rb") as file:
            self.assertEqual(file.read(), passage(1, 300_000))

        self.damaged_project()
        several = bytearray(
            refrain.compress({"a": passage(1, 300_000), "b": self.path("many")}, block_bytes=1 << 18)
        )
        several[several.index(passage(22, 300_000)[150_000:150_100])] ^= 1
        found = refrain.recover(bytes(several), self.path("several"))
        self.assertEqual([problem.path for problem in found.problems], ["b/2.bin"])
        with open(self.path("several", "a"), "rb") as file:
            self.assertEqual(file.read(), passage(1, 300_000))
        self.assertEqual(sorted(os.listdir(self.path("several", "b"))), ["0.bin", "1.bin"])

    def test_file_names_in_exceptions(self) -> None:
        exists = self.write("exists", b"data")
        os.mkdir(self.path("folder"))
        calls = [
            (lambda: refrain.open(self.path("missing")), "missing", FileNotFoundError),
            (lambda: refrain.decompress(self.path("missing")), "missing", FileNotFoundError),
            (lambda: refrain.compress(self.path("missing")), "missing", FileNotFoundError),
            (lambda: refrain.compress(b"data", exists), "exists", FileExistsError),
            (lambda: refrain.open(self.path("folder")), "folder", IsADirectoryError),
            (lambda: refrain.open_file(exists, "x"), "exists", FileExistsError),
            (lambda: refrain.compress(b"data", self.path("a", "b")), "a/b", FileNotFoundError),
        ]
        for call, name, kind in calls:
            with self.subTest(name), self.assertRaises(kind) as raised:
                call()
            self.assertIsInstance(raised.exception, refrain.RefrainError)
            self.assertEqual(raised.exception.filename, self.path(name))
            self.assertEqual(raised.exception.strerror, os.strerror(raised.exception.errno))

    def test_recover_what_has_no_name_or_a_bad_one(self) -> None:
        content = passage(1, 100_000)
        refrain.compress(content, self.path("log.txt.rfn"))
        refrain.recover(self.path("log.txt.rfn"), self.path("named"))
        self.assertEqual(os.listdir(self.path("named")), ["log.txt"])
        refrain.open(refrain.compress(content)).extract(self.path("unnamed"))
        self.assertEqual(os.listdir(self.path("unnamed")), ["content"])
        members = {"ok": b"1", "../bad": b"2", "a/b": b"3"}
        found = refrain.recover(refrain.compress(members), self.path("members"))
        self.assertEqual([problem.path for problem in found.problems], ["../bad"])
        self.assertFalse(found.is_complete or found.is_damaged)
        self.assertEqual(sorted(os.listdir(self.path("members"))), ["a", "ok"])
        with self.assertRaises(refrain.UsageError):
            refrain.open(refrain.compress(members)).extract(self.path("refused"))

    def test_recover_tells_of_names_that_are_lost(self) -> None:
        archive = refrain.compress(self.project(), purpose="serve")
        found = refrain.recover(archive[: len(archive) // 2], self.path("out"))
        self.assertEqual((found.is_damaged, found.is_complete), (True, False))
        self.assertEqual(found.incomplete_lists, 1)

    def test_files_of_a_zip_that_cannot_be_read(self) -> None:
        import zipfile

        with zipfile.ZipFile(self.path("f.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(3):
                archive.writestr(f"f{number}", b"text %d " % number * 1000)
        with open(self.path("f.zip"), "rb") as file:
            data = bytearray(file.read())
        data[data.index(b"f1") + 10] ^= 1
        with self.assertRaises(refrain.DamagedError):
            refrain.test(bytes(data))
        problems = refrain.open(bytes(data)).extract(self.path("out"))
        self.assertEqual([problem.path for problem in problems], ["f1"])
        found = refrain.recover(bytes(data), self.path("left"))
        self.assertEqual([problem.path for problem in found.problems], ["f1"])
        self.assertEqual(sorted(os.listdir(self.path("left"))), ["f0", "f2"])

    def test_what_is_no_archive(self) -> None:
        for data in (b"", b"x", bytes(10_000), b"hello " * 1000):
            for verb in (refrain.decompress, refrain.open, refrain.test):
                with self.assertRaises(refrain.RefrainError):
                    verb(data)

    def test_what_is_no_input(self) -> None:
        for given in (None, 3, [1, 2], ["text"], io.StringIO("text"), object()):
            with self.subTest(given), self.assertRaises(TypeError):
                refrain.compress(given)

    def test_file_objects_that_fail(self) -> None:
        class Failing(io.RawIOBase):
            def __init__(self, answer: object) -> None:
                self.answer = answer
                self.calls = 0

            def readable(self) -> bool:
                return True

            def read(self, size: int = -1) -> object:
                self.calls += 1
                if self.calls < 3:
                    return bytes(1000)
                if isinstance(self.answer, BaseException):
                    raise self.answer
                return self.answer

        for answer, error in [
            (ZeroDivisionError("mine"), ZeroDivisionError),
            (bytes(3 << 20), OSError),
            ("text", TypeError),
            (None, BlockingIOError),
        ]:
            with self.subTest(answer if isinstance(answer, Exception) else type(answer)):
                with self.assertRaises(error):
                    refrain.compress(Failing(answer), self.path("out.rfn"))
                self.assertFalse(os.path.exists(self.path("out.rfn")))

    def test_writers_that_fail(self) -> None:
        class Writer:
            def __init__(self, answer: object) -> None:
                self.answer = answer

            def write(self, data: bytes) -> object:
                if isinstance(self.answer, BaseException):
                    raise self.answer
                return self.answer

        data = passage(9, 100_000)
        for answer, error in [
            (ZeroDivisionError("mine"), ZeroDivisionError),
            (1 << 40, OSError),
            (0, OSError),
            (-1, OverflowError),
            ("text", TypeError),
        ]:
            with self.subTest(answer), self.assertRaises(error):
                refrain.compress(data, Writer(answer))
            with self.subTest(answer), self.assertRaises(error):
                refrain.decompress(refrain.compress(data), Writer(answer))

    def test_writers_that_take_little(self) -> None:
        class Slow(io.BytesIO):
            def write(self, data: bytes) -> int:
                return super().write(data[:700])

        data = passage(10, 50_000)
        out = Slow()
        refrain.compress(data, out)
        self.assertEqual(refrain.decompress(out.getvalue()), data)

    def test_generators_that_fail(self) -> None:
        def pieces():  # type: ignore[no-untyped-def]
            yield b"data"
            raise LookupError("no more")

        with self.assertRaises(LookupError):
            refrain.compress(pieces())


if __name__ == "__main__":
    unittest.main()
