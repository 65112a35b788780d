"""Blocks (section 5.1) and the store that they make."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Protocol

from .coding import decode
from .errors import need, within
from .extents import FILL, Extent
from .frames import PIECE_BYTES, Frame, checksum
from .heads import BlockHead
from .limits import STORE_BYTES_KEPT

CHUNK_BYTES = 1 << 20


class Store(Protocol):
    """Anything that has bytes of the store."""

    def read(self, start: int, count: int) -> bytes:
        """Up to `count` bytes from `start` on, at least one."""
        ...


def decode_block(head: BlockHead, frame: Frame) -> bytes:
    """Section 5.1: the raw bytes; compares all checksums."""
    raw = decode(head.coding, frame.data, head.raw_bytes, frame.name)
    view = memoryview(raw)
    sums = [checksum(view[i : i + PIECE_BYTES]) for i in range(0, len(raw), PIECE_BYTES)]
    if head.pieces:
        low = tuple(value & 0xFFFFFFFF for value in sums)
        need(low == head.pieces, f"{frame.name}: wrong Piece_Checksums")
    if head.raw_checksum is not None:
        chain = checksum(b"".join(value.to_bytes(8, "little") for value in sums))
        need(chain == head.raw_checksum, f"{frame.name}: wrong Raw_Checksum")
    return raw


class Blocks:
    """Decoded blocks by store address, for reading from front to back and for scanning."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.blocks: list[bytes] = []
        self.kept = 0

    def add(self, start: int, raw: bytes) -> None:
        """A block; blocks come in the order of their addresses."""
        self.starts.append(start)
        self.blocks.append(raw)
        self.kept += len(raw)
        within(self.kept, STORE_BYTES_KEPT, "bytes of the store that must be kept")

    def drop_before(self, address: int) -> None:
        """Forgets blocks that end at or before `address`."""
        count = 0
        while count < len(self.starts) and (
            self.starts[count] + len(self.blocks[count]) <= address
        ):
            self.kept -= len(self.blocks[count])
            count += 1
        del self.starts[:count], self.blocks[:count]

    def read(self, start: int, count: int) -> bytes:
        """See `Store`."""
        index = bisect_right(self.starts, start) - 1
        need(index >= 0, f"store address {start} is missing")
        skip = start - self.starts[index]
        piece = self.blocks[index][skip : skip + count]
        need(len(piece) > 0, f"store address {start} is missing")
        return piece


def content(store: Store, extents: Iterator[Extent] | list[Extent]) -> Iterator[bytes]:
    """The bytes of resolved extents, in pieces."""
    for extent in extents:
        if extent.kind == FILL:
            yield from fill(extent)
            continue
        at, end = extent.source, extent.source + extent.length
        while at < end:
            piece = store.read(at, min(end - at, CHUNK_BYTES))
            yield piece
            at += len(piece)


def fill(extent: Extent) -> Iterator[bytes]:
    """Byte i of a fill is byte i mod Period_Bytes of its pattern."""
    whole = extent.pattern * max(1, min(CHUNK_BYTES, extent.length) // len(extent.pattern))
    left = extent.length
    while left:
        piece = whole[: min(left, len(whole))]
        yield piece
        left -= len(piece)
