"""Encrypted archives: format-envelope.md, for passwords and keys."""

from __future__ import annotations

from collections.abc import Iterator

import argon2.low_level
from blake3 import blake3

from . import aegis
from .cursor import Cursor
from .errors import Damaged, Limit, Unsupported, need, within
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
from .identities import Identity, Locked
from .limits import HEAD_BYTES_MAX
from .sources import File

ENVELOPE = 16
RECORD = 16_384
SEALED = RECORD + 16
SLOTS_MAX = 64
WRAPPED_BYTES = 64
PASSWORD = 1


def derive(context: str, *parts: bytes) -> bytes:
    """Section 2."""
    return blake3(b"".join(parts), derive_key_context=f"refrain envelope 1 {context}").digest()


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

    def unlock(self, password: bytes | None, identities: list[Identity]) -> bytes:
        """The file key."""
        self.check_costs()
        for kind, slot in self.slots:
            wrapped = slot[-WRAPPED_BYTES:]
            for secret, bound in self.secrets(kind, slot, password, identities):
                key = derive("slot", bytes([kind]), self.salt, secret, bound)
                file_key, tag = aegis.crypt(key, bytes(32), wrapped[:32], 32, seal=False)
                if tag == wrapped[32:]:
                    return self.checked(file_key)
        raise Locked("the archive is encrypted, and no secret that was given opens it")

    def secrets(
        self, kind: int, slot: bytes, password: bytes | None, identities: list[Identity]
    ) -> Iterator[tuple[bytes, bytes]]:
        """What may open a slot: Secret and Bound."""
        if kind == PASSWORD and password is not None:
            cursor = Cursor(slot, "slot")
            salt = cursor.take(16)
            memory, passes, lanes = (cursor.varint() for _ in range(3))
            cursor.take(WRAPPED_BYTES)
            cursor.end()
            yield (
                argon2.low_level.hash_secret_raw(
                    password, salt, passes, memory, lanes, 32, argon2.low_level.Type.ID
                ),
                b"",
            )
        for identity in identities:
            if kind == identity.slot_kind:
                share = slot[:-WRAPPED_BYTES]
                need(len(share) == identity.share_bytes, "a slot has another size")
                opened_share = identity.open(share)
                if opened_share is not None:
                    yield opened_share

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
        self.file_key, self.salt = file_key, envelope.salt
        self.key = derive("records", file_key, envelope.salt)
        self.start = len(MAGIC) + 2 * envelope.frame_bytes
        self.records = (source.size - self.start - TAIL_BYTES) // SEALED
        # Appendices may follow the tail.
        while self.records > 0 and not self.ends_there():
            self.records -= 1
        need(self.records > 0, "the archive has no end")
        self.end = self.start + self.records * SEALED + TAIL_BYTES
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


def opened(source: File, password: bytes | None, identities: list[Identity]) -> File | EnvelopeFile:
    """The archive itself, or the one inside if it is encrypted."""
    envelope = read_envelope(source)
    if envelope is None:
        if password is not None or identities:
            raise Locked("the archive is not encrypted: a secret proves nothing about it")
        return source
    return EnvelopeFile(source, envelope, envelope.unlock(password, identities))
