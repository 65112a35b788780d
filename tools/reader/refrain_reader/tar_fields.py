"""Records of tar streams, as docs/tar-view.md lays them out."""

from __future__ import annotations

import re
from collections.abc import Iterator

RECORD = 512
# Field: where it starts and how long it is.
NAME, MODE, UID, GID = (0, 100), (100, 8), (108, 8), (116, 8)
SIZE, MTIME, CHECKSUM, FLAG = (124, 12), (136, 12), (148, 8), (156, 1)
LINK, MAGIC, USER, GROUP = (157, 100), (257, 8), (265, 32), (297, 32)
MAJOR, MINOR, PREFIX = (329, 8), (337, 8), (345, 155)
Field = tuple[int, int]
OCTAL = re.compile(rb" *([0-7]*)[ \0]*", re.DOTALL)
LENGTH = re.compile(rb"(\d{1,20}) ")
TIME = re.compile(rb"(-?)(\d+)(?:\.(\d{9}|\d{1,8}\Z).*)?\Z", re.DOTALL)
FRONT = re.compile(rb" *[0-7]+")


def get(record: bytes | bytearray, field: Field) -> bytes:
    """The bytes of a field."""
    return bytes(record[field[0] : field[0] + field[1]])


def put(record: bytearray, field: Field, value: bytes) -> None:
    """Sets a field; the rest of it is zero, what is too long is cut."""
    start, size = field
    record[start : start + size] = value[:size].ljust(size, b"\0")


def octal(value: int, field: Field) -> bytes | None:
    """Octal digits up to a zero byte that ends the field, or None if they have no room."""
    digits = field[1] - 1
    return b"%0*o\0" % (digits, value) if 0 <= value < 8**digits else None


def text(record: bytes | bytearray, field: Field) -> bytes:
    """The bytes of a field before its first zero byte."""
    return get(record, field).split(b"\0", 1)[0]


def number(record: bytes | bytearray, field: Field) -> int | None:
    """The number of a field, in octal digits or base 256; None if there is none."""
    raw = get(record, field)
    if raw[0] & 0x80:
        value = int.from_bytes(raw, "big", signed=True)
        bits = 8 * len(raw) - 1
        value = (value & (1 << bits) - 1) - (1 << bits if raw[0] & 0x40 else 0)
        return value if -(1 << 63) <= value < 1 << 64 else None
    found = OCTAL.fullmatch(raw)
    if not found:
        return None
    value = int(found[1] or b"0", 8)
    return value if value < 1 << 64 else None


def set_text(record: bytearray, field: Field, value: bytes) -> None:
    """Gives a field a text; what has the text already keeps its bytes."""
    if text(record, field) != value:
        put(record, field, value)


def set_number(record: bytearray, field: Field, value: int) -> None:
    """Gives a field a number in the form that it has."""
    if number(record, field) == value:
        return
    raw = get(record, field)
    front = FRONT.match(raw)
    width = front.end() if front else 0
    pad = b" " if raw[:1] == b" " else b"0"
    if not front:
        raw, width, pad = bytes(len(raw)), len(raw) - 1, b"0"
    digits = (b"%o" % abs(value)).rjust(width, pad)
    if value < 0 or len(digits) > max(width, len(raw) - 1):
        put(record, field, base256(value, field))
    else:
        put(record, field, digits + raw[len(digits) :])


def is_posix(record: bytes | bytearray) -> bool:
    """Whether a record is POSIX tar's."""
    return get(record, MAGIC).startswith(b"ustar\0")


def prefix_field(record: bytes | bytearray) -> Field:
    """The field of the prefix; star has times in its last bytes."""
    return (PREFIX[0], 131) if record.endswith(b"tar\0") else PREFIX


def plain_path(record: bytes | bytearray) -> bytes:
    """Prefix and name."""
    prefix = text(record, prefix_field(record)) if is_posix(record) else b""
    name = text(record, NAME)
    return prefix + b"/" + name if prefix else name


def base256(value: int, field: Field) -> bytes:
    """A number in base 256, two's complement, with the highest bit of the first byte set."""
    size = field[1]
    raw = bytearray((value & (1 << 8 * size) - 1).to_bytes(size, "big"))
    raw[0] |= 0x80
    return bytes(raw)


