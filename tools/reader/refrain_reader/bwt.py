"""Codec 7 (docs/codec-bwt.md; section numbers are those of that document)."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable
from functools import cache

from .arithmetic import Decoder
from .errors import need

U32 = (1 << 32) - 1
U64 = (1 << 64) - 1


def hash16(a: int, b: int) -> int:
    """Section 1: hash(a, b), 16 bits."""
    mixed = (a * 0x9E3779B1 ^ b * 0x85EBCA6B) & U32
    return (mixed * 0xC2B2AE35 & U32) >> 16


def near(h: int, i: int, n: int) -> int:
    """Section 1: a slot near that of hash `h`, 16 bits."""
    return (h - h % (1 << n) + i % (1 << n) ^ (i >> n) * 40503 << n) & 0xFFFF


@cache
def squash_table() -> list[int]:
    """Section 4.1: squash(x) at index x + 2048."""
    upper, odds = [], 1 << 62
    for _ in range(2049):
        upper.append((1 << 78) // ((1 << 62) + odds))
        odds = odds * 4593706758521714574 >> 62
    lower = [65536 - upper[x] for x in range(2048, 0, -1)]
    return lower + upper[:2048]


@cache
def step_tables(rate: int) -> tuple[list[int], list[int]]:
    """Section 4.1: step0 and step1 of a rate, at index k + 512."""
    odds = [0] * 1024
    value = 71496837392306472
    for k in range(512):
        odds[512 + k], odds[511 - k] = value, (1 << 112) // value
        value = value * 70940444589522213 >> 56
    step1 = []
    powers = power_table()
    for k in range(-512, 512):
        ratio = ((1 << rate + 56) + odds[k + 512]) // ((1 << rate) - 1)
        largest = bisect_powers(powers, ratio)
        step1.append(min(largest, 32704 - 64 * k))
    step0 = [-step1[-1 - k + 512] for k in range(-512, 512)]
    return step0, step1


@cache
def power_table() -> list[int]:
    """Section 4.1: t(j), as far as steps can need it."""
    powers = [1 << 56]
    while len(powers) < 70000:
        powers.append(powers[-1] * 72075188371630773 >> 56)
    return powers


def bisect_powers(powers: list[int], ratio: int) -> int:
    """The largest j with powers[j] <= ratio."""
    low, high = 0, len(powers)
    while low + 1 < high:
        middle = (low + high) // 2
        if powers[middle] <= ratio:
            low = middle
        else:
            high = middle
    return low


class Predictor:
    """Section 4.2."""

    def __init__(self, rates: tuple[int, ...], sets: int, maps: int) -> None:
        inputs = len(rates)
        self.steps = [step_tables(rate) for rate in rates]
        self.counters = [[0] * 65536 for _ in rates]
        self.weights = [[16384 // (inputs + 2)] * inputs for _ in range(sets)]
        squash = squash_table()
        first = [squash[128 * k - 1984 + 2048] for k in range(32)]
        self.maps = [first[:] for _ in range(maps)]
        self.squash = squash

    def read(self, decoder: Decoder, slots: tuple[int, ...], row: int, column: int) -> int:
        """One decision with slots of the counters, a set of weights and a map."""
        inputs = [table[slot] for table, slot in zip(self.counters, slots, strict=True)]
        weights = self.weights[row]
        total = sum(c * w for c, w in zip(inputs, weights, strict=True)) & U32
        if total >> 31:
            total -= 1 << 32
        x = max(-32768, min(32767, total >> 13)) >> 4
        mixed = self.squash[x + 2048]
        chosen = self.maps[column]
        k = (x + 2048) >> 7
        bit = decoder.read((mixed + chosen[k]) >> 1)
        target = 65535 if bit else 0
        error = (target - mixed) >> 1
        chosen[k] += (target - chosen[k]) >> 6
        for i, c in enumerate(inputs):
            changed = weights[i] + (((c * error >> 16) + 16) >> 5)
            weights[i] = max(-32768, min(32767, changed))
            self.counters[i][slots[i]] = c + self.steps[i][bit][(c >> 6) + 512]
        return bit


class Tree:
    """Section 5: the symbol tree."""

    def __init__(self, decoder: Decoder) -> None:
        exponents = self.read_shape(decoder)
        heap = [(1 << exponent, symbol) for symbol, exponent in enumerate(exponents)]
        heapq.heapify(heap)
        self.children: dict[int, tuple[int, int]] = {}
        for j in range(255):
            first, second = heapq.heappop(heap), heapq.heappop(heap)
            self.children[256 + j] = (first[1], second[1])
            heapq.heappush(heap, (first[0] + second[0], 256 + j))
        self.codes: list[list[int]] = [[] for _ in range(256)]
        self.walk(510, [])

    @staticmethod
    def read_shape(decoder: Decoder) -> list[int]:
        """The weight exponents of all byte values."""
        table = [[32768] * 16 for _ in range(16)]
        exponents: list[int] = []
        for symbol in range(256):
            row = table[exponents[symbol - 1] if symbol else 0]
            column = 1
            for _ in range(4):
                q = row[column]
                bit = decoder.read(q)
                row[column] = (7 * q + (65280 if bit else 256)) >> 3
                column = 2 * column + bit
            exponents.append(column - 16)
        return exponents

    def walk(self, item: int, code: list[int]) -> None:
        """Notes the codes of all leaves below `item`."""
        if item < 256:
            self.codes[item] = code
            return
        for bit, child in enumerate(self.children[item]):
            self.walk(child, [*code, bit])

    def expectation(self, symbol: int, path: list[int]) -> int:
        """Section 7.1: 0, or 1 + the next decision of the code of a guess."""
        code = self.codes[symbol][:21]
        code = code + [0] * (len(path) + 1 - len(code))
        return 1 + code[len(path)] if code[: len(path)] == path else 0


class Runs:
    """Sections 6 and 7: the state, and the runs that are read with it."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.tree = Tree(decoder)
        self.repeat = Predictor((4, 4, 4, 4), 64, 64)
        self.symbol = Predictor((4, 4, 4, 5), 256, 256)
        self.exponent = Predictor((5, 5, 5), 128, 256)
        self.mantissa = Predictor((5, 5, 5), 128, 512)
        self.recency = list(range(32))
        self.symbols = [0, 0]
        self.ranks = [0, 0, 0]
        self.exponents = [0, 0, 0]
        self.last = [0] * 256
        self.mean = [0] * 256
        self.mean_rank = self.slow_mean_rank = 0
        self.decisions = [0] * 255
        self.plain_p = [32768] * 255

    def next(self) -> tuple[int, int]:
        """Symbol and length of the next run."""
        plain = self.slow_mean_rank > 1600
        symbol = self.read_plain_symbol() if plain else self.read_symbol()
        rank = self.recency.index(symbol) if symbol in self.recency else 32
        del self.recency[min(rank, 31)]
        self.recency.insert(0, symbol)
        self.symbols = [symbol, self.symbols[0]]
        self.ranks = [rank, *self.ranks[:2]]
        self.mean_rank += 4 * rank - (self.mean_rank >> 3)
        self.slow_mean_rank += rank - (self.slow_mean_rank >> 6)
        length = self.read_length(symbol, rank)
        x = length.bit_length() - 1
        self.exponents = [x, *self.exponents[:2]]
        self.last[symbol] = x
        self.mean[symbol] += 64 * x - (self.mean[symbol] >> 2)
        return symbol, length

    def read_symbol(self) -> int:
        """Section 7.1."""
        candidate = self.recency[1]
        r1, r2, r3 = (min(rank, 15) for rank in self.ranks)
        e, last = min(self.exponents[0], 7), min(self.last[candidate], 7)
        slots = (
            r3 * 256 + r2 * 16 + r1,
            candidate * 256 + self.recency[0],
            min(self.mean_rank >> 4, 63) * 64 + last * 8 + e,
            hash16(candidate * 65536 + min(r1, 7) * 256 + last, 3),
        )
        row = min(e, 3) * 16 + min(r1, 3) * 4 + min(r2, 3)
        if self.repeat.read(self.decoder, slots, row, e * 8 + min(r1, 7)):
            return candidate
        return self.descend()

    def descend(self) -> int:
        """Section 7.1: from the root to a leaf."""
        item, path = 510, []
        guesses = self.recency[2:5]
        h = hash16(self.symbols[1] * 256 + self.symbols[0], 7)
        while item >= 256:
            v, depth = 510 - item, len(path)
            x, y, z = (self.tree.expectation(guess, path) for guess in guesses)
            slots = (
                self.symbols[0] * 256 + v,
                near(h, v, 5),
                (9 * x + 3 * y + z) * 256 + v,
                v * 256 + self.decisions[v],
            )
            bit = self.symbol.read(self.decoder, slots, 9 * min(depth, 15) + 3 * x + y, v)
            self.decisions[v] = (2 * self.decisions[v] + bit) % 256
            path.append(bit)
            item = self.tree.children[item][bit]
        return item

    def read_plain_symbol(self) -> int:
        """Section 7.2."""
        item = 510
        while item >= 256:
            v = 510 - item
            bit = self.decoder.read(max(1, self.plain_p[v]))
            self.plain_p[v] += ((65535 if bit else 0) - self.plain_p[v]) >> 7
            item = self.tree.children[item][bit]
        return item

    def read_length(self, b: int, rank: int) -> int:
        """Section 7.3."""
        r = min(rank, 7)
        e1, e2, e3 = (min(exponent, 15) for exponent in self.exponents)
        last, a = min(self.last[b], 15), min(self.mean[b] >> 5, 63)
        h = hash16(b * 256 + a, min(rank, 2))
        x = 0
        while x < 30:
            s = min(x, 15)
            slots3 = (
                b * 256 + s * 16 + last,
                s * 4096 + e3 * 256 + e2 * 16 + e1,
                near(h, s, 2),
            )
            if not self.exponent.read(self.decoder, slots3, s * 8 + r, s * 16 + last):
                break
            x += 1
        length, s = 1, min(x, 15)
        for j in range(x):
            if j > 2:
                length = 2 * length + self.decoder.read(32768)
                continue
            g = length
            slots3 = (
                x * 16 + g,
                b * 256 + s * 16 + g,
                s * 4096 + last * 256 + e1 * 16 + g,
            )
            length = 2 * g + self.mantissa.read(self.decoder, slots3, x * 4 + j, x * 16 + g)
        return length


