"""The index (sections 6.1, 6.2): a tree of nodes for each list, with the roots in End."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from . import heads as h
from . import limits
from .cursor import Cursor, moved
from .entries import sort_key
from .errors import Damaged, need, within
from .frames import HEADER_BYTES, MEMBER_END, MEMBER_START, Frame, checksum, split_head

BLOCKS, EPOCHS, MEMBERS, ENTRY_FRAMES, NAMES, SLICES = h.LISTS
NAMES_FROM = 257
NODES_KEPT = 256
HAS_HASH = 1 << 16
Key = tuple[Any, ...]
Reach = tuple[int, int]


@dataclass(frozen=True)
class BlockRow:
    """Where a Block frame is; `filters` is first + 256 · second, and `hash` may be absent."""

    offset: int
    size: int
    store_start: int
    raw_bytes: int
    codec: int
    filters: int
    hash: bytes | None = field(default=None, compare=False)

    @property
    def key(self) -> Key:
        """What rows are found by, and what a node references of its first row."""
        return self.store_start, 0


@dataclass(frozen=True)
class EpochRow:
    """Where an Extents frame is."""

    offset: int
    size: int
    content_start: int
    content_bytes: int
    store_start: int
    fresh_bytes: int
    extent_count: int

    @property
    def key(self) -> Key:
        """See `BlockRow`."""
        return self.content_start, self.store_start


@dataclass(frozen=True)
class MemberRow:
    """Where the frames of a member are, and the payloads of both."""

    start_offset: int
    end_offset: int
    start_payload: bytes
    end_payload: bytes

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

    @property
    def key(self) -> Key:
        """See `BlockRow`."""
        return self.start.content_start, 0


@dataclass(frozen=True)
class EntriesRow:
    """Where an Entries frame is."""

    offset: int
    size: int
    member_id: int
    first_entry: int
    entry_count: int
    packed_checksum: int
    first_path: bytes

    @property
    def key(self) -> Key:
        """See `BlockRow`."""
        return self.member_id, self.first_entry, self.first_path


@dataclass(frozen=True, order=True)
class NameRow:
    """A member by the checksum of its name."""

    checksum: int
    member_id: int

    @property
    def key(self) -> Key:
        """See `BlockRow`."""
        return (self.checksum,)


@dataclass(frozen=True)
class SliceRow:
    """Consecutive entries of a frame that are consecutive in path order."""

    frame: int
    first_entry: int
    entry_count: int
    separator: bytes

    @property
    def key(self) -> Key:
        """See `BlockRow`."""
        return self.frame, self.separator

    @property
    def is_cut(self) -> bool:
        """Whether the separator may be too short."""
        return len(self.separator) == limits.FIRST_PATH_BYTES_MAX

    def check_follows(self, before: bytes, name: str) -> None:
        """Separators of a member ascend; that of its first slice is empty."""
        if self.separator:
            low, high = sort_key(before), sort_key(self.separator)
            ascends = not before or low < high or (low == high and self.is_cut)
            need(ascends, f"{name}: order of separators")


@dataclass(frozen=True)
class Child:
    """A node below another one; `key` is that of its first leaf row.

    `end` is how far its rows reach in the spaces of lists 1 to 3.
    """

    offset: int
    size: int
    first_row: int
    row_count: int
    key: Key
    end: Reach


@dataclass(frozen=True)
class Node:
    """Rows of a list, or (with a depth of at least 1) the nodes that hold them.

    `start` is Start_A and Start_B; `end` is what these are in the node behind this one.
    """

    list_id: int
    depth: int
    first_row: int
    start: Reach
    rows: tuple[Any, ...]
    next_row: int
    end: Reach

    def as_child(self, offset: int, size: int) -> Child:
        """The row that leads to this node, which is at this location."""
        count = self.next_row - self.first_row
        end = self.end if self.list_id <= MEMBERS else (0, 0)
        return Child(offset, size, self.first_row, count, self.rows[0].key, end)


class Rows:
    """Parses the rows of a node."""

    def __init__(self, head: h.IndexHead, cursor: Cursor) -> None:
        self.head = head
        self.cursor = cursor
        self.next_row = head.first_row
        self.reach = head.start_a, head.start_b
        self.location_end = self.raw_bytes = self.member_offset = 0
        self.name: NameRow | None = None
        self.slice = SliceRow(0, 0, 1, b"")

    def node(self) -> Node:
        """All of them; nothing may follow."""
        leaf = [self.block, self.epoch, self.member, self.entries, self.named, self.sliced]
        head = self.head
        row = self.child if head.depth else leaf[h.LISTS.index(head.list_id)]
        need(head.row_count >= 1, f"{self.cursor.name}: a node without rows")
        rows = tuple(row() for _ in range(head.row_count))
        self.cursor.end()
        start = head.start_a, head.start_b
        return Node(
            head.list_id, head.depth, head.first_row, start, rows, self.next_row, self.reach
        )

    def step(self, a: int, b: int, rows: int = 1) -> None:
        """Moves on behind a row."""
        self.next_row = within(self.next_row + rows, limits.ADDRESS_BYTES_MAX, "rows of a list")
        within(max(a, b), limits.ADDRESS_BYTES_MAX, "a sum of the index")
        self.reach = a, b

    def location(self) -> tuple[int, int]:
        """A gap from the end of the previous frame in the node, and a size."""
        offset, size = self.location_end + self.cursor.varint(), self.cursor.varint()
        need(size >= HEADER_BYTES, f"{self.cursor.name}: a frame of {size} bytes")
        self.location_end = h.address(offset + size, "end of a frame")
        return offset, size

    def block(self) -> BlockRow:
        """List 1."""
        place = self.location()
        self.raw_bytes = moved(self.raw_bytes, self.cursor.signed())
        need(self.raw_bytes >= 1, f"{self.cursor.name}: Raw_Bytes is 0")
        within(self.raw_bytes, limits.BLOCK_RAW_BYTES_MAX, f"{self.cursor.name}: Raw_Bytes")
        codec, filters = self.cursor.varint(), self.cursor.varint()
        need(filters < 2 * HAS_HASH, f"{self.cursor.name}: filters")
        found = self.cursor.take(16) if filters & HAS_HASH else None
        numbers = self.raw_bytes, codec, filters % HAS_HASH
        row = BlockRow(*place, self.reach[0], *numbers, found)
        self.step(self.reach[0] + self.raw_bytes, 0)
        return row

    def epoch(self) -> EpochRow:
        """List 2."""
        (at, store), place = self.reach, self.location()
        content = self.cursor.positive(limits.EPOCH_BYTES_MAX, "Content_Bytes")
        fresh, extents = self.cursor.varint(), self.cursor.varint()
        self.step(at + content, store + fresh)
        return EpochRow(*place, at, content, store, fresh, extents)

    def member(self) -> MemberRow:
        """List 3."""
        name = f"{self.cursor.name}: member {self.next_row}"
        self.member_offset = moved(self.member_offset, self.cursor.signed())
        end_offset = moved(self.member_offset, self.cursor.signed())
        h.address(max(self.member_offset, end_offset) + HEADER_BYTES, f"{name}: end of a frame")
        start_payload = self.payload()
        start = MemberRow(self.member_offset, end_offset, start_payload, b"").start
        need(start.member_id == self.next_row, f"{name}: Member_Id")
        need(start.content_start == self.reach[0], f"{name}: Content_Start")
        row = MemberRow(self.member_offset, end_offset, start_payload, self.payload())
        end = row.end
        need(end.member_id == self.next_row, f"{name}: Member_Id")
        need(bool(end.flags & 2) == (start.kind >= h.TREE), f"{name}: Member_Flags")
        self.step(self.reach[0] + end.content_bytes, 0)
        return row

    def payload(self) -> bytes:
        """A payload that is a head."""
        head, _ = split_head(self.cursor.data[self.cursor.at :], self.cursor.name)
        return self.cursor.take(len(head))

    def entries(self) -> EntriesRow:
        """List 4."""
        place, more = self.location(), self.cursor.varint()
        member = within(self.reach[0] + more, limits.MEMBERS_MAX, "Member_Id")
        first = 0 if more else self.reach[1]
        count = self.cursor.positive(limits.ADDRESS_BYTES_MAX, "Entry_Count")
        packed = self.cursor.fixed(8)
        self.step(member, first + count)
        return EntriesRow(*place, member, first, count, packed, self.first_path())

    def first_path(self) -> bytes:
        """First_Path_Bytes (1 byte) and First_Path."""
        return self.cursor.take(self.cursor.byte())

    def named(self) -> NameRow:
        """List 5."""
        number = self.cursor.fixed(8)
        row = NameRow(number, self.cursor.limited(limits.MEMBERS_MAX, "Member_Id"))
        need(self.name is None or self.name < row, f"{self.cursor.name}: order of names")
        self.name = row
        self.step(0, 0)
        return row

    def sliced(self) -> SliceRow:
        """List 7."""
        name, before = self.cursor.name, self.slice.separator
        frame = within(moved(self.slice.frame, self.cursor.signed()), limits.FRAMES_MAX, "Frame")
        first, count = self.cursor.varint(), self.cursor.varint()
        need(count >= 1, f"{name}: Entry_Count is 0")
        within(first + count, limits.ENTRIES_PER_FRAME_MAX, f"{name}: entries of a slice")
        shared = self.cursor.varint()
        need(shared <= len(before), f"{name}: common bytes of a separator")
        rest = self.cursor.text()
        separator = before[:shared] + rest
        is_longest = shared == len(before) or not rest or rest[0] != before[shared]
        need(is_longest, f"{name}: common bytes of a separator")
        need(b"\0" not in separator, f"{name}: a zero byte")
        within(len(separator), limits.FIRST_PATH_BYTES_MAX, f"{name}: Separator")
        row = SliceRow(frame, first, count, separator)
        row.check_follows(before, name)
        self.slice = row
        self.step(0, 0)
        return row

    def child(self) -> Child:
        """A row of a node that is not a leaf."""
        place, count = self.location(), self.cursor.varint()
        need(count >= 1, f"{self.cursor.name}: a node without rows")
        first_row, (a, b) = self.next_row, self.reach
        key: Key = a, b
        end = 0, 0
        if self.head.list_id <= MEMBERS:
            a += self.cursor.varint()
            b += self.cursor.varint() if self.head.list_id == EPOCHS else 0
            end = a, b
        elif self.head.list_id == ENTRY_FRAMES:
            a = within(a + self.cursor.varint(), limits.MEMBERS_MAX, "Member_Id")
            key = a, self.cursor.varint(), self.first_path()
        elif self.head.list_id == SLICES:
            key = self.cursor.varint(), self.first_path()
        else:
            key = (self.cursor.fixed(8),)
        self.step(a, b, count)
        return Child(*place, first_row, count, key, end)


def parse_node(frame: Frame) -> Node | None:
    """The node in an Index frame; None if it may be ignored."""
    head = h.parse_index(frame)
    return Rows(head, Cursor(frame.data, frame.name)).node() if head else None


def parse_roots(frame: Frame) -> dict[int, Node]:
    """The roots in an End frame."""
    cursor = Cursor(frame.data, frame.name)
    roots: dict[int, Node] = {}
    before = 0
    while cursor.left:
        list_id = cursor.varint()
        need(list_id > before, f"{frame.name}: order of lists")
        before = list_id
        is_known = h.is_known_list(list_id, frame.name)
        depth = cursor.limited(limits.INDEX_DEPTH_MAX, "Depth")
        head = h.IndexHead(list_id, depth, cursor.varint(), 0, 0, 0)
        rows = Cursor(cursor.text(), f"{frame.name}, list {list_id}")
        if is_known:
            roots[list_id] = Rows(head, rows).node()
    return roots


def check_roots(end: h.EndHead, roots: dict[int, Node]) -> None:
    """Section 6.2: what a reader checks before it relies on an index."""
    reach = {n: roots[n].end if n in roots else (0, 0) for n in h.LISTS}
    rows = {n: roots[n].next_row if n in roots else 0 for n in h.LISTS}
    total = end.store_bytes + end.matched_bytes + end.fill_bytes
    need(total == end.content_bytes, "the index: store, copies and fills")
    need(reach[BLOCKS][0] == end.store_bytes, "the index: raw bytes of blocks")
    need(reach[EPOCHS] == (end.content_bytes, end.store_bytes), "the index: bytes of epochs")
    need(reach[MEMBERS][0] == end.content_bytes, "the index: content of members")
    need(rows[MEMBERS] == end.member_count, "the index: number of members")
    names = end.member_count if end.member_count >= NAMES_FROM else 0
    need(rows[NAMES] == names, "the index: number of names")
    need(end.fallback_count <= rows[BLOCKS], "the index: Fallback_Count")


def count(rows: tuple[Any, ...], before: Callable[[Any], bool]) -> int:
    """The number of rows for which `before` holds; they are the first ones."""
    return bisect_left(rows, True, key=lambda row: not before(row))


class Index:
    """Finds rows, from the roots down; `load` reads the Index frame at a location."""

    def __init__(self, roots: dict[int, Node], load: Callable[[int, int], Frame]) -> None:
        self.roots = roots
        self.load = load
        self.nodes: dict[int, Node] = {}

    def child(self, parent: Node, row: Child) -> Node:
        """The node that a row of `parent` leads to, which must be as the row says."""
        node = self.nodes.get(row.offset) or parse_node(self.load(row.offset, row.size))
        if (
            node is None
            or (node.list_id, node.depth) != (parent.list_id, parent.depth - 1)
            or node.as_child(row.offset, row.size) != row
        ):
            raise Damaged(f"the node at {row.offset} differs from its row in the index")
        if len(self.nodes) == NODES_KEPT:
            self.nodes.clear()
        self.nodes[row.offset] = node
        return node

    def leaf(self, list_id: int, before: Callable[[Child], bool]) -> Node | None:
        """The leaf under the last nodes for which `before` holds, else under the first ones."""
        node = self.roots.get(list_id)
        while node is not None and node.depth:
            node = self.child(node, node.rows[max(count(node.rows, before) - 1, 0)])
        return node

    def leaf_of_row(self, list_id: int, number: int) -> Node | None:
        """The leaf that has the row with a number, if there is such a row."""
        return self.leaf(list_id, lambda row: row.first_row <= number)

    def first(self, list_id: int, before: Callable[[Key], bool]) -> int:
        """The number of the first row for whose key `before` does not hold."""
        leaf = self.leaf(list_id, lambda row: before(row.key))
        return leaf.first_row + count(leaf.rows, lambda row: before(row.key)) if leaf else 0

    def row(self, list_id: int, number: int) -> Any | None:
        """The row with a number."""
        return next(self.rows_from(list_id, number), None)

    def at(self, list_id: int, address: int) -> tuple[int, Any]:
        """The block with a store address or the epoch with a content address; its number first."""
        root = self.roots.get(list_id)
        if root is None or address >= root.end[0]:
            raise Damaged(f"the index has no row of list {list_id} for {address}")
        number = self.first(list_id, lambda key: key[0] <= address) - 1
        return number, self.row(list_id, number)

    def rows_from(self, list_id: int, number: int) -> Iterator[Any]:
        """The rows from a number on."""
        while (leaf := self.leaf_of_row(list_id, number)) and number < leaf.next_row:
            yield from leaf.rows[number - leaf.first_row :]
            number = leaf.next_row

    def entries_of(self, member_id: int) -> Iterator[EntriesRow]:
        """The rows of a member's Entries frames."""
        first = self.first(ENTRY_FRAMES, lambda key: key[0] < member_id)
        for row in self.rows_from(ENTRY_FRAMES, first):
            if row.member_id != member_id:
                return
            yield row

    def slices_of(self, frames: range) -> Iterator[SliceRow]:
        """The slices of the member that has these frames."""
        first = self.first(SLICES, lambda key: key[0] < frames.start)
        for row in self.rows_from(SLICES, first):
            if row.frame not in frames:
                return
            yield row

    def named(self, name: bytes) -> Iterator[MemberRow]:
        """The members with a name."""
        if NAMES not in self.roots:
            yield from (m for m in self.rows_from(MEMBERS, 0) if m.start.name == name)
            return
        wanted = checksum(name)
        first = self.first(NAMES, lambda key: key[0] < wanted)
        for row in self.rows_from(NAMES, first):
            if row.checksum != wanted:
                return
            member = self.row(MEMBERS, row.member_id)
            if member is not None and member.start.name == name:
                yield member


