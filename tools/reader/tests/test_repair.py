"""Damaged archives are healed byte for byte, or nothing is written: recovery.md."""

from __future__ import annotations

import io
import random
import tempfile
import unittest
from pathlib import Path

from refrain_reader.errors import Damaged, ReaderError, Unsupported
from refrain_reader.frames import MAGIC, SYNC, frame_bytes, read_frame
from refrain_reader.recovery import Numbers, find_set
from refrain_reader.reed_solomon import Code, tables
from refrain_reader.repair import repair
from refrain_reader.sources import File

from .maker import Maker, tail
from .protector import recovery_data
from .test_golden import GOLDEN, command

ORIGINAL = GOLDEN / "archives/0.1.0/recovery.rfn"


def file(raw: bytes) -> File:
    """Bytes as a file."""
    return File(io.BytesIO(raw))


def random_file(seed: int, size: int) -> bytes:
    """Magic, random bytes, and a tail."""
    return MAGIC + random.Random(seed).randbytes(size - 16) + tail(99)


class Field(unittest.TestCase):
    """Section 4."""

    def test_every_element_but_0_has_a_logarithm(self) -> None:
        self.assertEqual(sorted(tables()[1]), list(range(1, 65536)))

    def test_vector(self) -> None:
        code, starts = Code(5, 3), (0x0001, 0x1234, 0xBEEF, 0x0000, 0x8001)
        found = [[code.coefficient(j, i) for i in range(5)] for j in range(3)]
        self.assertEqual(found, [[12, 15, 10, 8, 10], [15, 12, 8, 10, 15], [10, 8, 12, 15, 8]])
        rows = [bytes([s & 255]) + bytes(31) + bytes([s >> 8]) + bytes(31) for s in starts]
        parity = code.parity([0, 1, 2], list(enumerate(rows)), 64)
        begins = [row[0] | row[32] << 8 for row in parity.values()]
        self.assertEqual(begins, [0x8BF5, 0xBF1C, 0x66AC])

    def test_any_rows_give_the_others(self) -> None:
        source = random.Random(4)
        for data_rows, parity_rows in ((1, 1), (5, 3), (9, 8), (20, 17), (3, 40)):
            code = Code(data_rows, parity_rows)
            rows = [(row, source.randbytes(64)) for row in range(data_rows)]
            parity = code.parity(list(range(parity_rows)), rows, 64)
            count = source.randint(1, min(data_rows, parity_rows))
            lost = source.sample(range(data_rows), count)
            kept = {j: parity[j] for j in source.sample(range(parity_rows), count)}
            known = [pair for pair in rows if pair[0] not in lost]
            self.assertEqual(code.restore(lost, kept, known, 64), {i: rows[i][1] for i in lost})


