"""Signature frames (format-signature.md, sections 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from blake3 import blake3

from . import aegis, blake3_tree
from .archive import Archive, places
from .cursor import Cursor, varint
from .envelope import EnvelopeFile, derive
from .errors import Damaged, Unsupported, need, within
from .frames import HEADER_BYTES, SYNC, TAIL_BYTES, Frame, parse_tail, read_frame
from .hashes import CONTEXT, member_hash
from .heads import open_head
from .signers import Key, signature_of, statement_of
from .sources import File

SIGNATURE = 22
PAYLOAD_BYTES_MAX = 65_536
SIGNATURE_BYTES_MAX = 16_384
SIGNATURES_MAX = 64
SEALED_BYTES = 1024
TAG_BYTES = 32
PIECES_MAX = 1024


@dataclass
class Signed:
    """What the Signature frames of a file have."""

    texts: list[bytes] = field(default_factory=list)
    trees: list[Cursor] = field(default_factory=list)


def appendix(source: File, at: int) -> Iterator[Frame]:
    """The frames behind the tail that ends at `at`."""
    while at < source.size:
        raw = source.read_at(at, HEADER_BYTES)
        if raw.startswith(SYNC):
            _, frame = read_frame(source, 0, at)
            yield frame
            at = frame.end
        else:
            parse_tail(raw[:TAIL_BYTES], at)
            at += TAIL_BYTES


def end_of(file: File | EnvelopeFile) -> tuple[File, int]:
    """The file itself, and where the appendices of its only archive begin."""
    if isinstance(file, EnvelopeFile):
        return file.source, file.end
    found = places(file)
    if len(found) != 1:
        raise Unsupported("a file with several archives cannot be verified")
    return file, found[0].base + found[0].last.end + TAIL_BYTES


def seal(file_key: bytes, salt: bytes, contents: bytes) -> bytes:
    """Nonce, ciphertext and tag of contents (section 2)."""
    nonce = blake3(contents, key=derive("appendix nonce", file_key, salt)).digest()
    key = derive("appendix", file_key, salt)
    return nonce + b"".join(aegis.crypt(key, nonce, contents, TAG_BYTES, seal=True))


def unseal(file: EnvelopeFile, nonce: bytes, data: bytes, name: str) -> bytes:
    """The contents."""
    sealed, tag = data[:-TAG_BYTES], data[-TAG_BYTES:]
    key = derive("appendix", file.file_key, file.salt)
    contents, found = aegis.crypt(key, nonce, sealed, TAG_BYTES, seal=False)
    need(found == tag, f"{name}: damaged or forged")
    agree = seal(file.file_key, file.salt, contents)[: len(nonce)] == nonce
    need(agree and len(contents) % SEALED_BYTES == 0, f"{name}: Nonce or size")
    return contents


def contents_of(file: File | EnvelopeFile, frame: Frame) -> Cursor:
    """The contents of a Signature frame."""
    name = f"Signature frame at {frame.offset}"
    within(len(frame.head) + len(frame.data), PAYLOAD_BYTES_MAX, f"{name}: Payload_Bytes")
    cursor = open_head(frame)
    need(frame.skippable, f"{name}: not skippable")
    need(cursor.varint() == 0 and cursor.varint() == 0, f"{name}: Scope")
    method = cursor.varint()
    if method not in (1, 2):
        raise Unsupported(f"{name}: another method")
    need((method == 2) == isinstance(file, EnvelopeFile), f"{name}: method {method}")
    if isinstance(file, EnvelopeFile):
        return Cursor(unseal(file, cursor.take(32), frame.data, name), name)
    return Cursor(frame.data, name)


def read(file: File | EnvelopeFile) -> Signed:
    """The signatures of a file."""
    source, end = end_of(file)
    found = Signed()
    for frame in appendix(source, end):
        if frame.kind != SIGNATURE:
            continue
        cursor = contents_of(file, frame)
        part, content = cursor.varint(), cursor.text()
        rest = cursor.rest()
        fits = len(rest) < SEALED_BYTES if isinstance(file, EnvelopeFile) else not rest
        need(fits and not any(rest), f"{cursor.name}: bytes behind the contents")
        if part == 0:
            need(len(content) <= SIGNATURE_BYTES_MAX, f"{cursor.name}: a long signature")
            found.texts.append(content)
        elif part == 1:
            found.trees.append(Cursor(content, f"{cursor.name}: the tree"))
    need(len(found.texts) <= SIGNATURES_MAX, "more signatures than an archive has")
    return found


def check_tree(tree: Cursor, members: list[bytes], root_hash: bytes) -> None:
    """Section 3: the values are those of the hashes of all members, and give Root_Hash."""
    count = tree.varint()
    need(count == len(members) > 31, f"{tree.name}: Member_Count")
    hashed = varint(count) + b"".join(members)
    size = 1024
    while -(-len(hashed) // size) > PIECES_MAX:
        size *= 2
    key = blake3_tree.context_key(CONTEXT + "root")
    values = [
        blake3_tree.chaining_value(key, hashed[at : at + size], at // 1024)
        for at in range(0, len(hashed), size)
    ]
    need(tree.rest() == b"".join(values), f"{tree.name}: its values")
    need(blake3_tree.root(key, values) == root_hash, f"{tree.name}: Root_Hash")


def check(file: File | EnvelopeFile, archive: Archive) -> Signed:
    """The signatures of the only archive of a file; its trees are right."""
    signed = read(file)
    if signed.trees:
        pairs = [(member.start, member.end) for member in archive.members()]
        members = [member_hash(start, end) for start, end in pairs if end is not None]
        for tree in signed.trees:
            check_tree(tree, members, archive.root_hash)
    return signed


def signers(texts: list[bytes], keys: list[Key], root_hash: bytes) -> Iterator[str]:
    """Section 4, step 2: whose signatures they are, and whether a trusted key verifies them."""
    verified = False
    for signature in map(signature_of, texts):
        is_right = any(signature.is_by(key, statement_of(root_hash)) for key in keys)
        verified |= is_right
        yield f"signature: {signature.signer} ({'verified' if is_right else 'not verified'})"
    if keys and not verified:
        raise Damaged("no signature is by one of the keys")
