"""Archives that are made by hand, field by field."""

from __future__ import annotations

from dataclasses import dataclass, field

from blake3 import blake3
from xxhash import xxh3_64_intdigest as checksum

from refrain_reader import frames as f
from refrain_reader.cursor import text, varint, zigzag

ID = 0x1D1D1D1D
CONTENT = b"to be or not to be\n" + bytes(8)
STORE = b"to be or not \n"
# Fresh, copy, fresh, fill: the example of section 10.
SECTION = bytes.fromhex("08 04 02 01 01 00 00 01 00 01 00 02 0d 01 05 19 08 01 00")


def numbers(*values: int) -> bytes:
    """Varints."""
    return b"".join(varint(value) for value in values)


def head(fields: bytes) -> bytes:
    """Head_Bytes and fields."""
    return text(fields)


@dataclass
class Frame:
    """A frame before its header is known."""

    kind: int
    fields: bytes
    data: bytes = b""
    flags: int = 0
    generation: int = 0
    archive_id: int = ID
    payload: bytes | None = None

    def encode(self, sequence: int) -> bytes:
        """Header and payload."""
        start, data = head(self.fields), self.data
        if self.payload is not None:
            start, data = self.payload, b""
        size, payload_sum = len(start) + len(data), f.payload_checksum(start, data)
        raw = f.HEADER.pack(
            f.SYNC,
            self.archive_id,
            self.kind,
            self.flags,
            self.generation,
            sequence,
            size,
            payload_sum,
            0,
        )[:28]
        return raw + (checksum(raw) & 0xFFFFFFFF).to_bytes(4, "little") + start + data


def archive_frame(major: int = 1, features: int = 0, reach: int = 0, block: int = 64) -> Frame:
    """The Archive frame."""
    return Frame(1, numbers(major, 0, features, 3, block, 1 << 20, 0, reach, 1 << 20, 1 << 20))


def member_start(number: int = 0, at: int = 0, kind: int = 1, name: bytes = b"be.txt") -> Frame:
    """A MemberStart frame with nothing optional."""
    return Frame(2, numbers(number, at, kind, 0) + text(name))


def member_end(number: int = 0, content: bytes = CONTENT) -> Frame:
    """A MemberEnd frame."""
    return Frame(5, numbers(number, len(content), 0) + blake3(content).digest() + numbers(0))


def block(number: int = 0, at: int = 0, raw: bytes = STORE) -> Frame:
    """An uncoded block."""
    return Frame(3, numbers(number, at, len(raw), 0, 0), raw)


def masked_block(mask: int, raw: bytes = STORE) -> Frame:
    """A block with a mask."""
    fields = numbers(0, 0, len(raw), 0, 0x80) + bytes([mask])
    return Frame(3, fields, bytes(byte ^ mask for byte in raw))


def extents(section: bytes = SECTION) -> Frame:
    """The only epoch."""
    return Frame(4, numbers(0, 0, len(CONTENT), 0, len(STORE), 4, len(section), 0, 0), section)


def plain() -> list[Frame]:
    """The frames of the example, without Index and End."""
    return [archive_frame(), member_start(), extents(), member_end(), block()]


def whole(parts: list[Frame], reach: int) -> bytes:
    """A Whole archive."""
    data = b""
    for part in parts:
        data += bytes([part.kind]) + head(part.fields)
        if part.kind in f.DATA_BYTES_MAX:
            data += text(part.data)
    frame = Frame(9, numbers(5, 8, reach), data).encode(0)
    return f.MAGIC + frame + tail(len(frame))


def tail(size: int) -> bytes:
    """The tail of an archive."""
    return size.to_bytes(6, "little") + f.TAIL_MAGIC


@dataclass
class Maker:
    """Writes frames, then an index and End that fit them.

    `depth` is that of each list's root. `nodes` are further Index frames, `roots` further roots.
    `row_changes` are added to numbers of the rows that lead to leaves, by position.
    """

    parts: list[Frame] = field(default_factory=plain)
    depth: int = 0
    nodes: list[Frame] = field(default_factory=list)
    roots: bytes = b""
    row_changes: dict[int, int] = field(default_factory=dict)

    def build(self, end_changes: dict[int, int] | None = None) -> bytes:
        """The archive; `end_changes` are added to numbers of End by position."""
        out, places, sequence = f.MAGIC, {}, 0
        for part in self.parts:
            raw = part.encode(sequence)
            places[part.kind] = (len(out), len(raw))
            out, sequence = out + raw, sequence + 1
        reach = sum(max(places[3], places[4])) - places[3][0]
        roots = b""
        for number, (sums, rows) in enumerate(self.leaves(places), 1):
            for depth in range(self.depth):
                raw = Frame(7, numbers(number, depth, 1, 0, 0, 0), rows).encode(sequence)
                row = [len(out), len(raw), 1, *sums]
                for position, change in self.row_changes.items():
                    row[position] += change if depth == 0 else 0
                rows, out, sequence = numbers(*row), out + raw, sequence + 1
            roots += numbers(number, self.depth, 1) + text(rows)
        for node in self.nodes:
            out, sequence = out + node.encode(sequence), sequence + 1
        stated = [len(CONTENT), len(STORE), sequence + 1, 1, 0, 5, 8, 0, reach]
        for number, change in (end_changes or {}).items():
            stated[number] += change
        while True:
            fields = numbers(*stated) + self.root()
            end = Frame(8, fields, roots + self.roots).encode(sequence)
            total = len(out) + len(end) + 8
            if stated[4] == total:
                return out + end + tail(len(end))
            stated[4] = total

    def leaves(self, places: dict[int, tuple[int, int]]) -> list[tuple[list[int], bytes]]:
        """Section 6.1 for one block, one epoch, one member: sums and rows of each list."""
        start, end = places[2][0], places[5][0]
        heads = {part.kind: head(part.fields) for part in self.parts}
        store, content = len(STORE), len(CONTENT)
        return [
            ([store], numbers(*places[3], zigzag(store), 0, 0)),
            ([content, store], numbers(*places[4], content, store, 4)),
            ([content], numbers(zigzag(start), zigzag(end - start)) + heads[2] + heads[5]),
        ]

    def root(self) -> bytes:
        """Section 6.3 for one member without mode and time."""
        stored = next(part.fields for part in self.parts if part.kind == 5)
        member = numbers(1) + text(b"be.txt") + numbers(0) + stored[1:]
        digest = blake3(member, derive_key_context="refrain 1.0 member").digest()
        return blake3(numbers(1) + digest, derive_key_context="refrain 1.0 root").digest()
