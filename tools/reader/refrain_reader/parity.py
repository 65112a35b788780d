"""Parity of frames (section 3): whether a payload has it, and a head that has it."""

from __future__ import annotations

from .cursor import Cursor, varint

PARITY_BYTES = 8
PREFIX = bytes((2, PARITY_BYTES))


def sums(payload: bytes) -> bytearray:
    """The exclusive or of the bytes with equal positions modulo 8."""
    found = bytearray(PARITY_BYTES)
    for position, byte in enumerate(payload):
        found[position % PARITY_BYTES] ^= byte
    return found


def has_parity(head: bytes, data: bytes) -> bool:
    """Whether the last extension of the head is Parity, and right."""
    extension = head[-len(PREFIX) - PARITY_BYTES :]
    return extension.startswith(PREFIX) and not any(sums(head + data))


def with_parity(head: bytes, data: bytes) -> bytes:
    """The head, Head_Bytes included, with Parity as its only extension."""
    cursor = Cursor(head, "head")
    cursor.varint()
    fields = head[cursor.at :] + PREFIX
    head = varint(len(fields) + PARITY_BYTES) + fields
    parity = bytearray(PARITY_BYTES)
    start = len(head)
    found = sums(head + bytes(PARITY_BYTES) + data)
    for at in range(PARITY_BYTES):
        parity[at] = found[(start + at) % PARITY_BYTES]
    return head + parity
