"""Who signed an archive: format-signature.md."""

from __future__ import annotations

import io
import random
import unittest

from blake3 import blake3

from refrain_reader import aegis, blake3_tree, ed25519, signatures
from refrain_reader import archive as archives
from refrain_reader.cursor import Cursor, text, varint
from refrain_reader.envelope import EnvelopeFile, opened
from refrain_reader.errors import Damaged, Limit, ReaderError, Unsupported
from refrain_reader.frames import TAIL_BYTES, frame_bytes, parse_tail
from refrain_reader.identities import P25519, identities_of
from refrain_reader.scan import open_scanned
from refrain_reader.signers import key_of, keys_of, signature_of, statement_of
from refrain_reader.sources import File

from . import vouched as v
from .maker import Maker, tail
from .test_encrypted import ARCHIVE as ENCRYPTED
from .test_golden import GOLDEN, command

SIGNED = GOLDEN / "archives/0.1.0/signature.rfn"
SIGNER = "RWTykBXoF5CvEa54JN9dNL40wFXk+yoiiRP2+dMaWhvjwTBeyLZVJ0wd"
ALL = (v.SSH_SHA256, v.SSH_SHA512, v.MINISIGN_PREHASHED, v.MINISIGN_PLAIN)
# RFC 8032, section 7.1, tests 1 and 3: key, message, signature.
ED25519_VECTORS = (
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
)


def file(raw: bytes) -> File:
    """Bytes as a file."""
    return File(io.BytesIO(raw))


def part(number: int, content: bytes) -> bytes:
    """Contents."""
    return varint(number) + text(content)


def with_frames(archive: bytes, *payloads: tuple[bytes, bytes], flags: int = 1) -> bytes:
    """An archive made by hand and an appendix of Signature frames."""
    (place,) = archives.places(file(archive))
    count = archives.h.parse_end(place.last).frame_count
    for sequence, (head, data) in enumerate(payloads, count):
        archive += frame_bytes(place.archive_id, 22, flags, sequence, head, data)
    return archive + tail(len(archive) - place.last.offset)


def plain(*contents: bytes) -> bytes:
    """An archive made by hand, with these contents in frames."""
    head = bytes((3, 0, 0, 1))
    return with_frames(Maker().build(), *((head, content) for content in contents))


class Ed25519(unittest.TestCase):
    """RFC 8032."""

    def test_vectors(self) -> None:
        for values in ED25519_VECTORS:
            key, message, signature = map(bytes.fromhex, values)
            self.assertTrue(ed25519.verify(key, message, signature))
            self.assertFalse(ed25519.verify(key, message + b"?", signature))
            for at in (0, 31, 32, 62):
                changed = bytearray(signature)
                changed[at] ^= 1
                self.assertFalse(ed25519.verify(key, message, bytes(changed)))
            above = int.from_bytes(signature[32:], "little") + ed25519.L
            long = signature[:32] + above.to_bytes(32, "little")
            self.assertFalse(ed25519.verify(key, message, long))
            self.assertFalse(ed25519.verify(key, message, signature + b"\0"))


class Texts(unittest.TestCase):
    """Section 1: what the two programs write."""

    def test_signatures_are_by_their_key_and_of_their_statement(self) -> None:
        keys = [key_of(v.SSH_KEY), key_of(v.MINISIGN_KEY)]
        for number, written in enumerate(ALL):
            signature = signature_of(written.encode())
            statement = statement_of(v.ROOT_HASH)
            found = [signature.is_by(key, statement) for key in keys]
            self.assertEqual(found, [number < 2, number >= 2])
            self.assertFalse(any(signature.is_by(key, statement[:-1]) for key in keys))

    def test_the_trusted_comment_is_signed(self) -> None:
        changed = v.MINISIGN_PLAIN.replace("by a test", "by others").encode()
        key = key_of(v.MINISIGN_KEY)
        self.assertFalse(signature_of(changed).is_by(key, statement_of(v.ROOT_HASH)))

    def test_other_texts(self) -> None:
        cases: list[tuple[type[ReaderError], str]] = [
            (Unsupported, v.SSH_OTHER_NAMESPACE),
            (Unsupported, v.SSH_ECDSA),
            (Damaged, v.SSH_SHA256.replace("U1NI", "V1NI")),
            (Damaged, v.SSH_SHA256.replace("-----END", "!----END")),
            (Damaged, v.MINISIGN_PLAIN.replace("trusted comment: by", "comment: by")),
            (Damaged, v.MINISIGN_PLAIN.replace("RWRx", "RWR")),
            (Unsupported, v.MINISIGN_PLAIN.replace("RWRx", "RXRx")),
            (Damaged, ""),
        ]
        for error, written in cases:
            with self.subTest(written), self.assertRaises(error):
                signature_of(written.encode())
        for line in ("ssh-rsa AAAA", "RW", "namespaces=refrain " + v.SSH_KEY):
            with self.subTest(line), self.assertRaises(ReaderError):
                list(keys_of(line))
        comments = f"untrusted comment: x\n{v.MINISIGN_KEY}\n\n# y\n{v.SSH_KEY}\n"
        self.assertEqual(len(list(keys_of(comments))), 2)

    def test_a_key_of_ssh_opens_archives(self) -> None:
        (identity,) = identities_of(v.SSH_SECRET)
        y = int.from_bytes(key_of(v.SSH_KEY).public, "little") & ((1 << 255) - 1)
        u = (1 + y) * pow(1 - y, P25519 - 2, P25519) % P25519
        self.assertEqual(identity.public, u.to_bytes(32, "little"))


