"""Codec 10 (docs/codec-bwt2.md; section numbers are those of that document)."""

from __future__ import annotations

from . import bwt
from .errors import need

U32 = (1 << 32) - 1
RANKS, LENGTHS = 0, 1

Distribution = list[int]

RANK_BASES = [*range(1, 12), 12, 28, 44, 76, 140]
RANK_BITS = [0] * 11 + [4, 4, 5, 6, 7]
LENGTH_BASES = [*range(1, 11), 11, 13, 17, 33, 65, 129]
LENGTH_BITS = [0] * 10 + [1, 2, 4, 5, 6]
STEPS = [0, 1, 2, 3, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7, 7]


class Decoder:
    """Section 3: the states and words."""

    def __init__(self, words: bytes) -> None:
        need(len(words) % 2 == 0, "bwt2: a byte is left over")
        self.words, self.at = words, 0
        self.states = [0, 0]

    def word(self) -> int:
        """The next word."""
        need(self.at < len(self.words), "bwt2: the words end")
        self.at += 2
        return int.from_bytes(self.words[self.at - 2 : self.at], "little")

    def start(self) -> None:
        """The start of a segment."""
        for state in (RANKS, LENGTHS):
            low = self.word()
            self.states[state] = self.word() << 16 | low

    def remove(self, state: int, first: int, size: int) -> None:
        """Removes a value whose share has `size` points from `first` on."""
        x = self.states[state]
        x = (size * (x // 32768) + x % 32768 - first) & U32
        if x < 65536:
            x = (65536 * x + self.word()) & U32
        self.states[state] = x

    def value(self, state: int, distributions: list[Distribution]) -> int:
        """Section 4: a value, which the distributions learn."""
        starts = mean(distributions[0], distributions[1])
        if len(distributions) == 4:
            starts = mean(starts, mean(distributions[2], distributions[3]))
        starts = [start + 2 * i for i, start in enumerate(starts)] + [32768]
        point = self.states[state] % 32768
        value = max(i for i in range(16) if starts[i] <= point)
        self.remove(state, starts[value], starts[value + 1] - starts[value])
        for distribution in distributions:
            for i, start in enumerate(distribution):
                step = (32767 - start) // 32 if i > value else -((start + 31) // 32)
                distribution[i] = start + step
        return value

    def number(self, state: int, bits: int) -> int:
        """Section 4: a number of some bits."""
        size = 1 << 15 - bits
        number = self.states[state] % 32768 // size
        self.remove(state, number * size, size)
        return number


def mean(x: Distribution, y: Distribution) -> Distribution:
    """Section 4: the means of the numbers of two distributions."""
    return [(a + b + 1) // 2 for a, b in zip(x, y, strict=True)]


class Table:
    """Distributions by index, made when they are first used."""

    def __init__(self) -> None:
        self.distributions: dict[int, Distribution] = {}

    def __getitem__(self, index: int) -> Distribution:
        if index not in self.distributions:
            self.distributions[index] = [2046 * i for i in range(16)]
        return self.distributions[index]


class Symbol:
    """Section 6: what is known about a symbol."""

    def __init__(self) -> None:
        self.last_run = self.rank = self.length = 0
        self.own_rank = self.own_class = 0
        self.own_steps = [0, 0, 0]


class Model:
    """Sections 5 to 7."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.runs = self.rank_step = self.mean_rank = 0
        self.length_steps = [0, 0, 0, 0]
        self.symbols = [Symbol() for _ in range(256)]
        self.length_tables = [Table() for _ in range(4)]
        self.rank_tables = [Table() for _ in range(4)]
        self.length_mantissas = [Table(), Table()]
        self.rank_mantissas = [Table(), Table()]

    def read(self, b: int) -> tuple[int, int]:
        """Length and rank of a run of symbol `b`."""
        of = self.symbols[b]
        d = min(15, (self.runs - of.last_run + 1).bit_length() - 1)
        r, mean_length = min(63, of.rank >> 4), of.length >> 3
        s, own = self.length_steps, of.own_steps
        length_class = self.read_class(
            LENGTHS,
            self.length_tables,
            (
                d * 64 + min(63, mean_length),
                b * 16 + of.own_class,
                s[3] * 512 + s[2] * 64 + s[1] * 8 + s[0],
                own[2] * 512 + own[1] * 64 + own[0] * 8 + of.own_rank,
            ),
        )
        rank_class = self.read_class(
            RANKS,
            self.rank_tables,
            (
                b,
                d * 512 + r * 8 + self.rank_step,
                d * 128 + of.own_rank * 16 + min(15, self.mean_rank >> 4),
                min(31, mean_length) * 64 + r,
            ),
        )
        length, rank = LENGTH_BASES[length_class], RANK_BASES[rank_class]
        if length_class == 15:
            length += self.read_long()
        elif length_class >= 10:
            row = length_class - 10
            indexes = (row * 256 + b, row * 16 + of.own_class)
            bits = LENGTH_BITS[length_class]
            length += self.read_mantissa(LENGTHS, self.length_mantissas, indexes, bits)
        if rank_class >= 11:
            row = rank_class - 11
            indexes = (row * 256 + b, row * 8 + of.own_rank)
            bits = RANK_BITS[rank_class]
            rank += self.read_mantissa(RANKS, self.rank_mantissas, indexes, bits)
        self.learn(of, length_class, rank_class, rank)
        return length, rank

    def learn(self, of: Symbol, length_class: int, rank_class: int, rank: int) -> None:
        """Section 6: the state after a run."""
        of.rank += 16 * min(40, rank - 1) - (of.rank >> 2)
        of.length += 16 * length_class - (of.length >> 2)
        self.mean_rank += 4 * min(20, rank - 1) - (self.mean_rank >> 3)
        of.last_run = self.runs
        self.runs += 1
        of.own_class = length_class
        of.own_rank = self.rank_step = STEPS[rank_class]
        of.own_steps = [STEPS[length_class], *of.own_steps[:2]]
        self.length_steps = [STEPS[length_class], *self.length_steps[:3]]

    def read_class(self, state: int, tables: list[Table], indexes: tuple[int, ...]) -> int:
        """Section 6: a class by four distributions."""
        chosen = [table[index] for table, index in zip(tables, indexes, strict=True)]
        return self.decoder.value(state, chosen)

    def read_mantissa(
        self, state: int, tables: list[Table], indexes: tuple[int, ...], bits: int
    ) -> int:
        """Section 7: a mantissa of some bits."""
        value = self.read_class(state, tables, indexes)
        if bits <= 4:
            return value % (1 << bits)
        return value << bits - 4 | self.decoder.number(state, bits - 4)

    def read_long(self) -> int:
        """Section 7: the mantissa of a length of class 15."""
        bits = 2 * self.decoder.number(LENGTHS, 4)
        high = self.decoder.number(LENGTHS, bits - 15) << 15 if bits > 15 else 0
        return high | (self.decoder.number(LENGTHS, min(15, bits)) if bits else 0)


def read_transform(coded: bytes, size: int) -> bytearray:
    """Section 2: segments until the sum of the lengths is K."""
    need(len(coded) > 0 and len(coded) >= coded[0] + 2, "bwt2: the symbols end")
    queue = list(coded[1 : coded[0] + 2])
    need(len(set(queue)) == len(queue), "bwt2: a symbol twice")
    given = set(queue)
    queue += [b for b in range(256) if b not in given]
    decoder = Decoder(coded[coded[0] + 2 :])
    model = Model(decoder)
    transform = bytearray()
    while len(transform) < size:
        decoder.start()
        for _ in range(65536):
            length, rank = model.read(queue[0])
            need(len(transform) + length <= size, "bwt2: runs are too long")
            transform += bytes([queue[0]]) * length
            queue.insert(rank, queue.pop(0))
            if len(transform) == size:
                break
        need(decoder.states == [65536, 65536], "bwt2: the states at the end of a segment")
    need(decoder.at == len(decoder.words), "bwt2: words are left over")
    return transform


def decode(data: bytes, raw_bytes: int, params: bytes) -> bytes:
    """Section 2."""
    return bwt.decode_with(read_transform, data, raw_bytes, params)
