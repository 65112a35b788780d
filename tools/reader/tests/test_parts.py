"""Numbers, tables, filters, references: against values of the documents and plain twins."""

from __future__ import annotations

import random
import unittest

from refrain_reader import bwt, cm, filters, lz, tar_fields, tar_names, tar_recipe, x86_64
from refrain_reader.contents import Member, check_entries
from refrain_reader.cursor import Cursor, unzigzag, varint, zigzag
from refrain_reader.entries import DIRECTORY, FILE, HARDLINK, RAW, Class, Entry, sort_key
from refrain_reader.errors import Damaged
from refrain_reader.hashes import entry_bytes, hasher
from refrain_reader.heads import TAR, TREE, MemberEnd, MemberStart
from refrain_reader.index import SliceRow
from refrain_reader.parity import has_parity, with_parity
from refrain_reader.slices import all_slices, separator, slices
from refrain_reader.tar_fields import pax_record, pax_time
from refrain_reader.tar_predict import Predictor


class Numbers(unittest.TestCase):
    """Section 1."""

    def test_varints(self) -> None:
        for value in (0, 1, 127, 128, 300, 1 << 35, (1 << 64) - 1):
            cursor = Cursor(varint(value), "test")
            self.assertEqual(cursor.varint(), value)
            cursor.end()
        for raw in (b"\x80\x00", b"\x80", b"", b"\xff" * 9 + b"\x02", b"\x80" * 10 + b"\x01"):
            with self.assertRaises(Damaged):
                Cursor(raw, "test").varint()

    def test_zigzag(self) -> None:
        self.assertEqual([unzigzag(v) for v in range(5)], [0, -1, 1, -2, 2])
        for value in (0, -1, 1, -(1 << 63), (1 << 63) - 1):
            self.assertEqual(unzigzag(zigzag(value)), value)


class Parity(unittest.TestCase):
    """Section 3."""

    def test_a_head_with_parity_has_it(self) -> None:
        rng = random.Random(3)
        for size in (0, 1, 7, 8, 117, 118, 300):
            fields, data = rng.randbytes(size), rng.randbytes(rng.randrange(40))
            head = with_parity(varint(size) + fields, data)
            self.assertEqual(len(head), len(varint(size + 10)) + size + 10)
            self.assertTrue(has_parity(head, data))
            self.assertFalse(has_parity(head, data + b"\1"))
            self.assertFalse(has_parity(varint(size) + fields, data))


class Tables(unittest.TestCase):
    """The checks in codec-bwt.md, codec-cm.md and codec-lz.md."""

    def test_lz(self) -> None:
        self.assertEqual(lz.Table(80, True).frequencies, [67] + [51] * 79)
        table = lz.Table(16, False)
        table.escapes = 6
        for symbol in (3, 3, 5, 3, 3, 3, 5, 9):
            table.count(symbol)
        frequencies = table.frequencies
        self.assertEqual((frequencies[3], frequencies[5], frequencies[9]), (1367, 546, 273))
        self.assertEqual((sum(frequencies), table.escape_start), (2186, 2186))

    def test_bwt(self) -> None:
        self.assertEqual(bwt.hash16(1, 0), 13636)
        self.assertEqual(bwt.hash16(0x6174, 7), 50435)
        self.assertEqual(bwt.near(50435, 255, 5), 46399)
        squash = bwt.squash_table()
        self.assertEqual(sum(p * i for i, p in enumerate(squash)), 405141599410)
        for rate, expected in ((4, 683542181), (5, 455361158)):
            steps = bwt.step_tables(rate)[1]
            self.assertEqual(sum(s * (i + 1) for i, s in enumerate(steps)), expected)
        numbers = bwt.byte_numbers()
        self.assertEqual((numbers[0], numbers[255]), (0xE220A838, 0x5A5832BB))

    def test_cm(self) -> None:
        self.assertEqual(cm.hash32(0x6162636465666768, 15), 531853244)
        squash, stretch = cm.squash_table(), cm.stretch_table()
        self.assertEqual(sum(p * (i + 1) for i, p in enumerate(squash)), 920446939394)
        self.assertEqual(sum(x * (i + 1) for i, x in enumerate(stretch)), 2150011841)
        states, nexts = cm.state_tables()
        self.assertEqual(len(states), 201)
        self.assertEqual((states[150], nexts[150]), ((0, 23, 0), (76, 152)))


def apply_x86(data: bytes) -> bytes:
    """What the encoder does, word for word."""
    out, at = bytearray(data), 0
    while at + 5 <= len(out):
        if out[at] not in (0xE8, 0xE9):
            at += 1
            continue
        if out[at + 4] in (0, 0xFF):
            number = int.from_bytes(out[at + 1 : at + 5], "little") + at + 5
            number %= 1 << 25
            signed = number - (1 << 25) if number >> 24 else number
            out[at + 1 : at + 5] = (signed % (1 << 32)).to_bytes(4, "little")
        at += 5
    return bytes(out)


