"""Healing a file by its recovery data: recovery.md, section 5."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from errno import EEXIST
from pathlib import Path
from typing import BinaryIO

from .errors import Damaged
from .frames import (
    HEADER_BYTES,
    MAGIC,
    TAIL_BYTES,
    TAIL_MAGIC,
    checksum,
    header_is_intact,
    parse_tail,
)
from .recovery import PARITY, PIECE, Set, find_set
from .reed_solomon import Code
from .sources import File

START_BYTES = 32
LOW = (1 << 24) - 1
HIGH = (1 << 40) - 1
WINDOW_BYTES = 1 << 20
# Rows of so many bytes are computed at a time.
ROW_BYTES = 1 << 20
# Columns by the rows that they need.
Groups = dict[tuple[int, ...], list[int]]


def digest_of(piece: bytes) -> int:
    """The digest of a slice (section 2)."""
    return (checksum(piece) & HIGH) << 24 | checksum(piece[:START_BYTES]) & LOW


@dataclass(frozen=True)
class Place:
    """Where a slice was found; fewer bytes than a slice are extended by zeros."""

    source: File
    offset: int
    size: int


class Slices:
    """The slices of the protected bytes: where they were found, or their bytes."""

    def __init__(self, found: Set) -> None:
        self.numbers = found.key.numbers
        raw = found.table()
        ends = range(8, 8 * self.numbers.slices + 1, 8)
        self.table = [int.from_bytes(raw[end - 8 : end], "little") for end in ends]
        self.places: dict[int, Place] = {}
        self.restored: dict[int, bytes] = {}
        self.with_digest: dict[int, list[int]] = defaultdict(list)
        for number, digest in enumerate(self.table):
            self.with_digest[digest].append(number)
        self.starts = {digest & LOW for digest in self.table}

    def lost(self) -> list[int]:
        """The slices that have not been found."""
        return [number for number in range(len(self.table)) if number not in self.places]

    def read(self, number: int) -> bytes:
        """A slice; zeros behind the last."""
        size = self.numbers.slice_bytes
        if number >= len(self.table):
            return bytes(size)
        if number in self.restored:
            return self.restored[number]
        place = self.places[number]
        return place.source.read_at(place.offset, place.size).ljust(size, b"\0")

    def note(self, piece: bytes, place: Place) -> tuple[bool, bool]:
        """Whether these bytes are slices, and whether one of them was not known."""
        numbers = self.with_digest.get(digest_of(piece), [])
        new = [number for number in numbers if number not in self.places]
        self.places |= dict.fromkeys(new, place)
        return bool(numbers), bool(new)

    def note_last(self, source: File, offset: int) -> None:
        """Looks for the last slice, which other bytes than zeros may follow."""
        last, size = len(self.table) - 1, self.numbers.last_bytes
        if last in self.places or offset < 0:
            return
        piece = source.read_at(offset, size).ljust(self.numbers.slice_bytes, b"\0")
        if digest_of(piece) == self.table[last]:
            self.places[last] = Place(source, offset, size)

    def search(self, source: File, thorough: bool) -> None:
        """Step 3: slices wherever they begin. Where one is found, the next is expected behind it;
        only a thorough search looks inside of it, too, for what repeats itself.
        """
        size, starts = self.numbers.slice_bytes, self.starts
        last = self.table[-1] & LOW
        at = phase = 0
        while at < source.size and len(self.places) < len(self.table):
            count = min(WINDOW_BYTES, source.size - at)
            window = source.read_at(at, count + size).ljust(count + size, b"\0")
            inside = 0
            while inside < count:
                low = checksum(window[inside : inside + START_BYTES]) & LOW
                if low not in starts:
                    inside += 1
                    continue
                offset = at + inside
                if low == last:
                    self.note_last(source, offset)
                place = Place(source, offset, size)
                known, new = self.note(window[inside : inside + size], place)
                if not thorough and (new or known and offset % size == phase):
                    phase = offset % size
                    inside += size
                else:
                    inside += 1
            at += inside
        self.search_last(source)

    def search_last(self, source: File) -> None:
        """The last slice where the one before it, or the file, says that it is."""
        before = self.places.get(len(self.table) - 2)
        if before is not None:
            self.note_last(before.source, before.offset + before.size)
        self.note_last(source, (len(self.table) - 1) * self.numbers.slice_bytes)
        self.note_last(source, source.size - self.numbers.last_bytes)


class Repair:
    """One file that is healed."""

    def __init__(self, found: Set) -> None:
        self.set = found
        self.numbers = found.key.numbers
        self.slices = Slices(found)
        self.code = Code(self.numbers.data_rows, self.numbers.parity_rows)

    def parity_of(self, column: int) -> list[int]:
        """The parity rows whose slice of a column is intact."""
        rows = range(self.numbers.parity_rows)
        return [j for j in rows if (PARITY, j * self.numbers.columns + column) in self.set.data]

    def losses(self) -> dict[int, list[int]]:
        """The lost rows by column."""
        found: dict[int, list[int]] = defaultdict(list)
        for number in self.slices.lost():
            found[number % self.numbers.columns].append(number // self.numbers.columns)
        return found

    def excess(self) -> str:
        """What makes healing impossible; empty if nothing does."""
        for column, rows in self.losses().items():
            known = len(self.parity_of(column))
            if len(rows) > known:
                return f"column {column} lacks {len(rows)} slices, and has {known} of parity"
        return ""

    def search(self, sources: list[File]) -> None:
        """Finds slices until what is missing can be computed."""
        for thorough in (False, True):
            for source in sources:
                self.slices.search(source, thorough)
            excess = self.excess()
            if not excess:
                return
        raise Damaged(f"there is too much damage: {excess}")

    def batches(self, groups: Groups) -> Iterator[tuple[list[int], list[int]]]:
        """Columns that need the same rows, some at a time."""
        count = max(1, ROW_BYTES // self.numbers.slice_bytes)
        for rows, columns in groups.items():
            for at in range(0, len(columns), count):
                yield list(rows), columns[at : at + count]

    def row(self, number: int, columns: list[int]) -> bytes:
        """The slices of some columns in a data row."""
        return b"".join(self.slices.read(number * self.numbers.columns + k) for k in columns)

    def rows(self, columns: list[int], without: Iterable[int] = ()) -> Iterator[tuple[int, bytes]]:
        """All data rows of some columns."""
        for number in range(self.numbers.data_rows):
            if number not in without:
                yield number, self.row(number, columns)

    def cut(self, row: bytes) -> list[bytes]:
        """The slices of some columns."""
        size = self.numbers.slice_bytes
        return [row[at : at + size] for at in range(0, len(row), size)]

    def solve(self) -> int:
        """Step 4: computes the lost slices. Returns their number."""
        groups: Groups = defaultdict(list)
        for column, lost in self.losses().items():
            chosen = self.parity_of(column)[: len(lost)]
            groups[*lost, *chosen].append(column)
        for both, columns in self.batches(groups):
            lost, chosen = both[: len(both) // 2], both[len(both) // 2 :]
            parity = {j: self.parity_row(j, columns) for j in chosen}
            size = len(columns) * self.numbers.slice_bytes
            found = self.code.restore(lost, parity, self.rows(columns, set(lost)), size)
            for number, row in found.items():
                for column, piece in zip(columns, self.cut(row), strict=True):
                    self.slices.restored[number * self.numbers.columns + column] = piece
        return len(self.slices.restored)

    def parity_row(self, number: int, columns: list[int]) -> bytes:
        """The slices of some columns in a parity row."""
        indexes = (number * self.numbers.columns + k for k in columns)
        return b"".join(self.set.read(PARITY, index) for index in indexes)

    def new_parity(self) -> dict[int, bytes]:
        """The slices of parity whose frames are lost."""
        groups: Groups = defaultdict(list)
        for column in range(self.numbers.columns):
            known = set(self.parity_of(column))
            away = [j for j in range(self.numbers.parity_rows) if j not in known]
            if away:
                groups[tuple(away)].append(column)
        made = {}
        for away, columns in self.batches(groups):
            size = len(columns) * self.numbers.slice_bytes
            for j, row in self.code.parity(away, self.rows(columns), size).items():
                for column, piece in zip(columns, self.cut(row), strict=True):
                    made[j * self.numbers.columns + column] = piece
        return made

    def write(self, output: BinaryIO) -> None:
        """Step 5: the protected bytes, and the frames behind them as they were."""
        tail = b""
        for number, digest in enumerate(self.slices.table):
            piece = self.slices.read(number)
            if digest_of(piece) != digest:
                raise Damaged(f"slice {number} is wrong: the recovery data contradicts itself")
            is_last = number + 1 == len(self.slices.table)
            piece = piece[: self.numbers.last_bytes] if is_last else piece
            output.write(piece)
            tail = (tail + piece)[-TAIL_BYTES:]
        if not self.set.key.apart:
            self.append(output, parse_tail(tail, self.numbers.protected_bytes - TAIL_BYTES))

    def append(self, output: BinaryIO, back_bytes: int) -> None:
        """The appendix."""
        parity, size = self.new_parity(), TAIL_BYTES
        pieces = self.set.all_pieces(self.set.table())
        for part, index in self.numbers.order():
            if part == PIECE:
                data = pieces[index]
            else:
                data = parity.get(index) or self.set.read(part, index)
            size += output.write(self.set.encode(part, index, data))
        output.write((back_bytes + size).to_bytes(6, "little") + TAIL_MAGIC)


def archive_id(start: bytes) -> int | None:
    """The id in the first frame of an archive; None if there is none."""
    raw = start[len(MAGIC) : len(MAGIC) + HEADER_BYTES]
    if not start.startswith(MAGIC) or not header_is_intact(raw):
        return None
    return int.from_bytes(raw[4:8], "little")


def repair(
    copies: list[File], apart: File | None, target: Path, check: Callable[[File], None]
) -> tuple[int, int]:
    """Heals the first copy, by the recovery data that is `apart` or else in the copies.

    The target is written once `check` accepts it: all of it, or nothing. A file that exists is
    never replaced. Returns how many slices were lost, and how many there are.
    """
    if target.exists():
        raise FileExistsError(EEXIST, os.strerror(EEXIST), str(target))
    healed = Repair(find_set([apart] if apart else copies))
    healed.search(copies)
    lost = healed.solve()
    found = archive_id(copies[0].read_at(0, len(MAGIC) + HEADER_BYTES))
    if found is not None and found != archive_id(healed.slices.read(0)):
        raise Damaged("the recovery data that is left is of an archive inside this file")
    unfinished = target.with_name(target.name + ".unfinished")
    with open(unfinished, "xb+") as output:
        try:
            healed.write(output)
            output.flush()
            check(File(output))
            os.link(unfinished, target)
        finally:
            unfinished.unlink()
    return lost, len(healed.slices.table)
