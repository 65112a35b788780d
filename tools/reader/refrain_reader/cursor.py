"""Numbers in their encodings (section 1)."""

from __future__ import annotations

from .errors import Damaged, need, within

U64 = (1 << 64) - 1


def unzigzag(value: int) -> int:
    """0, 1, 2, 3 … become 0, -1, 1, -2 …"""
    return value >> 1 if value & 1 == 0 else -(value >> 1) - 1


def zigzag(value: int) -> int:
    """The inverse of `unzigzag`, for signed numbers of 64 bits."""
    return value << 1 if value >= 0 else (-value << 1) - 1


def signed64(value: int) -> int:
    """`value` modulo 2^64 as a signed number."""
    value &= U64
    return value - (1 << 64) if value >> 63 else value


def moved(base: int, difference: int) -> int:
    """`base` plus a difference that was computed modulo 2^64."""
    return (base + difference) & U64


def varint(value: int) -> bytes:
    """`value` as a varint."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def text(value: bytes) -> bytes:
    """A length and bytes."""
    return varint(len(value)) + value


class Cursor:
    """Reads numbers from bytes; what is missing, or too much at the end, is damage."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data = bytes(data)
        self.name = name
        self.at = 0

    @property
    def left(self) -> int:
        """Number of bytes that have not been read."""
        return len(self.data) - self.at

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        if count > self.left:
            raise Damaged(f"{self.name} ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self) -> int:
        """One byte."""
        return self.take(1)[0]

    def fixed(self, count: int) -> int:
        """A number of `count` bytes, little endian."""
        return int.from_bytes(self.take(count), "little")

    def varint(self) -> int:
        """A varint in its shortest form, at most 64 bits."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            need(shift < 70, f"{self.name}: a number has more than 10 bytes")
        need(value <= U64, f"{self.name}: a number has more than 64 bits")
        need(byte != 0 or shift == 0, f"{self.name}: a number is not in its shortest form")
        return value

    def limited(self, maximum: int, what: str) -> int:
        """A varint that is a limit if it is above `maximum`."""
        return within(self.varint(), maximum, f"{self.name}: {what}")

    def positive(self, maximum: int, what: str) -> int:
        """A varint that is damage if it is 0, a limit if it is above `maximum`."""
        value = self.limited(maximum, what)
        need(value >= 1, f"{self.name}: {what} is 0")
        return value

    def signed(self) -> int:
        """A varint in zigzag form."""
        return unzigzag(self.varint())

    def text(self) -> bytes:
        """A length and that many bytes."""
        return self.take(self.varint())

    def rest(self) -> bytes:
        """All bytes that are left."""
        return self.take(self.left)

    def end(self) -> None:
        """Raises Damaged if bytes are left."""
        need(self.left == 0, f"{self.name} has {self.left} bytes too many")