class Tree(unittest.TestCase):
    """Section 3."""

    def test_values_give_the_hash(self) -> None:
        key = blake3_tree.context_key("refrain 1.0 root")
        for size in (1025, 2048, 2049, 5000, 16_385):
            data = random.Random(size).randbytes(size)
            expected = blake3(data, derive_key_context="refrain 1.0 root").digest()
            for piece in (1024, 2048, 8192):
                cuts = range(0, size, piece)
                values = [
                    blake3_tree.chaining_value(key, data[at : at + piece], at // 1024)
                    for at in cuts
                ]
                if len(values) > 1:
                    self.assertEqual(blake3_tree.root(key, values), expected)

    def test_of_an_archive(self) -> None:
        (archive,) = archives.open_indexed(file(SIGNED.read_bytes()))
        (tree,) = signatures.check(file(SIGNED.read_bytes()), archive).trees
        for at in (0, 2, 40, len(tree.data) - 1):
            changed = bytearray(tree.data)
            changed[at] ^= 1
            members = [signatures.member_hash(m.start, m.end) for m in archive.members() if m.end]
            with self.assertRaisesRegex(Damaged, "the tree"):
                cursor = Cursor(bytes(changed), "the tree")
                signatures.check_tree(cursor, members, archive.root_hash)


class Frames(unittest.TestCase):
    """Section 2."""

    def test_several_appendices_and_unknown_parts(self) -> None:
        raw = plain(part(0, b"a"), part(7, b"?"), part(0, b"b"))
        self.assertEqual(signatures.read(file(raw)).texts, [b"a", b"b"])
        frame = frame_bytes(0x1D1D1D1D, 20, 1, 12, b"\2\0\0", b"")
        (place,) = archives.places(file(raw))
        more = raw + frame + tail(len(raw) + len(frame) - place.last.offset)
        self.assertEqual(signatures.read(file(more)).texts, [b"a", b"b"])
        both = list(open_scanned(file(more + Maker().build())))
        self.assertEqual(len(both), 2)
        with self.assertRaisesRegex(Unsupported, "several archives"):
            signatures.read(file(more + Maker().build()))
        with self.assertRaisesRegex(Damaged, "tail"):
            archives.places(file(more + tail(len(more) - place.last.offset)))

    def test_what_is_refused(self) -> None:
        archive, content = Maker().build(), part(0, b"a")
        cases: list[tuple[type[ReaderError], bytes, str]] = [
            (Damaged, plain(content + b"\0"), "behind"),
            (Damaged, plain(part(0, bytes(16_385))), "long"),
            (Damaged, plain(*[content] * 65), "more signatures"),
            (Damaged, with_frames(archive, (bytes((35, 0, 0, 2)) + bytes(32), content)), "method"),
            (Unsupported, with_frames(archive, (bytes((3, 0, 0, 3)), content)), "method"),
            (Damaged, with_frames(archive, (bytes((3, 1, 0, 1)), content)), "Scope"),
            (Limit, plain(part(0, bytes(65_536))), "Payload_Bytes"),
        ]
        for error, raw, says in cases:
            with self.subTest(says), self.assertRaisesRegex(error, says):
                signatures.read(file(raw))

    def test_sealed_ones(self) -> None:
        sealed = signatures.seal(bytes(range(32)), bytes(range(32, 64)), b"abc")
        self.assertEqual(
            sealed.hex(),
            "14e37ec281f5a645182e050c9b2728091c8e8e532be85e4b3c3a78096a9bb563"
            "c6966e2e96ac9c55ca7dad9b9c9bbd39718288c77636b71be08d60ff26f263b5efdfc1",
        )
        self.assertEqual(aegis.crypt(bytes(32), bytes(32), b"", 32, seal=True)[0], b"")
        raw = ENCRYPTED.read_bytes()
        inner = opened(file(raw), b"password", [])
        assert isinstance(inner, EnvelopeFile)
        for size, nonce_change, says in ((1024, 0, ""), (1025, 0, "size"), (1024, 1, "forged")):
            contents = part(0, b"signature").ljust(size, b"\0")
            sealed = bytearray(signatures.seal(inner.file_key, inner.salt, contents))
            sealed[0] ^= nonce_change
            head = bytes((35, 0, 0, 2)) + sealed[:32]
            frame = frame_bytes(
                int.from_bytes(inner.salt[:4], "little"), 22, 1, 2, head, sealed[32:]
            )
            back = parse_tail(raw[-TAIL_BYTES:], 0) + TAIL_BYTES + len(frame)
            signed = opened(file(raw + frame + tail(back)), b"password", [])
            with self.subTest(says):
                if says:
                    self.assertRaisesRegex(Damaged, says, signatures.read, signed)
                else:
                    self.assertEqual(signatures.read(signed).texts, [b"signature"])


class Commands(unittest.TestCase):
    """What the command line says."""

    def test_a_trusted_key_must_have_signed(self) -> None:
        for arguments, code, says in (
            (("test", SIGNED, "--signer", SIGNER), 0, r"key 11AF9017E81590F2 \(verified\)"),
            (("info", SIGNED), 0, r"key 11AF9017E81590F2 \(not verified\)"),
            (("test", SIGNED, "--signer", v.SSH_KEY), 2, "no signature is by one of the keys"),
            (("cat", SIGNED, "--signer", SIGNER), 1, "only test and info"),
        ):
            with self.subTest(says):
                result = command(*arguments)
                self.assertEqual(result.returncode, code)
                self.assertRegex(result.stdout + result.stderr, says)


if __name__ == "__main__":
    unittest.main()
