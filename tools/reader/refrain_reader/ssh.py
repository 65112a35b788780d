"""Keys of OpenSSH: Ed25519 alone, and secret ones without a passphrase."""

from __future__ import annotations

import binascii
from base64 import b64decode

from .cursor import Cursor
from .errors import Damaged, Unsupported, need

ED25519 = "ssh-ed25519"
SECRET_BEGIN = "-----BEGIN OPENSSH PRIVATE KEY-----"
SECRET_END = "-----END OPENSSH PRIVATE KEY-----"
SECRET_MAGIC = b"openssh-key-v1\0"


def decoded(text: str) -> bytes:
    """Base 64."""
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Damaged("a key or a signature is not base 64") from None


def armored(written: str, begin: str, end: str) -> bytes:
    """The bytes between two lines."""
    body = written.strip().removeprefix(begin).removesuffix(end)
    return decoded("".join(body.split()))


def string(cursor: Cursor) -> bytes:
    """A length and that many bytes."""
    return cursor.take(int.from_bytes(cursor.take(4), "big"))


def public_key(blob: bytes) -> bytes:
    """The 32 bytes of a public key."""
    cursor = Cursor(blob, "a key of SSH")
    if string(cursor) != ED25519.encode():
        raise Unsupported("a key of SSH that is not of Ed25519")
    key = string(cursor)
    cursor.end()
    need(len(key) == 32, "a key of SSH has another size")
    return key


def secret_seed(written: str) -> bytes:
    """The 32 secret bytes in a file."""
    cursor = Cursor(armored(written, SECRET_BEGIN, SECRET_END), "a secret key of SSH")
    need(cursor.take(len(SECRET_MAGIC)) == SECRET_MAGIC, "a secret key of SSH: its start")
    cipher, _, _ = (string(cursor) for _ in range(3))
    if cipher != b"none":
        raise Unsupported("a secret key of SSH with a passphrase")
    need(cursor.take(4) == b"\0\0\0\1", "a secret key of SSH: another number of keys")
    public_key(string(cursor))
    inner = Cursor(string(cursor), "a secret key of SSH")
    need(inner.take(4) == inner.take(4), "a secret key of SSH: its check")
    _, _, both = (string(inner) for _ in range(3))
    need(len(both) == 64, "a secret key of SSH has another size")
    return both[:32]
