"""What list and info print."""

from __future__ import annotations

from collections.abc import Iterator

from .archive import Archive
from .contents import Member
from .entries import Entry

KINDS = ["", "file", "stream", "tree", "tar"]
ENTRY_KINDS = ["", "file", "dir", "symlink", "hardlink", "char", "block", "pipe", "other", "raw"]
PLAIN = bytes(byte for byte in range(0x21, 0x7F) if byte not in b"%,:=")


def quoted(value: bytes) -> str:
    """Bytes as one word: %XX for all but plain ASCII, `-` for none."""
    if not value:
        return "-"
    if value == b"-":
        return "%2D"
    return "".join(chr(byte) if byte in PLAIN else f"%{byte:02X}" for byte in value)


def optional(value: int | None, octal: bool = False) -> str:
    """A number, or `-` if it is absent."""
    if value is None:
        return "-"
    return f"{value:o}" if octal else str(value)


def member_line(member: Member) -> str:
    """Id, kind, content bytes, view bytes, mode, seconds, nanoseconds, hash, name."""
    start, end = member.start, member.end
    sizes = [optional(end and end.content_bytes), optional(end and end.view_bytes)]
    time = [optional(start.seconds), optional(start.nanoseconds)]
    digest = end.content_hash.hex() if end else "-"
    fields = [str(start.member_id), KINDS[start.kind], *sizes, optional(start.mode, True), *time]
    return " ".join(["member", *fields, digest, quoted(start.name)])


def entry_line(entry: Entry) -> str:
    """Every field of an entry, in the order of Entries_Hash, but the path at the end."""
    meta = entry.meta
    if meta is None:
        return "entry"
    ranges = "-" if entry.ranges is None else ",".join(f"{a}:{b}" for a, b in entry.ranges) or "0"
    attributes = ",".join(f"{quoted(n)}={quoted(v)}" for n, v in meta.attributes) or "-"
    fields = [
        ENTRY_KINDS[entry.kind],
        f"{meta.mode:o}",
        meta.user_id,
        meta.group_id,
        quoted(meta.user),
        quoted(meta.group),
        *entry.time,
        entry.size,
        entry.offset,
        ranges,
        quoted(entry.link),
        *entry.device,
        attributes,
        entry.recipe.hex() or "-",
        quoted(entry.path),
    ]
    return " ".join(["entry", *map(str, fields)])


def lines(archive: Archive, member: Member, exact: bool) -> Iterator[str]:
    """A member and its entries."""
    entries = archive.entries(member)
    if exact:
        yield member_line(member)
        yield from map(entry_line, entries)
        return
    name = quoted(member.start.name)
    size = member.end.content_bytes if member.end else 0
    yield f"{size:>14}  {KINDS[member.start.kind]:6}  {name}"
    for entry in entries:
        link = f" -> {quoted(entry.link)}" if entry.link else ""
        yield f"{entry.size:>14}  {ENTRY_KINDS[entry.kind]:8}  {name}/{quoted(entry.path)}{link}"


def info(archive: Archive) -> Iterator[str]:
    """The head of the archive, and its sums."""
    for name, value in vars(archive.head).items():
        yield f"{name}: {value}"
    members = list(archive.members())
    yield f"members: {len(members)}"
    yield f"content_bytes: {sum(m.end.content_bytes for m in members if m.end)}"
    yield f"root_hash: {archive.root_hash.hex()}"
