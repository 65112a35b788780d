"""Reading from front to back (section 8.1): the order of frames, hold back, every check."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import coding
from . import frames as f
from . import heads as h
from .contents import Member, Sums, check_entries
from .entries import unpack
from .errors import Damaged, need, within
from .extents import Epoch, Window, parse_section, unpack_section
from .frames import Frame
from .hashes import member_hash, root_hash
from .index import (
    BLOCKS,
    ENTRY_FRAMES,
    EPOCHS,
    MEMBERS,
    NAMES,
    NAMES_FROM,
    SLICES,
    BlockRow,
    EntriesRow,
    EpochRow,
    Levels,
    MemberRow,
    NameRow,
    check_roots,
    parse_roots,
)
from .limits import CONTENT_BYTES_READ, HELD_BYTES_MAX, MEMBERS_MAX, OPEN_MEMBERS_MAX
from .slices import all_slices
from .store import Blocks, content, decode_block


@dataclass
class Seen:
    """What the index and End must say."""

    blocks: list[BlockRow] = field(default_factory=list)
    epochs: list[EpochRow] = field(default_factory=list)
    starts: list[Frame] = field(default_factory=list)
    members: list[MemberRow] = field(default_factory=list)
    entries: list[EntriesRow] = field(default_factory=list)
    names: list[NameRow] = field(default_factory=list)
    matched: int = 0
    fills: int = 0
    fallbacks: int = 0
    reach: int = 0
    last_decoder: int = 0


@dataclass(frozen=True)
class Held:
    """A frame that waits until the store has come up to `introduced`."""

    frame: Frame
    introduced: int
    apply: Callable[[int], None]


class Sequence:
    """The frames of one archive in order.

    With `keep`, everything is retained, and `members`, `epochs`, `blocks` give its contents.
    Without, blocks and epochs are dropped as soon as the promises of the archive allow it.
    """

    def __init__(self, keep: bool = False) -> None:
        self.keep = keep
        self.head: h.ArchiveHead | None = None
        self.window = Window(0)
        self.members: list[Member] = []
        self.sums: list[Sums] = []
        self.epochs: list[Epoch] = []
        self.blocks = Blocks()
        self.block_offsets: deque[tuple[int, int]] = deque()
        self.held: deque[Held] = deque()
        self.held_bytes = 0
        self.block_count = self.epoch_count = self.ended = 0
        self.introduced = self.stored = self.content_end = 0
        self.applied_content = 0
        self.entry_counts: dict[int, int] = {}
        self.frame_count = 0
        self.seen = Seen()
        self.index: Levels | None = None
        self.root_hash = b""
        self.end: h.EndHead | None = None

    def feed(self, frame: Frame) -> None:
        """The next frame, checked in every respect that does not need later ones."""
        self.frame_count += 1
        if frame.skippable:
            need(self.head is not None, f"{frame.name}: before the Archive frame")
            if frame.kind == f.DECODER:
                self.seen.last_decoder = frame.offset
            coding.found_decoder(frame.kind, frame.head, frame.data, frame.name)
            return
        first = frame.kind == f.ARCHIVE
        need(first == (self.head is None), f"{frame.name}: order of frames")
        if self.index is not None:
            need(frame.kind in (f.INDEX, f.END), f"{frame.name}: order of frames")
        {
            f.ARCHIVE: self.archive,
            f.MEMBER_START: self.member_start,
            f.BLOCK: self.block,
            f.EXTENTS: self.extents,
            f.MEMBER_END: self.member_end,
            f.ENTRIES: self.entries,
            f.INDEX: self.index_frame,
            f.END: self.end_frame,
        }[frame.kind](frame)

    def archive(self, frame: Frame) -> None:
        """Section 4.1."""
        self.head = h.parse_archive(frame)
        self.window = Window(self.head.reference_window)

    def hold(self, frame: Frame, apply: Callable[[int], None]) -> None:
        """Applies the frame now, or when the blocks it waits for have come."""
        if self.introduced <= self.stored:
            apply(frame.end)
            return
        self.held_bytes += frame.size
        within(self.held_bytes, HELD_BYTES_MAX, f"{frame.name}: bytes that are held back")
        self.held.append(Held(frame, self.introduced, apply))

    def release(self, end: int) -> None:
        """Applies what the block that ends at `end` in the file completes."""
        while self.held and self.held[0].introduced <= self.stored:
            held = self.held.popleft()
            self.held_bytes -= held.frame.size
            held.apply(end)

    def member_start(self, frame: Frame) -> None:
        """Sections 4.2 and 7: ids count, members start in content order, before their extents."""
        start = h.parse_member_start(frame)
        name = frame.name
        within(len(self.members) + 1, MEMBERS_MAX, "number of members")
        within(len(self.members) + 1 - self.ended, OPEN_MEMBERS_MAX, "members that have not ended")
        need(start.member_id == len(self.members), f"{name}: Member_Id")
        need(start.content_start >= self.content_end, f"{name}: its content came before")
        if self.members:
            before = self.members[-1]
            need(start.content_start >= before.start.content_start, f"{name}: Content_Start")
            if before.end is not None:
                end = before.start.content_start + before.end.content_bytes
                need(start.content_start == end, f"{name}: Content_Start")
        else:
            need(start.content_start == 0, f"{name}: Content_Start")
        self.members.append(Member(start))
        self.sums.append(Sums(start))
        self.seen.starts.append(frame)
        self.entry_counts[start.member_id] = 0
        self.hold(frame, lambda _: None)

    def block(self, frame: Frame) -> None:
        """Sections 5.1 and 7: only bytes that extents have introduced."""
        head = h.parse_block(frame)
        archive = self.archive_head()
        need(head.block_id == self.block_count, f"{frame.name}: Block_Id")
        need(head.store_start == self.stored, f"{frame.name}: Store_Start")
        need(head.raw_bytes <= archive.block_bytes_max, f"{frame.name}: above Block_Bytes_Max")
        end = head.store_start + head.raw_bytes
        need(end <= self.introduced, f"{frame.name}: bytes that no extents have introduced")
        if not self.keep and archive.reach_bytes:
            self.drop(frame.end - archive.reach_bytes)
        self.blocks.add(head.store_start, decode_block(head, frame))
        self.block_offsets.append((frame.offset, head.store_start))
        self.seen.blocks.append(block_row(frame, head))
        self.seen.fallbacks += head.coding.fallback != 0
        self.block_count += 1
        self.stored = end
        self.release(frame.end)

    def drop(self, offset: int) -> None:
        """Forgets blocks whose frames start before `offset`."""
        while self.block_offsets and self.block_offsets[0][0] < offset:
            self.block_offsets.popleft()
        start = self.block_offsets[0][1] if self.block_offsets else self.stored
        self.blocks.drop_before(start)

    def archive_head(self) -> h.ArchiveHead:
        """The head of the Archive frame, which is the first."""
        if self.head is None:
            raise Damaged("no Archive frame")
        return self.head

    def extents(self, frame: Frame) -> None:
        """Sections 5.2 and 7."""
        head = h.parse_extents(frame)
        archive = self.archive_head()
        need(head.epoch_id == self.epoch_count, f"{frame.name}: Epoch_Id")
        need(head.content_start == self.content_end, f"{frame.name}: Content_Start")
        need(head.store_start == self.introduced, f"{frame.name}: Store_Start")
        need(head.content_bytes <= archive.epoch_bytes, f"{frame.name}: above Epoch_Bytes")
        need(bool(self.members), f"{frame.name}: content without a member")
        self.epoch_count += 1
        self.content_end += head.content_bytes
        within(self.content_end, CONTENT_BYTES_READ, "bytes of content")
        self.introduced += head.fresh_bytes
        self.seen.epochs.append(epoch_row(frame, head))
        started = len(self.members)
        self.hold(frame, lambda end: self.apply_extents(frame, head, started, end))

    def apply_extents(self, frame: Frame, head: h.ExtentsHead, started: int, end: int) -> None:
        """Resolves a complete epoch and outputs its content."""
        raw = unpack_section(head, frame)
        epoch = self.window.resolve(head, parse_section(head, raw, frame.name), frame.name)
        self.window.add(epoch)
        if self.keep:
            self.epochs.append(epoch)
        copied, filled = epoch.totals()
        self.seen.matched += copied
        self.seen.fills += filled
        lowest = epoch.lowest_source()
        if lowest is not None:
            self.check_reach(frame, lowest, end)
        at, number = head.content_start, self.member_at(head.content_start, started)
        for piece in content(self.blocks, epoch.extents):
            while piece:
                stop = at + len(piece)
                if number + 1 < started:
                    stop = min(stop, self.members[number + 1].start.content_start)
                taken = piece[: stop - at]
                self.sums[number].add(taken)
                piece, at = piece[len(taken) :], stop
                if piece:
                    number += 1

    def member_at(self, address: int, started: int) -> int:
        """The last of the first `started` members that starts at or before an address."""
        number = started - 1
        while self.members[number].start.content_start > address:
            number -= 1
        return number

    def check_reach(self, frame: Frame, lowest: int, end: int) -> None:
        """Section 8.1: from the lowest block to the frame that completes the epoch."""
        promised = self.archive_head().reach_bytes
        offset = None
        for at, start in self.block_offsets:
            if start > lowest:
                break
            offset = at
        need(offset is not None, f"{frame.name}: a block before the promised reach")
        reach = end - (offset or 0)
        self.seen.reach = max(self.seen.reach, reach)
        need(not promised or reach <= promised, f"{frame.name}: reach {reach}")

    def entries(self, frame: Frame) -> None:
        """Sections 4.4 and 7: between start and end of the member."""
        head = h.parse_entries(frame)
        number = head.member_id
        need(number < len(self.members), f"{frame.name}: Member_Id")
        member = self.members[number]
        need(member.start.kind >= h.TREE, f"{frame.name}: of a member without entries")
        need(member.end is None, f"{frame.name}: behind the end of its member")
        need(head.first_entry == self.entry_counts[number], f"{frame.name}: First_Entry")
        self.entry_counts[number] += head.entry_count
        if self.seen.entries:
            latest = self.seen.entries[-1].member_id
            need(latest <= number, f"{frame.name}: not in the order of members")
        self.seen.entries.append(entries_row(frame, head))
        self.hold(frame, lambda _: member.frames.append(unpack(head, frame)))

    def member_end(self, frame: Frame) -> None:
        """Sections 4.3 and 7: in the order of ids, behind the extents of the content."""
        end = h.parse_member_end(frame)
        name = frame.name
        need(end.member_id == self.ended < len(self.members), f"{name}: Member_Id")
        member = self.members[end.member_id]
        stop = member.start.content_start + end.content_bytes
        need(stop <= self.content_end, f"{name}: before the extents of its content")
        if self.ended + 1 < len(self.members):
            following = self.members[self.ended + 1].start.content_start
            need(stop == following, f"{name}: Content_Bytes")
        need(bool(end.flags & 2) == (member.start.kind >= h.TREE), f"{name}: Member_Flags")
        member.end = end
        self.ended += 1
        start = self.seen.starts[end.member_id]
        self.seen.members.append(MemberRow(start.offset, frame.offset, start.head, frame.head))
        self.seen.names.append(NameRow(f.checksum(member.start.name), end.member_id))
        self.hold(frame, lambda _: self.apply_member_end(member, end))

    def apply_member_end(self, member: Member, end: h.MemberEnd) -> None:
        """Compares content and entries with MemberEnd."""
        self.sums[end.member_id].check(member.start, end)
        check_entries(member.start, end, member.frames)

    def complete(self, frame: Frame) -> None:
        """Section 7: all members have ended, and all blocks have come."""
        need(self.ended == len(self.members), f"{frame.name}: a member has not ended")
        need(self.stored == self.introduced, f"{frame.name}: a block is missing")
        last = self.members[-1] if self.members else None
        stop = last.start.content_start + last.size if last else 0
        need(stop == self.content_end, f"{frame.name}: content without a member")

    def begin_index(self, frame: Frame) -> Levels:
        """Section 7: the index begins when all else has come."""
        if self.index is None:
            self.complete(frame)
            seen = self.seen
            leaves: dict[int, list[Any]] = {
                BLOCKS: seen.blocks,
                EPOCHS: seen.epochs,
                MEMBERS: seen.members,
                ENTRY_FRAMES: seen.entries,
                NAMES: sorted(seen.names) if len(seen.names) >= NAMES_FROM else [],
                SLICES: all_slices(self.members),
            }
            self.index = Levels(leaves)
        return self.index

    def index_frame(self, frame: Frame) -> None:
        """Section 6.1."""
        self.begin_index(frame).index_frame(frame)

    def end_frame(self, frame: Frame) -> None:
        """Section 6.2: the rest of the index, the sums and the root hash."""
        end, seen = h.parse_end(frame), self.seen
        check_roots(end, parse_roots(frame))
        self.begin_index(frame).end_frame(frame)
        found = h.EndHead(
            self.content_end,
            self.stored,
            self.frame_count,
            len(self.members),
            frame.end + f.TAIL_BYTES,
            seen.matched,
            seen.fills,
            seen.fallbacks,
            seen.reach,
            self.compute_root(),
            seen.last_decoder,
        )
        for name, stated in vars(end).items():
            value = getattr(found, name)
            need(value == stated, f"{frame.name}: {name} is {stated!r} instead of {value!r}")
        self.end = end

    def finish_whole(self, frame: Frame) -> None:
        """Section 6.4: after the frames of a Whole archive, what its head states."""
        self.complete(frame)
        head = h.parse_whole(frame)
        found = h.WholeHead(self.seen.matched, self.seen.fills, self.seen.reach)
        need(head == found, f"{frame.name}: {head} instead of {found}")
        self.compute_root()

    def compute_root(self) -> bytes:
        """Root_Hash of the members."""
        hashes = [member_hash(m.start, m.end) for m in self.members if m.end is not None]
        self.root_hash = root_hash(hashes)
        return self.root_hash


def block_row(frame: Frame, head: h.BlockHead) -> BlockRow:
    """The row of a block in the index."""
    coding = head.coding
    numbers = head.store_start, head.raw_bytes, coding.codec, coding.filter_ids
    return BlockRow(frame.offset, frame.size, *numbers)


def epoch_row(frame: Frame, head: h.ExtentsHead) -> EpochRow:
    """The row of an epoch in the index."""
    content, store = (head.content_start, head.content_bytes), (head.store_start, head.fresh_bytes)
    return EpochRow(frame.offset, frame.size, *content, *store, head.extent_count)


def entries_row(frame: Frame, head: h.EntriesHead) -> EntriesRow:
    """The row of an Entries frame in the index."""
    numbers = head.member_id, head.first_entry, head.entry_count, head.packed_checksum
    return EntriesRow(frame.offset, frame.size, *numbers, head.first_path)
