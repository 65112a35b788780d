"""ML-KEM-768 (FIPS 203): keys from seeds, and decapsulation. Slow, and not in constant time."""

from __future__ import annotations

from hashlib import sha3_256, sha3_512, shake_128, shake_256
from typing import NamedTuple

Q = 3329
N = 256
K = 3
DU, DV = 10, 4
KEY_BYTES = 12 * N * K // 8
U_BYTES = DU * N * K // 8
CIPHERTEXT_BYTES = U_BYTES + DV * N // 8

Polynomial = list[int]


def _reversed(value: int) -> int:
    """Seven bits in the opposite order."""
    return int(f"{value:07b}"[::-1], 2)


_ZETAS = [pow(17, _reversed(i), Q) for i in range(128)]
_GAMMAS = [pow(17, 2 * _reversed(i) + 1, Q) for i in range(128)]


def _ntt(f: Polynomial) -> Polynomial:
    """Algorithm 9."""
    f, at, size = list(f), 1, 128
    while size >= 2:
        for start in range(0, N, 2 * size):
            zeta, at = _ZETAS[at], at + 1
            for j in range(start, start + size):
                t = zeta * f[j + size] % Q
                f[j], f[j + size] = (f[j] + t) % Q, (f[j] - t) % Q
        size //= 2
    return f


def _inverse_ntt(f: Polynomial) -> Polynomial:
    """Algorithm 10."""
    f, at, size = list(f), 127, 2
    while size <= 128:
        for start in range(0, N, 2 * size):
            zeta, at = _ZETAS[at], at - 1
            for j in range(start, start + size):
                t = f[j]
                f[j], f[j + size] = (t + f[j + size]) % Q, zeta * (f[j + size] - t) % Q
        size *= 2
    return [x * 3303 % Q for x in f]


def _product(f: Polynomial, g: Polynomial) -> Polynomial:
    """Algorithm 11."""
    out = []
    parts = (f[::2], f[1::2], g[::2], g[1::2], _GAMMAS)
    for a0, a1, b0, b1, gamma in zip(*parts, strict=True):
        out += [(a0 * b0 + a1 * b1 * gamma) % Q, (a0 * b1 + a1 * b0) % Q]
    return out


def _sum(*terms: Polynomial) -> Polynomial:
    return [sum(column) % Q for column in zip(*terms, strict=True)]


def _inner(f: list[Polynomial], g: list[Polynomial]) -> Polynomial:
    """The sum of the products of two vectors."""
    return _sum(*(_product(a, b) for a, b in zip(f, g, strict=True)))


def _encode(f: Polynomial, bits: int) -> bytes:
    """Algorithm 5."""
    number = sum(x << (bits * i) for i, x in enumerate(f))
    return number.to_bytes(bits * N // 8, "little")


def _decode(data: bytes, bits: int) -> Polynomial:
    """Algorithm 6."""
    number = int.from_bytes(data, "little")
    return [number >> (bits * i) & ((1 << bits) - 1) for i in range(N)]


def _decode_all(data: bytes, bits: int) -> list[Polynomial]:
    size = bits * N // 8
    return [_decode(data[at : at + size], bits) for at in range(0, len(data), size)]


def _compress(f: Polynomial, bits: int) -> Polynomial:
    return [((x << bits) + Q // 2) // Q & ((1 << bits) - 1) for x in f]


def _decompress(f: Polynomial, bits: int) -> Polynomial:
    return [(x * Q + (1 << (bits - 1))) >> bits for x in f]


def _sample(seed: bytes, row: int, column: int) -> Polynomial:
    """Algorithm 7: an element of the matrix."""
    stream = shake_128(seed + bytes((column, row))).digest(3 * 4 * N)
    found: Polynomial = []
    for a, b, c in zip(stream[::3], stream[1::3], stream[2::3], strict=True):
        found += [x for x in (a | (b & 15) << 8, b >> 4 | c << 4) if x < Q]
    return found[:N]


def _noise(seed: bytes, number: int) -> Polynomial:
    """Algorithm 8 with eta = 2."""
    bits = int.from_bytes(shake_256(seed + bytes((number,))).digest(2 * 64), "little")
    pairs = [(bits >> 4 * i & 3, bits >> (4 * i + 2) & 3) for i in range(N)]
    return [(a.bit_count() - b.bit_count()) % Q for a, b in pairs]


class KeyPair(NamedTuple):
    """The secret vector, what rejects, and the public key."""

    s: list[Polynomial]
    z: bytes
    public: bytes


def key_pair(d: bytes, z: bytes) -> KeyPair:
    """Algorithms 13 and 16."""
    both = sha3_512(d + bytes((K,))).digest()
    rho, sigma = both[:32], both[32:]
    s = [_ntt(_noise(sigma, i)) for i in range(K)]
    e = [_ntt(_noise(sigma, K + i)) for i in range(K)]
    rows = [[_sample(rho, i, j) for j in range(K)] for i in range(K)]
    t = [_sum(_inner(row, s), error) for row, error in zip(rows, e, strict=True)]
    return KeyPair(s, z, b"".join(_encode(x, 12) for x in t) + rho)


def _encrypt(public: bytes, message: bytes, seed: bytes) -> bytes:
    """Algorithm 14."""
    t, rho = _decode_all(public[:KEY_BYTES], 12), public[KEY_BYTES:]
    y = [_ntt(_noise(seed, i)) for i in range(K)]
    columns = [[_sample(rho, i, j) for i in range(K)] for j in range(K)]
    u = [
        _sum(_inverse_ntt(_inner(column, y)), _noise(seed, K + j))
        for j, column in enumerate(columns)
    ]
    mu = _decompress(_decode(message, 1), 1)
    v = _sum(_inverse_ntt(_inner(t, y)), _noise(seed, 2 * K), mu)
    return b"".join(_encode(_compress(x, DU), DU) for x in u) + _encode(_compress(v, DV), DV)


def _decrypt(s: list[Polynomial], ciphertext: bytes) -> bytes:
    """Algorithm 15."""
    u = [_decompress(x, DU) for x in _decode_all(ciphertext[:U_BYTES], DU)]
    v = _decompress(_decode(ciphertext[U_BYTES:], DV), DV)
    known = _inverse_ntt(_inner(s, [_ntt(x) for x in u]))
    w = [(a - b) % Q for a, b in zip(v, known, strict=True)]
    return _encode(_compress(w, 1), 1)


def decapsulate(keys: KeyPair, ciphertext: bytes) -> bytes:
    """Algorithm 18: the shared key, or one that nobody knows if the ciphertext is not for these."""
    message = _decrypt(keys.s, ciphertext)
    both = sha3_512(message + sha3_256(keys.public).digest()).digest()
    if _encrypt(keys.public, message, both[32:]) == ciphertext:
        return both[:32]
    return shake_256(keys.z + ciphertext).digest(32)
