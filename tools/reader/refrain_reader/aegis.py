"""AEGIS-256 (RFC 10032), slowly."""

from __future__ import annotations


def _tables() -> tuple[list[int], list[list[int]]]:
    """The S-box of AES, and its round by columns: SubBytes and MixColumns of one byte."""
    sbox = [0] * 256
    p = q = 1
    while True:
        p ^= (p << 1) ^ (0x11B if p & 0x80 else 0)
        p &= 0xFF
        q ^= q << 1
        q ^= q << 2
        q ^= q << 4
        q &= 0xFF
        if q & 0x80:
            q ^= 0x09
        rotated = q ^ _rotated(q, 1) ^ _rotated(q, 2) ^ _rotated(q, 3) ^ _rotated(q, 4)
        sbox[p] = rotated ^ 0x63
        if p == 1:
            break
    sbox[0] = 0x63
    double = [(s << 1) ^ (0x11B if s & 0x80 else 0) for s in sbox]
    # A byte in row r contributes to all four rows of its column.
    columns = []
    for row in range(4):
        factors = [[2, 1, 1, 3], [3, 2, 1, 1], [1, 3, 2, 1], [1, 1, 3, 2]][row]
        table = []
        for s, d in zip(sbox, double, strict=True):
            values = {1: s, 2: d, 3: s ^ d}
            word = 0
            for at, factor in enumerate(factors):
                word |= values[factor] << (8 * at)
            table.append(word)
        columns.append(table)
    return sbox, columns


def _rotated(value: int, count: int) -> int:
    return ((value << count) | (value >> (8 - count))) & 0xFF


_, _COLUMNS = _tables()
_T0, _T1, _T2, _T3 = _COLUMNS


def _round(block: int, key: int) -> int:
    """AES: SubBytes, ShiftRows, MixColumns, AddRoundKey; blocks are little endian numbers."""
    b = block.to_bytes(16, "little")
    return key ^ (
        (_T0[b[0]] ^ _T1[b[5]] ^ _T2[b[10]] ^ _T3[b[15]])
        | (_T0[b[4]] ^ _T1[b[9]] ^ _T2[b[14]] ^ _T3[b[3]]) << 32
        | (_T0[b[8]] ^ _T1[b[13]] ^ _T2[b[2]] ^ _T3[b[7]]) << 64
        | (_T0[b[12]] ^ _T1[b[1]] ^ _T2[b[6]] ^ _T3[b[11]]) << 96
    )


_C0 = int.from_bytes(bytes.fromhex("000101020305080d1522375990e97962"), "little")
_C1 = int.from_bytes(bytes.fromhex("db3d18556dc22ff12011314273b528dd"), "little")


class _State:
    def __init__(self, key: bytes, nonce: bytes) -> None:
        k0, k1 = _block(key[:16]), _block(key[16:])
        n0, n1 = _block(nonce[:16]), _block(nonce[16:])
        self.s = [k0 ^ n0, k1 ^ n1, _C1, _C0, k0 ^ _C0, k1 ^ _C1]
        for _ in range(4):
            for message in (k0, k1, k0 ^ n0, k1 ^ n1):
                self.update(message)

    def update(self, message: int) -> None:
        s0, s1, s2, s3, s4, s5 = self.s
        self.s = [
            _round(s5, s0 ^ message),
            _round(s0, s1),
            _round(s1, s2),
            _round(s2, s3),
            _round(s3, s4),
            _round(s4, s5),
        ]

    def keystream(self) -> int:
        return self.s[1] ^ self.s[4] ^ self.s[5] ^ (self.s[2] & self.s[3])

    def tag(self, message_bytes: int, tag_bytes: int) -> bytes:
        lengths = self.s[3] ^ ((message_bytes * 8) << 64)
        for _ in range(7):
            self.update(lengths)
        s0, s1, s2, s3, s4, s5 = self.s
        low, high = s0 ^ s1 ^ s2, s3 ^ s4 ^ s5
        if tag_bytes == 16:
            return (low ^ high).to_bytes(16, "little")
        return low.to_bytes(16, "little") + high.to_bytes(16, "little")


def _block(data: bytes) -> int:
    return int.from_bytes(data, "little")


def crypt(key: bytes, nonce: bytes, data: bytes, tag_bytes: int, seal: bool) -> tuple[bytes, bytes]:
    """What `data` becomes, without associated data, and its tag."""
    state = _State(key, nonce)
    out = bytearray()
    for at in range(0, len(data), 16):
        piece = data[at : at + 16]
        block = _block(piece)
        other = (block ^ state.keystream()) & ((1 << 8 * len(piece)) - 1)
        out += other.to_bytes(len(piece), "little")
        state.update(block if seal else other)
    return bytes(out), state.tag(len(data), tag_bytes)