def read_transform(coded: bytes, size: int) -> bytearray:
    """Section 2: runs until the sum of their lengths is K."""
    decoder = Decoder(coded)
    runs = Runs(decoder)
    transform = bytearray()
    while len(transform) < size:
        symbol, length = runs.next()
        need(len(transform) + length <= size, "bwt: runs are too long")
        transform += bytes([symbol]) * length
    decoder.finish()
    return transform


def invert(transform: bytearray, primary: int) -> bytearray:
    """Section 8: from the last byte of the text to its first."""
    size = len(transform)
    counts = [0] * 257
    for byte in transform:
        counts[byte + 1] += 1
    first = [1]
    for byte in range(255):
        first.append(first[-1] + counts[byte + 1])
    step = array("L", bytes(size * array("L").itemsize))
    for index, byte in enumerate(transform):
        step[index] = first[byte]
        first[byte] += 1
    text = bytearray(size)
    row = 0
    for at in range(size - 1, -1, -1):
        index = row if row < primary else row - 1
        text[at] = transform[index]
        row = step[index]
        if row == primary and at:
            break  # not a transform; the checksum of the block tells
    return text


def byte_numbers() -> list[int]:
    """Section 9: w(b) of every byte value."""
    numbers = []
    for b in range(256):
        z = (b + 1) * 0x9E3779B97F4A7C15 & U64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & U64
        z = (z ^ z >> 27) * 0x94D049BB133111EB & U64
        numbers.append(z >> 32)
    return numbers


