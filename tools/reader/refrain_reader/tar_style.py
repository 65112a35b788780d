"""How a program writes pax headers (docs/tar-view.md, "Pax style")."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

from . import tar_fields as t
from .entries import Class, Entry

STAR, LIBARCHIVE = b"SCHILY.xattr.", b"LIBARCHIVE.xattr."
# Stands for all keys of attributes in the order.
ATTRIBUTES = STAR
SPARSE = (b"GNU.sparse.major", b"GNU.sparse.minor", b"GNU.sparse.name", b"GNU.sparse.realsize")
PLAIN = (b"linkpath", b"path", b"uname", b"gname", b"uid", b"gid", b"size", b"mtime")
DERIVED = (*SPARSE, *PLAIN, ATTRIBUTES)
PLACES_LEARNED, PLACES_KEPT = 64, 128


@dataclass(frozen=True)
class Facts:
    """What records are made of, besides the entry.

    `stored` is the stored size with the map; `path_needed` and `link_needed` say that both do not
    fit the plain header, which is POSIX tar's if `posix`.
    """

    entry: Entry
    path: bytes
    stored: int
    path_needed: bool
    link_needed: bool
    posix: bool

    @property
    def meta(self) -> Class:
        """Mode, owner, attributes."""
        return self.entry.meta or Class(0, 0)


def slot(key: bytes) -> bytes:
    """A key as the order has it."""
    return ATTRIBUTES if key.startswith((STAR, LIBARCHIVE)) else key


@dataclass
class PaxStyle:
    """Everything that is remembered of pax headers; see the document."""

    order: list[bytes] = field(default_factory=lambda: list(DERIVED))
    kept: set[bytes] = field(default_factory=set)
    others: list[tuple[bytes, bytes, bool]] = field(default_factory=list)
    seen: bool = False
    non_ascii: bool = True
    point: bool = False
    libarchive: bool = False
    descending: bool = False

    def records(self, facts: Facts) -> bytes:
        """The predicted data of a pax header; empty if there is none."""
        values = self.values(facts)
        out = []
        for key in self.order:
            if key == ATTRIBUTES:
                out += self.attributes(facts)
            elif key not in DERIVED:
                out += self.other(key, values[b"mtime"])
            elif key in self.kept or self.needs(key, facts):
                out.append(t.pax_record(key, values[key]))
        return b"".join(out)

    def values(self, facts: Facts) -> dict[bytes, bytes]:
        """The values of all derived keys."""
        entry, meta = facts.entry, facts.meta
        return {
            b"GNU.sparse.major": b"1",
            b"GNU.sparse.minor": b"0",
            b"GNU.sparse.name": facts.path,
            b"GNU.sparse.realsize": b"%d" % entry.size,
            b"linkpath": entry.link,
            b"path": facts.path,
            b"uname": meta.user,
            b"gname": meta.group,
            b"uid": b"%d" % meta.user_id,
            b"gid": b"%d" % meta.group_id,
            b"size": b"%d" % facts.stored,
            b"mtime": self.time(entry),
        }

    def time(self, entry: Entry) -> bytes:
        """The value of mtime."""
        point = self.point and entry.time[1] == 0
        return t.pax_time(*entry.time) + (b".0" if point else b"")

    def other(self, key: bytes, time: bytes) -> list[bytes]:
        """The record with a key that is not derived, if the last pax header had it."""
        for held, value, is_time in self.others:
            if held == key:
                return [t.pax_record(key, time if is_time else value)]
        return []

    def attributes(self, facts: Facts) -> list[bytes]:
        """The records of extended attributes."""
        out = []
        for name, value in facts.meta.attributes[:: -1 if self.descending else 1]:
            key = t.xattr_key(name)
            if self.libarchive:
                out.append(t.pax_record(LIBARCHIVE + key, base64.b64encode(value).rstrip(b"=")))
            out.append(t.pax_record(STAR + key, value))
        return out

    def needs(self, key: bytes, facts: Facts) -> bool:
        """Whether the plain header cannot hold the value."""
        meta, posix = facts.meta, facts.posix
        seconds, nanoseconds = facts.entry.time
        sparse = posix and facts.entry.ranges is not None
        if key in SPARSE:
            return sparse
        if key == b"path":
            return not sparse and (facts.path_needed or self.odd(facts.path, facts))
        if key == b"linkpath":
            return facts.link_needed or self.odd(facts.entry.link, facts)
        if key in (b"uname", b"gname"):
            name = meta.user if key == b"uname" else meta.group
            return (posix and len(name) > 32) or self.odd(name, facts)
        if key == b"mtime":
            return nanoseconds != 0 or (posix and not 0 <= seconds < 1 << 33)
        numbers = {
            b"uid": meta.user_id >= 1 << 21,
            b"gid": meta.group_id >= 1 << 21,
            b"size": facts.stored >= 1 << 33,
        }
        return posix and numbers[key]

    def odd(self, text: bytes, facts: Facts) -> bool:
        """Whether a text needs a record because it is not ASCII."""
        return self.non_ascii and self.seen and facts.posix and not text.isascii()

    def learn(self, facts: Facts, data: bytes) -> None:
        """Takes note of a pax header; `data` is empty if the group has none."""
        if not data and not self.seen:
            return
        time = self.time(facts.entry)
        keys: set[bytes] = set()
        others = []
        before, at, places = b"", 0, 0
        for key, value in t.pax_records(data):
            key = slot(key)
            if key == b"mtime" and facts.entry.time[1] == 0:
                self.point = value.endswith(b".0")
            if key not in DERIVED:
                others.append((key, value, value == time))
            if key != before:
                at = self.place(at, key)
                places += 1
            keys.add(key)
            before = key
            if places > PLACES_LEARNED:
                self.__init__()  # type: ignore[misc]
                return
        self.others = others
        self.learn_attributes(facts, data)
        self.learn_presence(facts, keys)
        if len(self.order) > PLACES_KEPT:
            known = {*DERIVED, *(key for key, _, _ in others)}
            self.order = [key for key in self.order if key in known]

    def place(self, at: int, key: bytes) -> int:
        """Gives a key a place at `at` or later in the order; the place behind it."""
        if key in self.order[at:]:
            return self.order.index(key, at) + 1
        if key in self.order:
            self.order.remove(key)
            at -= 1
        self.order.insert(at, key)
        return at + 1

    def learn_attributes(self, facts: Facts, data: bytes) -> None:
        """Which records attributes have, and how they are sorted."""
        names = [name for name, _ in facts.meta.attributes]
        if names:
            self.libarchive = LIBARCHIVE in data
        if len(names) > 1:
            first, last = (data.find(STAR + t.xattr_key(n) + b"=") for n in (names[0], names[-1]))
            self.descending = 0 <= last < first

    def learn_presence(self, facts: Facts, keys: set[bytes]) -> None:
        """Which records there are for texts that are not ASCII, and without need."""
        self.seen = True
        texts = [(b"path", facts.path), (b"linkpath", facts.entry.link)]
        texts += [(b"uname", facts.meta.user), (b"gname", facts.meta.group)]
        for key, text in texts:
            elsewhere = key == b"path" and b"GNU.sparse.name" in keys
            if not text.isascii() and not elsewhere:
                self.non_ascii = key in keys
        for key in PLAIN:
            if not self.needs(key, facts):
                (self.kept.add if key in keys else self.kept.discard)(key)
