"""Recovery frames and the table of digests: recovery.md, sections 1 to 3."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass, field

from .errors import Damaged, ReaderError, Unsupported, need
from .frames import Frame, Header, checksum, frame_bytes
from .heads import open_head
from .reed_solomon import Code
from .scan import intact_frames
from .sources import File

RECOVERY = 17
HEAD_BYTES = 41
METHOD = 1
PIECE, PARITY = 0, 1
SKIPPABLE = 1


@dataclass(frozen=True)
class Numbers:
    """The layout (section 2)."""

    protected_bytes: int
    slice_bytes: int
    data_rows: int
    parity_rows: int

    def check(self) -> None:
        """Before memory is allocated for them."""
        size = self.slice_bytes
        need(1 <= self.protected_bytes <= 1 << 47, "Protected_Bytes")
        need(256 <= size <= 1 << 26 and size & (size - 1) == 0, "Slice_Bytes")
        need(1 <= self.slices <= 1 << 21, "the number of slices")
        need(1 <= self.data_rows <= 32_768, "Data_Rows")
        need(self.data_rows == -(-self.slices // self.columns), "Data_Rows")
        need(1 <= self.parity_rows <= 16_384, "Parity_Rows")
        need(self.parity_slices <= 1 << 22, "Parity_Rows")

    @property
    def slices(self) -> int:
        """n."""
        return -(-self.protected_bytes // self.slice_bytes)

    @property
    def columns(self) -> int:
        """c."""
        return -(-self.slices // self.data_rows)

    @property
    def parity_slices(self) -> int:
        """s."""
        return self.parity_rows * self.columns

    @property
    def last_bytes(self) -> int:
        """The bytes of the last slice without the zeros that extend it."""
        return self.protected_bytes - (self.slices - 1) * self.slice_bytes

    @property
    def piece_bytes(self) -> int:
        """Piece_Bytes."""
        return min(max(1 << (2 * self.slices - 1).bit_length(), 64), 4096)

    @property
    def pieces(self) -> int:
        """t."""
        return -(-8 * self.slices // self.piece_bytes)

    @property
    def group(self) -> int:
        """g, the number of pieces that stand together."""
        return self.pieces + self.pieces // 8

    def table_code(self) -> Code:
        """The code over the pieces."""
        return Code(self.pieces, 4 * self.group - self.pieces)

    def encode(self) -> bytes:
        """As in a head."""
        sizes = (8, 4, 4, 4)
        pairs = zip(astuple(self), sizes, strict=True)
        return b"".join(value.to_bytes(size, "little") for value, size in pairs)

    def thirds(self) -> tuple[int, int]:
        """The slices of parity that have pieces before them, besides the first."""
        return self.parity_slices // 3, 2 * self.parity_slices // 3

    def position(self, part: int, index: int) -> int:
        """The place of a frame in the order of all."""
        if part == PIECE:
            before = (0, *self.thirds(), self.parity_slices)
            return index + before[index // self.group]
        return index + self.group * (1 + sum(index >= third for third in self.thirds()))

    def order(self) -> Iterator[tuple[int, int]]:
        """Part and Index of all frames, in their order."""
        stops = (0, *self.thirds(), self.parity_slices)
        for number, stop in enumerate(stops):
            begin = stops[number - 1] if number else 0
            yield from ((PARITY, index) for index in range(begin, stop))
            start = number * self.group
            yield from ((PIECE, index) for index in range(start, start + self.group))


@dataclass(frozen=True)
class Key:
    """What the frames of a set have in common."""

    archive_id: int
    apart: int
    set_id: bytes
    numbers: Numbers


def parse(header: Header, frame: Frame) -> tuple[Key, int, int]:
    """The set, Part and Index of a frame; section 3."""
    cursor = open_head(frame)
    need(len(frame.head) == 1 + HEAD_BYTES, f"{frame.name}: Head_Bytes")
    need(cursor.varint() == 0 and cursor.varint() == 0, f"{frame.name}: Scope")
    if cursor.varint() != METHOD:
        raise Unsupported(f"{frame.name}: another method")
    apart, part = cursor.varint(), cursor.varint()
    need(apart <= 1 and part <= 1, f"{frame.name}: Apart or Part")
    set_id = cursor.take(8)
    numbers = Numbers(cursor.fixed(8), *(cursor.fixed(4) for _ in range(3)))
    need(numbers.slice_bytes > 0 and numbers.data_rows > 0, f"{frame.name}: a number is 0")
    numbers.check()
    index = cursor.fixed(8)
    size = numbers.piece_bytes if part == PIECE else numbers.slice_bytes
    count = 4 * numbers.group if part == PIECE else numbers.parity_slices
    need(len(frame.data) == size and index < count, f"{frame.name}: size or Index")
    return Key(header.archive_id, apart, set_id, numbers), part, index


@dataclass
class Set:
    """The frames of a set that are intact: where their data is, by Part and Index."""

    key: Key
    first_sequence: int
    data: dict[tuple[int, int], tuple[File, int]] = field(default_factory=dict)

    def read(self, part: int, index: int) -> bytes:
        """The data of a frame."""
        source, offset = self.data[part, index]
        numbers = self.key.numbers
        return source.read_at(offset, numbers.piece_bytes if part == PIECE else numbers.slice_bytes)

    def encode(self, part: int, index: int, data: bytes) -> bytes:
        """A frame with this data."""
        fields = bytes((HEAD_BYTES, 0, 0, 1, self.key.apart, part)) + self.key.set_id
        head = fields + self.key.numbers.encode() + index.to_bytes(8, "little")
        sequence = self.first_sequence + self.key.numbers.position(part, index)
        return frame_bytes(self.key.archive_id, RECOVERY, SKIPPABLE, sequence, head, data)

    def table(self) -> bytes:
        """The table of digests, extended to whole pieces: from any of them (section 2)."""
        numbers = self.key.numbers
        count, size = numbers.pieces, numbers.piece_bytes
        known = sorted(index for part, index in self.data if part == PIECE)
        if len(known) < count:
            raise Damaged(f"{len(known)} pieces of the table of digests remain, of {count}")
        pieces = {index: self.read(PIECE, index) for index in known[:count]}
        parity = {index - count: pieces.pop(index) for index in known[:count] if index >= count}
        lost = [index for index in range(count) if index not in pieces]
        rows = list(pieces.items())
        pieces |= numbers.table_code().restore(lost, parity, rows, size)
        table = b"".join(pieces[index] for index in range(count))
        found = checksum(numbers.encode() + table[: 8 * numbers.slices])
        need(found.to_bytes(8, "little") == self.key.set_id, "the table of digests: Set_Id")
        return table

    def all_pieces(self, table: bytes) -> dict[int, bytes]:
        """All pieces, with those that are lost computed anew."""
        numbers = self.key.numbers
        count, size = numbers.pieces, numbers.piece_bytes
        pieces = {index: table[index * size : (index + 1) * size] for index in range(count)}
        rows = list(pieces.items())
        away = []
        for index in range(count, 4 * numbers.group):
            if (PIECE, index) in self.data:
                pieces[index] = self.read(PIECE, index)
            else:
                away.append(index - count)
        made = numbers.table_code().parity(away, rows, size)
        return pieces | {count + j: piece for j, piece in made.items()}


def sets_in(source: File, others: set[int]) -> dict[Key, Set]:
    """The sets of a file; the one whose last frame is last comes last. Adds the ids of archives
    that have recovery data of another method to `others`.
    """
    found: dict[Key, Set] = {}
    for header, frame in intact_frames(source, 0, None):
        if frame.kind != RECOVERY:
            continue
        with suppress(Damaged):
            cursor = open_head(frame)
            if cursor.take(2) == bytes(2) and cursor.varint() != METHOD:
                others.add(header.archive_id)
                continue
        with suppress(ReaderError):
            key, part, index = parse(header, frame)
            first = header.sequence - key.numbers.position(part, index)
            known = found.pop(key, None) or Set(key, first)
            known.data[part, index] = (source, frame.end - len(frame.data))
            found[key] = known
    return found


def find_set(sources: list[File]) -> Set:
    """Section 5, step 1: the last set of the first file that has one, from all files."""
    chosen: Set | None = None
    others: set[int] = set()
    for source in sources:
        sets = sets_in(source, others)
        if chosen is None:
            chosen = list(sets.values())[-1] if sets else None
        elif chosen.key in sets:
            chosen.data = sets[chosen.key].data | chosen.data
    if chosen is None and not others:
        raise Damaged("there is no recovery data")
    if chosen is None or chosen.key.archive_id in others:
        # What was added to an archive has some of its own, as its generations are not read here.
        raise Unsupported("recovery data for later bytes of an archive")
    return chosen
