"""Ed25519 (RFC 8032): verification, with the formulas written there."""

from __future__ import annotations

from hashlib import sha512

from .identities import P25519 as P

L = (1 << 252) + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)

# X, Y, Z and T, with x = X / Z, y = Y / Z and x · y = T / Z.
Point = tuple[int, int, int, int]


def add(p: Point, q: Point) -> Point:
    """The sum of two points (section 5.1.4)."""
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(factor: int, point: Point) -> Point:
    """A multiple of a point."""
    found: Point = (0, 1, 1, 0)
    while factor:
        if factor & 1:
            found = add(found, point)
        point = add(point, point)
        factor >>= 1
    return found


def decode(data: bytes) -> Point | None:
    """Section 5.1.3; None if these bytes are not a point."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or y >= P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


_BASE = decode((4 * pow(5, P - 2, P) % P).to_bytes(32, "little")) or (0, 0, 0, 0)


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature of 64 bytes is right (section 5.1.7)."""
    key, r = decode(public), decode(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if key is None or r is None or s >= L or len(signature) != 64:
        return False
    k = int.from_bytes(sha512(signature[:32] + public + message).digest(), "little") % L
    left, right = multiply(s, _BASE), add(r, multiply(k, key))
    return not any((left[i] * right[2] - right[i] * left[2]) % P for i in (0, 1))
