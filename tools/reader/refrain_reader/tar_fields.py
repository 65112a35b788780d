"""Records of tar streams, as docs/tar-view.md lays them out."""

from __future__ import annotations

RECORD = 512
# Field: where it starts and how long it is.
NAME, MODE, UID, GID = (0, 100), (100, 8), (108, 8), (116, 8)
SIZE, MTIME, CHECKSUM, FLAG = (124, 12), (136, 12), (148, 8), (156, 1)
LINK, MAGIC, USER, GROUP = (157, 100), (257, 8), (265, 32), (297, 32)
MAJOR, MINOR, PREFIX = (329, 8), (337, 8), (345, 155)
Field = tuple[int, int]


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


def base256(value: int, field: Field) -> bytes:
    """A number in base 256, two's complement, with the highest bit of the first byte set."""
    size = field[1]
    raw = bytearray((value & (1 << 8 * size) - 1).to_bytes(size, "big"))
    raw[0] = 0xFF if value < 0 else raw[0] | 0x80
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
    if len(value) < 4 or (len(value) - 4) % 8 or value[:4] != b"\x02\0\0\0":
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
