"""The index (section 6.1)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import heads as h
from .cursor import Cursor, moved
from .errors import need, within
from .frames import HEADER_BYTES, MAGIC, MEMBER_END, MEMBER_START, Frame
from .limits import ADDRESS_BYTES_MAX, MEMBERS_MAX


@dataclass(frozen=True)
class BlockRow:
    """Where a Block frame is; `filters` is first + 256 · second."""

    offset: int
    size: int
    raw_bytes: int
    codec: int
    filters: int


@dataclass(frozen=True)
class EpochRow:
    """Where an Extents frame is."""

    offset: int
    size: int
    content_bytes: int
    fresh_bytes: int
    extent_count: int


@dataclass(frozen=True)
class EntriesRow:
    """Where an Entries frame is."""

    offset: int
    size: int
    entry_count: int
    packed_checksum: int
    first_path: bytes


@dataclass(frozen=True)
class MemberRow:
    """Where the frames of a member are, and the payloads of both."""

    start_offset: int
    end_offset: int
    start_payload: bytes
    end_payload: bytes
    entries: tuple[EntriesRow, ...]

    @property
    def start(self) -> h.MemberStart:
        """The MemberStart frame."""
        frame = Frame(self.start_offset, MEMBER_START, False, self.start_payload, b"")
        return h.parse_member_start(frame)

    @property
    def end(self) -> h.MemberEnd:
        """The MemberEnd frame."""
        frame = Frame(self.end_offset, MEMBER_END, False, self.end_payload, b"")
        return h.parse_member_end(frame)


@dataclass(frozen=True)
class Totals:
    """Content bytes of copies and fills, fallbacks, and the reach that is needed."""

    matched: int
    fills: int
    fallbacks: int
    reach: int


@dataclass
class Index:
    """All lists; `store` and `content` are where blocks and epochs start, and the sums."""

    blocks: list[BlockRow] = field(default_factory=list)
    epochs: list[EpochRow] = field(default_factory=list)
    members: list[MemberRow] = field(default_factory=list)
    totals: Totals = Totals(0, 0, 0, 0)

    def __post_init__(self) -> None:
        self.store = sums(row.raw_bytes for row in self.blocks)
        self.content = sums(row.content_bytes for row in self.epochs)
        self.fresh = sums(row.fresh_bytes for row in self.epochs)

    def block_at(self, address: int) -> int:
        """The number of the block that holds a store address."""
        need(address < self.store[-1], f"the index has no block with store address {address}")
        return bisect_right(self.store, address) - 1

    def epoch_at(self, address: int) -> int:
        """The number of the epoch that holds a content address."""
        need(address < self.content[-1], f"the index has no epoch with content {address}")
        return bisect_right(self.content, address) - 1


def sums(values: Iterator[int]) -> list[int]:
    """0, and the sums of the first 1, 2, 3 … values."""
    found = [0]
    for value in values:
        found.append(within(found[-1] + value, ADDRESS_BYTES_MAX, "a sum of the index"))
    return found


class Lists:
    """Parses the lists of an Index frame."""

    def __init__(self, frame: Frame) -> None:
        self.cursor = Cursor(frame.data, frame.name)
        self.end = len(MAGIC)

    def count(self) -> int:
        """The count at the start of a list."""
        self.end = len(MAGIC)
        count = self.cursor.varint()
        need(count <= self.cursor.left, f"{self.cursor.name}: {count} rows")
        return count

    def location(self) -> tuple[int, int]:
        """A gap from the end of the previous frame of the list, and a size."""
        offset = self.end + self.cursor.varint()
        size = self.cursor.varint()
        need(size >= HEADER_BYTES, f"{self.cursor.name}: a frame of {size} bytes")
        self.end = offset + size
        return offset, size

    def blocks(self) -> Iterator[BlockRow]:
        """List 1."""
        raw = 0
        for _ in range(self.count()):
            place = self.location()
            raw = moved(raw, self.cursor.signed())
            yield BlockRow(*place, raw, self.cursor.varint(), self.cursor.varint())

    def epochs(self) -> Iterator[EpochRow]:
        """List 2."""
        for _ in range(self.count()):
            place = self.location()
            yield EpochRow(*place, *(self.cursor.varint() for _ in range(3)))

    def members(self) -> Iterator[MemberRow]:
        """List 3."""
        start = 0
        for _ in range(within(self.count(), MEMBERS_MAX, "number of members")):
            start = moved(start, self.cursor.signed())
            end = moved(start, self.cursor.signed())
            payloads = self.cursor.text(), self.cursor.text()
            yield MemberRow(start, end, *payloads, tuple(self.entries()))

    def entries(self) -> Iterator[EntriesRow]:
        """The list of Entries frames of a member."""
        for _ in range(self.count()):
            place = self.location()
            count, packed = self.cursor.varint(), self.cursor.fixed(8)
            yield EntriesRow(*place, count, packed, self.cursor.take(self.cursor.byte()))


def parse_index(frame: Frame) -> Index:
    """Section 6.1."""
    cursor = h.open_head(frame)
    h.extensions(cursor)
    lists = Lists(frame)
    blocks, epochs, members = list(lists.blocks()), list(lists.epochs()), list(lists.members())
    totals = Totals(*(lists.cursor.varint() for _ in range(4)))
    lists.cursor.end()
    return Index(blocks, epochs, members, totals)


def check_index(index: Index, end: h.EndHead) -> None:
    """Section 6.1: what a reader checks before it relies on an index."""
    check_places(index, end)
    at = 0
    for number, row in enumerate(index.members):
        start, stop = row.start, row.end
        where = f"the index, member {number}"
        need(start.member_id == stop.member_id == number, f"{where}: Member_Id")
        need(start.content_start == at, f"{where}: Content_Start")
        need(bool(stop.flags & 2) == (start.kind >= h.TREE), f"{where}: Member_Flags")
        counted = sum(entries.entry_count for entries in row.entries)
        need(counted == stop.entry_count, f"{where}: Entry_Count")
        at += stop.content_bytes
    need(at == end.content_bytes, "the index: content of members")
    need(index.content[-1] == end.content_bytes, "the index: content of epochs")
    need(index.fresh[-1] == end.store_bytes, "the index: fresh bytes")
    need(index.store[-1] == end.store_bytes, "the index: store of blocks")
    total = index.totals.matched + index.totals.fills + end.store_bytes
    need(total == end.content_bytes, "the index: copies, fills and store")


def check_places(index: Index, end: h.EndHead) -> None:
    """All frames are between the magic and the Index frame and do not overlap."""
    found = [(row.offset, row.size) for row in [*index.blocks, *index.epochs]]
    for member in index.members:
        found += [(row.offset, row.size) for row in member.entries]
        found.append((member.start_offset, HEADER_BYTES + len(member.start_payload)))
        found.append((member.end_offset, HEADER_BYTES + len(member.end_payload)))
    stop = len(MAGIC)
    for offset, size in sorted(found):
        need(offset >= stop, "the index: frames overlap")
        stop = offset + size
    need(stop <= end.index_frame_offset, "the index: frames behind the index")
