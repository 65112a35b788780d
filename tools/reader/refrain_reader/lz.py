"""Codec 9 (docs/codec-lz.md; section numbers are those of that document)."""

from __future__ import annotations

from .errors import need

SCALE = 4096
CHUNK_BYTES = 1 << 20
INTERVAL_MAX = 512
TOTAL_MAX = 4096
RANS_MIN = 1 << 31


class Words:
    """Section 3: words and the two states that they feed."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.next = 0
        self.states = [self.word() | self.word() << 32 for _ in range(2)]

    def word(self) -> int:
        """The next word; 0 after the end, which `finished` detects."""
        word = int.from_bytes(self.data[self.next : self.next + 4], "little")
        self.next += 4
        return word

    def refill(self, index: int, state: int) -> None:
        """Section 3: sets a state, after taking a word if it is small."""
        self.states[index] = state << 32 | self.word() if state < RANS_MIN else state

    def remove(self, index: int, frequency: int, start: int) -> None:
        """Section 3: removes a symbol."""
        state = self.states[index]
        self.refill(index, frequency * (state >> 12) + state % SCALE - start)

    def few(self, index: int, count: int) -> int:
        """Section 3: at most 16 plain bits."""
        state = self.states[index]
        self.refill(index, state >> count)
        return state % (1 << count)

    def plain(self, index: int, count: int) -> int:
        """Section 3: plain bits."""
        if count <= 16:
            return self.few(index, count)
        high = self.few(index, count - 16)
        return high << 16 | self.few(index, 16)

    def finished(self) -> bool:
        """Whether everything was used."""
        return self.next == len(self.data) and self.states == [RANS_MIN, RANS_MIN]


class Table:
    """Section 4: frequencies of one context, or of the base of a family."""

    def __init__(self, symbols: int, is_base: bool) -> None:
        self.is_base = is_base
        self.counts = [int(is_base)] * symbols
        self.escapes = 0
        self.frequencies = [0] * symbols
        self.escape_start = 0
        self.slots: list[int] = []
        self.left = self.interval = 8
        if is_base:
            self.compute()

    def compute(self) -> int:
        """Section 4.2: computes the frequencies; returns the total."""
        escapes = 0 if self.is_base else self.escapes + 1
        total = sum(self.counts) + escapes
        different = sum(count > 0 for count in self.counts) + (not self.is_base)
        factor = (SCALE - different << 32) // total
        self.frequencies = [1 + (c * factor >> 32) if c else 0 for c in self.counts]
        escape = 0 if self.is_base else 1 + (escapes * factor >> 32)
        self.escape_start = SCALE - escape
        most = self.counts.index(max(self.counts))
        self.frequencies[most] += self.escape_start - sum(self.frequencies)
        self.starts, self.slots = [], []
        for symbol, frequency in enumerate(self.frequencies):
            self.starts.append(len(self.slots))
            self.slots += [symbol] * frequency
        return total

    def count(self, symbol: int) -> None:
        """Section 4.2: counts a symbol."""
        self.counts[symbol] += 1
        self.left -= 1
        if self.left == 0:
            self.interval = self.left = min(2 * self.interval, INTERVAL_MAX)
            if self.compute() >= TOTAL_MAX:
                self.counts = [max(c // 2, int(self.is_base)) for c in self.counts]
                self.escapes //= 2

    def read(self, words: Words, index: int) -> int:
        """A symbol that is not an escape."""
        symbol = self.slots[words.states[index] % SCALE]
        words.remove(index, self.frequencies[symbol], self.starts[symbol])
        self.count(symbol)
        return symbol


class Family:
    """Section 4: the tables of one kind of symbols."""

    def __init__(self, contexts: int, symbols: int) -> None:
        self.base = Table(symbols, True)
        self.tables = [Table(symbols, False) for _ in range(contexts)]

    def read(self, words: Words, index: int, context: int) -> int:
        """Section 4.1: a symbol."""
        table = self.tables[context]
        if words.states[index] % SCALE < table.escape_start:
            return table.read(words, index)
        words.remove(index, SCALE - table.escape_start, table.escape_start)
        table.escapes += 1
        symbol = self.base.read(words, index)
        table.count(symbol)
        return symbol


def class_start(symbol: int) -> tuple[int, int]:
    """Section 5: the smallest number of a class and its plain bits."""
    if symbol < 8:
        return symbol, 0
    bits = symbol // 4 - 1
    return (4 + symbol % 4) << bits, bits


class Block:
    """Section 2: the state that lasts from chunk to chunk."""

    def __init__(self, params: bytes) -> None:
        self.previous_bits, self.expected_bits, self.position_bits = params
        self.literals = Family((1 << self.previous_bits) + (1 << self.expected_bits), 256)
        self.commands = Family(12 << self.position_bits, 256)
        self.lengths = Family(5, 80)
        self.distances = Family(4, 116)
        self.lows = Family(1, 16)
        self.recent = [1, 2, 3]
        self.command_context = 0
        self.out = bytearray()

    def at(self, distance: int) -> int:
        """The byte `distance` bytes before the end of the output; 0 before its start."""
        return self.out[-distance] if distance <= len(self.out) else 0

    def chunk(self, commands: Words, literals: Words, end: int) -> None:
        """Section 6: decodes a chunk that ends at position `end`."""
        state = 0
        while len(self.out) < end:
            symbol = self.commands.read(commands, 0, self.command_context)
            run, kind, code = symbol >> 6, symbol >> 4 & 3, symbol & 15
            if run == 3:
                run += self.number(commands, 0)
            length = code + (2 if kind == 3 else 1)
            if code == 15:
                length += self.number(commands, 1 + kind)
            need(run <= end - len(self.out), "lz: literals outside the block")
            for index in range(run):
                context = self.literal_context(index == 0)
                self.out.append(self.literals.read(literals, state, context))
                state ^= 1
            if len(self.out) < end:
                self.match(commands, kind, code, length, end)

    def literal_context(self, is_first: bool) -> int:
        """Section 6.2."""
        if is_first:
            expected = self.at(self.recent[0])
            return (1 << self.previous_bits) + (expected >> 8 - self.expected_bits)
        return self.at(1) >> 8 - self.previous_bits

    def match(self, words: Words, kind: int, code: int, length: int, end: int) -> None:
        """Section 6.3."""
        distance = self.distance(words, code) if kind == 3 else self.recent.pop(kind)
        self.recent = [distance, *self.recent][:3]
        need(length <= end - len(self.out), "lz: a match outside the block")
        need(distance <= len(self.out), "lz: a match before the block")
        for _ in range(length):
            self.out.append(self.out[-distance])
        size = 0 if code < 3 else 1 if code < 12 else 2
        position = len(self.out) % (1 << self.position_bits)
        self.command_context = (3 * kind + size << self.position_bits) + position

    def number(self, words: Words, context: int) -> int:
        """Section 5: the rest of a length."""
        start, bits = class_start(self.lengths.read(words, 1, context))
        return start + words.plain(1, bits)

    def distance(self, words: Words, code: int) -> int:
        """Section 6.3: a new distance."""
        start, bits = class_start(self.distances.read(words, 1, min(code, 3)))
        if bits < 4:
            return 1 + start + words.plain(1, bits)
        high = words.plain(1, bits - 4)
        return 1 + start + 16 * high + self.lows.read(words, 1, 0)


def decode(data: bytes, raw_bytes: int, params: bytes) -> bytes:
    """Section 2: the block."""
    need(max(params[:2]) <= 8 and params[2] <= 4, "lz: parameters")
    block = Block(params)
    position = 0
    while len(block.out) < raw_bytes:
        inputs = []
        for _ in range(2):
            count = 4 * int.from_bytes(data[position : position + 4], "little")
            position += 4
            need(position + count <= len(data), "lz: the data ends")
            inputs.append(Words(data[position : position + count]))
            position += count
        literals, commands = inputs
        block.chunk(commands, literals, min(raw_bytes, len(block.out) + CHUNK_BYTES))
        need(all(words.finished() for words in inputs), "lz: the end of a chunk")
    need(position == len(data), "lz: bytes after the end")
    return bytes(block.out)
