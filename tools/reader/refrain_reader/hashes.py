"""The hashes (section 6.3): of entries, of members, of the archive."""

from __future__ import annotations

from blake3 import blake3

from .cursor import Cursor, text, varint, zigzag
from .entries import Class, Entry
from .errors import Damaged
from .frames import Frame
from .heads import MemberEnd, MemberStart

CONTEXT = "refrain 1.0 "


def hasher(context: str) -> blake3:
    """BLAKE3 in derive-key mode."""
    return blake3(derive_key_context=CONTEXT + context)


def block_hash(frame: Frame) -> bytes:
    """Block_Hash (section 6.1): of a block without its place."""
    cursor = Cursor(frame.head, frame.name)
    for _ in ("Head_Bytes", "Block_Id", "Store_Start"):
        cursor.varint()
    fields = cursor.rest()
    return hasher("block").update(numbers(len(fields)) + fields + frame.data).digest()[:16]


def numbers(*values: int) -> bytes:
    """Varints."""
    return b"".join(varint(value) for value in values)


def entry_bytes(entry: Entry) -> bytes:
    """An entry as Entries_Hash has it."""
    meta = entry.meta
    if meta is None:
        raise Damaged("an entry without a class")
    out = [
        numbers(meta.kind),
        text(entry.path),
        numbers(meta.mode, meta.user_id, meta.group_id),
        text(meta.user),
        text(meta.group),
        numbers(zigzag(entry.time[0]), entry.time[1], entry.size, entry.offset),
        ranges_bytes(entry),
        text(entry.link),
        numbers(*entry.device),
        attributes_bytes(meta),
        text(entry.recipe),
    ]
    return b"".join(out)


def ranges_bytes(entry: Entry) -> bytes:
    """0 if all is data, else their number + 1, then start and length of each."""
    if entry.ranges is None:
        return varint(0)
    flat = [value for pair in entry.ranges for value in pair]
    return numbers(len(entry.ranges) + 1, *flat)


def attributes_bytes(meta: Class) -> bytes:
    """Their number, then name and value of each."""
    pairs = b"".join(text(name) + text(value) for name, value in meta.attributes)
    return varint(len(meta.attributes)) + pairs


def member_hash(start: MemberStart, end: MemberEnd) -> bytes:
    """The hash of a member: everything about it but how it was compressed."""
    out = [numbers(start.kind), text(start.name), numbers(start.present & 11)]
    if start.mode is not None:
        out.append(numbers(start.mode))
    if start.seconds is not None and start.nanoseconds is not None:
        out.append(numbers(zigzag(start.seconds), start.nanoseconds))
    out += [numbers(end.content_bytes, end.flags), end.content_hash]
    if end.entries_hash is not None:
        out += [numbers(end.view_bytes, end.entry_count), end.entries_hash]
    out.append(numbers(len(end.digests)))
    out += [numbers(number, len(digest)) + digest for number, digest in end.digests]
    return hasher("member").update(b"".join(out)).digest()


def root_hash(members: list[bytes]) -> bytes:
    """Root_Hash from the hashes of all members."""
    return hasher("root").update(varint(len(members)) + b"".join(members)).digest()
