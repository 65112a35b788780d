"""The frames of an archive in file order, its tail, and what may follow (section 2)."""

from __future__ import annotations

from collections.abc import Iterator

from .cursor import Cursor
from .errors import Damaged, Unsupported, need, within
from .frames import (
    DATA_BYTES_MAX,
    END,
    ENTRIES,
    EXTENTS,
    GENERATION,
    HEADER_BYTES,
    MAGIC,
    SYNC,
    TAIL_BYTES,
    WHOLE,
    Bytes,
    Frame,
    header_is_intact,
    parse_tail,
    read_frame,
    split_head,
)
from .limits import WHOLE_BYTES_MAX
from .parity import has_parity, with_parity


def check_magic(source: Bytes, base: int) -> None:
    """An archive starts with Magic."""
    found = source.read_at(base, len(MAGIC))
    need(found == MAGIC, f"no archive starts at byte {base}")


class Chain:
    """Iterates over the frames of the archive at `base`; then `next_base` is set."""

    def __init__(self, source: Bytes, base: int) -> None:
        self.source = source
        self.base = base
        self.archive_id: int | None = None
        self.sequence = 0
        self.next_base: int | None = None

    def __iter__(self) -> Iterator[Frame]:
        check_magic(self.source, self.base)
        offset = len(MAGIC)
        while True:
            frame = self.read(offset)
            whole = frame.kind == WHOLE
            need(not whole or self.sequence == 1, f"{frame.name}: not alone")
            # A frame of a Whole archive has no size of its own here: it is read as stored.
            offset = frame.end
            last = frame.kind in (END, WHOLE)
            if last:
                self.tail(frame)
            yield frame
            if last:
                return

    def read(self, offset: int) -> Frame:
        """The next frame; ids and sequence numbers must be right."""
        header, frame = read_frame(self.source, self.base, offset)
        if self.archive_id is None:
            self.archive_id = header.archive_id
        need(header.archive_id == self.archive_id, f"{frame.name}: of another archive")
        need(header.sequence == self.sequence, f"{frame.name}: sequence {header.sequence}")
        self.sequence += 1
        return frame

    def tail(self, last: Frame) -> None:
        """The tail after the last frame, and what follows it."""
        at = last.end
        raw = self.source.read_at(self.base + at, TAIL_BYTES)
        need(parse_tail(raw, at) == last.size, f"tail at {at}: Back_Bytes")
        at += TAIL_BYTES
        following = self.source.read_at(self.base + at, len(MAGIC))
        while following.startswith(SYNC):
            at = self.behind(last, at)
            following = self.source.read_at(self.base + at, len(MAGIC))
        if following:
            need(following == MAGIC, f"bytes behind the archive at {self.base + at}")
            self.next_base = self.base + at

    def behind(self, last: Frame, at: int) -> int:
        """The skippable frames of an appendix, which ends with one more tail."""
        while True:
            raw = self.source.read_at(self.base + at, HEADER_BYTES)
            if not raw.startswith(SYNC):
                back = parse_tail(raw[:TAIL_BYTES], at)
                need(at - back == last.offset, f"tail at {at}: Back_Bytes")
                return at + TAIL_BYTES
            if header_is_intact(raw) and raw[8] == GENERATION:
                raise Unsupported(f"a generation at {at}")
            frame = self.read(at)
            need(frame.skippable, f"{frame.name}: behind the tail")
            at = frame.end


def frames_of_whole(whole: Frame) -> list[Frame]:
    """The frames in the data of a Whole frame, where they would be in an ordinary archive."""
    data = whole.data
    within(len(data), WHOLE_BYTES_MAX, "data of a Whole frame")
    cursor = Cursor(data, whole.name)
    frames: list[Frame] = []
    offset = len(MAGIC)
    parity = has_parity(whole.head, data)
    while cursor.left:
        kind = cursor.byte()
        if kind in (7, 8, 9):
            raise Damaged(f"{whole.name}: a frame of kind {kind}")
        if not 1 <= kind <= ENTRIES:
            raise Unsupported(f"{whole.name}: a frame of kind {kind}")
        head, _ = split_head(cursor.data[cursor.at :], whole.name)
        cursor.take(len(head))
        content = cursor.text() if kind in DATA_BYTES_MAX else b""
        if parity and kind in (EXTENTS, ENTRIES):
            head = with_parity(head, content)
        frame = Frame(offset, kind, False, head, content)
        frames.append(frame)
        offset = frame.end
    return frames