class Repairs(unittest.TestCase):
    """Section 5."""

    def setUp(self) -> None:
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def healed(self, *copies: bytes, apart: bytes | None = None) -> bytes:
        """The healed first copy."""
        target = self.directory / "healed"
        recovery = file(apart) if apart is not None else None
        try:
            repair([file(raw) for raw in copies], recovery, target, lambda _: None)
            return target.read_bytes()
        finally:
            target.unlink(missing_ok=True)
            self.assertEqual(list(self.directory.iterdir()), [])

    def test_golden(self) -> None:
        paths = sorted((GOLDEN / "damaged").glob("recovery-*.rfn"))
        self.assertGreater(len(paths), 4)
        for path in paths:
            with self.subTest(path.name):
                self.assertEqual(self.healed(path.read_bytes()), ORIGINAL.read_bytes())

    def test_command(self) -> None:
        path, target = GOLDEN / "damaged/recovery-overwritten.rfn", self.directory / "healed"
        result = command("repair", path, target)
        said = (result.returncode, result.stdout, result.stderr)
        self.assertEqual(said, (0, "6 of 80 slices were lost, and are healed\n", ""))
        self.assertEqual(target.read_bytes(), ORIGINAL.read_bytes())
        result = command("repair", path, target)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "File exists")
        self.assertEqual([found.name for found in self.directory.iterdir()], ["healed"])

    def test_bursts_insertions_and_losses_anywhere(self) -> None:
        source, raw = random.Random(6), ORIGINAL.read_bytes()
        for _ in range(60):
            at, count = source.randrange(len(raw)), source.randrange(1, 1500)
            new = source.randbytes(source.choice([0, 1, 16, count, 700]))
            damaged = raw[:at] + new + raw[at + count :]
            with self.subTest(at=at, count=count, new=len(new)):
                self.assertEqual(self.healed(damaged), raw)

    def test_any_layout(self) -> None:
        source = random.Random(7)
        for size, slice_bytes, rows, parity_rows in (
            (17, 256, 1, 1),
            (5000, 256, 20, 3),
            (5121, 256, 7, 4),
            (9000, 512, 5, 9),
            (40_001, 256, 53, 2),
            (100_000, 4096, 9, 5),
        ):
            raw = random_file(size, size)
            numbers = Numbers(size, slice_bytes, rows, parity_rows)
            whole = raw + recovery_data(raw, numbers)
            self.assertEqual(self.healed(whole), whole)
            for _ in range(4):
                damaged = bytearray(whole)
                at = source.randrange(len(whole))
                damaged[at : at + 200] = source.randbytes(source.choice([0, 200]))
                self.assertEqual(self.healed(bytes(damaged)), whole)

    def test_equal_slices_and_repeats_at_other_distances(self) -> None:
        source = random.Random(8)
        part = source.randbytes(1000)
        raw = MAGIC + bytes(3000) + part + b"x" + part + bytes(2345) + part + tail(9)
        numbers = Numbers(len(raw), 256, -(-len(raw) // 256), 2)
        whole = raw + recovery_data(raw, numbers)
        for at in range(0, len(raw), 300):
            damaged = whole[:at] + b"inserted" + whole[at:]
            self.assertEqual(self.healed(damaged), whole)
            damaged = whole[:at] + whole[at + 5 :]
            self.assertEqual(self.healed(damaged), whole)

    def test_recovery_data_in_a_file_of_its_own(self) -> None:
        raw = random.Random(9).randbytes(7000)
        frames = recovery_data(raw, Numbers(7000, 256, 14, 4), apart=True)
        damaged = raw[:900] + raw[1000:]
        self.assertEqual(self.healed(damaged, apart=frames[:-300]), raw)
        with self.assertRaisesRegex(Damaged, "no recovery data"):
            self.healed(damaged)

    def test_copies_help_each_other(self) -> None:
        raw = random_file(10, 8000)
        whole = raw + recovery_data(raw, Numbers(8000, 256, 32, 2))
        one, other = whole[:200] + whole[4000:], b"?" + whole[:4100] + bytes(3000)
        for damaged in (one, other):
            with self.assertRaises(ReaderError):
                self.healed(damaged)
        self.assertEqual(self.healed(one, other), whole)
        self.assertEqual(self.healed(other, one), whole)

    def test_too_much_damage(self) -> None:
        raw = random_file(11, 8000)
        whole = raw + recovery_data(raw, Numbers(8000, 256, 32, 2))
        with self.assertRaisesRegex(Damaged, "column 0 lacks 3 slices, and has 2 of par"):
            self.healed(whole[:300] + bytes(700) + whole[1000:])
        with self.assertRaisesRegex(Damaged, "no recovery data"):
            self.healed(raw)

    def test_recovery_data_of_an_archive_inside_is_not_used(self) -> None:
        inner = Maker().build()
        inner += recovery_data(inner, Numbers(len(inner), 256, 1, 2), archive_id=7)
        outer = ORIGINAL.read_bytes()[:1000] + inner
        with self.assertRaisesRegex(Damaged, "inside this file"):
            self.healed(outer)
        whole = outer + tail(9)
        whole += recovery_data(whole, Numbers(len(whole), 256, -(-len(whole) // 512), 3))
        self.assertEqual(find_set([file(whole)]).key.numbers.parity_rows, 3)
        self.assertEqual(self.healed(whole[:600] + b"?" * 300 + whole[900:]), whole)

    def test_an_archive_that_was_added_to_is_not_cut_off(self) -> None:
        whole = ORIGINAL.read_bytes()
        frame_at = whole.rindex(SYNC)
        header, frame = read_frame(file(whole), 0, frame_at)
        head = bytearray(frame.head)
        head[0] += 10
        head[3] = 2
        head += (1000).to_bytes(8, "little") + (500).to_bytes(2, "little")
        sequence, kind = header.sequence + 1, header.kind
        later = frame_bytes(header.archive_id, kind, 1, sequence, bytes(head), frame.data)
        grown = whole + later + tail(9)
        with self.assertRaises(Unsupported):
            self.healed(grown)
        with self.assertRaises(Unsupported):
            self.healed(later)

    def test_other_numbers_are_damaged(self) -> None:
        for numbers in (
            Numbers(0, 256, 1, 1),
            Numbers((1 << 47) + 1, 1 << 26, 1, 1),
            Numbers(1000, 128, 8, 1),
            Numbers(1000, 384, 3, 1),
            Numbers(1000, 1 << 27, 1, 1),
            Numbers(1 << 30, 256, 32_768, 1),
            Numbers(10_000, 256, 39, 1),
            Numbers(256 * 40_000, 256, 40_000, 1),
            Numbers(1000, 256, 4, 0),
            Numbers(1000, 256, 4, 16_385),
            Numbers(1 << 28, 256, 1024, 8192),
        ):
            with self.subTest(numbers), self.assertRaises(Damaged):
                numbers.check()


if __name__ == "__main__":
    unittest.main()
