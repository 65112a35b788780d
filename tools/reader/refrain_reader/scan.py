"""Scanning damaged archives (section 8.3)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress

from . import heads as h
from .archive import Archive, Streamed, feed_whole
from .contents import Contents, Member, in_order
from .entries import Entry, unpack
from .errors import Damaged, ReaderError, need
from .extents import FILL, Epoch, Resolver, parse_section, unpack_section
from .frames import (
    ARCHIVE,
    BLOCK,
    END,
    ENTRIES,
    EXTENTS,
    HEADER_BYTES,
    INDEX,
    MAGIC,
    MEMBER_END,
    MEMBER_START,
    SYNC,
    TAIL_BYTES,
    WHOLE,
    Frame,
    Header,
    header_is_intact,
    parse_tail,
    read_frame,
)
from .index import MEMBERS, Node, parse_node, parse_roots
from .sources import File
from .store import Blocks, decode_block, fill
from .stream import Sequence

CHUNK_BYTES = 1 << 20


def sync_positions(source: File, start: int) -> Iterator[int]:
    """Where Sync is, from `start` on; `send` moves on to a later position."""
    at = start
    while at < source.size:
        chunk = source.read_at(at, CHUNK_BYTES + len(SYNC) - 1)
        found = chunk.find(SYNC)
        if found < 0:
            at += CHUNK_BYTES
            continue
        wanted = yield at + found
        at = wanted if wanted is not None else at + found + 1


def intact_frames(
    source: File, base: int, archive_id: int | None
) -> Iterator[tuple[Header, Frame]]:
    """The intact frames of an archive and their headers; without `archive_id`, those of all."""
    positions = sync_positions(source, base)
    position = next(positions, None)
    while position is not None:
        raw = source.read_at(position, HEADER_BYTES)
        after = None
        if header_is_intact(raw) and archive_id in (None, int.from_bytes(raw[4:8], "little")):
            with suppress(ReaderError):
                header, frame = read_frame(source, base, position - base)
                after = base + frame.end
                yield header, frame
        try:
            position = positions.send(after)
        except StopIteration:
            return


def find_id(source: File, base: int) -> int:
    """The archive's id: of the frame at the start, else of End, else of the first intact one."""
    with suppress(ReaderError):
        header, frame = read_frame(source, base, len(MAGIC))
        if frame.kind in (ARCHIVE, WHOLE):
            return header.archive_id
    with suppress(ReaderError):
        tail = source.size - TAIL_BYTES
        last = tail - parse_tail(source.read_at(tail, TAIL_BYTES), tail)
        header, frame = read_frame(source, base, last - base)
        if frame.kind == END:
            return header.archive_id
    for header, _ in intact_frames(source, base, None):
        return header.archive_id
    raise Damaged("no intact frame was found")


def following(source: File, at: int) -> int:
    """Where the next archive begins: behind the appendices that follow a tail."""
    while True:
        raw = source.read_at(at, HEADER_BYTES)
        if raw.startswith(MAGIC):
            return at
        if raw.startswith(SYNC):
            at = read_frame(source, 0, at)[1].end
        else:
            parse_tail(raw[:TAIL_BYTES], at)
            at += TAIL_BYTES


