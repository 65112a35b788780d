"""BLAKE3 by its parts: chaining values of subtrees in the mode for deriving keys."""

from __future__ import annotations

import struct

IV = (
    *(0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A),
    *(0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19),
)
CHUNK_START, CHUNK_END, PARENT, ROOT, CONTEXT, MATERIAL = 1, 2, 4, 8, 32, 64
CHUNK_BYTES, BLOCK_BYTES = 1024, 64
ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
WORD = 0xFFFFFFFF

Words = tuple[int, ...]


def words(data: bytes) -> Words:
    """Numbers of 32 bits."""
    return struct.unpack(f"<{len(data) // 4}I", data)


def mix(s: list[int], places: tuple[int, int, int, int], x: int, y: int) -> None:
    """The function G."""
    a, b, c, d = places
    for word, right, left in ((x, 16, 12), (y, 8, 7)):
        s[a] = (s[a] + s[b] + word) & WORD
        s[d] = rotated(s[d] ^ s[a], right)
        s[c] = (s[c] + s[d]) & WORD
        s[b] = rotated(s[b] ^ s[c], left)


def rotated(value: int, count: int) -> int:
    """To the right."""
    return (value >> count | value << (32 - count)) & WORD


def compress(key: Words, block: bytes, counter: int, flags: int) -> Words:
    """The first eight words of the output."""
    m = words(block.ljust(BLOCK_BYTES, b"\0"))
    s = [*key, *IV[:4], counter & WORD, counter >> 32, len(block), flags]
    for _ in range(7):
        for number, places in enumerate(COLUMNS + DIAGONALS):
            mix(s, places, m[2 * number], m[2 * number + 1])
        m = tuple(m[i] for i in ORDER)
    return tuple(a ^ b for a, b in zip(s[:8], s[8:], strict=True))


def chunk(key: Words, data: bytes, counter: int, flags: int, last_flags: int = 0) -> Words:
    """The chaining value of a chunk."""
    value = key
    for at in range(0, max(len(data), 1), BLOCK_BYTES):
        now = flags | (CHUNK_START if at == 0 else 0)
        if at + BLOCK_BYTES >= len(data):
            now |= CHUNK_END | last_flags
        value = compress(value, data[at : at + BLOCK_BYTES], counter, now)
    return value


def parent(key: Words, left: bytes, right: bytes, flags: int) -> bytes:
    """The chaining value above two others."""
    return packed(compress(key, left + right, 0, PARENT | flags))


def packed(value: Words) -> bytes:
    """As bytes."""
    return struct.pack("<8I", *value)


def context_key(context: str) -> Words:
    """The key of the mode for deriving keys, from a context of at most 1,024 bytes."""
    return chunk(IV, context.encode(), 0, CONTEXT, ROOT)


def merged(key: Words, values: list[bytes], flags: int) -> bytes:
    """The value above all: the left subtree is complete, and as large as possible."""
    if len(values) == 1:
        return values[0]
    half = 1 << ((len(values) - 1).bit_length() - 1)
    left, right = merged(key, values[:half], MATERIAL), merged(key, values[half:], MATERIAL)
    return parent(key, left, right, flags)


def chaining_value(key: Words, data: bytes, counter: int) -> bytes:
    """The value of the subtree over some bytes, whose first chunk has this number."""
    cuts = range(0, len(data), CHUNK_BYTES)
    chunks = [
        chunk(key, data[at : at + CHUNK_BYTES], counter + at // CHUNK_BYTES, MATERIAL)
        for at in cuts
    ]
    return merged(key, [packed(value) for value in chunks], MATERIAL)


def root(key: Words, values: list[bytes]) -> bytes:
    """The hash, from the values of two or more subtrees of equal size."""
    return merged(key, values, MATERIAL | ROOT)
