"""Encrypted archives: format-envelope.md, for passwords and X25519 keys."""

from __future__ import annotations

import argon2.low_level
from blake3 import blake3

from . import aegis
from .cursor import Cursor
from .errors import Damaged, Limit, ReaderError, Unsupported, need, within
from .frames import (
    HEADER,
    HEADER_BYTES,
    MAGIC,
    TAIL_BYTES,
    header_is_intact,
    parse_tail,
    split_head,
)
from .frames import payload_checksum as checksum_of
from .limits import HEAD_BYTES_MAX
from .sources import File

ENVELOPE = 16
RECORD = 16_384
SEALED = RECORD + 16
SLOTS_MAX = 64
PASSWORD, X25519 = 1, 2
P25519 = (1 << 255) - 19


class Locked(ReaderError):
    """No secret opens the archive."""

    category = "locked"


def derive(context: str, *parts: bytes) -> bytes:
    """Section 2."""
    return blake3(b"".join(parts), derive_key_context=f"refrain envelope 1 {context}").digest()


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


BASE_POINT = (9).to_bytes(32, "little")
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def identity_of(text: str) -> bytes:
    """The secret X25519 key in a file: AGE-SECRET-KEY-1… (BIP 173)."""
    lines = (line.strip() for line in text.splitlines())
    keys = [line.lower() for line in lines if line.upper().startswith("AGE-SECRET-KEY-1")]
    if not keys:
        raise Locked("the file has no X25519 key")
    prefix, _, data = keys[0].rpartition("1")
    values = [BECH32.index(letter) for letter in data]
    expanded = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    checksum = 1
    for value in expanded + values:
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ value
        for at, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            checksum ^= generator if top >> at & 1 else 0
    if checksum != 1:
        raise Locked("a character of the key is wrong or missing")
    number = 0
    for value in values[:-6]:
        number = number << 5 | value
    return (number >> 4).to_bytes(32, "big")


class Envelope:
    """The contents of an Envelope frame (section 1)."""

    def __init__(self, raw: bytes) -> None:
        need(header_is_intact(raw[:HEADER_BYTES]), "no envelope here")
        _, self.archive_id, kind, flags, generation, self.copy, size, payload_checksum, _ = (
            HEADER.unpack(raw[:HEADER_BYTES])
        )
        need(kind == ENVELOPE, f"kind {kind} instead of an envelope")
        if flags or generation:
            raise Unsupported("flags or a generation of an envelope")
        self.frame_bytes = within(HEADER_BYTES + size, HEAD_BYTES_MAX + 2048, "envelope bytes")
        payload = raw[HEADER_BYTES : self.frame_bytes]
        need(len(payload) == size, "an envelope is cut off")
        head, room = split_head(payload, "envelope")
        need(checksum_of(head, room) == payload_checksum, "envelope: wrong checksum")
        need(not any(room), "envelope: the room for slots is not zero")
        need(self.copy <= 1 and self.frame_bytes % 1024 == 0, "envelope: another copy or size")
        self.read_head(head)

    def read_head(self, head: bytes) -> None:
        """The fields."""
        cursor = Cursor(head, "envelope")
        cursor.varint()
        start = cursor.at
        need(cursor.varint() == 0 and cursor.varint() == 0, "envelope: scope")
        if cursor.varint() != 1:
            raise Unsupported("another cipher")
        self.salt = cursor.take(32)
        self.commitment = cursor.take(32)
        self.revision = cursor.varint()
        count = cursor.limited(SLOTS_MAX, "Slot_Count")
        self.slots = [(cursor.varint(), cursor.text()) for _ in range(count)]
        self.authenticated = head[start : cursor.at]
        self.authenticator = cursor.take(32)
        cursor.end()

    def unlock(self, password: bytes | None, identity: bytes | None) -> bytes:
        """The file key."""
        self.check_costs()
        for kind, slot in self.slots:
            secret, bound, wrapped = b"", b"", b""
            if kind == PASSWORD and password is not None:
                cursor = Cursor(slot, "slot")
                salt = cursor.take(16)
                memory, passes, lanes = (cursor.varint() for _ in range(3))
                wrapped = cursor.take(64)
                secret = argon2.low_level.hash_secret_raw(
                    password, salt, passes, memory, lanes, 32, argon2.low_level.Type.ID
                )
            elif kind == X25519 and identity is not None:
                need(len(slot) == 96, "a slot has another size")
                secret, wrapped = x25519(identity, slot[:32]), slot[32:]
                bound = slot[:32] + x25519(identity, BASE_POINT)
                if not any(secret):
                    continue
            else:
                continue
            key = derive("slot", bytes([kind]), self.salt, secret, bound)
            file_key, tag = aegis.crypt(key, bytes(32), wrapped[:32], 32, seal=False)
            if tag == wrapped[32:]:
                return self.checked(file_key)
        raise Locked("the archive is encrypted, and no secret that was given opens it")

    def check_costs(self) -> None:
        """Before any work."""
        work = 0
        for kind, slot in self.slots:
            if kind != PASSWORD:
                continue
            cursor = Cursor(slot, "slot")
            cursor.take(16)
            memory, passes, lanes = (cursor.varint() for _ in range(3))
            work += memory * passes
            if not (8192 <= memory <= 1 << 22 and 1 <= lanes <= 64 and passes) or work > 1 << 26:
                raise Limit("the cost of a password")

    def checked(self, file_key: bytes) -> bytes:
        """The key, if the header agrees with it."""
        header_key = derive("header", file_key, self.salt)
        authenticator = blake3(self.authenticated, key=header_key).digest()
        if derive("commitment", file_key, self.salt) != self.commitment:
            raise Damaged("the header is forged: its commitment")
        if authenticator != self.authenticator:
            raise Damaged("the header is forged: its authenticator")
        return file_key


