"""Who signed a statement: minisign and SSH (format-signature.md, section 1)."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass

from . import ed25519, ssh
from .cursor import Cursor
from .errors import Damaged, Unsupported, need
from .ssh import decoded

MINISIGN, SSH = "minisign", ssh.ED25519
BEGIN, END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
SSH_MAGIC = b"SSHSIG"
NAMESPACE = b"refrain"


@dataclass(frozen=True)
class Key:
    """A public key; `key_id` only of minisign's."""

    program: str
    public: bytes
    key_id: bytes = b""


def key_of(line: str) -> Key:
    """A public key in a line."""
    words = line.split()
    if words[0] == SSH and len(words) > 1:
        return Key(SSH, ssh.public_key(decoded(words[1])))
    if words[0].startswith("RW") and len(words) == 1:
        raw = decoded(words[0])
        need(len(raw) == 42 and raw[:2] == b"Ed", "a key of minisign has another size")
        return Key(MINISIGN, raw[10:], raw[2:10])
    raise Unsupported(f"no public key of minisign or of SSH's Ed25519: {line[:40]!r}")


def keys_of(text: str) -> Iterator[Key]:
    """The public keys in a file, each in a line of its own."""
    for line in map(str.strip, text.splitlines()):
        if line and not line.startswith(("#", "untrusted comment:")):
            yield key_of(line)


class Minisign:
    """A signature file of minisign."""

    def __init__(self, text: str) -> None:
        lines = text.removesuffix("\n").split("\n")
        start = "trusted comment: "
        need(len(lines) == 4 and lines[2].startswith(start), "a signature of minisign: lines")
        raw, self.of_comment = decoded(lines[1]), decoded(lines[3])
        need(len(raw) == 74, "a signature of minisign has another size")
        if raw[:2] not in (b"Ed", b"ED"):
            raise Unsupported("a signature of minisign of another kind")
        self.is_prehashed = raw[:2] == b"ED"
        self.key_id, self.signature = raw[2:10], raw[10:]
        self.comment = lines[2].removeprefix(start).encode()
        self.signer = f"minisign key {int.from_bytes(self.key_id, 'little'):016X}"

    def is_by(self, key: Key, statement: bytes) -> bool:
        """Whether this key signed the statement, and the trusted comment."""
        if key.program != MINISIGN or key.key_id != self.key_id:
            return False
        message = hashlib.blake2b(statement).digest() if self.is_prehashed else statement
        return ed25519.verify(key.public, message, self.signature) and ed25519.verify(
            key.public, self.signature + self.comment, self.of_comment
        )


class Ssh:
    """A signature of `ssh-keygen -Y sign`."""

    def __init__(self, text: str) -> None:
        cursor = Cursor(ssh.armored(text, BEGIN, END), "a signature of SSH")
        need(cursor.take(len(SSH_MAGIC)) == SSH_MAGIC, "a signature of SSH: its start")
        if int.from_bytes(cursor.take(4), "big") != 1:
            raise Unsupported("another version of SSH's signatures")
        key, self.namespace, self.reserved, self.hash = (ssh.string(cursor) for _ in range(4))
        signature = Cursor(ssh.string(cursor), "a signature of SSH")
        cursor.end()
        self.public = ssh.public_key(key)
        if self.namespace != NAMESPACE or self.hash not in (b"sha256", b"sha512"):
            raise Unsupported("another namespace or hash of a signature of SSH")
        need(ssh.string(signature) == SSH.encode(), "a signature of SSH: its kind")
        self.signature = ssh.string(signature)
        signature.end()
        self.signer = f"{SSH} {b64encode(key).decode()}"

    def is_by(self, key: Key, statement: bytes) -> bool:
        """Whether this key signed the statement."""
        if key != Key(SSH, self.public):
            return False
        digest = hashlib.new(self.hash.decode(), statement).digest()
        parts = (self.namespace, self.reserved, self.hash, digest)
        message = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return ed25519.verify(key.public, SSH_MAGIC + message, self.signature)


Signature = Minisign | Ssh


def signature_of(text: bytes) -> Signature:
    """A signature in one of the two forms."""
    try:
        written = text.decode()
    except UnicodeDecodeError:
        raise Damaged("a signature is not a text") from None
    return Ssh(written) if written.startswith(BEGIN) else Minisign(written)


def statement_of(root_hash: bytes) -> bytes:
    """What is signed."""
    return f"refrain root hash 1\n{root_hash.hex()}\n".encode()