class Scanned(Archive, Resolver):
    """What is intact of an archive."""

    def __init__(self, source: File, base: int) -> None:
        self.archive_id = find_id(source, base)
        self.root_hash = b""
        self.head = h.ArchiveHead(0, 0, 1, 1, 0, 0, 1, 0)
        self.found: dict[int, Member] = {}
        self.entry_frames: dict[int, list[tuple[h.EntriesHead, Frame]]] = {}
        self.extents: dict[int, tuple[h.ExtentsHead, Frame]] = {}
        self.block_frames: dict[int, tuple[h.BlockHead, Frame]] = {}
        self.known_epochs: dict[int, Epoch] = {}
        self.blocks = Blocks()
        self.whole: Streamed | None = None
        self.next_base: int | None = None
        for _, frame in intact_frames(source, base, self.archive_id):
            with suppress(ReaderError):
                self.take(frame)
            if frame.kind in (END, WHOLE):
                with suppress(ReaderError):
                    self.next_base = following(source, base + frame.end + TAIL_BYTES)
                break
        Resolver.__init__(self, 1 << 62)
        self.contents = self.whole.contents if self.whole else Contents(self, self)
        self.decoded = False
        pairs = sorted((head.content_start, number) for number, (head, _) in self.extents.items())
        self.starts = [start for start, _ in pairs]
        self.numbers = [number for _, number in pairs]

    def take(self, frame: Frame) -> None:
        """Notes an intact frame."""
        takers: dict[int, Callable[[Frame], None]] = {
            ARCHIVE: self.take_archive,
            MEMBER_START: self.take_start,
            MEMBER_END: self.take_end,
            ENTRIES: self.take_entries,
            EXTENTS: self.take_extents,
            BLOCK: self.take_block,
            INDEX: self.take_index,
            END: self.take_last,
            WHOLE: self.take_whole,
        }
        if frame.kind in takers:
            takers[frame.kind](frame)

    def take_archive(self, frame: Frame) -> None:
        """Section 4.1."""
        self.head = h.parse_archive(frame)

    def take_start(self, frame: Frame) -> None:
        """Section 4.2."""
        start = h.parse_member_start(frame)
        self.found.setdefault(start.member_id, Member(start))

    def take_end(self, frame: Frame) -> None:
        """Section 4.3."""
        end = h.parse_member_end(frame)
        if end.member_id in self.found:
            self.found[end.member_id].end = end

    def take_entries(self, frame: Frame) -> None:
        """Section 4.4."""
        head = h.parse_entries(frame)
        self.entry_frames.setdefault(head.member_id, []).append((head, frame))

    def take_extents(self, frame: Frame) -> None:
        """Section 5.2."""
        head = h.parse_extents(frame)
        self.extents[head.epoch_id] = (head, frame)

    def take_block(self, frame: Frame) -> None:
        """Section 5.1."""
        head = h.parse_block(frame)
        self.block_frames[head.store_start] = (head, frame)

    def take_index(self, frame: Frame) -> None:
        """Section 6.1: members whose own frames are not intact."""
        self.take_members(parse_node(frame))

    def take_members(self, node: Node | None) -> None:
        """The members in a node of the index."""
        if node is not None and node.list_id == MEMBERS and node.depth == 0:
            for row in node.rows:
                member = self.found.setdefault(row.start.member_id, Member(row.start))
                member.end = row.end

    def take_last(self, frame: Frame) -> None:
        """Section 6.2."""
        self.root_hash = h.parse_end(frame).root_hash
        self.take_members(parse_roots(frame).get(MEMBERS))

    def take_whole(self, frame: Frame) -> None:
        """Section 6.4: all or nothing."""
        sequence = Sequence(keep=True)
        feed_whole(sequence, frame)
        self.whole = Streamed(sequence)
        self.head, self.root_hash = self.whole.head, self.whole.root_hash

    def read(self, start: int, count: int) -> bytes:
        """See `Store`; all blocks that can be decoded are, at the first use."""
        if not self.decoded:
            self.decoded = True
            for at in sorted(self.block_frames):
                head, frame = self.block_frames[at]
                with suppress(ReaderError):
                    self.blocks.add(at, decode_block(head, frame))
        return self.blocks.read(start, count)

    def members(self) -> Iterator[Member]:
        if self.whole:
            return self.whole.members()
        return (self.found[number] for number in sorted(self.found))

    def entries(self, member: Member) -> list[Entry]:
        if self.whole:
            return self.whole.entries(member)
        frames = self.entry_frames.get(member.start.member_id, [])
        found: list[list[Entry]] = []
        for head, frame in sorted(frames, key=lambda pair: pair[0].first_entry):
            with suppress(ReaderError):
                found.append(unpack(head, frame))
        return in_order(member.start, found)

    def epoch_at(self, address: int) -> Epoch:
        """See `Epochs`."""
        index = bisect_right(self.starts, address) - 1
        need(index >= 0, f"the extents of content {address} are missing")
        number = self.numbers[index]
        if number not in self.known_epochs:
            head, frame = self.extents[number]
            extents = parse_section(head, unpack_section(head, frame), frame.name)
            self.known_epochs[number] = self.resolve(head, extents, frame.name)
        epoch = self.known_epochs[number]
        need(address < epoch.end, f"the extents of content {address} are missing")
        return epoch

    def find(self, address: int, before: int) -> tuple[Epoch, int]:
        """See `Resolver`; the window need not be checked here."""
        epoch = self.epoch_at(address)
        need(epoch.head.epoch_id < before, "a reference to content that is not before it")
        return epoch, 0

    def size_of(self, member: Member) -> int:
        """Content_Bytes, or as much as other frames let suspect."""
        if member.end is not None:
            return member.end.content_bytes
        following = self.found.get(member.start.member_id + 1)
        if following is not None:
            return following.start.content_start - member.start.content_start
        stop = max(
            (head.content_start + head.content_bytes for head, _ in self.extents.values()),
            default=0,
        )
        return max(0, stop - member.start.content_start)

    def salvage(self, member: Member) -> Iterator[tuple[bytes, bool]]:
        """The content of a member in pieces; zeros and False for what is lost."""
        if self.whole:
            yield from ((piece, True) for piece in self.whole.contents.of(member))
            return
        at = member.start.content_start
        end = at + self.size_of(member)
        while at < end:
            try:
                epoch = self.epoch_at(at)
            except ReaderError:
                later = bisect_right(self.starts, at)
                stop = min(end, self.starts[later] if later < len(self.starts) else end)
                yield from lost(stop - at)
                at = stop
                continue
            stop = min(end, epoch.end)
            for extent in epoch.between(at, stop):
                if extent.kind == FILL:
                    yield from ((piece, True) for piece in fill(extent))
                else:
                    yield from self.salvage_store(extent.source, extent.length)
            at = stop

    def salvage_store(self, start: int, count: int) -> Iterator[tuple[bytes, bool]]:
        """A range of the store, with zeros for missing blocks."""
        end = start + count
        while start < end:
            try:
                piece = self.read(start, end - start)
                yield piece, True
                start += len(piece)
            except ReaderError:
                later = bisect_right(self.blocks.starts, start)
                known = self.blocks.starts[later] if later < len(self.blocks.starts) else end
                stop = min(end, known)
                yield from lost(stop - start)
                start = stop


def lost(count: int) -> Iterator[tuple[bytes, bool]]:
    """Zeros for lost bytes."""
    while count:
        piece = bytes(min(count, CHUNK_BYTES))
        yield piece, False
        count -= len(piece)


def open_scanned(source: File) -> list[Scanned]:
    """All archives of a file, as far as they are intact."""
    archives: list[Scanned] = []
    base: int | None = 0
    while base is not None:
        archives.append(Scanned(source, base))
        base = archives[-1].next_base
    return archives
