"""Recipes: how a header group differs from its prediction (docs/tar-view.md, "Recipe")."""

from __future__ import annotations

from . import tar_fields as t
from .cursor import Cursor
from .entries import Entry
from .errors import Damaged, need
from .tar_predict import Predictor, Section

NO_PADDING, WHOLE_GROUP, EDITS = 1, 2, 4
SECTIONS_MAX = 8


def has_padding(recipe: bytes) -> bool:
    """Whether zeros follow the data."""
    return not recipe or not recipe[0] & NO_PADDING


def apply(entry: Entry, predictor: Predictor) -> bytes:
    """The header group that the recipe of an entry makes of its prediction."""
    cursor = Cursor(entry.recipe, "a header recipe")
    form = cursor.byte() & ~NO_PADDING if entry.recipe else 0
    if form == WHOLE_GROUP:
        return cursor.rest()
    need(form in (0, EDITS), f"a header recipe of form {form}")
    sections = predictor.sections(entry)
    if form == EDITS:
        sections = edited(cursor, sections)
    group = bytearray(predictor.assemble(entry, sections))
    at = 0
    while form == EDITS and cursor.left:
        at += cursor.varint()
        patch = cursor.text()
        need(at + len(patch) <= len(group), "a header recipe with a patch outside the group")
        group[at : at + len(patch)] = patch
        at += len(patch)
    cursor.end()
    return bytes(group)


def edited(cursor: Cursor, predicted: list[Section]) -> list[Section]:
    """The extended headers."""
    code = cursor.varint()
    if code == 0:
        return predicted
    first: dict[bytes, bytes] = {}
    for flag, data in predicted:
        first.setdefault(flag, data)
    if code == 1:
        need(b"x" in first, "a header recipe changes a pax header that is not there")
        changed = edited_values(cursor, first[b"x"])
        return [(flag, changed if flag == b"x" else data) for flag, data in predicted]
    need(code - 2 <= SECTIONS_MAX, "a header recipe with too many headers")
    found = []
    for _ in range(code - 2):
        flag = cursor.take(1)
        need(flag in b"xLK", f"a header recipe with a header {flag!r}")
        found.append((flag, edited_data(cursor, first.get(flag, b""))))
    return found


def edited_data(cursor: Cursor, predicted: bytes) -> bytes:
    """The data of one extended header."""
    form = cursor.varint()
    if form == 0:
        return predicted
    need(form == 1, f"a header recipe with data of form {form}")
    prefix, suffix = cursor.varint(), cursor.varint()
    need(max(prefix, suffix) <= len(predicted), "a header recipe keeps too much")
    return predicted[:prefix] + cursor.text() + predicted[len(predicted) - suffix :]


def edited_values(cursor: Cursor, predicted: bytes) -> bytes:
    """The data of the pax header with other values."""
    records = list(t.pax_records(predicted))
    at = 0
    for _ in range(cursor.varint()):
        code = cursor.varint()
        at += code >> 1
        need(at < len(records), "a header recipe skips too many records")
        key, value = records[at]
        records[at] = key, edited_time(cursor, value) if code & 1 else edited_value(cursor, value)
        at += 1
    return b"".join(t.pax_record(key, value) for key, value in records)


def edited_value(cursor: Cursor, predicted: bytes) -> bytes:
    """A prefix of the predicted value, and other bytes."""
    prefix = cursor.varint()
    need(prefix <= len(predicted), "a header recipe keeps too much")
    return predicted[:prefix] + cursor.text()


def edited_time(cursor: Cursor, predicted: bytes) -> bytes:
    """The predicted time plus a difference."""
    time = t.parse_time(predicted)
    difference = cursor.signed()
    if time is None:
        raise Damaged("a header recipe changes a time that is none")
    seconds, nanoseconds = divmod(time + difference, 10**9)
    need(-(1 << 63) <= seconds < 1 << 63, "a header recipe with a time out of range")
    return t.pax_time(seconds, nanoseconds)
