"""Members with their content and entries, however they were read."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from blake3 import blake3

from . import entries as kinds
from .entries import Entry, sort_key
from .errors import Damaged, need, within
from .extents import Epoch
from .hashes import entry_bytes, hasher
from .heads import TREE, MemberEnd, MemberStart
from .limits import CONTENT_BYTES_READ
from .store import Store, content

SPARSE_PIECE = 65536
DIGESTS = {1: "md5", 2: "sha1", 3: "sha256", 4: "sha512"}


class Epochs(Protocol):
    """Anything that finds resolved epochs."""

    def epoch_at(self, address: int) -> Epoch:
        """The epoch that holds a content address."""
        ...


@dataclass
class Member:
    """A member; `end` is None while it has not been found (in damaged archives)."""

    start: MemberStart
    end: MemberEnd | None = None
    frames: list[list[Entry]] = field(default_factory=list)

    @property
    def entries(self) -> list[Entry]:
        """The entries of all frames, in order."""
        return in_order(self.start, self.frames)

    @property
    def has_slices(self) -> bool:
        """Section 6.1: whether the index states the order of its entries."""
        return bool(self.frames) and self.start.kind == TREE and not is_ascending(self.frames)

    @property
    def size(self) -> int:
        """Content_Bytes."""
        if self.end is None:
            raise Damaged(f"the end of member {self.start.member_id} is missing")
        return self.end.content_bytes


class Contents:
    """Reads any range of content through epochs and the store."""

    def __init__(self, epochs: Epochs, store: Store) -> None:
        self.epochs = epochs
        self.store = store

    def read(self, start: int, end: int) -> Iterator[bytes]:
        """The bytes of a range of the content space, in pieces."""
        within(end - start, CONTENT_BYTES_READ, "bytes of content to read")
        while start < end:
            epoch = self.epochs.epoch_at(start)
            stop = min(end, epoch.end)
            yield from content(self.store, epoch.between(start, stop))
            start = stop

    def of(self, member: Member, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The content of a member, or a range of it."""
        first = member.start.content_start
        return self.read(first + start, first + (member.size if end is None else end))


class SparseHash:
    """Content_Hash of a sparse member (section 6.3)."""

    def __init__(self) -> None:
        self.records = hasher("sparse content")
        self.number = 0
        self.piece = b""

    def update(self, data: bytes) -> None:
        """The next bytes."""
        self.piece += data
        while len(self.piece) >= SPARSE_PIECE:
            self.record(self.piece[:SPARSE_PIECE])
            self.piece = self.piece[SPARSE_PIECE:]
            self.number += 1

    def record(self, piece: bytes) -> None:
        """A piece counts if it is not all zeros."""
        if any(piece):
            self.records.update(self.number.to_bytes(8, "little") + blake3(piece).digest())

    def digest(self) -> bytes:
        """The hash of all content."""
        self.record(self.piece)
        length = self.number * SPARSE_PIECE + len(self.piece)
        return self.records.update(length.to_bytes(8, "little")).digest()


class Sums:
    """Length, hash and further digests of the content of a member (section 4.3)."""

    def __init__(self, start: MemberStart) -> None:
        self.length = 0
        self.content_hash = SparseHash() if start.is_sparse else blake3()
        self.digests = {n: hashlib.new(name) for n, name in DIGESTS.items()}
        self.crc = 0

    def add(self, piece: bytes) -> None:
        """The next bytes."""
        self.length += len(piece)
        self.content_hash.update(piece)
        for digest in self.digests.values():
            digest.update(piece)
        self.crc = zlib.crc32(piece, self.crc)

    def check(self, start: MemberStart, end: MemberEnd) -> None:
        """Compares with MemberEnd."""
        where = f"member {start.member_id}"
        need(self.length == end.content_bytes, f"{where}: Content_Bytes")
        need(self.content_hash.digest() == end.content_hash, f"{where}: wrong Content_Hash")
        for number, expected in end.digests:
            if number == 5:
                need(self.crc.to_bytes(4, "little") == expected, f"{where}: wrong CRC-32")
            elif number in self.digests:
                found = self.digests[number].digest()
                need(found == expected, f"{where}: wrong digest {number}")


def in_order(start: MemberStart, frames: list[list[Entry]]) -> list[Entry]:
    """Section 4.4: the entries of a tree by path, those of a tar stream frame after frame."""
    entries = [entry for frame in frames for entry in frame]
    if start.kind == TREE:
        entries.sort(key=lambda entry: sort_key(entry.path))
    return entries


def is_ascending(frames: list[list[Entry]]) -> bool:
    """Whether the paths ascend strictly, frame after frame."""
    entries = (entry for frame in frames for entry in frame)
    paths = [sort_key(entry.path) for entry in entries if entry.kind != kinds.RAW]
    return all(a < b for a, b in zip(paths, paths[1:], strict=False))


def check_entries(start: MemberStart, end: MemberEnd, frames: list[list[Entry]]) -> None:
    """Sections 4.3 and 4.4: everything that MemberEnd says about entries, and their content."""
    where = f"member {start.member_id}"
    entries = in_order(start, frames)
    need(start.kind >= TREE or not entries, f"{where}: entries of a member without")
    need((start.kind >= TREE) == bool(end.flags & 2), f"{where}: Member_Flags")
    if start.kind == TREE:
        need(all(is_ascending([frame]) for frame in frames), f"{where}: order of a frame")
    ordered = bool(entries) and is_ascending(frames)
    need(end.entries_are_sorted == ordered, f"{where}: order of entries")
    if end.entries_hash is None:
        return
    need(len(entries) == end.entry_count, f"{where}: Entry_Count")
    digest = hasher("entries").update(b"".join(map(entry_bytes, entries))).digest()
    need(digest == end.entries_hash, f"{where}: wrong Entries_Hash")
    for number, entry in enumerate(entries):
        inside = entry.offset + entry.content_bytes <= end.content_bytes
        need(inside or entry.kind not in kinds.WITH_DATA, f"{where}: entry {number}: content")
    if start.kind == TREE:
        need(is_ascending([entries]), f"{where}: a path occurs twice")
        check_tree(where, entries)


def check_tree(where: str, entries: list[Entry]) -> None:
    """Section 4.4: what only the entries of trees, in path order, must keep to."""
    kind_of: dict[bytes, int] = {}
    before = Entry()
    for number, entry in enumerate(entries):
        name = f"{where}: entry {number}"
        need(entry.kind != kinds.RAW and not entry.recipe, f"{name}: of a tar stream")
        path, above = sort_key(entry.path), sort_key(before.path)
        need(not {b"", b".", b".."} & set(path), f"{name}: its path has no normal form")
        below = before.meta is not None and path[: len(above)] == above
        need(not below or before.kind == kinds.DIRECTORY, f"{name}: below what is no directory")
        if entry.kind == kinds.HARDLINK:
            target = kind_of.get(entry.link, kinds.DIRECTORY)
            need(target not in (kinds.DIRECTORY, kinds.HARDLINK), f"{name}: a hard link")
        kind_of[entry.path] = entry.kind
        before = entry
