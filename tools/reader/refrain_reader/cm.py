"""Codec 8 (docs/codec-cm.md; section numbers are those of that document)."""

from __future__ import annotations

from functools import cache

from .arithmetic import Decoder
from .errors import need

U32 = (1 << 32) - 1
U64 = (1 << 64) - 1
K = 0x9E3779B185EBCA77
# Level: contexts, flag length, largest bits of lines.
LEVELS = {1: (8, 32, 20), 2: (11, 32, 21), 3: (16, 64, 22)}


def clamp(x: int, low: int, high: int) -> int:
    """The nearest number from `low` to `high`."""
    return low if x < low else high if x > high else x


def hash32(value: int, i: int) -> int:
    """Section 1: the hash of a value for context i."""
    value &= U64
    a = (value ^ value >> 29) + (i + 1) * 0xD6E8FEB86659FD93 & U64
    b = a * 0x9E3779B97F4A7C15 & U64
    return ((b ^ b >> 29) * 0xBF58476D1CE4E5B9 & U64) >> 32


@cache
def squash_table() -> list[int]:
    """Section 4.1: squash(x) at index x + 3071."""
    one = 1 << 60
    lower, f = [], one
    for _ in range(3072):
        lower.append(max(1, ((f << 16) + (one + f >> 1)) // (one + f)))
        f = f * 1148426689630428643 >> 60
    return lower[:0:-1] + [lower[0]] + [65536 - p for p in lower[1:]]


@cache
def stretch_table() -> list[int]:
    """Section 4.1: stretch(p) at index p >> 4."""
    squash = squash_table()
    table, x = [], -2047
    for step in range(4096):
        while x < 2047 and squash[x + 3071] < 16 * step + 8:
            x += 1
        table.append(x)
    return table


State = tuple[int, int, int]


def successor(state: State, bit: int) -> State:
    """Section 4.2: the state after a bit."""
    counts, recent = list(state[:2]), state[2]
    new = 2 * recent + bit
    if counts[bit] == 0:
        new = (1 - bit) * 2 + bit
    elif counts[1 - bit] == 0:
        new = 3 * bit
    counts[bit] += 1
    other = counts[1 - bit]
    for least, reduced in ((20, 6), (10, 5), (6, 4), (4, 3), (3, 2)):
        if other >= least:
            counts[1 - bit] = reduced
            break
    small = 0 if counts[0] <= counts[1] else 1
    counts[small] = min(counts[small], 4)
    counts[1 - small] = min(counts[1 - small], (48, 20, 10, 6, 5)[counts[small]])
    zeros, ones = counts
    if zeros == 0 or ones == 0:
        new = 0
    else:
        new %= 4 if zeros + ones <= 6 else 2
    return zeros, ones, new


@cache
def state_tables() -> tuple[list[State], list[tuple[int, int]]]:
    """Section 4.2: all states by number, and the numbers of their successors."""
    states: list[State] = [(0, 0, 0)]
    known = set(states)
    for state in states:
        for bit in (0, 1):
            following = successor(state, bit)
            if following not in known:
                known.add(following)
                states.append(following)
    states.sort(key=lambda state: state[0] + state[1])
    numbers = {state: number for number, state in enumerate(states)}
    nexts = [(numbers[successor(s, 0)], numbers[successor(s, 1)]) for s in states]
    return states, nexts


class Counters:
    """Section 1: a table of counters (q, k)."""

    def __init__(self, size: int, probability: int, count: int, limit: int) -> None:
        self.q = [64 * probability] * size
        self.k = [count] * size
        self.limit = limit

    def value(self, i: int) -> int:
        """The value of a counter, a probability."""
        return self.q[i] >> 6

    def update(self, i: int, bit: int) -> None:
        """Updates a counter with a bit."""
        target = (1 << 22) - 1 if bit else 0
        self.q[i] += ((target - self.q[i]) * (131072 // (2 * self.k[i] + 3))) >> 16
        if self.k[i] < self.limit:
            self.k[i] += 1


class Contexts:
    """Section 5: the context state and the values of the contexts."""

    def __init__(self, profile: int) -> None:
        self.profile = profile
        self.word = self.b1 = self.b2 = self.key = 0
        self.line = self.line_above = self.head = 0
        self.last = 0

    def update(self, v: int, n: int) -> None:
        """With a byte; `n` already includes it."""
        self.last = self.last << 8 & U64 | v
        if v >= 128 or v == 95 or chr(v).isalnum():
            self.word = (self.word + v + 1) * 0x2F0B4C47 & U32
        else:
            if self.word:
                self.b2, self.b1, self.word = self.b1, self.word, 0
            if v in b":=":
                self.key = self.b1
        if v == 10:
            self.line_above, self.line, self.head = self.line, n, 0
        elif n - self.line <= 4:
            self.head = 256 * self.head + v

    def values(self, history: bytearray) -> list[int]:
        """The values of all 16 contexts of the profile."""
        if self.profile == 0:
            return self.text(history)
        if self.profile == 1:
            return self.binary(len(history))
        return self.records(history)

    def text(self, history: bytearray) -> list[int]:
        """Profile 0."""
        n, last, word, b1 = len(history), self.last, self.word, self.b1
        o1, o2 = last & 0xFF, last & 0xFFFF
        at = self.line_above + n - self.line
        above = history[at] if at < self.line else 0
        column = min(255, n - self.line)
        return [
            o2,
            last & 0xFFFFFF,
            last & U32,
            last & 0xFFFFFFFFFFFF,
            (word << 8) + o1,
            last & 0xFFFFFFFFFF,
            word * K & U64 ^ b1 << 8 ^ o1,
            (above << 16) + o2,
            last & 0xFFFFFFFFFFFFFF,
            word << 8 ^ self.key << 32 ^ o1,
            word << 8 ^ self.head << 32,
            last & 0xFFFF00,
            (above << 16) + (column << 8) + o1,
            b1 * K & U64 ^ self.b2 << 8 ^ word << 20,
            last & 0xFFFFFF0000,
            (column << 8) + o1,
        ]

    def binary(self, n: int) -> list[int]:
        """Profile 1."""
        last, phase, o1 = self.last, n % 4, self.last & 0xFF
        return [
            last & 0xFFFF,
            last & 0xFFFFFF,
            last & U32,
            last & 0xFFFFFFFFFFFF,
            last & 0xFFFF00,
            (last & 0xFFFFF0FF) + (1 << 40),
            last & 0xF8F8F8F8F8F8,
            (last & 0xFF000000) + phase,
            (self.word << 8) + o1,
            last & 0xFFFFFFFFFF,
            (last & 0xFF0000) + phase + (1 << 40),
            last & 0xFFFF0000,
            (last & 0xFF0000FF00000000) + phase,
            last & 0xFF00FF00,
            last & 0xFFFFFF00,
            (phase << 8) + o1,
        ]

    def records(self, history: bytearray) -> list[int]:
        """Profile 2 to 255: records of this many bytes."""
        n, s, last = len(history), self.profile, self.last
        o1, o2, c = last & 0xFF, last & 0xFFFF, n % s
        p1 = history[n - s] if n >= s else 0
        p2 = history[n - 2 * s] if n >= 2 * s else 0
        return [
            o2,
            last & 0xFFFFFF,
            (c << 8) + p1,
            (p1 << 8) + p2,
            last & U32,
            (c << 16) + (p1 << 8) + o1,
            last & 0xFFFFFFFFFFFF,
            (p1 << 16) + o2,
            (c << 8) + o1,
            last & 0xFFFF00,
            (c << 16) + (p2 << 8) + p1,
            last & 0xFFFF0000,
            last & 0xFF000000,
            (p1 << 8) + o1,
            last & 0xFFFFFFFFFF,
            (self.word << 8) + o1,
        ]


class Match:
    """Section 7: a match model."""

    def __init__(self, minimum: int, width: int) -> None:
        self.minimum = minimum
        self.width = width
        self.table: dict[int, int] = {}
        self.candidate = self.source = self.length = self.misses = 0
        self.by_length = Counters(16 * 8 * 2, 32768, 0, 1023)
        self.by_byte = Counters(4 * 256 * 8, 32768, 0, 255)
        self.byte = -1
        self.muted = False

    def update(self, history: bytearray, flagged: bool) -> None:
        """With the latest byte of the history."""
        n, v = len(history), history[-1]
        if self.source:
            hit = history[self.source] == v
            self.misses = (2 * self.misses + (not hit)) % 256
            self.length = min(self.length + 1, 65535) if hit else 0
            self.source += 1
            if self.misses == 255:
                self.source = 0
        candidate, self.candidate = self.candidate, 0
        if not flagged:
            if candidate and self.length < self.minimum:
                self.compare(history, candidate + 1)
            if n >= self.minimum - 1:
                self.search(history)
        self.byte = history[self.source] if self.source else -1
        self.muted = False

    def compare(self, history: bytearray, candidate: int) -> None:
        """Step 2: follows the candidate if enough bytes before it are equal."""
        if candidate == self.source:
            return
        n, equal = len(history), 0
        while (
            equal < min(48, candidate) and history[candidate - 1 - equal] == history[n - 1 - equal]
        ):
            equal += 1
        if equal >= self.minimum:
            self.source, self.length, self.misses = candidate, equal, 0

    def search(self, history: bytearray) -> None:
        """Step 3: finds the slot, takes the next candidate, sets the slot."""
        n, x = len(history), 0
        for byte in history[n - self.minimum + 1 : n - 1]:
            x = (x + byte + 1) * 0x9E3779B97F4A7C15 & U64
            x ^= x >> 32
        slot = x % (1 << self.width - 4) * 16 + ((history[-1] * 0x9E3779B1 & U32) >> 28)
        if self.length < self.minimum:
            self.candidate = self.table.get(slot, 0)
        self.table[slot] = n

    @property
    def rank(self) -> int:
        """The class of the length."""
        if self.length < 16:
            return 1 + self.length // 4 if self.length else 0
        if self.length < 32:
            return 5 + (self.length - 16) // 8
        return min(15, 1 + self.length.bit_length())

    def bit(self, j: int, partial: int) -> int:
        """The predicted bit, or -1."""
        if self.byte < 0 or self.muted or (self.byte | 256) >> 8 - j != partial:
            return -1
        return self.byte >> 7 - j & 1

    def slots(self, j: int, bit: int) -> tuple[int, int]:
        """Indexes in both tables of counters."""
        rank, recent = self.rank, self.misses % 8
        return (rank * 8 + recent) * 2 + bit, (rank // 4 * 256 + self.byte) * 8 + j


class Buckets:
    """Section 6: lines of four buckets of a check and 15 states."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.lines: dict[int, list[list[int]]] = {}

    def find(self, h: int, m: int) -> list[int]:
        """The bucket of a hash; element 15 is its check."""
        line = self.lines.setdefault(h >> 32 - self.bits ^ 2 * m, [[0] * 16 for _ in range(4)])
        check = (h + 0x9D * m) % 256
        for bucket in line:
            if bucket[15] == check:
                return bucket
        bucket = min(line, key=lambda b: b[0])
        bucket[:] = [0] * 15 + [check]
        return bucket


class Model:
    """Sections 3 and 8 to 10: everything that predicts."""

    def __init__(self, level: int, profile: int, size: int) -> None:
        contexts, self.flag_length, bits = LEVELS[level]
        segments = segment_sizes(size)
        z = segments[0].bit_length()
        matches, groups = (1, 2) if level == 1 and len(segments) == 1 else (2, 3)
        self.direct = 1 << clamp(z, 8, 16)
        self.squash, self.stretch = squash_table(), stretch_table()
        self.states, self.nexts = state_tables()
        self.count = contexts
        self.contexts = Contexts(profile)
        self.buckets = Buckets(clamp(z + 2, 10, bits))
        self.matches = [Match((6, 20)[i], clamp(z, 10, 20)) for i in range(matches)]
        self.history = bytearray()
        self.hashes = [0] * contexts
        first = [
            min(65535, 65536 * (5 * ones + 1) // (5 * (zeros + ones) + 2)) * 65536
            for zeros, ones, _ in self.states
        ]
        self.state_p = [first[:] for _ in range(contexts)]
        inputs = contexts + 2 * matches + 4
        self.groups = [[[13107] * inputs for _ in range(rows)] for rows in (128, 256, 256)[:groups]]
        self.final = [[65536 // groups] * groups for _ in range(256)]
        self.order0 = Counters(256, 32768, 0, 255)
        self.order1 = Counters(self.direct, 32768, 0, 255)
        self.maps = [self.new_map(self.direct), self.new_map(4096)]
        self.flags = [Counters(s, 65000, 2, 1023) for s in (128, 4096, self.direct, self.direct)]
        self.flag_weights = [[16384] * 4 for _ in range(16)]

    def new_map(self, rows: int) -> Counters:
        """Section 8: rows of 16 counters."""
        table = Counters(rows * 16, 0, 6, 255)
        table.q = [64 * self.squash[256 * i - 1920 + 3071] for i in range(16)] * rows
        return table

    def guess(self) -> Match | None:
        """Section 7: the match model that gives the guess."""
        for match in reversed(self.matches):
            if match.byte >= 0 and match.length >= self.flag_length:
                return match
        return None

    def read_byte(self, decoder: Decoder) -> None:
        """Section 3."""
        match = self.guess()
        flagged = False
        if match is not None:
            byte = match.byte
            flagged = bool(self.read_flag(decoder, match))
            for other in self.matches:
                other.muted = other.byte == byte
        if not flagged:
            byte = self.read_bits(decoder)
        self.history.append(byte)
        self.contexts.update(byte, len(self.history))
        values = self.contexts.values(self.history)
        self.hashes = [hash32(values[i], i) for i in range(self.count)]
        for match in self.matches:
            match.update(self.history, flagged)

    def read_flag(self, decoder: Decoder, match: Match) -> int:
        """Section 10."""
        rank, guess = match.rank, match.byte
        last = self.contexts.last
        slots = (
            8 * rank + match.misses % 8,
            16 * guess + rank,
            (256 * (last & 255) + guess) % self.direct,
            hash32(256 * (last & 0xFFFFFF) + guess, 0) % self.direct,
        )
        tables = list(zip(self.flags, slots, strict=True))
        inputs = [self.stretch[table.value(slot) >> 4] for table, slot in tables]
        weights = self.flag_weights[rank]
        total = sum(t * w for t, w in zip(inputs, weights, strict=True)) >> 16
        p = self.squash[clamp(total, -3071, 3071) + 3071]
        bit = decoder.read(p)
        adapt(weights, inputs, 2 * ((65535 if bit else 0) - p))
        for table, slot in tables:
            table.update(slot, bit)
        return bit

    def read_bits(self, decoder: Decoder) -> int:
        """Section 3, steps 2 and 3: a byte in two nibbles."""
        partial = 1
        for nibble in range(2):
            m = 0 if nibble == 0 else partial
            known, buckets = 0, []
            for h in self.hashes:
                bucket = self.buckets.find(h, m)
                known += bucket[0] != 0
                buckets.append(bucket)
            known_class = 7 * known // self.count
            for i in range(4):
                j = 4 * nibble + i
                node = (1 << i) - 1 + (partial & (1 << i) - 1)
                bit = self.read_bit(decoder, j, partial, node, m, buckets, known_class)
                partial = 2 * partial + bit
        return partial - 256

    def read_bit(
        self,
        decoder: Decoder,
        j: int,
        partial: int,
        node: int,
        m: int,
        buckets: list[list[int]],
        known_class: int,
    ) -> int:
        """Sections 8 and 9: predicts a bit, reads it, updates the model."""
        stretch, squash = self.stretch, self.squash
        states = [bucket[node] for bucket in buckets]
        inputs = [
            stretch[p[state] >> 20] if state else 0
            for state, p in zip(states, self.state_p, strict=True)
        ]
        used: list[tuple[Counters, int]] = []
        largest = 0
        for match in self.matches:
            expected = match.bit(j, partial)
            if expected < 0:
                inputs += [0, 0]
                continue
            largest = max(largest, match.rank)
            slots = match.slots(j, expected)
            for table, slot in zip((match.by_length, match.by_byte), slots, strict=True):
                used.append((table, slot))
                inputs.append(stretch[table.value(slot) >> 4])
        o1 = self.contexts.last & 255
        slot1 = 256 * o1 % self.direct | partial
        a, b = self.order0.value(partial), self.order1.value(slot1)
        inputs += [stretch[a >> 4], stretch[b >> 4], (b - 32768) >> 5, 256]
        rows = [
            group[row]
            for group, row in zip(
                self.groups, (8 * largest + known_class, partial, o1), strict=False
            )
        ]
        outputs = [
            clamp(sum(t * w >> 10 for t, w in zip(inputs, row, strict=True)) >> 6, -3071, 3071)
            for row in rows
        ]
        final = self.final[partial]
        x = clamp(sum(o * v for o, v in zip(outputs, final, strict=True)) >> 16, -3071, 3071)
        mixed = squash[x + 3071]
        u = clamp(x, -1920, 1919) + 1920
        i, s = u >> 8, u & 255
        slots2 = (16 * slot1 + i, 16 * (16 * self.map_row(m) + node) + i)
        refined = 0
        for table, slot in zip(self.maps, slots2, strict=True):
            refined += (table.value(slot) * (256 - s) + table.value(slot + 1) * s) >> 8
        bit = decoder.read(clamp((2 * mixed + refined) >> 2, 1, 65535))
        target = 65535 if bit else 0
        adapt(final, outputs, 2 * (target - mixed))
        for row, output in zip(rows, outputs, strict=True):
            adapt(row, inputs, 10 * (target - squash[output + 3071]))
        for table, slot in zip(self.maps, slots2, strict=True):
            table.update(slot if s < 128 else slot + 1, bit)
        used += [(self.order0, partial), (self.order1, slot1)]
        for table, slot in used:
            table.update(slot, bit)
        self.update_states(states, buckets, node, bit)
        return bit

    def map_row(self, m: int) -> int:
        """Section 8: r of the second map."""
        if not self.history and m == 0:
            return 0
        return hash32((self.contexts.last & 0xFFFFFF) * 256 + (m or 1), 0) >> 24

    def update_states(
        self, states: list[int], buckets: list[list[int]], node: int, bit: int
    ) -> None:
        """Section 9: probabilities of the states, and the states in their buckets."""
        addition = (1 << 25) - 1 if bit else 0
        for p, state, bucket in zip(self.state_p, states, buckets, strict=True):
            p[state] += addition - (p[state] >> 7)
            bucket[node] = self.nexts[state][bit]


def adapt(weights: list[int], inputs: list[int], error: int) -> None:
    """Section 9: moves each weight by its input times an error."""
    for i, t in enumerate(inputs):
        changed = weights[i] + ((t * error + (1 << 17)) >> 18)
        weights[i] = clamp(changed, -524287, 524287)


def segment_sizes(size: int) -> list[int]:
    """Section 2: the lengths of the segments of a block."""
    return [size - size // 2, size // 2] if 1 << 24 <= size < 1 << 26 else [size]


def segments_data(data: bytes, count: int) -> list[bytes]:
    """Section 2: the data of each segment."""
    if count == 1:
        return [data]
    need(len(data) >= 4, "cm: the length of a segment")
    end = 4 + int.from_bytes(data[:4], "little")
    need(end <= len(data), "cm: the length of a segment")
    return [data[4:end], data[end:]]


def decode(data: bytes, raw_bytes: int, params: bytes) -> bytes:
    """Section 2."""
    level, profile = params[0], params[1]
    need(level in LEVELS, f"cm: level {level}")
    need(int.from_bytes(params[2:6], "little") == raw_bytes, "cm: Raw_Bytes")
    sizes = segment_sizes(raw_bytes)
    result = b""
    for size, part in zip(sizes, segments_data(data, len(sizes)), strict=True):
        decoder = Decoder(part)
        model = Model(level, profile, raw_bytes)
        for _ in range(size):
            model.read_byte(decoder)
        decoder.finish()
        result += model.history
    return result
