"""Encrypted archives: format-envelope.md."""

from __future__ import annotations

import io
import random
import unittest
from collections.abc import Iterator

from argon2.low_level import Type, hash_secret_raw
from blake3 import blake3

from refrain_reader import aegis, ml_kem
from refrain_reader import archive as archives
from refrain_reader.envelope import RECORD, derive, opened
from refrain_reader.errors import Damaged
from refrain_reader.identities import (
    BASE_POINT,
    X25519,
    Identity,
    Locked,
    XWing,
    bech32,
    identities_of,
    x25519,
)
from refrain_reader.sources import File

from .test_golden import GOLDEN

ARCHIVE = GOLDEN / "encrypted/all.rfn"
KEYS = GOLDEN / "encrypted/all.keys"
FILE_KEY, SALT = bytes(range(32)), bytes(range(32, 64))
X25519_KEY = """
6816e0149f4fb6e781ff065fd4779a6d6fddb112df08bae17af1fbd6934e4982
7a272c74eb0434be84a51c701ffe35122b40059b2f1c4eb9e4d855f37b6c3aff
"""
PASSWORD_KEY = """
75638601e5093f73b5ec495f6ed74f72254419d4c1b6a7ec3eec6f79bd167352
83b7f50435bbabb70132edd1aa4fc16971205d00e2b99c34bae16106ee77ca12
"""


def sealed(key: bytes, nonce: bytes, data: bytes, tag_bytes: int) -> bytes:
    """Ciphertext and tag."""
    return b"".join(aegis.crypt(key, nonce, data, tag_bytes, seal=True))


class Vectors(unittest.TestCase):
    """Section 4."""

    def test_keys_and_records(self) -> None:
        self.assertEqual(
            derive("commitment", FILE_KEY, SALT).hex(),
            "a7205a41608d7e3baa70064f634eacbd2556ce205e5214ebe55df8086d58a7f9",
        )
        key = derive("records", FILE_KEY, SALT)
        self.assertEqual(
            key.hex(), "6aac7d3977d1961574638754f16ec3ead7f380c054dcc34325e8158a100d832c"
        )
        self.assertEqual(
            blake3(b"abc", key=derive("header", FILE_KEY, SALT)).hexdigest(),
            "d7fee219879ac49a219b38adec2d53b52b9ef1d7215f6f77219efed841072dcd",
        )
        record = sealed(key, bytes((5, *bytes(7), 1)) + bytes(23), bytes(RECORD), 16)
        self.assertEqual(
            record[:32].hex(), "4d9bf92f443459b3551f13e3c20d20ef3773626c8a651e13ada7434c7777415d"
        )
        self.assertEqual(record[RECORD:].hex(), "0a179250a959a5bc1aa5d826fc5edd3f")

    def test_slots(self) -> None:
        share = x25519(b"\x43" * 32, BASE_POINT)
        self.assertEqual(
            share.hex(), "cdefd8783a91b446640e2e1f95599db35e484a0071bd2182b3b60d0812c10c70"
        )
        secret = hash_secret_raw(b"password", bytes(range(64, 80)), 1, 8192, 1, 32, Type.ID)
        both = X25519(b"\x42" * 32).open(share) or (b"", b"")
        for kind, parts, expected in ((2, both, X25519_KEY), (1, (secret,), PASSWORD_KEY)):
            key = derive("slot", bytes([kind]), SALT, *parts)
            self.assertEqual(sealed(key, bytes(32), FILE_KEY, 32), bytes.fromhex(expected))


class Keys(unittest.TestCase):
    """Texts of keys, and shares for somebody else."""

    def test_texts(self) -> None:
        lines = KEYS.read_text().splitlines()
        self.assertEqual([len(bech32(line.lower())[1]) for line in lines], [32, 32])
        for text in (lines[0][:-1] + "Q", lines[1].replace("PQ-1", "1"), "AGE-SECRET-KEY-1B", ""):
            with self.subTest(text), self.assertRaises(Locked):
                list(identities_of(text))

    def test_what_is_for_somebody_else_gives_another_key(self) -> None:
        source = random.Random(12)
        keys = ml_kem.key_pair(source.randbytes(32), source.randbytes(32))
        ciphertext = source.randbytes(ml_kem.CIPHERTEXT_BYTES)
        rejected = ml_kem.decapsulate(keys, ciphertext)
        self.assertEqual(ml_kem.decapsulate(keys, ciphertext), rejected)
        self.assertNotEqual(ml_kem.decapsulate(keys, ciphertext[:-1] + b"?"), rejected)
        self.assertIsNone(X25519(bytes(32)).open(bytes(32)))


class Archives(unittest.TestCase):
    """The golden archive."""

    def secrets(self) -> Iterator[tuple[bytes | None, list[Identity]]]:
        """All that open it."""
        yield b"password", []
        found = list(identities_of(KEYS.read_text()))
        self.assertEqual([type(identity) for identity in found], [X25519, XWing])
        yield from ((None, [identity]) for identity in found)

    def test_every_secret_opens_it(self) -> None:
        source = File(io.BytesIO(ARCHIVE.read_bytes()))
        files = [opened(source, *secrets) for secrets in self.secrets()]
        inner = {file.read_at(0, file.size) for file in files}
        (sequence,) = archives.stream(File(io.BytesIO(inner.pop())), keep=False)
        self.assertEqual(sum(member.size for member in sequence.members), 70_000)
        self.assertEqual(inner, set())

    def test_others_do_not(self) -> None:
        source = File(io.BytesIO(ARCHIVE.read_bytes()))
        for secrets in ((b"passwore", []), (None, [X25519(b"1" * 32), XWing(b"1" * 32)])):
            with self.assertRaises(Locked):
                opened(source, *secrets)
        plain = File(io.BytesIO((GOLDEN / "archives/0.1.0/nothing.rfn").read_bytes()))
        with self.assertRaises(Locked):
            opened(plain, None, [X25519(b"1" * 32)])

    def test_a_changed_record(self) -> None:
        raw = bytearray(ARCHIVE.read_bytes())
        raw[-20_000] ^= 1
        file = opened(File(io.BytesIO(raw)), None, list(identities_of(KEYS.read_text())))
        with self.assertRaisesRegex(Damaged, "record"):
            file.read_at(0, file.size)


if __name__ == "__main__":
    unittest.main()
