"""Extents (section 5.2): the section, references, and the content of epochs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from . import limits
from .coding import decode
from .cursor import Cursor, moved, unzigzag
from .errors import Unsupported, need, within
from .frames import Frame, checksum
from .heads import ExtentsHead

FRESH, COPY, FILL, REFERENCE = range(4)


@dataclass(frozen=True)
class Extent:
    """Content from the store (`source`), a fill (`pattern`) or, with neither, a reference.

    `at` is its place in the content space; `depth` counts the references it came through.
    """

    at: int
    length: int
    kind: int
    source: int
    pattern: bytes = b""
    depth: int = 0

    def part(self, start: int, end: int, at: int, depth: int) -> Extent:
        """The part of content addresses `start` to `end`, as content at `at`."""
        skip = start - self.at
        pattern = self.pattern
        if self.kind == FILL:
            turn = skip % len(pattern)
            pattern = pattern[turn:] + pattern[:turn]
        source = self.source + skip if self.kind != FILL else 0
        kind = COPY if self.kind == FRESH else self.kind
        return Extent(at, end - start, kind, source, pattern, depth)


@dataclass
class Epoch:
    """A resolved epoch."""

    head: ExtentsHead
    extents: list[Extent]
    starts: list[int]

    @property
    def start(self) -> int:
        """Its first content address."""
        return self.head.content_start

    @property
    def end(self) -> int:
        """The content address behind it."""
        return self.head.content_start + self.head.content_bytes

    def totals(self) -> tuple[int, int]:
        """Content bytes of copies and of fills."""
        copied = sum(e.length for e in self.extents if e.kind == COPY)
        filled = sum(e.length for e in self.extents if e.kind == FILL)
        return copied, filled

    def lowest_source(self) -> int | None:
        """The lowest store address that the epoch uses."""
        return min((e.source for e in self.extents if e.kind != FILL), default=None)

    def between(self, start: int, end: int) -> Iterator[Extent]:
        """Its extents in a content range, cut at the ends; kinds and depths stay."""
        index = bisect_right(self.starts, start) - 1
        while index < len(self.extents) and self.extents[index].at < end:
            extent = self.extents[index]
            first, last = max(start, extent.at), min(end, extent.at + extent.length)
            yield extent.part(first, last, first, extent.depth)
            index += 1


def unpack_section(head: ExtentsHead, frame: Frame) -> bytes:
    """The decoded section; compares its checksum."""
    raw = decode(head.coding, frame.data, head.packed_raw_bytes, frame.name)
    if head.packed_checksum is not None:
        need(checksum(raw) == head.packed_checksum, f"{frame.name}: wrong Packed_Checksum")
    return raw


def columns(raw: bytes, name: str) -> list[Cursor]:
    """The eight columns; those that are empty at the end are not stored."""
    cursor = Cursor(raw, name)
    count = cursor.varint()
    need(1 <= count <= 8, f"{name}: {count} columns")
    sizes = [cursor.varint() for _ in range(count - 1)]
    parts = [cursor.take(size) for size in sizes]
    need(cursor.left > 0, f"{name}: the last column is empty")
    parts.append(cursor.rest())
    parts += [b""] * (8 - count)
    return [Cursor(part, f"{name}, column {i + 1}") for i, part in enumerate(parts)]


def length(cursor: Cursor) -> int:
    """A length, at least 1."""
    value = cursor.varint()
    need(value >= 1, f"{cursor.name}: a length of 0")
    return value


def parse_section(head: ExtentsHead, raw: bytes, name: str) -> list[Extent]:
    """Section 5.2: the extents before references are resolved."""
    kinds, fresh, copies, sources, references, from_content, fills, patterns = columns(raw, name)
    extents: list[Extent] = []
    at, introduced = head.content_start, head.store_start
    expected, expected_reference = 0, head.content_start
    for kind in kinds.rest():
        pattern, source = b"", 0
        if kind == FRESH:
            size, source = length(fresh), introduced
            introduced += size
        elif kind == COPY:
            size = length(copies)
            source = moved(expected, unzigzag(sources.varint()))
            need(source + size <= introduced, f"{name}: a copy of what is not introduced")
        elif kind == FILL:
            size = length(fills)
            period = patterns.byte()
            need(period >= 1, f"{name}: Period_Bytes is 0")
            within(period, limits.PATTERN_BYTES_MAX, f"{name}: Period_Bytes")
            pattern = patterns.take(period)
        elif kind == REFERENCE:
            size = length(references)
            source = moved(expected_reference, unzigzag(from_content.varint()))
            need(source + size <= head.content_start, f"{name}: a reference of its own epoch")
        else:
            raise Unsupported(f"{name}: Extent_Kind {kind}")
        expected = source + size if kind == COPY else moved(expected, size)
        expected_reference = source + size if kind == REFERENCE else moved(expected_reference, size)
        extents.append(Extent(at, size, kind, source, pattern))
        at += size
        need(at - head.content_start <= head.content_bytes, f"{name}: too much content")
    for column in (fresh, copies, sources, references, from_content, fills, patterns):
        column.end()
    need(len(extents) == head.extent_count, f"{name}: Extent_Count")
    need(at == head.content_start + head.content_bytes, f"{name}: Content_Bytes")
    need(introduced == head.store_start + head.fresh_bytes, f"{name}: Fresh_Bytes")
    return extents


class Resolver:
    """Resolves references by earlier epochs, which `earlier` finds by content address."""

    def __init__(self, reference_window: int) -> None:
        self.window = reference_window

    def find(self, address: int, before: int) -> tuple[Epoch, int]:
        """The epoch that holds `address`, and the resolved extents from it to epoch `before`."""
        raise NotImplementedError

    def resolve(self, head: ExtentsHead, extents: list[Extent], name: str) -> Epoch:
        """Section 5.2: replaces references by the extents they stand for."""
        resolved: list[Extent] = []
        for extent in extents:
            parts = [extent] if extent.kind != REFERENCE else self.parts(head, extent, name)
            for part in parts:
                resolved.append(part)
                within(len(resolved), limits.EXTENTS_PER_FRAME_MAX, "resolved extents")
        return Epoch(head, resolved, [extent.at for extent in resolved])

    def parts(self, head: ExtentsHead, reference: Extent, name: str) -> Iterator[Extent]:
        """What one reference stands for."""
        source, end = reference.source, reference.source + reference.length
        at = reference.at
        first = True
        while source < end:
            epoch, extents = self.find(source, head.epoch_id)
            need(not first or extents <= self.window, f"{name}: a reference of {extents} extents ago")
            first = False
            stop = min(end, epoch.end)
            for part in epoch.between(source, stop):
                depth = within(part.depth + 1, limits.REFERENCE_DEPTH_MAX, f"{name}: depth")
                yield part.part(part.at, part.at + part.length, at, depth)
                at += part.length
            source = stop


class Window(Resolver):
    """The latest epochs, for reading from front to back."""

    def __init__(self, reference_window: int) -> None:
        super().__init__(reference_window)
        self.epochs: list[Epoch] = []
        self.counts: list[int] = [0]

    def find(self, address: int, before: int) -> tuple[Epoch, int]:
        starts = [epoch.start for epoch in self.epochs]
        index = bisect_right(starts, address) - 1
        need(index >= 0, "a reference of what is too far back")
        return self.epochs[index], sum(len(e.extents) for e in self.epochs[index:])

    def add(self, epoch: Epoch) -> None:
        """Retains an epoch, and drops those that no reference can reach any longer."""
        self.epochs.append(epoch)
        kept = 0
        for index in range(len(self.epochs) - 1, -1, -1):
            kept += len(self.epochs[index].extents)
            if kept > self.window:
                del self.epochs[: index + 1]
                return
