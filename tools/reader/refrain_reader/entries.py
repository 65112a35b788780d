"""Entries (section 4.4)."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import limits
from .coding import decode
from .cursor import Cursor, moved, signed64, unzigzag
from .errors import Damaged, Unsupported, need, within
from .frames import Frame, checksum
from .heads import EntriesHead

(
    FILE,
    DIRECTORY,
    SYMLINK,
    HARDLINK,
    CHARACTER,
    BLOCK_DEVICE,
    PIPE,
    OTHER,
    RAW,
) = range(1, 10)
REBASED = 11
WITH_DATA = {FILE, OTHER, RAW}
WITH_LINK = {SYMLINK, HARDLINK}
WITH_DEVICE = {CHARACTER, BLOCK_DEVICE}
NANOSECONDS = 10**9
COLUMNS = 18


@dataclass(frozen=True)
class Class:
    """What many entries have in common; `attributes` are names and values, ascending."""

    kind: int
    mode: int
    user_id: int = 0
    group_id: int = 0
    user: bytes = b""
    group: bytes = b""
    attributes: tuple[tuple[bytes, bytes], ...] = ()


@dataclass
class Entry:
    """An entry; `ranges` is None if all of it is data, `time` is (seconds, nanoseconds)."""

    path: bytes = b""
    meta: Class | None = None
    time: tuple[int, int] = (0, 0)
    size: int = 0
    offset: int = 0
    step: int = 0
    ranges: tuple[tuple[int, int], ...] | None = None
    link: bytes = b""
    device: tuple[int, int] = (0, 0)
    recipe: bytes = b""
    starts_frame: bool = False

    @property
    def kind(self) -> int:
        """Entry_Kind without rebasing, 0 for the entry before the first."""
        kind = self.meta.kind if self.meta else 0
        return FILE if kind == REBASED else kind

    @property
    def is_rebased(self) -> bool:
        """Whether its content is a file with rebased machine code."""
        return self.meta is not None and self.meta.kind == REBASED

    @property
    def content_bytes(self) -> int:
        """Bytes of content: without holes."""
        if self.ranges is None:
            return self.size
        return sum(count for _, count in self.ranges)


@dataclass(frozen=True)
class Shape:
    """The code of a shape, in its fields."""

    reference: int
    path: int
    meta: int
    size: int
    recipe: int
    time: int
    offset: int
    link: int
    ranges: int


def parse_shape(code: int, name: str) -> Shape:
    """Values that are not listed are unsupported."""
    shape = Shape(
        code & 3,
        code >> 2 & 1,
        code >> 3 & 1,
        code >> 4 & 1,
        code >> 5 & 1,
        code >> 6 & 7,
        code >> 9 & 7,
        code >> 12 & 3,
        code >> 14 & 3,
    )
    known = shape.reference < 3 and shape.time < 5 and shape.offset < 5
    if not known or shape.link > 2 or shape.ranges > 2:
        raise Unsupported(f"{name}: shape {code:#06x}")
    return shape


def common_prefix(a: bytes, b: bytes) -> int:
    """Length of the longest common prefix."""
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count


def common_suffix(a: bytes, b: bytes) -> int:
    """Length of the longest common suffix."""
    return common_prefix(a[::-1], b[::-1])


def without_common_suffix(a: bytes, b: bytes) -> tuple[bytes, bytes]:
    """What is before it in both."""
    count = common_suffix(a, b)
    return a[: len(a) - count], b[: len(b) - count]


def read_columns(raw: bytes, name: str) -> dict[int, Cursor]:
    """The columns of a section; those without bytes are left out."""
    cursor = Cursor(raw, name)
    sizes: list[tuple[int, int]] = []
    for _ in range(cursor.varint()):
        number, size = cursor.varint(), cursor.varint()
        need(number > (sizes[-1][0] if sizes else 0), f"{name}: order of columns")
        need(size >= 1, f"{name}: column {number} is empty")
        if COLUMNS < number < 64:
            raise Unsupported(f"{name}: column {number}")
        sizes.append((number, size))
    found = {n: Cursor(cursor.take(size), f"{name}, column {n}") for n, size in sizes}
    cursor.end()
    return {n: found.get(n, Cursor(b"", f"{name}, column {n}")) for n in range(1, COLUMNS + 1)}


@dataclass
class Tables:
    """What classes refer to, in the order of definition."""

    classes: list[Class] = field(default_factory=list)
    owners: list[tuple[int, int, bytes, bytes]] = field(default_factory=list)
    attributes: list[tuple[tuple[bytes, bytes], ...]] = field(default_factory=list)


class Unpacker:
    """Decodes the entries of one frame, in order."""

    def __init__(self, raw: bytes, count: int, name: str) -> None:
        self.name = name
        self.count = count
        self.column = read_columns(raw, name)
        self.shapes: list[Shape] = []
        self.codes: list[int] = []
        self.tables = Tables()
        self.entries: list[Entry] = []
        self.expected: int | None = None
        self.replacement: tuple[bytes, bytes] | None = None
        self.own_time = (0, 0)
        self.latest_end = 0
        self.bytes = 0

    def run(self) -> list[Entry]:
        """All entries; every column must be used up."""
        for number in range(self.count):
            self.entries.append(self.entry(number))
            within(self.bytes, limits.ENTRY_BYTES_PER_FRAME_MAX, "bytes of entries of a frame")
        for column in self.column.values():
            column.end()
        return self.entries

    def shape(self) -> Shape:
        """Columns 1 and 2."""
        number = self.column[1].varint()
        need(number <= len(self.shapes), f"{self.name}: order of shapes")
        if number == len(self.shapes):
            code = self.column[2].fixed(2)
            need(code not in self.codes, f"{self.name}: a shape occurs twice")
            self.codes.append(code)
            self.shapes.append(parse_shape(code, self.name))
        return self.shapes[number]

    def reference(self, shape: Shape, number: int) -> int:
        """The number of the reference; -1 for the first entry."""
        previous = number - 1
        expected = previous if self.expected is None else self.expected
        if number == 0:
            need(shape.reference == 0, f"{self.name}: the first entry has a reference")
            return -1
        if shape.reference == 1:
            self.not_predicted(previous == expected, "a reference")
            return previous
        chosen = expected
        if shape.reference == 2:
            chosen = moved(expected, unzigzag(self.column[3].varint()))
            self.not_predicted(chosen in (expected, previous), "a reference")
        need(chosen < number, f"{self.name}: a reference to a later entry")
        self.expected = chosen + 1
        return chosen

    def not_predicted(self, predicted: bool, what: str) -> None:
        """A field that is as predicted must not be stated otherwise."""
        need(not predicted, f"{self.name}: {what} is stated, but as predicted")

    def entry(self, number: int) -> Entry:
        """One entry, field by field."""
        shape = self.shape()
        reference = self.reference(shape, number)
        base = self.entries[reference] if reference >= 0 else Entry()
        chained = reference == number - 1
        entry = Entry(starts_frame=number == 0)
        entry.meta = self.meta(shape, base)
        entry.path = self.path(shape, entry, base, chained)
        entry.time = self.time(shape, base)
        entry.size = self.size(shape, entry, base, chained)
        entry.ranges = self.ranges(shape, entry, base)
        entry.offset = self.offset(shape, entry, base)
        entry.step = (entry.offset - base.offset) if entry.kind in WITH_DATA else 0
        entry.step = entry.step or base.step
        entry.link = self.link(shape, entry, base)
        if entry.kind in WITH_DEVICE:
            entry.device = (self.column[17].varint(), self.column[17].varint())
            need(max(entry.device) < 1 << 32, f"{self.name}: a device number")
        entry.recipe = self.recipe(shape, base)
        if shape.path and shape.reference != 1 and reference >= 0:
            self.replacement = without_common_suffix(base.path, entry.path)
        if entry.kind in WITH_DATA:
            self.latest_end = entry.offset + entry.content_bytes
        self.account(entry)
        return entry

    def account(self, entry: Entry) -> None:
        """Counts the bytes that the entry takes unpacked."""
        attributes = entry.meta.attributes if entry.meta else ()
        self.bytes += len(entry.path) + len(entry.link) + len(entry.recipe)
        self.bytes += sum(48 + len(name) + len(value) for name, value in attributes)
        self.bytes += 16 * len(entry.ranges or ())

    def meta(self, shape: Shape, base: Entry) -> Class:
        """Columns 7 to 10: the class."""
        if not shape.meta:
            if base.meta is None:
                raise Damaged(f"{self.name}: the first entry has no class")
            return base.meta
        classes = self.tables.classes
        number = self.column[7].varint()
        need(number <= len(classes), f"{self.name}: order of classes")
        if number == len(classes):
            defined = self.new_class()
            need(defined not in classes, f"{self.name}: a class is defined twice")
            classes.append(defined)
        self.not_predicted(classes[number] == base.meta, "a class")
        return classes[number]

    def new_class(self) -> Class:
        """Column 8."""
        kind, mode, owner, attributes = (self.column[8].varint() for _ in range(4))
        if not FILE <= kind <= RAW and kind != REBASED:
            raise Unsupported(f"{self.name}: Entry_Kind {kind}")
        need(mode < 1 << 32, f"{self.name}: Mode {mode:o}")
        owners, sets = self.tables.owners, self.tables.attributes
        need(owner <= len(owners), f"{self.name}: order of owners")
        if owner == len(owners):
            column = self.column[9]
            defined = (column.varint(), column.varint(), self.name_of(column), self.name_of(column))
            need(defined not in owners, f"{self.name}: an owner is defined twice")
            owners.append(defined)
        need(attributes <= len(sets) + 1, f"{self.name}: order of attributes")
        if attributes == len(sets) + 1:
            sets.append(self.new_attributes())
        chosen = sets[attributes - 1] if attributes else ()
        return Class(kind, mode, *owners[owner], chosen)

    def name_of(self, column: Cursor) -> bytes:
        """The name of an owner or an attribute."""
        return self.checked(column.text(), "a name")

    def checked(self, value: bytes, what: str) -> bytes:
        """No zero byte, and not too long."""
        need(b"\0" not in value, f"{self.name}: {what} has a zero byte")
        within(len(value), limits.PATH_BYTES_MAX, f"{self.name}: length of {what}")
        return value

    def new_attributes(self) -> tuple[tuple[bytes, bytes], ...]:
        """Column 10: a set of attributes."""
        column = self.column[10]
        count = column.varint()
        need(count >= 1, f"{self.name}: an empty set of attributes")
        found: list[tuple[bytes, bytes]] = []
        for _ in range(count):
            name, value = self.name_of(column), column.text()
            need(name > (found[-1][0] if found else b""), f"{self.name}: order of attributes")
            found.append((name, value))
        defined = tuple(found)
        need(defined not in self.tables.attributes, f"{self.name}: attributes are defined twice")
        return defined

    def replaced(self, text: bytes) -> bytes | None:
        """A text of the reference with the replacement; None if it does not begin with it.

        Before there is a replacement nothing is predicted: all paths are stated.
        """
        if self.replacement is None or not text.startswith(self.replacement[0]):
            return None
        return self.replacement[1] + text[len(self.replacement[0]) :]

    def path(self, shape: Shape, entry: Entry, base: Entry, chained: bool) -> bytes:
        """Columns 4 to 6."""
        predicted = self.replaced(base.path)
        if not shape.path:
            if predicted is None:
                raise Damaged(f"{self.name}: a path is not predicted")
            path = predicted
        else:
            path = self.stated_path(base, chained)
            self.not_predicted(path == predicted, "a path")
        need((path == b"") == (entry.kind == RAW), f"{self.name}: an empty path")
        return self.checked(path, "a path")

    def stated_path(self, base: Entry, chained: bool) -> bytes:
        """A prefix of the previous path, own bytes, a suffix of the reference's path."""
        previous = self.entries[-1] if self.entries else Entry()
        likely = len(previous.path)
        if previous.kind != DIRECTORY:
            likely = previous.path.rfind(b"/") + 1
        prefix = moved(likely, unzigzag(self.column[4].varint()))
        need(prefix <= len(previous.path), f"{self.name}: a path prefix")
        suffix = 0 if chained else self.column[5].varint()
        need(suffix <= len(base.path), f"{self.name}: a path suffix")
        rest = self.own_bytes() + base.path[len(base.path) - suffix :]
        path = previous.path[:prefix] + rest
        need(common_prefix(previous.path, path) == prefix, f"{self.name}: a longer path prefix")
        if not chained:
            longest = common_suffix(rest, base.path)
            need(longest == suffix, f"{self.name}: a longer path suffix")
        return path

    def own_bytes(self) -> bytes:
        """Column 6: bytes and a zero byte."""
        column = self.column[6]
        end = column.data.find(b"\0", column.at)
        need(end >= 0, f"{column.name} ends too early")
        value = column.take(end - column.at)
        column.take(1)
        return value

    def time(self, shape: Shape, base: Entry) -> tuple[int, int]:
        """Columns 11 and 12."""
        if shape.time == 0:
            return base.time
        own, column = self.own_time, self.column[11]
        seconds, nanoseconds = own
        if shape.time in (2, 4):
            seconds = signed64(seconds + unzigzag(column.varint()))
        if shape.time == 3:
            distance = unzigzag(column.varint()) << 16 | self.column[12].fixed(2)
            need(abs(distance) < 1 << 62, f"{self.name}: a time")
            carry, nanoseconds = divmod(nanoseconds + distance, NANOSECONDS)
            seconds += carry
            need(-(1 << 63) <= seconds < 1 << 63, f"{self.name}: a time")
        if shape.time == 4:
            nanoseconds = column.varint()
            need(nanoseconds < NANOSECONDS, f"{self.name}: nanoseconds")
        time = (seconds, nanoseconds)
        self.check_time(shape.time, time, base.time)
        self.own_time = time
        return time

    def check_time(self, value: int, time: tuple[int, int], base: tuple[int, int]) -> None:
        """Of several right values the first must be used."""
        own = self.own_time
        distance = (time[0] - own[0]) * NANOSECONDS + time[1] - own[1]
        right = [time == base, time == own, time[1] == own[1], abs(distance) < 1 << 62]
        self.not_predicted(any(right[:value]), "a time")

    def size(self, shape: Shape, entry: Entry, base: Entry, chained: bool) -> int:
        """Column 13."""
        predicted = base.size if entry.kind in WITH_DATA else 0
        if not shape.size:
            return predicted
        need(entry.kind in WITH_DATA, f"{self.name}: the size of a kind without data")
        size = self.column[13].varint()
        if not chained:
            size = moved(base.size, unzigzag(size))
        self.not_predicted(size == predicted, "a size")
        return within(size, limits.ADDRESS_BYTES_MAX, f"{self.name}: Size_Bytes")

    def offset(self, shape: Shape, entry: Entry, base: Entry) -> int:
        """Column 14; `entry` has its kind."""
        data = entry.kind in WITH_DATA
        if not data and shape.offset in (1, 3):
            raise Unsupported(f"{self.name}: content offset of a kind without data")
        choices = [
            base.offset if data else 0,
            base.offset + (base.content_bytes if base.kind in WITH_DATA else 0),
            self.latest_end,
            base.offset + base.step,
        ]
        if shape.offset == 4:
            chosen = moved(self.latest_end, unzigzag(self.column[14].varint()))
        else:
            chosen = choices[shape.offset]
        usable = choices if data else [choices[0], None, choices[2], None]
        self.not_predicted(chosen in usable[: shape.offset], "a content offset")
        need(chosen >= 0, f"{self.name}: Content_Offset")
        return within(chosen, limits.ADDRESS_BYTES_MAX, f"{self.name}: Content_Offset")

    def link(self, shape: Shape, entry: Entry, base: Entry) -> bytes:
        """Column 16."""
        if entry.kind not in WITH_LINK:
            need(shape.link == 0, f"{self.name}: a link target of a kind without")
            return b""
        predicted: list[bytes | None] = [None, None]
        if base.kind in WITH_LINK:
            predicted = [base.link, self.replaced(base.link)]
        if shape.link == 2:
            prefix = self.column[16].varint()
            need(prefix <= len(entry.path), f"{self.name}: the prefix of a link target")
            link = entry.path[:prefix] + self.column[16].text()
            need(common_prefix(link, entry.path) == prefix, f"{self.name}: a longer link prefix")
        elif (found := predicted[shape.link]) is not None:
            link = found
        else:
            raise Damaged(f"{self.name}: a link target is not predicted")
        self.not_predicted(link in predicted[: shape.link], "a link target")
        return self.checked(link, "a link target")

    def ranges(self, shape: Shape, entry: Entry, base: Entry) -> tuple[tuple[int, int], ...] | None:
        """Column 15."""
        if entry.kind not in WITH_DATA:
            need(shape.ranges == 0, f"{self.name}: data ranges of a kind without data")
            return None
        ranges = base.ranges if shape.ranges == 0 else None
        if shape.ranges == 2:
            ranges = self.stated_ranges()
        self.not_predicted(ranges in [base.ranges, None][: shape.ranges], "data ranges")
        if ranges:
            need(sum(ranges[-1]) <= entry.size, f"{self.name}: data ranges behind the end")
        return ranges

    def stated_ranges(self) -> tuple[tuple[int, int], ...]:
        """A number, then distances and lengths."""
        column, ranges, at = self.column[15], [], 0
        count = column.varint()
        within(16 * count, limits.ENTRY_BYTES_PER_FRAME_MAX, "bytes of data ranges")
        for number in range(count):
            distance, size = column.varint(), column.varint()
            need(size >= 1, f"{self.name}: an empty data range")
            need(distance >= 1 or number == 0, f"{self.name}: adjacent data ranges")
            ranges.append((at + distance, size))
            at += distance + size
        return tuple(ranges)

    def recipe(self, shape: Shape, base: Entry) -> bytes:
        """Column 18."""
        if not shape.recipe:
            return base.recipe
        recipe = self.column[18].text()
        self.not_predicted(recipe == base.recipe, "a header recipe")
        return recipe


def unpack(head: EntriesHead, frame: Frame) -> list[Entry]:
    """The entries of a frame; compares its checksum and First_Path."""
    raw = decode(head.coding, frame.data, head.packed_raw_bytes, frame.name)
    need(checksum(raw) == head.packed_checksum, f"{frame.name}: wrong Packed_Checksum")
    entries = Unpacker(raw, head.entry_count, frame.name).run()
    first = next((entry.path for entry in entries if entry.path), b"")
    need(first[: limits.FIRST_PATH_BYTES_MAX] == head.first_path, f"{frame.name}: First_Path")
    return entries


def sort_key(path: bytes) -> list[bytes]:
    """Component by component, each by its bytes; a path is before the paths below it.

    The root of a tree, `.`, has no components and is before all others.
    """
    return [] if path == b"." else path.split(b"/")
