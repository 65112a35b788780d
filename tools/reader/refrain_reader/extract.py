"""Creates files. Names are not trusted (sections 4.2 and 4.4)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from . import entries as kinds
from . import view
from .archive import Archive
from .contents import Member
from .entries import Entry
from .errors import Damaged
from .heads import TREE


def safe(root: Path, name: bytes) -> Path:
    """`name` below `root`; names that lead out of it, or through a link, are refused."""
    parts = [part for part in name.split(b"/") if part not in (b"", b".")]
    if name.startswith(b"/") or b".." in parts:
        raise Damaged(f"a name leads out of the output directory: {name!r}")
    path = root
    for number, part in enumerate(parts):
        if number and path.is_symlink():
            raise Damaged(f"a name leads through a link: {name!r}")
        path = path / os.fsdecode(part)
    return path


def write(path: Path, pieces: Iterable[bytes]) -> None:
    """Creates a file that does not exist yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "xb") as file:
        for piece in pieces:
            file.write(piece)


def member(archive: Archive, found: Member, root: Path) -> None:
    """A file or a stream becomes a file, a tree or a tar stream a directory."""
    start = found.start
    target = safe(root, start.name or b"member-%d" % start.member_id)
    if start.kind >= TREE:
        tree(archive, found, target)
        return
    write(target, view.stream(archive, found))
    if start.mode is not None:
        target.chmod(start.mode & 0o777)
    if start.seconds is not None:
        set_time(target, (start.seconds, start.nanoseconds or 0))


def tree(archive: Archive, found: Member, root: Path) -> None:
    """All entries; directories get mode and time at the end, when they are full."""
    root.mkdir(parents=True, exist_ok=True)
    entries = archive.entries(found)
    for current in entries:
        entry(archive, found, current, root)
    for current in reversed(entries):
        if current.kind == kinds.DIRECTORY and current.meta is not None:
            path = safe(root, current.path)
            set_time(path, current.time)
            path.chmod(stat.S_IMODE(current.meta.mode) & 0o777)


def entry(archive: Archive, found: Member, current: Entry, root: Path) -> None:
    """One entry; owners, attributes and devices are left out."""
    path = safe(root, current.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if current.kind == kinds.DIRECTORY:
        path.mkdir(exist_ok=True)
    elif current.kind == kinds.SYMLINK:
        os.symlink(os.fsdecode(current.link), path)
    elif current.kind == kinds.HARDLINK:
        os.link(safe(root, current.link), path, follow_symlinks=False)
    elif current.kind == kinds.PIPE:
        os.mkfifo(path)
    elif current.kind in (kinds.FILE, kinds.OTHER):
        pieces = view.entry_content(archive, found, current)
        write(path, pieces)
        spread(path, current)
        path.chmod(current.meta.mode & 0o777 if current.meta else 0o600)
        set_time(path, current.time)


def spread(path: Path, current: Entry) -> None:
    """Moves the data of a sparse file to its places."""
    if current.ranges is None:
        return
    with open(path, "r+b") as file:
        data = current.content_bytes
        for start, count in reversed(current.ranges):
            data -= count
            file.seek(data)
            piece = file.read(count)
            file.seek(data)
            file.write(bytes(count))
            file.seek(start)
            file.write(piece)
        file.truncate(current.size)


def set_time(path: Path, time: tuple[int, int]) -> None:
    """Sets the time of modification."""
    value = time[0] * 10**9 + time[1]
    os.utime(path, ns=(value, value), follow_symlinks=False)
