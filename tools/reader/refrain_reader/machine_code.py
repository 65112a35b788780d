"""Rebased machine code (docs/machine-code.md)."""

from __future__ import annotations

from . import x86_64
from .errors import need

HEADER_BYTES = 4096
PAGE_BYTES = 1 << 15
FAR_BYTES = 1 << 21
END_MAX = 1 << 31
RANGES_MAX = 64
WORD = 1 << 32

Ranges = list[tuple[int, int]]


class Header:
    """Little-endian numbers of the first bytes of a file."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def number(self, at: int, size: int) -> int:
        """Raises IndexError beyond the end."""
        if at + size > len(self.data):
            raise IndexError
        return int.from_bytes(self.data[at : at + size], "little")


def elf(header: Header) -> Ranges | None:
    """Loaded, executable segments."""
    first = header.number(0x20, 8)
    if header.number(0x12, 2) != 62 or header.number(0x36, 2) != 56:
        return None
    found = []
    for number in range(header.number(0x38, 2)):
        at = first + 56 * number
        if header.number(at, 4) == 1 and header.number(at + 4, 4) & 1:
            start = header.number(at + 8, 8)
            found.append((start, start + header.number(at + 32, 8)))
    return found


def pe(header: Header) -> Ranges | None:
    """Executable sections."""
    at = header.number(0x3C, 4)
    if header.number(at, 4) != 0x4550 or header.number(at + 4, 2) != 0x8664:
        return None
    first = at + 24 + header.number(at + 20, 2)
    found = []
    for number in range(header.number(at + 6, 2)):
        at = first + 40 * number
        if header.number(at + 36, 4) & 0x20000000:
            start = header.number(at + 20, 4)
            found.append((start, start + header.number(at + 16, 4)))
    return found


def macho(header: Header) -> Ranges | None:
    """Sections with instructions."""
    if header.number(4, 4) != 0x01000007:
        return None
    found = []
    at = 32
    for _ in range(header.number(16, 4)):
        size = header.number(at + 4, 4)
        if header.number(at, 4) == 0x19:
            for number in range(header.number(at + 64, 4)):
                section = at + 72 + 80 * number
                if header.number(section + 64, 4) & 0x80000400:
                    start = header.number(section + 48, 4)
                    found.append((start, start + header.number(section + 40, 8)))
        at += max(size, 8)
    return found


def find(data: bytes) -> Ranges | None:
    """The code of a file with this beginning, if it has some behind its header."""
    if len(data) < HEADER_BYTES:
        return None
    kinds = {b"\x7fELF\x02\x01": elf, b"MZ": pe, b"\xcf\xfa\xed\xfe": macho}
    kind = next((kinds[magic] for magic in kinds if data.startswith(magic)), None)
    try:
        stated = kind(Header(data[:HEADER_BYTES])) if kind else None
    except IndexError:
        return None
    ranges: Ranges = []
    for start, end in sorted((max(a, HEADER_BYTES), min(b, END_MAX)) for a, b in stated or []):
        if start >= end:
            continue
        if ranges and start <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], end))
        else:
            ranges.append((start, end))
    return ranges if 1 <= len(ranges) <= RANGES_MAX else None


def is_near(number: int) -> bool:
    """Whether a number with a sign is small."""
    return (number + FAR_BYTES) % WORD < 2 * FAR_BYTES


def operand_of(stored: int, following: int) -> int:
    """The operand of an instruction before the one at `following`."""
    if is_near(stored):
        return stored
    base = following + 2 * FAR_BYTES
    operand = (stored - base) % WORD
    return (operand - base) % WORD if is_near(operand) else operand


def restore(data: bytes, name: str) -> bytes:
    """A whole file, from its content."""
    ranges = find(data)
    need(ranges is not None, f"{name}: rebased, and has no code")
    out = bytearray(data)
    for start, end in ranges or []:
        end = min(end, len(data))
        while start < end:
            stop = min((start // PAGE_BYTES + 1) * PAGE_BYTES, end)
            for at, position in x86_64.operands(data[start:stop]):
                at += start
                stored = int.from_bytes(out[at : at + 4], "little")
                out[at : at + 4] = operand_of(stored, start + position).to_bytes(4, "little")
            start = stop
    return bytes(out)
