"""A member as a stream: its content, or the tar stream that docs/tar-view.md specifies."""

from __future__ import annotations

from collections.abc import Iterator

from . import entries as kinds
from . import tar_tree
from .archive import Archive
from .contents import Member
from .entries import Entry
from .errors import Unsupported, need
from .heads import TAR, TREE
from .tar_fields import RECORD


def entry_content(archive: Archive, member: Member, entry: Entry) -> Iterator[bytes]:
    """The content of an entry, without holes."""
    if entry.kind in kinds.WITH_DATA:
        end = entry.offset + entry.content_bytes
        yield from archive.contents.of(member, entry.offset, end)


def headers(member: Member, entries: list[Entry]) -> Iterator[tuple[Entry, bytes, int]]:
    """Each entry with its header group and the number of zeros behind its content."""
    if member.start.kind == TAR:
        raise Unsupported("this reader does not rebuild the headers of recorded tar streams")
    for entry in entries:
        yield entry, tar_tree.header_group(entry), -entry_size(entry) % RECORD


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
    yield tar_tree.END


def check_length(member: Member, entries: list[Entry]) -> None:
    """Section 4.3: View_Bytes is the length of that stream (of trees; see `headers`)."""
    if member.start.kind != TREE or member.end is None:
        return
    parts = headers(member, entries)
    size = sum(len(group) + entry_size(entry) + zeros for entry, group, zeros in parts)
    size += len(tar_tree.END)
    stated = member.end.view_bytes
    need(size == stated, f"member {member.start.member_id}: View_Bytes is {stated}")
