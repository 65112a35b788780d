"""The tar stream of a tree (docs/tar-view.md, "Trees")."""

from __future__ import annotations

from . import entries as kinds
from . import tar_fields as t
from .entries import Entry

FLAGS = {
    kinds.FILE: b"0",
    kinds.DIRECTORY: b"5",
    kinds.SYMLINK: b"2",
    kinds.HARDLINK: b"1",
    kinds.CHARACTER: b"3",
    kinds.BLOCK_DEVICE: b"4",
    kinds.PIPE: b"6",
    kinds.OTHER: b"0",
}
END = bytes(2 * t.RECORD)


def header_group(entry: Entry) -> bytes:
    """Everything before the content of an entry."""
    slash = entry.kind == kinds.DIRECTORY and not entry.path.endswith(b"/")
    path = entry.path + (b"/" if slash else b"")
    sparse = b"" if entry.ranges is None else t.sparse_map(entry.size, entry.ranges)
    stated = entry.content_bytes + len(sparse) if entry.kind in kinds.WITH_DATA else 0
    records = pax_records(entry, path, stated)
    out = b""
    if records:
        out = carrier(len(records)) + t.padded(records)
    return out + main_record(entry, path, stated) + sparse


def pax_records(entry: Entry, path: bytes, stated: int) -> bytes:
    """The records that the plain header has no room for, in their order."""
    meta = entry.meta or kinds.Class(0, 0)
    seconds, nanoseconds = entry.time
    sparse = entry.ranges is not None
    conditions = [
        (b"path", path, len(path) > 100 and not sparse),
        (b"linkpath", entry.link, len(entry.link) > 100),
        (b"uname", meta.user, len(meta.user) > 32),
        (b"gname", meta.group, len(meta.group) > 32),
        (b"size", b"%d" % stated, stated >= 1 << 33),
        (b"uid", b"%d" % meta.user_id, meta.user_id >= 1 << 21),
        (b"gid", b"%d" % meta.group_id, meta.group_id >= 1 << 21),
        (
            b"mtime",
            t.pax_time(seconds, nanoseconds),
            nanoseconds != 0 or seconds < 0 or seconds >= 1 << 33,
        ),
        (b"GNU.sparse.major", b"1", sparse),
        (b"GNU.sparse.minor", b"0", sparse),
        (b"GNU.sparse.name", path, sparse),
        (b"GNU.sparse.realsize", b"%d" % entry.size, sparse),
    ]
    attributes = dict(meta.attributes)
    for name, key in t.ACLS:
        text = t.acl_text(attributes[name]) if name in attributes else None
        conditions.append((key, text or b"", text is not None))
    for name, value in meta.attributes:
        conditions.append((b"SCHILY.xattr." + t.xattr_key(name), value, True))
    return b"".join(t.pax_record(key, value) for key, value, holds in conditions if holds)


def finish(record: bytearray) -> bytes:
    """Sets the checksum: six digits, a zero byte and a space."""
    t.put(record, t.CHECKSUM, b"%06o\0 " % t.record_sum(record))
    return bytes(record)


def plain(name: bytes, mode: int, size: int, flag: bytes) -> bytearray:
    """A record with the fields that all have; other numbers are 0."""
    record = bytearray(t.RECORD)
    t.put(record, t.NAME, name)
    t.put(record, t.MAGIC, b"ustar\x0000")
    t.put(record, t.FLAG, flag)
    for field in (t.UID, t.GID, t.MTIME, t.MAJOR, t.MINOR):
        put_number(record, field, 0)
    put_number(record, t.MODE, mode)
    put_number(record, t.SIZE, size)
    return record


def put_number(record: bytearray, field: t.Field, value: int) -> None:
    """A number, or 0 if it has no room."""
    t.put(record, field, t.octal(value, field) or b"0" * (field[1] - 1))


def carrier(size: int) -> bytes:
    """The record of a pax header."""
    return finish(plain(b"././@PaxHeader", 0o644, size, b"x"))


def main_record(entry: Entry, path: bytes, stated: int) -> bytes:
    """The main record."""
    meta = entry.meta or kinds.Class(0, 0)
    record = plain(path, meta.mode & 0o7777, stated, FLAGS.get(entry.kind, b"0"))
    put_number(record, t.UID, meta.user_id)
    put_number(record, t.GID, meta.group_id)
    put_number(record, t.MTIME, entry.time[0])
    t.put(record, t.LINK, entry.link)
    t.put(record, t.USER, meta.user)
    t.put(record, t.GROUP, meta.group)
    for field, value in zip((t.MAJOR, t.MINOR), entry.device, strict=True):
        t.put(record, field, t.octal(value, field) or t.base256(value, field))
    return finish(record)