def record_sum(record: bytes | bytearray) -> int:
    """The sum of all bytes, with spaces for the checksum."""
    return sum(record) - sum(get(record, CHECKSUM)) + 8 * 32


def padded(data: bytes) -> bytes:
    """`data` with zeros up to a whole record."""
    return data + bytes(-len(data) % RECORD)


def pax_record(key: bytes, value: bytes) -> bytes:
    """One record of a pax header: its own length, key and value."""
    rest = b" " + key + b"=" + value + b"\n"
    size = len(rest) + 1
    while size != len(b"%d" % size) + len(rest):
        size = len(b"%d" % size) + len(rest)
    return b"%d" % size + rest


def pax_records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a pax header, up to the first record that is malformed."""
    while found := LENGTH.match(data):
        body = data[found.end() : int(found[1])]
        key, equals, value = body[:-1].partition(b"=")
        if not equals or body[-1:] != b"\n" or int(found[1]) > len(data):
            return
        yield key, value
        data = data[int(found[1]) :]


def parse_time(text: bytes) -> int | None:
    """A time of a pax record in nanoseconds."""
    found = TIME.match(text)
    if not found:
        return None
    value = int(found[2]) * 10**9 + int((found[3] or b"0").ljust(9, b"0"))
    return -value if found[1] else value


def pax_time(seconds: int, nanoseconds: int) -> bytes:
    """Decimal seconds; the fraction has no zeros at its end and the sign of the whole."""
    sign = b""
    if seconds < 0:
        sign = b"-"
        seconds, nanoseconds = divmod(-(seconds * 10**9 + nanoseconds), 10**9)
    fraction = (b".%09d" % nanoseconds).rstrip(b"0") if nanoseconds else b""
    return sign + b"%d" % seconds + fraction


def xattr_key(name: bytes) -> bytes:
    """The name of an attribute in a key."""
    return name.replace(b"%", b"%25").replace(b"=", b"%3D")


ACLS = [
    (b"system.posix_acl_access", b"SCHILY.acl.access"),
    (b"system.posix_acl_default", b"SCHILY.acl.default"),
]
ACL_TAGS = {1: b"user", 2: b"user", 4: b"group", 8: b"group", 16: b"mask", 32: b"other"}


def acl_text(value: bytes) -> bytes | None:
    """A POSIX ACL of version 2 as text; None if it is not one."""
    if len(value) < 12 or (len(value) - 4) % 8 or value[:4] != b"\x02\0\0\0":
        return None
    texts = []
    for at in range(4, len(value), 8):
        tag = int.from_bytes(value[at : at + 2], "little")
        bits = int.from_bytes(value[at + 2 : at + 4], "little")
        if tag not in ACL_TAGS or bits > 7:
            return None
        number = b"%d" % int.from_bytes(value[at + 4 : at + 8], "little")
        rights = bytes(c if bits & b else ord("-") for c, b in zip(b"rwx", (4, 2, 1), strict=True))
        texts.append(ACL_TAGS[tag] + b":" + (number if tag in (2, 8) else b"") + b":" + rights)
    return b",".join(texts)


def sparse_map(size: int, ranges: tuple[tuple[int, int], ...]) -> bytes:
    """The map of a sparse file in front of its data, in whole records."""
    pairs = [*ranges, (size, 0)]
    numbers = [len(pairs), *(number for pair in pairs for number in pair)]
    return padded(b"".join(b"%d\n" % number for number in numbers))


def old_number(value: int) -> bytes:
    """A number of an old map."""
    return octal(value, SIZE) or base256(value, SIZE)


def old_map(record: bytearray, size: int, ranges: tuple[tuple[int, int], ...]) -> bytes:
    """Writes the old map of a sparse file into a main record; its extension records."""
    pairs = [old_number(at) + old_number(count) for at, count in (*ranges, (size, 0))]
    more = [pairs[i : i + 21] for i in range(4, len(pairs), 21)]
    record[386:482] = b"".join(pairs[:4]).ljust(96, b"\0")
    record[482] = bool(more)
    record[483:495] = old_number(size)
    records = [b"".join(part).ljust(504, b"\0") for part in more]
    flags = [b"\1"] * (len(more) - 1) + [b"\0"]
    return b"".join(padded(r + flag) for r, flag in zip(records, flags, strict=False))
