"""The header groups of recorded tar streams (docs/tar-view.md, "Tar streams")."""

from __future__ import annotations

from dataclasses import dataclass

from . import entries as kinds
from . import tar_fields as t
from . import tar_names as names
from .entries import Class, Entry
from .tar_style import Facts, PaxStyle
from .tar_tree import FLAGS

GNU, PAX = "GNU", "pax"
FOLLOWED_TEXTS = (t.USER, t.GROUP)
FOLLOWED = (t.MODE, t.UID, t.GID, t.MTIME, *FOLLOWED_TEXTS)
EXTENDED_BYTES_MAX = 1 << 20
ROUNDED_UP = 500_000_000
# An extended header: its type flag and its data.
Section = tuple[bytes, bytes]


def initial_record() -> bytearray:
    """What the first prediction starts from."""
    record = bytearray(t.RECORD)
    for field in (t.MODE, t.UID, t.GID, t.SIZE, t.MTIME):
        t.put(record, field, b"0" * (field[1] - 1))
    t.put(record, t.CHECKSUM, b"000000\0 ")
    t.put(record, t.FLAG, b"0")
    t.put(record, t.MAGIC, b"ustar  ")
    return record


def initial_carrier(flag: bytes) -> bytearray:
    """What the first prediction of a carrier starts from."""
    record = initial_record()
    t.put(record, t.FLAG, flag)
    t.put(record, t.MODE, b"0000644")
    if flag == b"x":
        t.put(record, t.MAGIC, b"ustar\x0000")
    else:
        t.put(record, t.NAME, b"././@LongLink")
        t.put(record, t.USER, b"root")
        t.put(record, t.GROUP, b"root")
    return record


def sections_of(group: bytes) -> tuple[list[tuple[bytes, Section]], bytes | None]:
    """The carriers of a group with their sections, and its main record."""
    found: list[tuple[bytes, Section]] = []
    while len(record := group[: t.RECORD]) == t.RECORD:
        flag, size = t.get(record, t.FLAG), t.number(record, t.SIZE)
        if flag not in b"xLK" or size is None or not 0 <= size <= EXTENDED_BYTES_MAX:
            return found, record
        found.append((record, (flag, group[t.RECORD : t.RECORD + size])))
        group = group[t.RECORD + size + -size % t.RECORD :]
    return found, None


class Stated:
    """What the extended headers of a group state."""

    def __init__(self, sections: list[Section]) -> None:
        self.keys: set[bytes] = set()
        for flag, data in sections:
            if flag == b"x":
                self.keys |= {key for key, _ in t.pax_records(data)}
            else:
                self.keys.add(b"path" if flag == b"L" else b"linkpath")
        self.version_1 = b"GNU.sparse.major" in self.keys
        self.pax_sparse = any(key.startswith(b"GNU.sparse.") for key in self.keys)

    def __contains__(self, key: bytes) -> bool:
        return key in self.keys


@dataclass
class Carrier:
    """The last carrier with a flag."""

    record: bytes
    inserted: names.Inserted | None
    followed: set[t.Field]


def followed_number(main: bytes | bytearray, field: t.Field) -> int:
    """The number of a main record as carriers have it."""
    value = t.number(main, field) or 0
    return value & 0o777 if field == t.MODE else value


def equal(field: t.Field, record: bytes, main: bytes) -> bool:
    """Whether a field of a carrier has the value of the main record."""
    if field in FOLLOWED_TEXTS:
        return t.text(record, field) == t.text(main, field)
    return t.number(record, field) == followed_number(main, field)


def class_of(entry: Entry) -> tuple[int, bool]:
    """The class of an entry's main record."""
    return entry.kind, entry.kind == kinds.FILE and entry.ranges is not None


def link_mark(entry: Entry) -> bytes:
    """What libarchive leaves in the plain header for a link in a pax record."""
    return b"././@LongHardLink" if entry.kind == kinds.HARDLINK else b"././@LongSymLink"


def stored_bytes(entry: Entry, with_map: bool) -> int:
    """The stored size; of sparse files, with the map of pax form 1.0."""
    if entry.kind not in kinds.WITH_DATA:
        return 0
    if entry.ranges is None or not with_map:
        return entry.content_bytes
    return entry.content_bytes + len(t.sparse_map(entry.size, entry.ranges))