def read_envelope(source: File) -> Envelope | None:
    """The newer intact copy; None for other files."""
    first = source.read_at(0, len(MAGIC) + HEADER_BYTES)
    header = first[len(MAGIC) :]
    if not first.startswith(MAGIC) or (header_is_intact(header) and header[8] != ENVELOPE):
        return None
    copies = []
    for offset in range(0, HEAD_BYTES_MAX + 2049, 1024):
        try:
            found = Envelope(source.read_at(len(MAGIC) + offset, HEAD_BYTES_MAX + 2048))
        except Damaged:
            continue
        if found.copy * found.frame_bytes == offset:
            copies.append(found)
            if found.copy:
                break
    return max(copies, key=lambda copy: copy.revision, default=None)


class EnvelopeFile:
    """The inner archive, with the interface of `File`."""

    def __init__(self, source: File, envelope: Envelope, file_key: bytes) -> None:
        self.source = source
        self.key = derive("records", file_key, envelope.salt)
        self.start = len(MAGIC) + 2 * envelope.frame_bytes
        self.records = (source.size - self.start - TAIL_BYTES) // SEALED
        # Appendices may follow the tail.
        while self.records > 0 and not self.ends_there():
            self.records -= 1
        need(self.records > 0, "the archive has no end")
        self.known: tuple[int, bytes] = (-1, b"")
        self.size = int.from_bytes(self.record(self.records - 1)[-8:], "little")
        need(self.size + 8 <= self.records * RECORD, "more bytes are stated than there are")

    def ends_there(self) -> bool:
        """Whether the tail is behind so many records."""
        end = self.start + self.records * SEALED
        try:
            return parse_tail(self.source.read_at(end, TAIL_BYTES), end) + len(MAGIC) == end
        except Damaged:
            return False

    def record(self, number: int) -> bytes:
        """The plaintext of a record."""
        if self.known[0] != number:
            sealed = self.source.read_at(self.start + number * SEALED, SEALED)
            need(len(sealed) == SEALED, f"record {number} is cut off")
            is_last = number + 1 == self.records
            nonce = number.to_bytes(8, "little") + bytes([is_last]) + bytes(23)
            plain, tag = aegis.crypt(self.key, nonce, sealed[:RECORD], 16, seal=False)
            need(tag == sealed[RECORD:], f"record {number} is damaged or forged")
            self.known = (number, plain)
        return self.known[1]

    def read_at(self, offset: int, count: int) -> bytes:
        """As `File.read_at`."""
        count = min(count, max(self.size - offset, 0))
        out = bytearray()
        while len(out) < count:
            at = offset + len(out)
            piece = self.record(at // RECORD)[at % RECORD :]
            out += piece[: count - len(out)]
        return bytes(out)


def opened(source: File, password: bytes | None, identity: bytes | None) -> File | EnvelopeFile:
    """The archive itself, or the one inside if it is encrypted."""
    envelope = read_envelope(source)
    if envelope is None:
        if password is not None or identity is not None:
            raise Locked("the archive is not encrypted: a secret proves nothing about it")
        return source
    return EnvelopeFile(source, envelope, envelope.unlock(password, identity))
