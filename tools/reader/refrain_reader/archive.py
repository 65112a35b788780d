"""Archives: opening in each of the three ways of section 8."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from . import coding
from . import heads as h
from .chain import Chain, check_magic, frames_of_whole
from .contents import Contents, Member, Sums, check_entries
from .entries import Entry, unpack
from .errors import Limit, Unsupported, need, within
from .extents import Epoch, Resolver, parse_section, unpack_section
from .frames import (
    ARCHIVE,
    BLOCK,
    DECODER,
    END,
    ENTRIES,
    EXTENTS,
    GENERATION,
    HEADER_BYTES,
    INDEX,
    MAGIC,
    MEMBER_END,
    MEMBER_START,
    SYNC,
    TAIL_BYTES,
    WHOLE,
    Bytes,
    Frame,
    header_is_intact,
    parse_tail,
    read_frame,
)
from .hashes import block_hash, member_hash, root_hash
from .index import (
    BLOCKS,
    ENTRY_FRAMES,
    EPOCHS,
    MEMBERS,
    EntriesRow,
    EpochRow,
    Index,
    MemberRow,
    check_roots,
    parse_roots,
)
from .limits import ARCHIVES_MAX, DECODERS_MAX
from .slices import slices
from .sources import File
from .store import decode_block
from .stream import Sequence, block_row, entries_row, epoch_row


class Archive:
    """What the commands need of an archive."""

    contents: Contents
    head: h.ArchiveHead
    root_hash: bytes

    def members(self) -> Iterator[Member]:
        """All members; entries are read by `entries`."""
        raise NotImplementedError

    def named(self, name: bytes) -> Iterator[Member]:
        """The members with a name."""
        return (member for member in self.members() if member.start.name == name)

    def entries(self, member: Member) -> list[Entry]:
        """The entries of a member."""
        return member.entries


class Streamed(Archive):
    """An archive that was read from front to back, with everything retained."""

    def __init__(self, sequence: Sequence) -> None:
        self.sequence = sequence
        self.contents = Contents(self, sequence.blocks)
        self.head = sequence.archive_head()
        self.root_hash = sequence.root_hash
        self.starts = [epoch.start for epoch in sequence.epochs]

    def epoch_at(self, address: int) -> Epoch:
        """See `Epochs`."""
        index = bisect_right(self.starts, address) - 1
        need(index >= 0, f"content {address} is missing")
        return self.sequence.epochs[index]

    def members(self) -> Iterator[Member]:
        return iter(self.sequence.members)


def read_sequence(source: Bytes, base: int, keep: bool) -> tuple[Sequence, int | None]:
    """Reads one archive from front to back; also where the next one starts."""
    sequence = Sequence(keep)
    chain = Chain(source, base)
    for frame in chain:
        if frame.kind == WHOLE:
            feed_whole(sequence, frame)
        else:
            sequence.feed(frame)
    return sequence, chain.next_base


def feed_whole(sequence: Sequence, whole: Frame) -> None:
    """The frames of a Whole archive."""
    for frame in frames_of_whole(whole):
        sequence.feed(frame)
    sequence.archive_head()
    sequence.finish_whole(whole)


def stream(source: Bytes, keep: bool) -> Iterator[Sequence]:
    """All archives that stand one behind the other, from front to back."""
    base: int | None = 0
    count = 0
    while base is not None:
        within(count + 1, ARCHIVES_MAX, "number of archives")
        sequence, base = read_sequence(source, base, keep)
        count += 1
        yield sequence


@dataclass(frozen=True)
class Place:
    """Where an archive is in a file: its magic, and its last frame."""

    base: int
    last: Frame
    archive_id: int


def places(source: File) -> list[Place]:
    """Section 8.2: all archives of a file, found from its end."""
    found: list[Place] = []
    end = source.size
    while end > 0:
        within(len(found) + 1, ARCHIVES_MAX, "number of archives")
        place = place_before(source, end)
        found.append(place)
        end = place.base
    need(bool(found), "an empty file")
    return found[::-1]


def place_before(source: File, end: int) -> Place:
    """The archive whose tail ends at `end`."""
    need(end >= TAIL_BYTES, f"no tail before {end}")
    tail = end - TAIL_BYTES
    last = tail - parse_tail(source.read_at(tail, TAIL_BYTES), tail)
    need(last >= len(MAGIC), f"tail at {tail}: Back_Bytes")
    header, frame = read_frame(source, last, 0)
    need(frame.kind in (END, WHOLE), f"tail at {tail}: leads to kind {frame.kind}")
    first_tail = last + frame.size
    parse_tail(source.read_at(first_tail, TAIL_BYTES), first_tail)
    if frame.kind == WHOLE:
        base = last - len(MAGIC)
    else:
        stop = first_tail + TAIL_BYTES
        end_head = h.parse_end(frame)
        need(header.sequence + 1 == end_head.frame_count, f"End frame at {last}: Frame_Count")
        base = stop - end_head.archive_bytes
        need(base >= 0, f"End frame at {last}: Archive_Bytes")
    if first_tail != tail:
        check_between(source, last, first_tail + TAIL_BYTES, tail)
    check_magic(source, base)
    moved = Frame(last - base, frame.kind, False, frame.head, frame.data)
    return Place(base, moved, header.archive_id)


def check_between(source: File, last: int, at: int, tail: int) -> None:
    """Between the first tail and the last one there are skippable frames, and tails behind them."""
    is_behind_frame = False
    while at < tail:
        raw = source.read_at(at, HEADER_BYTES)
        if is_behind_frame and not raw.startswith(SYNC):
            need(at - parse_tail(raw[:TAIL_BYTES], at) == last, f"tail at {at}: Back_Bytes")
            at, is_behind_frame = at + TAIL_BYTES, False
            continue
        if header_is_intact(raw) and raw[8] == GENERATION:
            raise Unsupported(f"a generation at {at}")
        header, frame = read_frame(source, at, 0)
        need(header.skippable, f"{frame.name}: behind the tail")
        at, is_behind_frame = at + frame.size, True
    need(at == tail and is_behind_frame, "frames behind the tail end in the wrong place")


class Indexed(Archive, Resolver):
    """Section 8.2: an archive that is read through its index."""

    def __init__(self, source: File, place: Place) -> None:
        self.source = source
        self.place = place
        self.end = h.parse_end(place.last)
        roots = parse_roots(place.last)
        check_roots(self.end, roots)
        self.find_decoders()
        self.index = Index(roots, lambda offset, size: self.load(offset, size, INDEX))
        self.root_hash = self.end.root_hash
        self.head = h.parse_archive(self.load(len(MAGIC), None, ARCHIVE))
        Resolver.__init__(self, self.head.reference_window)
        self.contents = Contents(self, self)
        self.known_epochs: dict[int, Epoch] = {}
        self.block: tuple[int, bytes] = (-1, b"")

    def find_decoders(self) -> None:
        """Gives the decoders that the archive carries to those who want them."""
        for outside in coding.OUTSIDE:
            offset, back = self.end.last_decoder, self.end.last_decoder
            for _ in range(DECODERS_MAX):
                if back == 0:
                    return
                frame = self.load(offset, None, DECODER)
                back = outside.add_frame(frame.head, frame.data, frame.name)
                need(back < offset, f"{frame.name}: Back_Bytes")
                offset -= back
            raise Limit("decoders of an archive")

    def load(self, offset: int, size: int | None, kind: int) -> Frame:
        """The frame at an offset; its size must be that of its row."""
        header, frame = read_frame(self.source, self.place.base, offset)
        need(header.archive_id == self.place.archive_id, f"{frame.name}: of another archive")
        need(size is None or frame.size == size, f"{frame.name}: size in the index")
        need(frame.kind == kind, f"{frame.name}: kind in the index")
        return frame

    def members(self) -> Iterator[Member]:
        return (Member(row.start, row.end) for row in self.index.rows_from(MEMBERS, 0))

    def named(self, name: bytes) -> Iterator[Member]:
        return (Member(row.start, row.end) for row in self.index.named(name))

    def entries(self, member: Member) -> list[Entry]:
        frames: list[list[Entry]] = []
        count = 0
        for row in self.index.entries_of(member.start.member_id):
            need(row.first_entry == count, f"the frame at {row.offset}: First_Entry")
            frames.append(self.entries_of(row))
            count += len(frames[-1])
        read = Member(member.start, member.end, frames)
        if member.end is not None:
            check_entries(member.start, member.end, frames)
        if read.has_slices:
            first = self.index.first(ENTRY_FRAMES, lambda key: key[0] < member.start.member_id)
            numbers = range(first, first + len(frames))
            found = list(self.index.slices_of(numbers))
            need(found == slices(frames, first), f"member {member.start.member_id}: its slices")
        return read.entries

    def entries_of(self, row: EntriesRow) -> list[Entry]:
        """The entries of one frame, which must agree with its row."""
        frame = self.load(row.offset, row.size, ENTRIES)
        head = h.parse_entries(frame)
        need(entries_row(frame, head) == row, f"{frame.name}: differs from its row in the index")
        return unpack(head, frame)

    def epoch_at(self, address: int) -> Epoch:
        """See `Epochs`."""
        return self.epoch(*self.index.at(EPOCHS, address))

    def epoch(self, number: int, row: EpochRow) -> Epoch:
        """The resolved epoch with a number."""
        if number not in self.known_epochs:
            frame = self.load(row.offset, row.size, EXTENTS)
            head = h.parse_extents(frame)
            agree = epoch_row(frame, head) == row and head.epoch_id == number
            need(agree, f"{frame.name}: differs from its row in the index")
            extents = parse_section(head, unpack_section(head, frame), frame.name)
            self.known_epochs[number] = self.resolve(head, extents, frame.name)
        return self.known_epochs[number]

    def find(self, address: int, before: int) -> tuple[Epoch, int]:
        """See `Resolver`."""
        first, row = self.index.at(EPOCHS, address)
        need(first < before, "a reference to content that is not before it")
        count = 0
        for number, between in zip(
            range(first, before), self.index.rows_from(EPOCHS, first), strict=False
        ):
            count += len(self.epoch(number, between).extents)
            if count > self.window:
                break
        return self.epoch(first, row), count

    def read(self, start: int, count: int) -> bytes:
        """See `Store`."""
        number, row = self.index.at(BLOCKS, start)
        if self.block[0] != number:
            frame = self.load(row.offset, row.size, BLOCK)
            head = h.parse_block(frame)
            agree = block_row(frame, head) == row and head.block_id == number
            need(agree, f"{frame.name}: differs from its row in the index")
            if row.hash is not None:
                need(block_hash(frame) == row.hash, f"{frame.name}: hash in the index")
            self.block = (number, decode_block(head, frame))
        skip = start - row.store_start
        return self.block[1][skip : skip + count]

    def check(self) -> None:
        """Reads every row and member through the index and compares all that is stated."""
        for list_id in h.LISTS:
            for _ in self.index.rows_from(list_id, 0):
                pass
        hashes = []
        for row in self.index.rows_from(MEMBERS, 0):
            need(row in self.index.named(row.start.name), "the index: a name is missing")
            self.check_frames(row)
            member = Member(row.start, row.end)
            sums = Sums(row.start)
            for piece in self.contents.of(member):
                sums.add(piece)
            sums.check(row.start, row.end)
            self.entries(member)
            hashes.append(member_hash(row.start, row.end))
        need(root_hash(hashes) == self.root_hash, "wrong Root_Hash")

    def check_frames(self, row: MemberRow) -> None:
        """The frames of a member have the payloads that its row states."""
        start = self.load(row.start_offset, None, MEMBER_START)
        end = self.load(row.end_offset, None, MEMBER_END)
        agree = (start.head, end.head) == (row.start_payload, row.end_payload)
        need(agree, f"{start.name}: differs from its row in the index")


def open_indexed(source: File) -> list[Archive]:
    """All archives of a file, through their indexes."""
    archives: list[Archive] = []
    for place in places(source):
        if place.last.kind == WHOLE:
            sequence, _ = read_sequence(source, place.base, keep=True)
            archives.append(Streamed(sequence))
        else:
            archives.append(Indexed(source, place))
    return archives


def open_streamed(source: Bytes) -> list[Archive]:
    """All archives, read from front to back."""
    return [Streamed(sequence) for sequence in stream(source, keep=True)]