class Predictor:
    """The properties of the program that wrote the stream, and its last records."""

    def __init__(self) -> None:
        self.slash = True
        self.non_ascii: bytes | None = names.BYTES
        self.name_limit = 100
        self.long_path: str | None = None
        self.carriers: dict[bytes, Carrier] = {}
        self.sparse_name: names.Inserted | None = None
        self.mains: dict[tuple[int, bool], bytes] = {}
        self.last_main: bytes | None = None
        self.link_marks = False
        self.rounding = False
        self.style = PaxStyle()

    def header_path(self, entry: Entry) -> bytes:
        """The path as headers have it."""
        slash = self.slash and entry.kind == kinds.DIRECTORY
        return entry.path + (b"/" if slash else b"")

    def template(self, entry: Entry) -> bytes | None:
        """The record that the main record is made of, but for the initial one."""
        return self.mains.get(class_of(entry), self.last_main)

    def long_form(self, posix: bool) -> str:
        """How long paths are written."""
        if self.long_path is not None:
            return self.long_path
        if not posix:
            return GNU
        return PAX if b"x" in self.carriers else names.LONGEST

    def is_split(self, posix: bool) -> bool:
        """Whether long paths are split, as far as possible."""
        return self.long_form(posix) in (names.LONGEST, names.SHORTEST)

    def sections(self, entry: Entry) -> list[Section]:
        """The predicted extended headers."""
        path = self.header_path(entry)
        posix = t.is_posix(self.template(entry) or b"")
        gnu = not posix and self.long_path in (None, GNU)
        long_path, long_link = (len(x) > self.name_limit for x in (path, entry.link))
        found = []
        if gnu and long_link:
            found.append((b"K", entry.link + b"\0"))
        if gnu and long_path:
            found.append((b"L", path + b"\0"))
        form = self.long_form(posix)
        path_needed = long_path and form == PAX
        if long_path and self.is_split(posix):
            path_needed = names.split(form, path) is None
        facts = Facts(
            entry, path, stored_bytes(entry, posix), path_needed, long_link and not gnu, posix
        )
        records = self.style.records(facts)
        return [*found, (b"x", records)] if records else found

    def assemble(self, entry: Entry, sections: list[Section]) -> bytes:
        """The header group with these extended headers."""
        path = self.header_path(entry)
        stated = Stated(sections)
        main, sparse = self.main(entry, path, stated)
        out = [self.carrier(*section, path, main) + t.padded(section[1]) for section in sections]
        return b"".join(out) + bytes(main) + sparse

    def main(self, entry: Entry, path: bytes, stated: Stated) -> tuple[bytearray, bytes]:
        """The main record, and the map behind it."""
        same_class = class_of(entry) in self.mains
        record = bytearray(self.template(entry) or initial_record())
        if not same_class:
            sparse = entry.ranges is not None and not stated.pax_sparse
            t.put(record, t.FLAG, b"S" if sparse else FLAGS[entry.kind])
        self.set_texts(record, entry, path, stated)
        self.set_numbers(record, entry, stated, same_class)
        behind = b""
        if entry.ranges is not None and stated.version_1:
            behind = t.sparse_map(entry.size, entry.ranges)
        elif entry.ranges is not None and not stated.pax_sparse:
            behind = t.old_map(record, entry.size, entry.ranges)
        t.set_number(record, t.CHECKSUM, t.record_sum(record))
        return record, behind

    def set_texts(self, record: bytearray, entry: Entry, path: bytes, stated: Stated) -> None:
        """Name with prefix, link, user and group."""
        posix = t.is_posix(record)
        prefix, name = b"", path
        if stated.pax_sparse:
            name = self.sparse_name.apply(path) if self.sparse_name else path
        elif b"path" in stated:
            name = names.plain(self.non_ascii, path)
        elif len(path) > 100 and self.is_split(posix):
            prefix, name = names.split(self.long_form(posix), path) or (b"", path)
        t.set_text(record, t.NAME, name[: self.name_limit if b"path" in stated else 100])
        if posix:
            field = t.prefix_field(record)
            t.set_text(record, field, prefix[: field[1]])
        link = entry.link[:100]
        if b"linkpath" in stated:
            link = names.plain(self.non_ascii, entry.link)[: self.name_limit]
            link = link_mark(entry) if self.link_marks else link
        t.set_text(record, t.LINK, link)
        meta = entry.meta or Class(0, 0)
        for field, key, text in (t.USER, b"uname", meta.user), (t.GROUP, b"gname", meta.group):
            text = names.plain(self.non_ascii, text) if key in stated else text
            t.set_text(record, field, text[:32])

    def set_numbers(
        self, record: bytearray, entry: Entry, stated: Stated, same_class: bool
    ) -> None:
        """Mode, owner, size, time, device."""
        meta = entry.meta or Class(0, 0)
        file_type = (t.number(record, t.MODE) or 0) & ~0o7777 if same_class else 0
        seconds, nanoseconds = entry.time
        seconds += b"mtime" in stated and self.rounding and nanoseconds >= ROUNDED_UP
        limited = [
            (t.UID, b"uid", meta.user_id, 1 << 21),
            (t.GID, b"gid", meta.group_id, 1 << 21),
            (t.SIZE, b"size", stored_bytes(entry, stated.version_1), 1 << 33),
            (t.MTIME, b"mtime", seconds, 1 << 33),
        ]
        t.set_number(record, t.MODE, file_type | meta.mode)
        for field, key, value, end in limited:
            t.set_number(record, field, value if 0 <= value < end or key not in stated else 0)
        t.set_number(record, t.MAJOR, entry.device[0])
        t.set_number(record, t.MINOR, entry.device[1])

    def carrier(self, flag: bytes, data: bytes, path: bytes, main: bytearray) -> bytes:
        """The record of an extended header."""
        held = self.carriers.get(flag)
        record = bytearray(held.record if held else initial_carrier(flag))
        if held and held.inserted:
            name = held.inserted.apply(names.plain(self.non_ascii, path))
            self.set_carrier_name(record, name)
        for field in held.followed if held else ():
            if field in FOLLOWED_TEXTS:
                t.set_text(record, field, t.text(main, field))
            else:
                t.set_number(record, field, followed_number(main, field))
        t.set_number(record, t.SIZE, len(data))
        t.set_number(record, t.CHECKSUM, t.record_sum(record))
        return bytes(record)

    def set_carrier_name(self, record: bytearray, name: bytes) -> None:
        """An inserted name, which may be long."""
        prefix = b""
        if t.is_posix(record):
            if len(name) > 100 and self.long_path in (names.LONGEST, names.SHORTEST):
                prefix, name = names.split(self.long_path, name) or (b"", name)
            t.set_text(record, t.PREFIX, prefix)
        t.set_text(record, t.NAME, name[:100])

    def learn(self, entry: Entry, group: bytes) -> None:
        """Takes note of the actual header group of an entry."""
        carriers, main = sections_of(group)
        if main is None:
            return
        sections = [section for _, section in carriers]
        stated = Stated(sections)
        last = dict(sections)
        records = last.get(b"x", b"")
        if entry.kind == kinds.DIRECTORY:
            self.slash = self.ends_in_slash(main, last, stated)
        path = self.header_path(entry)
        self.learn_path(path, main, stated, last.get(b"L"))
        for record, (flag, _) in carriers:
            self.learn_carrier(flag, record, names.plain(self.non_ascii, path), main)
        if stated.pax_sparse:
            found = names.find(t.text(main, t.NAME), path)
            self.sparse_name = names.refined(self.sparse_name, found, path)
        self.mains[class_of(entry)] = self.last_main = main
        if b"linkpath" in stated:
            self.link_marks = t.text(main, t.LINK) == link_mark(entry)
        if b"mtime" in stated and entry.time[1] >= ROUNDED_UP:
            self.rounding = t.number(main, t.MTIME) == entry.time[0] + 1
        facts = Facts(
            entry,
            path,
            stored_bytes(entry, stated.version_1),
            len(path) > self.name_limit and b"path" in stated,
            b"linkpath" in stated,
            t.is_posix(main),
        )
        self.style.learn(facts, records)

    @staticmethod
    def ends_in_slash(main: bytes, last: dict[bytes, bytes], stated: Stated) -> bool:
        """Whether the path of a directory ends in `/`."""
        if b"L" in last:
            return last[b"L"].endswith(b"/\0")
        if b"path" in stated:
            paths = (value for key, value in t.pax_records(last[b"x"]) if key == b"path")
            return next(paths, b"").endswith(b"/")
        return t.text(main, t.NAME).endswith(b"/")

    def learn_path(self, path: bytes, main: bytes, stated: Stated, long_name: bytes | None) -> None:
        """Non-ASCII form, name limit and long path."""
        name = t.text(main, t.NAME)
        if b"path" in stated and not stated.pax_sparse and not path.isascii():
            for form in names.NON_ASCII_FORMS:
                if names.plain(form, path)[:100] == name:
                    self.non_ascii = form
                    break
        if len(path) == 100:
            self.name_limit = 99 if b"path" in stated else 100
        elif long_name is not None and len(path) > 100:
            self.name_limit = 99 if path[:99] == name else 100
        if len(path) <= 100 or stated.pax_sparse:
            return
        if long_name is not None:
            self.long_path = GNU
        elif b"path" not in stated:
            fields = (t.text(main, t.prefix_field(main)), name)
            held = [self.long_path] if self.long_path in (names.LONGEST, names.SHORTEST) else []
            forms = [*held, names.LONGEST, names.SHORTEST]
            self.long_path = next((f for f in forms if names.split(f, path) == fields), None)
        elif names.split(names.LONGEST, path):
            self.long_path = PAX

    def learn_carrier(self, flag: bytes, record: bytes, path: bytes, main: bytes) -> None:
        """Takes note of one carrier."""
        held = self.carriers.get(flag)
        name = t.text(record, t.NAME)
        found = names.find(t.plain_path(record), path) if len(name) < 100 else None
        now = {field for field in FOLLOWED if equal(field, record, main)}
        if held is None:
            self.carriers[flag] = Carrier(record, found, now)
            return
        if held.inserted or t.text(held.record, t.NAME) != name:
            held.inserted = names.refined(held.inserted, found, path)
        changed = {f for f in FOLLOWED if t.get(held.record, f) != t.get(record, f)}
        held.followed = now & (held.followed | changed)
        held.record = record
