"""The six filters (section 5.3); positions count from the start of the block."""

from __future__ import annotations

from . import x86_64
from .errors import Unsupported, need

X86, ARM64, DELTA, X86_64, TRANSPOSE, XOR = range(1, 7)
PARAMETERS = {
    X86: range(1),
    ARM64: range(4),
    DELTA: range(1, 17),
    X86_64: range(1),
    TRANSPOSE: range(2, 33),
    XOR: range(1, 256),
}
TILE_RECORDS = 4096


def check(number: int, parameter: int, name: str) -> None:
    """Unknown filters are unsupported, parameters out of range are damage."""
    if number not in PARAMETERS:
        raise Unsupported(f"{name}: filter {number}")
    need(parameter in PARAMETERS[number], f"{name}: filter {number} with {parameter}")


def undo(number: int, parameter: int, data: bytes) -> bytes:
    """The bytes before the filter."""
    if number == X86:
        return undo_x86(data)
    if number == ARM64:
        return undo_arm64(data, parameter)
    if number == X86_64:
        return x86_64.undo(data)
    if number == TRANSPOSE:
        return undo_transpose(data, parameter)
    if number == XOR:
        return undo_xor(data, parameter)
    return undo_delta(data, parameter)


def undo_transpose(data: bytes, record: int) -> bytes:
    """Filter 5: in tiles, the bytes of a record are apart."""
    out = bytearray(data)
    for start in range(0, len(data), TILE_RECORDS * record):
        count = min((len(data) - start) // record, TILE_RECORDS)
        for k in range(record if count else 0):
            column = data[start + k * count : start + (k + 1) * count]
            out[start + k : start + count * record : record] = column
    return bytes(out)


def undo_xor(data: bytes, distance: int) -> bytes:
    """Filter 6: what differs from the byte at a distance."""
    out = bytearray(data)
    for at in range(distance, len(out)):
        out[at] ^= out[at - distance]
    return bytes(out)


def undo_x86(data: bytes) -> bytes:
    """Filter 1: relative targets of calls and jumps, 25 bits with sign."""
    out = bytearray(data)
    at = 0
    while at + 5 <= len(out):
        if out[at] not in (0xE8, 0xE9):
            at += 1
            continue
        if out[at + 4] in (0x00, 0xFF):
            number = int.from_bytes(out[at + 1 : at + 5], "little")
            number = (number - (at + 5)) & 0x1FFFFFF
            if number & 0x1000000:
                number |= 0xFE000000
            out[at + 1 : at + 5] = number.to_bytes(4, "little")
        at += 5
    return bytes(out)


def undo_arm64(data: bytes, first: int) -> bytes:
    """Filter 2: BL and ADRP, instructions numbered from the first."""
    out = bytearray(data)
    for index, at in enumerate(range(first, len(out) - 3, 4)):
        word = int.from_bytes(out[at : at + 4], "little")
        if word >> 26 == 0b100101:
            word = word & 0xFC000000 | (word - index) & 0x03FFFFFF
        elif word & 0x9F000000 == 0x90000000:
            page = (word >> 29 & 3) | (word >> 5 & 0x7FFFF) << 2
            if (page + (1 << 17)) & 0x1FFFFF >= 1 << 18:
                continue
            page = (page - index // 1024) & 0x3FFFF
            if page & 0x20000:
                page |= 0x1C0000
            word = word & 0x9F00001F | (page & 3) << 29 | page >> 2 << 5
        else:
            continue
        out[at : at + 4] = word.to_bytes(4, "little")
    return bytes(out)


def undo_delta(data: bytes, distance: int) -> bytes:
    """Filter 3: every byte minus the one `distance` before it."""
    out = bytearray(data)
    for at in range(distance, len(out)):
        out[at] = (out[at] + out[at - distance]) & 255
    return bytes(out)
