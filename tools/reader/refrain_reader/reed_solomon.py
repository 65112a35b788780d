"""GF(2^16), and parity over it: recovery.md, section 4."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import cache

BASIS = [
    *(0x0001, 0xACCA, 0x3C0E, 0x163E, 0xC582, 0xED2E, 0x914C, 0x4012),
    *(0x6C98, 0x10D8, 0x6A72, 0xB900, 0xFDB8, 0xFB34, 0xFF38, 0x991E),
]
POLYNOMIAL = 0x1002D
# Of the group that multiplication makes of all elements but 0.
ORDER = 65535
# A slice has the low bytes of 32 elements, then their high bytes, and so on.
PLANE_BYTES = 32


@cache
def tables() -> tuple[array[int], array[int]]:
    """The logarithms of the elements, and the elements by their logarithms, to any base."""
    sums = array("H", [0])
    for element in BASIS:
        sums.extend([element ^ before for before in sums])
    element_of = array("H", bytes(2 << 16))
    for element, polynomial in enumerate(sums):
        element_of[polynomial] = element
    logs, powers = array("H", bytes(2 << 16)), array("H")
    power = 1
    for log in range(ORDER):
        powers.append(element_of[power])
        logs[element_of[power]] = log
        power <<= 1
        power ^= POLYNOMIAL if power >> 16 else 0
    return logs, powers


def product(a: int, b: int) -> int:
    """The product of two elements."""
    logs, powers = tables()
    return powers[(logs[a] + logs[b]) % ORDER] if a and b else 0


def products(factor: int, shift: int) -> tuple[bytes, bytes]:
    """The low and the high bytes of the products of `factor` with all `byte << shift`."""
    table = array("H", [0])
    for bit in range(8):
        step = product(factor, 1 << (bit + shift))
        table.extend([step ^ before for before in table])
    return bytes(value & 255 for value in table), bytes(value >> 8 for value in table)


def planes(row: bytes) -> tuple[bytes, bytes]:
    """The low bytes of all elements of a row, and their high bytes."""
    parts = [row[at : at + PLANE_BYTES] for at in range(0, len(row), PLANE_BYTES)]
    return b"".join(parts[::2]), b"".join(parts[1::2])


def number(data: bytes) -> int:
    """Bytes as a number, for sums of them."""
    return int.from_bytes(data, "little")


class Sum:
    """A sum of products of rows with elements."""

    def __init__(self, row_bytes: int) -> None:
        self.row_bytes = row_bytes
        self.low = self.high = 0

    def add(self, factor: int, row: tuple[bytes, bytes]) -> None:
        """Adds a product with the planes of a row."""
        if not factor:
            return
        for plane, shift in zip(row, (0, 8), strict=True):
            low, high = products(factor, shift)
            self.low ^= number(plane.translate(low))
            self.high ^= number(plane.translate(high))

    def planes(self) -> tuple[bytes, bytes]:
        """As those of a row."""
        half = self.row_bytes // 2
        return self.low.to_bytes(half, "little"), self.high.to_bytes(half, "little")

    def row(self) -> bytes:
        """The sum as a row."""
        low, high = self.planes()
        cuts = range(0, len(low), PLANE_BYTES)
        return b"".join(low[at : at + PLANE_BYTES] + high[at : at + PLANE_BYTES] for at in cuts)


class Code:
    """Some rows of data, and the rows of parity that belong to them."""

    def __init__(self, data_rows: int, parity_rows: int) -> None:
        self.data_rows = data_rows
        self.first = 1 << (parity_rows - 1).bit_length()
        self.scales: dict[int, int] = {}

    def scale(self, row: int) -> int:
        """The logarithm of s(b) for a data row."""
        logs, _ = tables()
        b = (self.first + row) & -self.first
        if b not in self.scales:
            above = sum(logs[b ^ v] for v in range(self.first))
            self.scales[b] = (above - sum(logs[1 : self.first])) % ORDER
        return self.scales[b]

    def coefficient(self, parity_row: int, row: int) -> int:
        """c(j, i)."""
        logs, powers = tables()
        return powers[(self.scale(row) - logs[(self.first + row) ^ parity_row]) % ORDER]

    def parity(
        self, wanted: list[int], rows: Iterable[tuple[int, bytes]], row_bytes: int
    ) -> dict[int, bytes]:
        """Rows of parity, from all rows of data that are not zero."""
        sums = {j: Sum(row_bytes) for j in wanted}
        self.add(sums, rows)
        return {j: found.row() for j, found in sums.items()}

    def add(self, sums: dict[int, Sum], rows: Iterable[tuple[int, bytes]]) -> None:
        """Adds the parts of data rows to sums of parity rows."""
        for i, row in rows:
            parts = planes(row)
            for j, found in sums.items():
                found.add(self.coefficient(j, i), parts)

    def restore(
        self,
        lost: list[int],
        parity: dict[int, bytes],
        rows: Iterable[tuple[int, bytes]],
        row_bytes: int,
    ) -> dict[int, bytes]:
        """As many lost rows of data as there is parity, from all other rows."""
        sums = {j: Sum(row_bytes) for j in parity}
        for j, row in parity.items():
            sums[j].add(1, planes(row))
        self.add(sums, rows)
        differences = {j: found.planes() for j, found in sums.items()}
        restored = {}
        for row, factors in self.inverse(lost, list(parity)).items():
            found = Sum(row_bytes)
            for factor, difference in zip(factors, differences.values(), strict=True):
                found.add(factor, difference)
            restored[row] = found.row()
        return restored

    def inverse(self, lost: list[int], parity: list[int]) -> dict[int, list[int]]:
        """Factors of parity rows for each lost row: Cauchy's formula, in logarithms."""
        logs, powers = tables()
        ys = [self.first + row for row in lost]
        ups = [
            sum(logs[x ^ y] for y in ys) - sum(logs[x ^ other] for other in parity if other != x)
            for x in parity
        ]
        found = {}
        for row, y in zip(lost, ys, strict=True):
            own = sum(logs[x ^ y] for x in parity)
            own -= sum(logs[y ^ other] for other in ys if other != y) + self.scale(row)
            pairs = zip(ups, parity, strict=True)
            found[row] = [powers[(up + own - logs[x ^ y]) % ORDER] for up, x in pairs]
        return found
