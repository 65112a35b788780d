"""The path order of trees whose Entries frames are not in it (sections 4.4 and 6.1, list 7)."""

from __future__ import annotations

from collections.abc import Iterable

from . import limits
from .contents import Member
from .entries import Entry, sort_key
from .index import SliceRow


def separator(before: bytes | None, path: bytes) -> bytes:
    """The shortest beginning of a path that is above the last path of the slice before."""
    if before is None:
        return b""
    for length in range(1, min(len(path), limits.FIRST_PATH_BYTES_MAX) + 1):
        if sort_key(path[:length]) > sort_key(before):
            return path[:length]
    return path[: limits.FIRST_PATH_BYTES_MAX]


def slices(frames: list[list[Entry]], first_frame: int) -> list[SliceRow]:
    """The rows of a tree; its frames have the numbers from `first_frame` on in list 4."""
    places = [
        (entry.path, number, at)
        for number, frame in enumerate(frames, first_frame)
        for at, entry in enumerate(frame)
    ]
    places.sort(key=lambda place: sort_key(place[0]))
    rows: list[SliceRow] = []
    before: bytes | None = None
    for path, frame, at in places:
        last = rows[-1] if rows else None
        if last and last.frame == frame and last.first_entry + last.entry_count == at:
            rows[-1] = SliceRow(frame, last.first_entry, last.entry_count + 1, last.separator)
        else:
            rows.append(SliceRow(frame, at, 1, separator(before, path)))
        before = path
    return rows


def all_slices(members: Iterable[Member]) -> list[SliceRow]:
    """All rows of list 7."""
    rows: list[SliceRow] = []
    first_frame = 0
    for member in members:
        if member.has_slices:
            rows += slices(member.frames, first_frame)
        first_frame += len(member.frames)
    return rows
