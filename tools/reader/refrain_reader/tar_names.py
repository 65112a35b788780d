"""How programs put paths into the fields of a header (docs/tar-view.md, "Properties")."""

from __future__ import annotations

from dataclasses import dataclass, replace

LONGEST, SHORTEST = "longest", "shortest"
BYTES, QUESTION_MARKS, DROPPED = None, b"?", b""
NON_ASCII_FORMS = (BYTES, QUESTION_MARKS, DROPPED)


def split(form: str, path: bytes) -> tuple[bytes, bytes] | None:
    """Prefix and name, if they fit."""
    first, end = max(len(path) - 101, 1), min(len(path) - 1, 156)
    if first >= end:
        return None
    find = path.rfind if form == LONGEST else path.find
    at = find(b"/", first, end)
    return None if at < 0 else (path[:at], path[at + 1 :])


def plain(form: bytes | None, text: bytes) -> bytes:
    """What a text leaves in the plain header if it is in an extended one."""
    if form is None or text.isascii():
        return text
    characters = text.decode("utf-8", "surrogateescape")
    return b"".join(c.encode() if c.isascii() else form for c in characters)


def cut(path: bytes, slash: bool) -> tuple[bytes | None, bytes]:
    """Directory (None without) and last component."""
    if not slash and path.endswith(b"/") and path != b"/":
        path = path[:-1]
    directory, found, last = path.rpartition(b"/")
    return (directory if found else None), last


@dataclass(frozen=True)
class Inserted:
    """Names with a component inserted before the last one of the path."""

    component: bytes
    dot: bool
    slash: bool

    def apply(self, path: bytes) -> bytes:
        """The name for a path."""
        directory, last = cut(path, self.slash)
        if directory is not None:
            start = directory + b"/"
        else:
            start = b"./" if self.dot else b""
        return start + self.component + (b"/" + last if last else b"")


def find(name: bytes, path: bytes) -> Inserted | None:
    """The form that makes `name` of `path`."""
    for slash in (False, True):
        directory, _ = cut(path, slash)
        start = b"./" if directory is None else directory + b"/"
        dot = name.startswith(start)
        if directory is not None and not dot:
            continue
        component = (name[len(start) :] if dot else name).split(b"/", 1)[0]
        form = Inserted(component, dot, slash)
        if component and form.apply(path) == name:
            return form
    return None


def refined(held: Inserted | None, found: Inserted | None, path: bytes) -> Inserted | None:
    """The form after another one was found."""
    if held is None or found is None:
        return held or found
    if cut(path, found.slash)[0] is not None:
        found = replace(found, dot=held.dot)
    return found if path.endswith(b"/") else replace(found, slash=held.slash)