@dataclass
class Level:
    """The nodes of one list and depth so far: their rows, and where they end."""

    rows: list[Any] = field(default_factory=list)
    next_row: int = 0
    end: Reach = (0, 0)


class Levels:
    """Section 8.1: compares all nodes of an archive with the frames before them.

    `leaves` are the rows that the frames give, for each list.
    """

    def __init__(self, leaves: dict[int, list[Any]]) -> None:
        self.expected = defaultdict(list, {(n, 0): rows for n, rows in leaves.items()})
        self.found: defaultdict[tuple[int, int], Level] = defaultdict(Level)

    def index_frame(self, frame: Frame) -> None:
        """A node below another one, which follows."""
        node = parse_node(frame)
        if node is not None:
            self.add(node, frame)
            above = node.list_id, node.depth + 1
            self.expected[above].append(node.as_child(frame.offset, frame.size))

    def add(self, node: Node, frame: Frame) -> None:
        """A node, in this frame."""
        level = self.found[node.list_id, node.depth]
        stated = node.first_row, node.start
        need(stated == (level.next_row, level.end), f"{frame.name}: where the node starts")
        if node.depth:
            behind = [row for row in node.rows if row.offset + row.size > frame.offset]
            need(not behind, f"{frame.name}: a node that comes later")
        level.rows += node.rows
        level.next_row = node.next_row
        has_end = node.list_id <= MEMBERS or (node.list_id == ENTRY_FRAMES and not node.depth)
        level.end = node.end if has_end else (0, 0)

    def end_frame(self, frame: Frame) -> None:
        """The roots. Then every row has its frame, and every frame its row."""
        for node in parse_roots(frame).values():
            self.add(node, frame)
        for key in sorted({*self.expected, *self.found}):
            same = self.found[key].rows == self.expected[key]
            need(same, f"{frame.name}: rows of list {key[0]}, depth {key[1]}")
