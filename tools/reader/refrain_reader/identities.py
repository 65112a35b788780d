"""The secret keys that open slots of encrypted archives: format-envelope.md, section 2."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha3_256, sha512, shake_256

from . import ml_kem, ssh
from .errors import ReaderError

P25519 = (1 << 255) - 19
BASE_POINT = (9).to_bytes(32, "little")
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
BECH32_SUMS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
X_WING_LABEL = b"\\.//^\\"


class Locked(ReaderError):
    """No secret opens the archive."""

    category = "locked"


def x25519(scalar: bytes, point: bytes) -> bytes:
    """RFC 7748, section 5, with the formulas written there."""
    k = int.from_bytes(scalar, "little") & ~7 & ((1 << 255) - 1) | 1 << 254
    u = int.from_bytes(point, "little") & ((1 << 255) - 1)
    x1, x2, z2, x3, z3, swap = u, 1, 0, u, 1, 0
    for t in range(254, -1, -1):
        bit = k >> t & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b = x2 + z2, x2 - z2
        aa, bb = a * a % P25519, b * b % P25519
        e = aa - bb
        da, cb = (x3 - z3) * a % P25519, (x3 + z3) * b % P25519
        x3 = (da + cb) ** 2 % P25519
        z3 = x1 * (da - cb) ** 2 % P25519
        x2 = aa * bb % P25519
        z2 = e * (aa + 121665 * e) % P25519
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P25519 - 2, P25519) % P25519).to_bytes(32, "little")


class X25519:
    """A key of X25519."""

    slot_kind = 2
    share_bytes = 32
    prefix = "age-secret-key-"

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self.public = x25519(secret, BASE_POINT)

    def open(self, share: bytes) -> tuple[bytes, bytes] | None:
        """Secret and Bound; None if the share is not for anybody."""
        secret = x25519(self.secret, share)
        return (secret, share + self.public) if any(secret) else None


class XWing:
    """A key of X-Wing: the seed of a key of ML-KEM-768 and of one of X25519."""

    slot_kind = 3
    share_bytes = ml_kem.CIPHERTEXT_BYTES + 32
    prefix = "age-secret-key-pq-"

    def __init__(self, seed: bytes) -> None:
        expanded = shake_256(seed).digest(96)
        self.keys = ml_kem.key_pair(expanded[:32], expanded[32:64])
        self.secret = expanded[64:]
        self.public = x25519(self.secret, BASE_POINT)

    def open(self, share: bytes) -> tuple[bytes, bytes]:
        """Secret and Bound."""
        ciphertext, point = share[: ml_kem.CIPHERTEXT_BYTES], share[ml_kem.CIPHERTEXT_BYTES :]
        shared = ml_kem.decapsulate(self.keys, ciphertext) + x25519(self.secret, point)
        return sha3_256(shared + point + self.public + X_WING_LABEL).digest(), share


Identity = X25519 | XWing


def bech32(text: str) -> tuple[str, bytes]:
    """The prefix and the bytes of a text (BIP 173, without its limit of length)."""
    prefix, _, data = text.rpartition("1")
    values = [BECH32.find(letter) for letter in data]
    expanded = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    checksum = 1
    for value in expanded + values:
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ value
        for at, generator in enumerate(BECH32_SUMS):
            checksum ^= generator if top >> at & 1 else 0
    if checksum != 1 or -1 in values:
        raise Locked("a character of a key is wrong or missing")
    number = 0
    for value in values[:-6]:
        number = number << 5 | value
    bits = 5 * len(values[:-6])
    return prefix, (number >> bits % 8).to_bytes(bits // 8, "big")


def identities_of(text: str) -> Iterator[Identity]:
    """The secret keys in a file: its lines AGE-SECRET-KEY-1… and AGE-SECRET-KEY-PQ-1…, or SSH's."""
    if text.startswith(ssh.SECRET_BEGIN):
        yield X25519(sha512(ssh.secret_seed(text)).digest()[:32])
        return
    found = False
    for line in map(str.strip, text.splitlines()):
        if not line.upper().startswith("AGE-SECRET-KEY-"):
            continue
        prefix, key = bech32(line.lower())
        for kind in (X25519, XWing):
            if kind.prefix == prefix and len(key) == 32:
                found = True
                yield kind(key)
    if not found:
        raise Locked("the file has no key of X25519 or X-Wing")
