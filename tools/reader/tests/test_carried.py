"""Archives that carry decoders, read without a codec or filter of this reader's own."""

from __future__ import annotations

import os
import subprocess
import unittest
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from blake3 import blake3

from refrain_reader import archive as archives
from refrain_reader import coding, listing
from refrain_reader.carried import CODEC, FILTER, Carried, from_directory
from refrain_reader.errors import Damaged, Limit, ReaderError, Unsupported
from refrain_reader.sources import File

from .test_golden import GOLDEN, command

MODULES = GOLDEN.parent / "crates" / "carried" / "modules"


@contextmanager
def outside(carried: Carried) -> Iterator[None]:
    """Reads with these decoders, and has none of its own."""
    own = list(coding.DECODERS)
    coding.OUTSIDE.append(carried)
    coding.DECODERS.clear()
    try:
        yield
    finally:
        coding.OUTSIDE.pop()
        coding.DECODERS.extend(own)


def module(decode: str, place: str = "i32.const 16", memory: int = 1) -> str:
    """The text of a module with these bodies."""
    return f"""(module
        (memory (export "memory") {memory})
        (func (export "place") (param i32 i32 i32) (result i32) {place})
        (func $decode (export "decode") (result i32) {decode}))"""


class CarriedDecoders(unittest.TestCase):
    """What `compress --carry-decoders` wrote, and what nobody should."""

    def test_golden_archives_that_carry_decoders(self) -> None:
        paths = sorted((GOLDEN / "carried").glob("*.rfn"))
        self.assertGreater(len(paths), 0)
        for path in paths:
            own = command("test", path)
            self.assertEqual((own.returncode, own.stderr), (0, ""))
            for mode in ("index", "stream", "scan"):
                with self.subTest(path.name, mode=mode):
                    result = command("test", "--mode", mode, "--decoders", "carried", path)
                    self.assertEqual((result.returncode, result.stdout), (0, own.stdout))

    def test_nothing_of_our_own_is_used(self) -> None:
        for path in sorted((GOLDEN / "carried").glob("*.rfn")):
            with open(path, "rb") as file, outside(Carried()):
                (archive,) = archives.open_indexed(File(file))
                for member in archive.members():
                    self.assertTrue(list(listing.lines(archive, member, exact=True)))
                    content = b"".join(archive.contents.of(member))
                    assert member.end is not None
                    self.assertEqual(blake3(content).digest(), member.end.content_hash)

    def test_our_modules_open_golden_archives(self) -> None:
        # All of them take a minute and a half, nightly; otherwise one for each codec and filter.
        is_nightly = int(os.environ.get("REFRAIN_TEST_SCALE", "1")) > 1
        kinds = ("*",) if is_nightly else ("codec-*", "filter-*")
        found = [(GOLDEN / "archives").glob(f"*/{kind}.rfn") for kind in kinds]
        paths = sorted(path for some in found for path in some)
        self.assertGreater(len(paths), 12)

        def tested(path: Path) -> subprocess.CompletedProcess[str]:
            return command("test", "--mode", "index", "--decoders", MODULES, path)

        with ThreadPoolExecutor(2) as threads:
            for path, result in zip(paths, threads.map(tested, paths), strict=True):
                with self.subTest(path.name):
                    self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_an_archive_without_decoders_says_which_it_needs(self) -> None:
        path = next((GOLDEN / "archives").glob("*/codec-lz.rfn"))
        result = command("test", "--decoders", "carried", path)
        self.assertEqual(result.returncode, 3)
        self.assertIn("carries no decoder for codec", result.stderr)

    def test_damaged_data_is_damaged(self) -> None:
        carried = from_directory(MODULES)
        for number in range(1, 11):
            with self.subTest(number), self.assertRaises(ReaderError):
                carried.undo(CODEC, number, b"\xff" * 6, b"\xff" * 50, 1000)

    def test_hostile_modules(self) -> None:
        self.check_module(module("i32.const 16"), None)
        self.check_module(module("(loop br 0) unreachable"), Limit)
        self.check_module(module("call $decode"), Damaged)
        self.check_module(module("unreachable"), Damaged)
        self.check_module(module("i32.const 0"), Damaged)
        self.check_module(module("i32.const 65534"), Damaged)
        self.check_module(module("i32.const -1"), Damaged)
        self.check_module(module("i32.const 16", place="i32.const -2"), Damaged)
        self.check_module(module("i32.const 16", place="i32.const 0"), Limit)
        self.check_module(module("i32.const 16", memory=1000), ReaderError)
        self.check_module("(module)", Damaged)
        self.check_module('(module (import "a" "b" (func)))', Damaged)
        self.check_module("(module (func (export", Damaged)

    def check_module(self, text: str, error: type[ReaderError] | None) -> None:
        """A module undoes a filter of 4 bytes with 16 pages and few steps, or raises `error`."""
        carried = Carried()
        with self.subTest(text):
            try:
                carried.add_module(FILTER, 9, text.encode(), (16, 100))
                raw = carried.undo(FILTER, 9, b"", b"data", 4)
            except ReaderError as found:
                self.assertIsNotNone(error, str(found))
                self.assertIsInstance(found, error or ReaderError)
            else:
                self.assertIsNone(error)
                self.assertEqual(raw, b"data")

    def test_unknown_decoders_are_unsupported(self) -> None:
        with self.assertRaises(Unsupported):
            Carried().undo(CODEC, 77, b"", b"", 1)


if __name__ == "__main__":
    unittest.main()