def apply_arm64(data: bytes, first: int) -> bytes:
    """What the encoder does, word for word."""
    out = bytearray(data)
    for i, at in enumerate(range(first, len(out) - 3, 4)):
        word = int.from_bytes(out[at : at + 4], "little")
        if word >> 26 == 0b100101:
            word = word >> 26 << 26 | (word + i) % (1 << 26)
        elif word & 0x9F000000 == 0x90000000:
            page = (word >> 5) % (1 << 19) * 4 + (word >> 29) % 4
            page = page - (1 << 21) if page >> 20 else page
            if -(1 << 17) <= page < 1 << 17:
                page = (page + i // 1024) % (1 << 18)
                page = page - (1 << 18) if page >> 17 else page
                page %= 1 << 21
                word = word & 0x9F00001F | page % 4 << 29 | page // 4 << 5
        out[at : at + 4] = word.to_bytes(4, "little")
    return bytes(out)


class Filters(unittest.TestCase):
    """Section 5.3: undoing is the inverse of what the encoder does."""

    def test_inverse(self) -> None:
        source = random.Random(1)
        for _ in range(300):
            size = source.randrange(200)
            data = bytes(source.choice(b"\xe8\xe9\x00\xff\x01\x90") for _ in range(size))
            self.assertEqual(filters.undo(filters.X86, 0, apply_x86(data)), data)
            words = b"".join(
                source.choice((0x94000000, 0x90000000, 0xB0FFFFE0, 0xF07FFFE0))
                .__or__(source.getrandbits(23))
                .to_bytes(4, "little")
                for _ in range(size)
            )
            for first in range(4):
                coded = apply_arm64(words, first)
                self.assertEqual(filters.undo(filters.ARM64, first, coded), words)
            d = source.randrange(1, 17)
            delta = bytes((b - (data[i - d] if i >= d else 0)) % 256 for i, b in enumerate(data))
            self.assertEqual(filters.undo(filters.DELTA, d, delta), data)

    def test_lengths_of_instructions(self) -> None:
        for text, relative in (
            ("55", None),
            ("e801020304", 1),
            ("488d3d01020304", 3),
            ("66c705010203040506", 3),
            ("48b80102030405060708", None),
            ("f60501020304ff", 2),
            ("666666662e0f1f840000000000", None),
            ("c4e27d180501020304", 5),
            ("62f17c48280501020304", 6),
            ("8b042501020304", None),
        ):
            code = bytes.fromhex(text)
            found = x86_64.instruction(code.ljust(15, b"\xcc"))
            self.assertEqual(found, (len(code), relative, False), text)
        call = b"\x90\xe8" + (0x7654).to_bytes(4, "big") + bytes(14)
        self.assertEqual(
            filters.undo(filters.X86_64, 0, call)[2:6], (0x7654 - 6).to_bytes(4, "little")
        )


class Texts(unittest.TestCase):
    """Order of paths, and texts of tar streams."""

    def test_slash_is_below_every_other_byte_and_the_root_first(self) -> None:
        paths = [b".", b"-", b"..", b"a", b"a/b", b"a/b/c", b"a\x01", b"a.b", b"b"]
        self.assertEqual(sorted(paths[::-1], key=sort_key), paths)

    def test_pax(self) -> None:
        self.assertEqual(pax_record(b"k", b"v"), b"6 k=v\n")
        self.assertEqual(pax_record(b"key", b"v" * 92), b"101 key=" + b"v" * 92 + b"\n")
        self.assertEqual(pax_time(-2, 750_000_000), b"-1.25")
        self.assertEqual(pax_time(5, 120_000_000), b"5.12")
        self.assertEqual(pax_time(-3, 0), b"-3")


def member(kind: int, entries: list[Entry], flags: int) -> tuple[MemberStart, MemberEnd]:
    """A member with these entries and 10 bytes of content."""
    digest = hasher("entries").update(b"".join(map(entry_bytes, entries))).digest()
    start = MemberStart(0, 0, kind, 0, b"", None, None, None, None)
    return start, MemberEnd(0, 10, flags, bytes(32), 0, len(entries), digest, ())


class EntryLists(unittest.TestCase):
    """Section 4.4: the rules for the entries of a member together."""

    @staticmethod
    def entry(path: bytes, kind: int = FILE, link: bytes = b"", size: int = 0) -> Entry:
        """An entry with only these fields."""
        return Entry(path, Class(kind, 0o644), size=size, link=link)

    def test_right_ones(self) -> None:
        entry, hard = self.entry, HARDLINK
        tree = [
            entry(b".", DIRECTORY),
            entry(b"a"),
            entry(b"b", hard, b"a"),
            entry(b"d", DIRECTORY),
        ]
        check_entries(
            *member(TREE, [*tree, entry(b"d/e", size=10)], 3), [tree, [entry(b"d/e", size=10)]]
        )
        check_entries(*member(TREE, [], 2), [])
        check_entries(*member(TREE, tree, 2), [[tree[1], tree[3]], [tree[0], tree[2]]])
        unsorted = [entry(b"./b"), entry(b"b", hard, b"nowhere"), entry(b"b/c"), entry(b"a//")]
        check_entries(*member(TAR, unsorted, 2), [unsorted])

    def test_wrong_ones(self) -> None:
        entry, hard = self.entry, HARDLINK
        for kind, flags, entries, says in (
            (TREE, 2, [entry(b"a")], "order"),
            (TREE, 3, [], "order"),
            (TAR, 3, [entry(b"b"), entry(b"a")], "order"),
            (TREE, 2, [entry(b"b"), entry(b"a")], "order of a frame"),
            (TREE, 3, [entry(b"a"), entry(b"a")], "order"),
            (TREE, 3, [entry(b"a", size=11)], "content"),
            (TREE, 3, [entry(b"a/./b")], "normal form"),
            (TREE, 3, [entry(b"a/")], "normal form"),
            (TREE, 3, [entry(b"a"), entry(b"a/b")], "no directory"),
            (TREE, 3, [entry(b"."), entry(b"a")], "no directory"),
            (TREE, 3, [entry(b"a", hard, b"b"), entry(b"b")], "hard link"),
            (TREE, 3, [entry(b"a", DIRECTORY), entry(b"b", hard, b"a")], "hard link"),
            (TREE, 3, [entry(b"a"), entry(b"b", hard, b"a"), entry(b"c", hard, b"b")], "hard link"),
            (TREE, 3, [entry(b"", RAW)], "tar stream"),
        ):
            with self.subTest(says, entries=entries), self.assertRaisesRegex(Damaged, says):
                check_entries(*member(kind, entries, flags), [entries])

    def test_slices(self) -> None:
        a, b, c, d = (self.entry(path) for path in (b"a", b"b/x", b"b/y", b"d"))
        start, end = member(TREE, [a, b, c, d], 2)
        frames = [[a, c, d], [b]]
        rows = [SliceRow(0, 0, 1, b""), SliceRow(1, 0, 1, b"b"), SliceRow(0, 1, 2, b"b/y")]
        self.assertEqual(slices(frames, 0), rows)
        moved = [SliceRow(r.frame + 1, r.first_entry, r.entry_count, r.separator) for r in rows]
        sorted_one = Member(start, end, [[a, b]])
        self.assertEqual(all_slices([sorted_one, Member(start, end, frames)]), moved)
        self.assertEqual(separator(b".", b".git/x"), b".g")
        self.assertEqual(separator(b"p" * 299, b"p" * 300), b"p" * 255)


class TarStreams(unittest.TestCase):
    """tar-view.md, "Tar streams"."""

    def test_numbers_of_fields(self) -> None:
        for raw, expected in (
            (b"0000644\0", 0o644),
            (b"   644 \0", 0o644),
            (bytes(8), 0),
            (b"64x\0\0\0\0\0", None),
            (b"\x80\0\0\0\0\0\1\0", 256),
            (b"\xff\xff\xff\xff\xff\xff\xff\xfe", -2),
        ):
            self.assertEqual(tar_fields.number(raw, (0, 8)), expected, raw)
        self.assertIsNone(tar_fields.number(b"\x81" * 12, (0, 12)))

    def test_numbers_keep_their_form(self) -> None:
        for raw, value, expected in (
            (b"0000644\0", 0o755, b"0000755\0"),
            (b"   644 \0", 0o55, b"    55 \0"),
            (b"000644 \0", 0o1234567, b"1234567\0"),
            (b"0000000\0", 0o77777777, b"\x80\0\0\0\0\xff\xff\xff"),
            (bytes(8), 8, b"0000010\0"),
            (bytes(8), 0, bytes(8)),
            (b"\x80\0\0\0\0\xff\xff\xff", 1, b"0000001\0"),
            (b"0000001\0", -2, b"\xff\xff\xff\xff\xff\xff\xff\xfe"),
            (b"77777777", 0o12345670, b"12345670"),
        ):
            record = bytearray(raw)
            tar_fields.set_number(record, (0, 8), value)
            self.assertEqual(bytes(record), expected, (raw, value))

    def test_inserted_names(self) -> None:
        for name, path in (
            (b"./PaxHeaders/.", b"./"),
            (b"./PaxHeaders.77/a", b"a"),
            (b"d/PaxHeaders.77/a", b"d/a"),
            (b"d/PaxHeaders.0", b"d/"),
            (b"PaxHeader/a", b"a/"),
        ):
            form = tar_names.find(name, path)
            self.assertEqual(form and form.apply(path), name)
        self.assertIsNone(tar_names.find(b"././@PaxHeader", b"d/a"))

    def test_malformed_recipes(self) -> None:
        for recipe in (
            b"\x08",
            b"\0\0",
            b"\4",
            b"\4\1\1",
            b"\4\x0b",
            b"\4\3x\1\1\0\0",
            b"\4\3g\0",
            b"\4\x80\0",
            b"\4\0\x80\4\1a",
            b"\4\0\0\5a",
        ):
            entry = Entry(b"a", Class(FILE, 0o644), recipe=recipe)
            with self.subTest(recipe), self.assertRaises(Damaged):
                tar_recipe.apply(entry, Predictor())


if __name__ == "__main__":
    unittest.main()
