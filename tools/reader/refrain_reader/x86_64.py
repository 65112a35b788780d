"""Filter x86-64 (docs/filter-x86-64.md)."""

from __future__ import annotations

from collections.abc import Iterator

LENGTH_MAX = 15
DOUBTED = 17
PREFIXES_MAX = 7
PREFIXES = bytes.fromhex("26 2E 36 3E 64 65 66 67 F0 F2 F3")

# Operands: what follows ModRM and displacement.
NOTHING, BYTE, WORD, FULL, WIDE, ADDRESS, NEAR, TARGET, TEST_BYTE, TEST_FULL = range(10)
# A form: whether a ModRM byte follows, and the operand. `None` is an unlikely instruction.
Form = tuple[bool, int] | None


def members(text: str) -> Iterator[int]:
    """The numbers of a row: hexadecimal, a..b with both ends."""
    for word in text.split():
        first, _, last = word.partition("..")
        yield from range(int(first, 16), int(last or first, 16) + 1)


def table(rows: list[tuple[str, Form]], others: Form) -> list[Form]:
    """A table of 256 forms; the first row that has a byte decides."""
    forms = {}
    for text, form in rows:
        for byte in members(text):
            forms.setdefault(byte, form)
    return [forms.get(byte, others) for byte in range(256)]


def arithmetic() -> list[tuple[str, Form]]:
    """The rows of 00..3F by their low three bits."""
    forms = [(True, NOTHING)] * 4 + [(False, BYTE)] + [(False, FULL)] * 3
    return [(f"{byte:x}", forms[byte % 8]) for byte in range(0x40)]


ONE = table(
    [
        ("06 07 0E 16 17 1E 1F 26 27 2E 2F 36 37 3E 3F 60 61 64..67 6C..6F 82 9A..9F", None),
        ("C8 CA CB CD..CF D4..D7 E0..E7 EA EC..F5 F8..FD", None),
        *arithmetic(),
        ("69 81 C7", (True, FULL)),
        ("6B 80 83 C0 C1 C6", (True, BYTE)),
        ("63 84..8F D0..D3 D8..DF FE FF", (True, NOTHING)),
        ("68 A9", (False, FULL)),
        ("6A 70..7F A8 B0..B7 EB", (False, BYTE)),
        ("A0..A3", (False, ADDRESS)),
        ("B8..BF", (False, WIDE)),
        ("C2", (False, WORD)),
        ("E8 E9", (False, TARGET)),
        ("F6", (True, TEST_BYTE)),
        ("F7", (True, TEST_FULL)),
    ],
    (False, NOTHING),
)
TWO = table(
    [
        ("04..0B 0E 30..37 77 A0..A2 A8..AA C8..CF", (False, NOTHING)),
        ("80..8F", (False, NEAR)),
        ("0F 70..73 A4 AC BA C2 C4..C6", (True, BYTE)),
    ],
    (True, NOTHING),
)
VECTORS = table(
    [("77", (False, NOTHING)), ("70..73 C2 C4..C6", (True, BYTE))],
    (True, NOTHING),
)


def vector(map_number: int, opcode: int) -> Form:
    """A form of the table of vectors."""
    if map_number == 1:
        return VECTORS[opcode]
    return (True, BYTE if map_number == 3 else NOTHING)


def find_form(code: bytes) -> tuple[Form, int]:
    """The form of the opcode at the start, and the bytes of the opcode."""
    first = code[0]
    if first == 0x0F:
        if code[1] == 0x38:
            return (True, NOTHING), 3
        if code[1] == 0x3A:
            return (True, BYTE), 3
        return TWO[code[1]], 2
    if first == 0xC5:
        return vector(1, code[2]), 3
    if first == 0xC4:
        return vector(code[1] & 0x1F, code[3]), 4
    if first == 0x62:
        if code[1] & 0x0C:
            return None, 1
        return vector(code[1] & 3, code[4]), 5
    return ONE[first], 1


def instruction(code: bytes) -> tuple[int, int | None, bool]:
    """Of 15 bytes: the length, where the relative operand is, and whether it is unlikely."""
    at = 0
    short = wide = False
    while at < PREFIXES_MAX and code[at] in PREFIXES:
        short = short or code[at] == 0x66
        at += 1
    if 0x40 <= code[at] <= 0x4F:
        wide = bool(code[at] & 8)
        at += 1
    form, size = find_form(code[at:])
    at += size
    if form is None:
        return at, None, True
    has_modrm, operand = form
    relative = None
    register = 0
    if has_modrm:
        mode, register, base = code[at] >> 6, code[at] >> 3 & 7, code[at] & 7
        at += 1
        has_sib = mode != 3 and base == 4
        if has_sib:
            base = code[at] & 7
            at += 1
        if mode == 0 and base == 5:
            relative = None if has_sib else at
            at += 4
        else:
            at += (0, 1, 4, 0)[mode]
    full = 2 if short else 4
    if operand == TARGET:
        relative = at
    at += {
        NOTHING: 0,
        BYTE: 1,
        WORD: 2,
        FULL: full,
        WIDE: 8 if wide else full,
        ADDRESS: 8,
        NEAR: 4,
        TARGET: 4,
        TEST_BYTE: 1 if register < 2 else 0,
        TEST_FULL: full if register < 2 else 0,
    }[operand]
    if at > LENGTH_MAX:
        return 1, None, True
    return at, relative, False


def operands(data: bytes) -> Iterator[tuple[int, int]]:
    """Where the relative operands of code are, and the positions from which they count."""
    position = doubted = 0
    while position + LENGTH_MAX <= len(data):
        start = position
        length, relative, unlikely = instruction(bytes(data[start : start + LENGTH_MAX]))
        position += length
        if unlikely:
            doubted = DOUBTED
        if doubted:
            doubted -= 1
        elif relative is not None:
            yield start + relative, position


def undo(data: bytes) -> bytes:
    """The bytes before the filter."""
    out = bytearray(data)
    for at, position in operands(data):
        number = int.from_bytes(out[at : at + 4], "big") - position
        out[at : at + 4] = (number % (1 << 32)).to_bytes(4, "little")
    return bytes(out)
