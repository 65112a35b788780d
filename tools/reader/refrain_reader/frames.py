"""Frames: headers, heads, payload checksums, the tail (sections 2 and 3)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Protocol

from xxhash import xxh3_64_intdigest as checksum

from .cursor import Cursor
from .errors import Damaged, ReaderError, Unsupported, need, within
from .limits import (
    BLOCK_RAW_BYTES_MAX,
    HEAD_BYTES_MAX,
    INDEX_BYTES_MAX,
    PACKED_RAW_BYTES_MAX,
    WHOLE_BYTES_MAX,
)

MAGIC = b"\xd2RFN\x0d\x0a\x1a\x0a"
SYNC = b"\xf5\x46\x52\xfe"
TAIL_MAGIC = b"\x52\xfe"
TAIL_BYTES = 8
HEADER_BYTES = 32
PIECE_BYTES = 65536
HEADER = struct.Struct("<4sIBBHIIQI")

ARCHIVE, MEMBER_START, BLOCK, EXTENTS, MEMBER_END, ENTRIES, INDEX, END, WHOLE = range(1, 10)
DECODER, GENERATION = 18, 19
KIND_NAMES = {
    ARCHIVE: "Archive",
    MEMBER_START: "MemberStart",
    BLOCK: "Block",
    EXTENTS: "Extents",
    MEMBER_END: "MemberEnd",
    ENTRIES: "Entries",
    INDEX: "Index",
    END: "End",
    WHOLE: "Whole",
    GENERATION: "Generation",
    DECODER: "Decoder",
}
# Kinds that have data, and how much at most.
DATA_BYTES_MAX = {
    BLOCK: BLOCK_RAW_BYTES_MAX,
    EXTENTS: PACKED_RAW_BYTES_MAX,
    ENTRIES: PACKED_RAW_BYTES_MAX,
    INDEX: INDEX_BYTES_MAX,
    END: INDEX_BYTES_MAX,
    WHOLE: WHOLE_BYTES_MAX,
}


class Bytes(Protocol):
    """What frames are read from: any bytes of a file, by position."""

    def read_at(self, offset: int, count: int) -> bytes:
        """Up to `count` bytes from `offset` on; fewer only at the end."""
        ...


@dataclass(frozen=True)
class Header:
    """A frame header of 32 bytes."""

    archive_id: int
    kind: int
    skippable: bool
    sequence: int
    payload_bytes: int
    payload_checksum: int


@dataclass(frozen=True)
class Frame:
    """A frame; `offset` counts from the magic of its archive, `size` includes the header."""

    offset: int
    kind: int
    skippable: bool
    head: bytes
    data: bytes

    @property
    def size(self) -> int:
        """Size of the frame in an archive that is not Whole."""
        return HEADER_BYTES + len(self.head) + len(self.data)

    @property
    def end(self) -> int:
        """Offset of the byte after the frame."""
        return self.offset + self.size

    @property
    def name(self) -> str:
        """Name of the frame for messages."""
        return f"{KIND_NAMES.get(self.kind, f'kind {self.kind}')} frame at {self.offset}"


def header_is_intact(raw: bytes) -> bool:
    """Whether `raw` starts with Sync and its Header_Checksum is right."""
    return (
        len(raw) == HEADER_BYTES
        and raw[:4] == SYNC
        and checksum(raw[:28]) & 0xFFFFFFFF == int.from_bytes(raw[28:], "little")
    )


def parse_header(raw: bytes, offset: int) -> Header:
    """Section 3: checks the header before anything in it is used."""
    where = f"frame header at {offset}"
    need(len(raw) == HEADER_BYTES, f"{where}: the file ends")
    need(header_is_intact(raw), f"{where}: wrong sync bytes or checksum")
    _, archive_id, kind, flags, generation, sequence, size, payload_checksum, _ = HEADER.unpack(raw)
    if flags & ~3:
        raise Unsupported(f"{where}: flags {flags:#x}")
    need(flags != 2, f"{where}: keep without skippable")
    if generation:
        raise Unsupported(f"{where}: generation {generation}")
    skippable = bool(flags & 1)
    need(not (skippable and 1 <= kind <= WHOLE), f"{where}: kind {kind} is marked skippable")
    if not skippable and not 1 <= kind <= WHOLE:
        raise Unsupported(f"{where}: kind {kind}")
    if not skippable:
        within(size, HEAD_BYTES_MAX + DATA_BYTES_MAX.get(kind, 0), f"{where}: Payload_Bytes")
    return Header(archive_id, kind, skippable, sequence, size, payload_checksum)


def payload_checksum(head: bytes, data: bytes) -> int:
    """Section 3: of the head, and the checksums of the pieces of the data."""
    view = memoryview(data)
    pieces = (view[i : i + PIECE_BYTES] for i in range(0, len(data), PIECE_BYTES))
    return checksum(head + b"".join(checksum(piece).to_bytes(8, "little") for piece in pieces))


def frame_bytes(
    archive_id: int, kind: int, flags: int, sequence: int, head: bytes, data: bytes
) -> bytes:
    """A frame of generation 0; `head` includes Head_Bytes."""
    numbers = (archive_id, kind, flags, 0, sequence, len(head) + len(data))
    raw = HEADER.pack(SYNC, *numbers, payload_checksum(head, data), 0)[:-4]
    return raw + (checksum(raw) & 0xFFFFFFFF).to_bytes(4, "little") + head + data


def split_head(payload: bytes, name: str) -> tuple[bytes, bytes]:
    """The head, Head_Bytes included, and the data of a payload."""
    cursor = Cursor(payload[:10], name)
    size = within(cursor.varint(), HEAD_BYTES_MAX, f"{name}: Head_Bytes") + cursor.at
    need(size <= len(payload), f"{name}: the head is longer than the payload")
    return payload[:size], payload[size:]


def read_frame(source: Bytes, base: int, offset: int) -> tuple[Header, Frame]:
    """Reads the frame at `offset` of the archive whose magic is at `base`."""
    header = parse_header(source.read_at(base + offset, HEADER_BYTES), offset)
    name = f"{KIND_NAMES.get(header.kind, 'frame')} at {offset}"
    payload = source.read_at(base + offset + HEADER_BYTES, header.payload_bytes)
    need(len(payload) == header.payload_bytes, f"{name}: the file ends")
    wrong = None
    try:
        head, data = split_head(payload, name)
    except ReaderError as error:
        head, data, wrong = payload, b"", error
    need(payload_checksum(head, data) == header.payload_checksum, f"{name}: wrong checksum")
    if wrong and not header.skippable:
        raise wrong
    if header.kind <= WHOLE and header.kind not in DATA_BYTES_MAX:
        need(not data, f"{name}: bytes behind the head")
    frame = Frame(offset, header.kind, header.skippable, head, data)
    return header, frame


def parse_tail(raw: bytes, offset: int) -> int:
    """Back_Bytes of the tail at `offset`."""
    if len(raw) != TAIL_BYTES or raw[6:] != TAIL_MAGIC:
        raise Damaged(f"no tail at {offset}")
    return int.from_bytes(raw[:6], "little")
