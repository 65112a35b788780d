"""A member as a stream: its content, or the tar stream that docs/tar-view.md specifies."""

from __future__ import annotations

from collections.abc import Iterator

from . import entries as kinds
from . import machine_code, tar_recipe, tar_tree
from .archive import Archive
from .contents import Member
from .entries import Entry
from .errors import need
from .heads import TREE
from .tar_fields import RECORD
from .tar_predict import Predictor


def entry_content(archive: Archive, member: Member, entry: Entry) -> Iterator[bytes]:
    """The content of an entry, without holes."""
    if entry.kind in kinds.WITH_DATA:
        end = entry.offset + entry.content_bytes
        content = archive.contents.of(member, entry.offset, end)
        if entry.is_rebased:
            yield machine_code.restore(b"".join(content), repr(entry.path))
        else:
            yield from content


def headers(member: Member, entries: list[Entry]) -> Iterator[tuple[Entry, bytes, int]]:
    """Each entry with its header group and the number of zeros behind its content."""
    recorded = member.start.kind != TREE
    predictor = Predictor()
    for entry in entries:
        zeros = -entry_size(entry) % RECORD
        if entry.starts_frame:
            predictor = Predictor()
        if entry.kind == kinds.RAW:
            yield entry, b"", 0
        elif recorded:
            group = tar_recipe.apply(entry, predictor)
            predictor.learn(entry, group)
            yield entry, group, zeros if tar_recipe.has_padding(entry.recipe) else 0
        else:
            yield entry, tar_tree.header_group(entry), zeros


def end_of(member: Member) -> bytes:
    """What follows the last entry."""
    return tar_tree.END if member.start.kind == TREE else b""


def entry_size(entry: Entry) -> int:
    """Bytes of an entry's content in the stream."""
    return entry.content_bytes if entry.kind in kinds.WITH_DATA else 0


def stream(archive: Archive, member: Member) -> Iterator[bytes]:
    """The member as a stream."""
    if member.start.kind < TREE:
        yield from archive.contents.of(member)
        return
    for entry, group, zeros in headers(member, archive.entries(member)):
        yield group
        yield from entry_content(archive, member, entry)
        yield bytes(zeros)
    yield end_of(member)


def check_length(member: Member, entries: list[Entry]) -> None:
    """Section 4.3: View_Bytes is the length of that stream."""
    if member.start.kind < TREE or member.end is None:
        return
    parts = headers(member, entries)
    size = sum(len(group) + entry_size(entry) + zeros for entry, group, zeros in parts)
    size += len(end_of(member))
    stated = member.end.view_bytes
    need(size == stated, f"member {member.start.member_id}: View_Bytes is {stated}")
