"""Archives made by hand: what is right is read, each wrong thing has its class."""

from __future__ import annotations

import io
import unittest

from refrain_reader import archive as archives
from refrain_reader.cursor import text
from refrain_reader.errors import Damaged, Limit, ReaderError, Unsupported
from refrain_reader.frames import MAGIC
from refrain_reader.scan import open_scanned
from refrain_reader.sources import File, Pipe

from . import maker as m


def read(raw: bytes) -> list[tuple[bytes, bytes]]:
    """Names and contents, after comparing all ways of reading."""
    file = File(io.BytesIO(raw))
    found = []
    for opened in (
        archives.open_streamed(Pipe(io.BytesIO(raw))),
        archives.open_indexed(file),
        list(open_scanned(file)),
    ):
        members = [(a, member) for a in opened for member in a.members()]
        found.append([(x.start.name, b"".join(a.contents.of(x))) for a, x in members])
    if not found[0] == found[1] == found[2]:
        raise AssertionError(found)
    for opened_archive in archives.open_indexed(file):
        if isinstance(opened_archive, archives.Indexed):
            opened_archive.check()
    return found[0]


EXPECTED = [(b"be.txt", m.CONTENT)]


class Right(unittest.TestCase):
    """What every reader must read."""

    def test_the_example(self) -> None:
        self.assertEqual(read(m.Maker().build()), EXPECTED)

    def test_concatenation(self) -> None:
        raw = m.Maker().build()
        self.assertEqual(read(raw * 3), EXPECTED * 3)

    def test_mask(self) -> None:
        parts = m.plain()
        parts[4] = m.masked_block(0x5A)
        self.assertEqual(read(m.Maker(parts).build()), EXPECTED)

    def test_skippable_frames_and_even_extensions(self) -> None:
        parts = m.plain()
        parts[1].fields += m.numbers(2, 1, 7) + m.numbers(300, 0)
        parts.insert(2, m.Frame(20, m.numbers(0, 0), b"padding", flags=1))
        parts.append(m.Frame(200, m.numbers(1, 0) + bytes(16), flags=3))
        parts.append(m.Frame(77, b"", flags=1, payload=b"\xffno head"))
        self.assertEqual(read(m.Maker(parts).build()), EXPECTED)

    def test_whole(self) -> None:
        block_bytes = len(m.block().encode(0))
        raw = m.whole(m.plain(), block_bytes)
        self.assertLess(len(raw), len(m.Maker().build()) // 2)
        self.assertEqual(read(raw + m.Maker().build() + raw), EXPECTED * 3)

    def test_an_index_of_any_depth(self) -> None:
        for depth in range(1, 9):
            self.assertEqual(read(m.Maker(depth=depth).build()), EXPECTED)

    def test_unknown_even_lists(self) -> None:
        node = m.Frame(7, m.numbers(6, 0, 1, 0, 0, 0), b"rows")
        maker = m.Maker(nodes=[node], roots=m.numbers(8, 0, 1) + text(b"rows"))
        self.assertEqual(read(maker.build()), EXPECTED)

    def test_an_archive_in_an_archive_is_not_taken_for_frames(self) -> None:
        inner = m.Maker([m.Frame(p.kind, p.fields, p.data, archive_id=7) for p in m.plain()])
        content = inner.build()
        size = len(content)
        section = m.numbers(2, 1) + b"\0" + m.numbers(size)
        parts = [
            m.archive_frame(block=4096),
            m.member_start(),
            m.Frame(4, m.numbers(0, 0, size, 0, size, 1, len(section), 0, 0), section),
            m.member_end(content=content),
            m.block(raw=content),
        ]
        raw = MAGIC + b"".join(part.encode(i) for i, part in enumerate(parts))
        (scanned,) = open_scanned(File(io.BytesIO(raw)))
        (member,) = scanned.members()
        self.assertEqual(b"".join(scanned.contents.of(member)), content)


class Wrong(unittest.TestCase):
    """Each has the class that the document gives it."""

    def refuses(self, error: type[ReaderError], raw: bytes, says: str) -> None:
        """Reading from front to back raises this class, with a message about this."""
        with self.assertRaisesRegex(error, says):
            archives.open_streamed(Pipe(io.BytesIO(raw)))

    def test_headers(self) -> None:
        cases: list[tuple[type[ReaderError], m.Frame, str]] = [
            (Unsupported, m.Frame(30, m.numbers(0, 0)), "kind 30"),
            (Unsupported, m.Frame(20, b"", flags=5), "flags"),
            (Unsupported, m.Frame(20, b"", flags=1, generation=1), "generation"),
            (Damaged, m.Frame(20, b"", flags=2), "keep"),
            (Damaged, m.Frame(3, b"", flags=1), "skippable"),
            (Damaged, m.Frame(20, b"", flags=1, archive_id=9), "another archive"),
            (Limit, m.Frame(2, b"", bytes(1 << 17)), "Payload_Bytes"),
        ]
        for error, frame, says in cases:
            with self.subTest(says):
                parts = m.plain()
                parts.insert(1, frame)
                self.refuses(
                    error, MAGIC + b"".join(p.encode(i) for i, p in enumerate(parts)), says
                )

    def test_heads(self) -> None:
        cases: list[tuple[type[ReaderError], m.Frame, str]] = [
            (Unsupported, m.archive_frame(major=2), "version 2"),
            (Unsupported, m.archive_frame(features=4), "features"),
            (Damaged, m.archive_frame(block=0), "Block_Bytes_Max"),
            (Damaged, m.archive_frame(block=13), "above Block_Bytes_Max"),
            (Damaged, m.archive_frame(reach=40), "reach"),
        ]
        for error, frame, says in cases:
            with self.subTest(says):
                self.refuses(error, m.Maker([frame, *m.plain()[1:]]).build(), says)

    def test_extensions(self) -> None:
        for error, extension, says in (
            (Unsupported, m.numbers(3, 0), "extension 3"),
            (Damaged, m.numbers(4, 0, 2, 0), "ascending"),
            (Damaged, m.numbers(0, 0), "ascending"),
            (Damaged, m.numbers(2, 9), "too early"),
        ):
            parts = m.plain()
            parts[1].fields += extension
            self.refuses(error, m.Maker(parts).build(), says)

    def test_order_of_frames(self) -> None:
        archive, start, extents, end, block = m.plain()
        for parts, says in (
            ([start, archive, extents, end, block], "order of frames"),
            ([archive, start, block, extents, end], "no extents have introduced"),
            ([archive, extents, start, end, block], "content without a member"),
            ([archive, start, end, extents, block], "before the extents"),
            ([archive, start, extents, end, block, block], "Block_Id"),
            ([archive, start, extents, extents, end, block], "Epoch_Id"),
            ([archive, archive, start, extents, end, block], "order of frames"),
        ):
            with self.subTest(says):
                self.refuses(Damaged, m.Maker(parts).build(), says)
        unfinished = [archive, start, extents, block]
        raw = MAGIC + b"".join(p.encode(i) for i, p in enumerate(unfinished))
        index = m.Frame(7, b"", bytes(7)).encode(len(unfinished))
        self.refuses(Damaged, raw + index, "a member has not ended")

    def test_sums(self) -> None:
        for position, says in (
            (0, "store, copies and fills"),
            (2, "frame_count"),
            (3, "number of members"),
            (7, "fallback_count"),
            (8, "reach_needed_bytes"),
        ):
            with self.subTest(says):
                self.refuses(Damaged, m.Maker().build({position: 1}), says)

    def test_nodes(self) -> None:
        """Each wrong node is found from front to back and, if rows lead to it, by seeking."""
        leaf = self.node(1, 0, m.numbers(100, 40, 10, 0, 0))
        row = m.numbers(100, 40, 1)
        for error, maker, says in (
            (Damaged, m.Maker(depth=1, row_changes={0: -1}), "rows of list 1, depth 1"),
            (Damaged, m.Maker(depth=1, row_changes={1: -1}), "rows of list 1, depth 1"),
            (Damaged, m.Maker(depth=2, row_changes={2: 1}), "rows of list 1, depth 1"),
            (Damaged, m.Maker(depth=2, row_changes={3: 1}), "rows of list 1, depth 1"),
        ):
            raw = maker.build()
            with self.subTest(says, depth=maker.depth):
                self.refuses(error, raw, says)
                with self.assertRaises(error):
                    for opened in archives.open_indexed(File(io.BytesIO(raw))):
                        assert isinstance(opened, archives.Indexed)
                        opened.check()
        for error, maker, says in (
            (Damaged, m.Maker(nodes=[self.node(1, 0, b"")]), "ends too early"),
            (Damaged, m.Maker(nodes=[leaf]), "where the node starts"),
            (Damaged, m.Maker(nodes=[self.node(4, 1, row)]), "ends too early"),
            (Damaged, m.Maker(nodes=[self.node(3, 1, row + b"\0\0")]), "too many"),
            (Damaged, m.Maker(nodes=[self.node(2, 1, b"\xff\7" + row + b"\0")]), "comes later"),
            (Damaged, m.Maker(depth=9), "Depth of a root"),
            (Damaged, m.Maker(nodes=[self.node(3, 8, row)]), "Depth of a root"),
            (Limit, m.Maker(nodes=[self.node(3, 9, row)]), "Depth"),
            (Damaged, m.Maker(nodes=[self.node(0, 0, row)]), "list 0"),
            (Unsupported, m.Maker(nodes=[self.node(9, 0, row)]), "list 9"),
            (Unsupported, m.Maker(roots=m.numbers(9, 0, 1, 0)), "list 9"),
            (Damaged, m.Maker(roots=m.numbers(3, 0, 1, 0)), "order of lists"),
            (Damaged, m.Maker(roots=m.numbers(4, 0, 0, 0)), "without rows"),
            (Damaged, m.Maker(roots=m.numbers(5, 0, 1) + text(bytes(9))), "number of names"),
        ):
            with self.subTest(says):
                self.refuses(error, maker.build(), says)

    @staticmethod
    def node(list_id: int, depth: int, rows: bytes) -> m.Frame:
        """An Index frame with one row."""
        return m.Frame(7, m.numbers(list_id, depth, 1, 0, 0, 0), rows)

    def test_hashes(self) -> None:
        parts = m.plain()
        parts[3] = m.member_end(content=m.CONTENT[:-1] + b"x")
        self.refuses(Damaged, m.Maker(parts).build(), "Content_Hash")

    def test_sections(self) -> None:
        good = m.SECTION
        kind = good.replace(b"\0\1\0\2\x0d\1\5", b"\0\1\0\7\x0d\1\5")
        self.refuses(Unsupported, self.with_section(kind), "Extent_Kind 7")
        copy = good.replace(b"\x19", b"\x1b")
        self.refuses(Damaged, self.with_section(copy), "not introduced")
        self.refuses(Damaged, self.with_section(good + b"\0"), "too many")
        pattern = good[:-2] + b"\2\0"
        self.refuses(Damaged, self.with_section(pattern), "too early")

    @staticmethod
    def with_section(section: bytes) -> bytes:
        """The example with another extents section."""
        parts = m.plain()
        parts[2] = m.extents(section)
        return m.Maker(parts).build()

    def test_behind_the_tail(self) -> None:
        raw = m.Maker().build()
        self.refuses(Damaged, raw + b"x", "behind the archive")
        generation = m.Frame(19, m.numbers(0, 0)).encode(7)
        self.refuses(Unsupported, raw + generation, "generation")

    def test_whole_holds_only_some_kinds(self) -> None:
        for kind, error in ((7, Damaged), (9, Damaged), (20, Unsupported)):
            raw = m.whole([m.archive_frame(), m.Frame(kind, b"")], 0)
            self.refuses(error, raw, f"kind {kind}")
        self.refuses(Damaged, m.whole(m.plain(), 3), "WholeHead")

    def test_every_flipped_bit_is_found(self) -> None:
        raw = m.Maker().build()
        for position in range(len(raw)):
            changed = bytearray(raw)
            changed[position] ^= 1 << position % 8
            with self.subTest(position=position), self.assertRaises(ReaderError):
                archives.open_streamed(Pipe(io.BytesIO(bytes(changed))))

    def test_every_cut_is_found(self) -> None:
        raw = m.Maker().build()
        for size in range(len(raw)):
            with self.subTest(size=size), self.assertRaises(ReaderError):
                archives.open_streamed(Pipe(io.BytesIO(raw[:size])))
            with self.subTest(size=size), self.assertRaises(ReaderError):
                archives.open_indexed(File(io.BytesIO(raw[:size])))


class Salvage(unittest.TestCase):
    """Section 8.3."""

    def test_a_damaged_block_becomes_zeros(self) -> None:
        raw = bytearray(m.Maker().build())
        at = raw.index(m.STORE)
        raw[at] ^= 1
        (scanned,) = open_scanned(File(io.BytesIO(bytes(raw))))
        (member,) = scanned.members()
        pieces = list(scanned.salvage(member))
        self.assertEqual(b"".join(piece for piece, _ in pieces), bytes(len(m.CONTENT)))
        self.assertEqual(sum(len(p) for p, intact in pieces if intact), 8)

    def test_without_its_end_an_archive_is_read(self) -> None:
        raw = m.Maker().build()
        cut = raw[: raw.index(text(b""), raw.index(m.STORE) + len(m.STORE))]
        (scanned,) = open_scanned(File(io.BytesIO(cut)))
        (member,) = scanned.members()
        self.assertEqual(b"".join(scanned.contents.of(member)), m.CONTENT)


if __name__ == "__main__":
    unittest.main()