def read_number(reduced: bytes, at: int) -> tuple[int, int]:
    """Section 9: a number and the position behind it."""
    value = 0
    for i in range(5):
        need(at + i < len(reduced), "bwt: the reduced text ends")
        value |= (reduced[at + i] & 0x7F) << 7 * i
        if reduced[at + i] < 0x80:
            return value, at + i + 1
    need(False, "bwt: a number has more than 5 bytes")
    return 0, at


def restore(reduced: bytes, size: int, escape: int) -> bytes:
    """Section 9: inserts the repeats."""
    w = byte_numbers()
    bits = max(8, min(22, size.bit_length() - 6))
    table: dict[int, tuple[int, int]] = {}
    block = bytearray(reduced[:32])
    at = len(block)
    h, hashed_to = 0, -1
    while len(block) < size:
        p = len(block)
        need(at < len(reduced), "bwt: the reduced text ends")
        if hashed_to == p - 1 and p:
            h = (2 * h + w[block[-1]]) & U32
        else:
            h = 0
            for byte in block[-32:]:
                h = (2 * h + w[byte]) & U32
        hashed_to = p
        byte = reduced[at]
        at += 1
        source = None
        if h < 1 << 28:
            index = (h * 0x9E3779B1 & U32) >> (32 - bits)
            entry = table.get(index)
            source = entry[1] if entry and entry[0] == h else None
            table[index] = (h, p)
        if source is None or byte != escape:
            block.append(byte)
            continue
        number, at = read_number(reduced, at)
        if number == 0:
            block.append(escape)
            continue
        need(p + number + 95 <= size, "bwt: a repeat exceeds the block")
        for i in range(number + 95):
            block.append(block[source + i])
    need(at == len(reduced), "bwt: the reduced text does not end")
    return bytes(block)


def decode(data: bytes, raw_bytes: int, params: bytes) -> bytes:
    """Section 2."""
    return decode_with(read_transform, data, raw_bytes, params)


def decode_with(
    read: Callable[[bytes, int], bytearray], data: bytes, raw_bytes: int, params: bytes
) -> bytes:
    """Section 2, with what reads a transform of K bytes from Coded."""
    escape, size = params[0], int.from_bytes(params[1:5], "little")
    need(1 <= size <= raw_bytes, "bwt: Reduced_Bytes")
    need(size < raw_bytes or escape == 0, "bwt: Escape")
    power = 1 << (size - 1).bit_length()
    distance = max(65536, power // 64)
    count = -(-size // distance)
    need(len(data) >= 4 * count, "bwt: the rows end")
    rows = [int.from_bytes(data[4 * i : 4 * i + 4], "little") for i in range(count)]
    need(all(1 <= row <= size for row in rows), "bwt: a row")
    text = invert(read(data[4 * count :], size), rows[0])
    return bytes(text) if size == raw_bytes else restore(bytes(text), raw_bytes, escape)
