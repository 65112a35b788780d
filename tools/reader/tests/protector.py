"""Recovery data that is made by hand, with any numbers that the format allows."""

from __future__ import annotations

from refrain_reader.frames import TAIL_BYTES, TAIL_MAGIC, checksum, parse_tail
from refrain_reader.recovery import PIECE, Key, Numbers, Set
from refrain_reader.reed_solomon import Code
from refrain_reader.repair import digest_of

ID = 0x1D1D1D1D


def recovery_data(raw: bytes, numbers: Numbers, apart: bool = False, archive_id: int = ID) -> bytes:
    """The frames that protect `raw`, and their tail."""
    numbers.check()
    size, columns = numbers.slice_bytes, numbers.columns
    padded = raw.ljust(numbers.data_rows * columns * size, b"\0")
    slices = [padded[at * size :][:size] for at in range(numbers.slices)]
    table = b"".join(digest_of(piece).to_bytes(8, "little") for piece in slices)
    set_id = checksum(numbers.encode() + table).to_bytes(8, "little")
    made = Set(Key(archive_id if not apart else 0, int(apart), set_id, numbers), 0 if apart else 6)
    pieces = made.all_pieces(table.ljust(numbers.pieces * numbers.piece_bytes, b"\0"))
    width = columns * size
    rows = [(row, padded[row * width :][:width]) for row in range(numbers.data_rows)]
    code = Code(numbers.data_rows, numbers.parity_rows)
    parity = b"".join(code.parity(list(range(numbers.parity_rows)), rows, width).values())
    frames = b"".join(
        made.encode(part, index, pieces[index] if part == PIECE else parity[index * size :][:size])
        for part, index in numbers.order()
    )
    if apart:
        return frames
    back_bytes = parse_tail(raw[-TAIL_BYTES:], 0) + len(frames) + TAIL_BYTES
    return frames + back_bytes.to_bytes(6, "little") + TAIL_MAGIC
