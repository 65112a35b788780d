"""Opened archives, and files inside them."""

from __future__ import annotations

import io
import os
from errno import ENOENT

from ._endpoints import Input, unnamed
from ._errors import PathError, RefrainError, UnsupportedError, UsageError
from ._problems import Problem
from ._refrain import Entry, Job, Member, NativeArchive
from ._runs import run
from ._verbs import reading_options, restore_all

# Type checkers take it for true. The module typing would take longer to import than the package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike
    from typing import Any, Literal, overload

    from typing_extensions import Buffer, Self

    from ._types import Progress, Readable
else:

    def overload(function):
        return function


# How much a buffered file in an archive reads at once.
BUFFER_BYTES = 1 << 17

# As Linux limits symbolic links in a path.
_LINKS_MAX = 40


class MemberFile(io.RawIOBase):
    """A file inside an archive: readable at any offset, also by several threads (pread)."""

    def __init__(self, archive: Archive, member: int, entry: Entry | None, name: str) -> None:
        self._archive = archive
        self._native = archive._native
        self._member = member
        self._entry = entry
        self._position = 0
        self.name = name
        self.mode = "rb"
        self.size: int = entry.size if entry is not None else archive.members[member].size

    def _check_open(self) -> NativeArchive:
        if self.closed:
            raise UsageError("the file is closed")
        return self._archive._opened()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        raise io.UnsupportedOperation("archives are read-only")

    def tell(self) -> int:
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._check_open()
        bases = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}
        if whence not in bases:
            raise UsageError(f"there is no whence {whence}")
        position = bases[whence] + offset
        if position < 0:
            raise UsageError(f"cannot seek to {position}")
        self._position = position
        return position

    def readinto(self, buffer: Buffer, /) -> int:
        native = self._check_open()
        try:
            count = native.readinto(self._member, self._entry, self._position, buffer)
        except RefrainError as error:
            raise self._archive._cause(error) from None
        self._position += count
        return count

    def pread(self, length: int, offset: int) -> bytes:
        """Reads a range without moving the position; shorter only at the end."""
        native = self._check_open()
        if length < 0 or offset < 0:
            raise UsageError("length and offset are not negative")
        length = max(0, min(length, self.size - offset))
        try:
            return native.pread(self._member, self._entry, offset, length)
        except RefrainError as error:
            raise self._archive._cause(error) from None

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return self.readall()
        data = self.pread(size, self._position)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        self._check_open()
        data = self._archive._read(self._member, self._entry, self._position, self.size)
        self._position += len(data)
        return data

    def __reduce__(self) -> Any:
        if self.closed:
            raise UsageError("the file is closed")
        return (_reopen_file, (self._archive, self._member, self._entry_path(), self._position))

    def _entry_path(self) -> str | None:
        return self._entry.path if self._entry is not None else None


def _reopen_file(archive: Archive, member: int, path: str | None, position: int) -> MemberFile:
    if path is not None:
        file = archive.open(path, buffering=0)
    else:
        file = MemberFile(archive, member, None, archive.members[member].name)
    file.seek(position)
    return file


class Entries:
    """The entries of all directory and tar members, in archive order. They are read as needed."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def __len__(self) -> int:
        return sum(member.entry_count for member in self._archive.members)

    def __contains__(self, entry: object) -> bool:
        """Whether there is this entry, or one with this path; links are not followed."""
        if isinstance(entry, Entry):
            entry = entry.path
        if not isinstance(entry, (str, bytes, os.PathLike)):
            return False
        path, native = os.fsencode(entry), self._archive._opened()
        several = native.member_count > 1
        for member in self._archive.members:
            start = os.fsencode(member.name) + b"/" if several else b""
            if has_entries(member) and path.startswith(start):
                if native.find_entry(member.number, path[len(start) :]) is not None:
                    return True
        return False

    def __iter__(self) -> Iterator[Entry]:
        for member in self._archive.members:
            if has_entries(member):
                native = self._archive._opened()
                for number in range(native.list_count(member.number)):
                    yield from native.list(member.number, number)


def has_entries(member: Member) -> bool:
    return member.kind in ("directory", "tar")


class Archive:
    """An archive, opened for random access by any number of threads.

    A path leads to a file of the only directory member or, in an archive with several members, is
    the name of a member or MEMBER/PATH. Symbolic links within a member are followed.
    """

    def __init__(self, file: Any, options: dict[str, Any]) -> None:
        self._recipe = (file, options)
        self._inputs = Input(Job())
        endpoint = self._inputs.random_access(file)
        self._members: tuple[Member, ...] | None = None
        try:
            self._native: NativeArchive = NativeArchive(endpoint, options)
        except RefrainError as error:
            raise self._cause(error) from None
        self._is_open = True

    def _opened(self) -> NativeArchive:
        if not self._is_open:
            raise UsageError("the archive is closed")
        return self._native

    def _cause(self, error: RefrainError) -> BaseException:
        """The exception of the file object that the archive is read from, or the engine's."""
        return self._inputs.exception() or error

    def _read(self, member: int, entry: Entry | None, start: int, end: int) -> bytes:
        if start >= end:
            return b""
        native, job = self._opened(), Job()
        return run(job, self._inputs, lambda: native.read_range(job, member, entry, start, end))

    def _read_all(self, member: int) -> bytes:
        """The content of a member, from front to back: other formats do not state its size."""
        native, job, to = self._opened(), Job(), ("memory", None, False)
        data = run(job, self._inputs, lambda: native.write(job, member, None, None, to, None))
        return data or b""

    @property
    def members(self) -> Sequence[Member]:
        """What the archive consists of: files, directories, contents of pipes."""
        native = self._opened()
        if self._members is None:
            self._members = tuple(native.member(number) for number in range(native.member_count))
        return self._members

    @property
    def entries(self) -> Entries:
        """The files, directories and links inside all members that are directories."""
        self._opened()
        return Entries(self)

    @property
    def is_damaged(self) -> bool:
        """Whether the index was damaged, and what is left was found by a scan."""
        return self._opened().is_scanned

    @property
    def incomplete_bytes(self) -> int:
        """The bytes that follow the last complete generation: one is being added, its writer was
        killed, or the file was cut off."""
        return self._opened().incomplete_bytes()

    def info(self) -> dict[str, Any]:
        """Sizes in bytes, level, and the root hash over everything that the archive shows."""
        return self._opened().info()

    def locate(self, path: str | bytes | PathLike[str] | None) -> tuple[int, Entry | None]:
        """The member and the entry at a path; no entry for all of a member.

        Raises PathError (a FileNotFoundError) if there is nothing.
        """
        native = self._opened()
        if path is None:
            if native.member_count != 1:
                raise UsageError(f"the archive has {native.member_count} members: name one")
            return 0, None
        raw = os.fsencode(path)
        plain = b"/".join(part for part in raw.split(b"/") if part not in (b"", b"."))
        if native.member_count == 1 and has_entries(self.members[0]):
            entry = self._follow(0, plain)
            if entry is not None:
                return 0, entry
        elif (found := self._in_members(native, raw, plain)) is not None:
            return found
        name, _, inside = plain.partition(b"/")
        is_prefixed = native.member_count == 1 and native.find_member(name) == 0
        hint = f"; paths begin inside {os.fsdecode(name)!r}" if is_prefixed and inside else ""
        raise PathError(ENOENT, f"the archive has nothing here{hint}", os.fsdecode(raw))

    def _in_members(
        self, native: NativeArchive, raw: bytes, plain: bytes
    ) -> tuple[int, Entry | None] | None:
        for name in (raw, plain):
            if (number := native.find_member(name)) is not None:
                return number, None
        at = plain.find(b"/")
        while at >= 0:
            number = native.find_member(plain[:at])
            if number is not None and has_entries(self.members[number]):
                entry = self._follow(number, plain[at + 1 :])
                if entry is not None:
                    return number, entry
            at = plain.find(b"/", at + 1)
        return None

    def _follow(self, member: int, path: bytes) -> Entry | None:
        """The entry that a path in a member leads to, through links."""
        native = self._opened()
        prefix = len(os.fsencode(self.members[member].name)) + 1 if native.member_count > 1 else 0
        for _ in range(_LINKS_MAX):
            entry = native.find_entry(member, path)
            if entry is None:
                through = self._through_link(native, member, path)
                if through is None:
                    return None
                path = through
                continue
            target = os.fsencode(entry.link_target) if entry.link_target is not None else b""
            if entry.kind == "hardlink":
                path = target
            elif entry.kind == "symlink":
                joined = _joined(os.fsencode(entry.path)[prefix:].rpartition(b"/")[0], target)
                if joined is None:
                    return None
                path = joined
            else:
                return entry
        return None

    def _through_link(self, native: NativeArchive, member: int, path: bytes) -> bytes | None:
        """The path, with the first of its parents that is a symbolic link replaced."""
        at = path.find(b"/")
        while at >= 0:
            entry = native.find_entry(member, path[:at])
            if entry is not None and entry.kind == "symlink" and entry.link_target is not None:
                parent = path[:at].rpartition(b"/")[0]
                return _joined(parent, os.fsencode(entry.link_target) + path[at:])
            at = path.find(b"/", at + 1)
        return None

    def read(
        self,
        path: str | bytes | PathLike[str] | None = None,
        offset: int = 0,
        length: int | None = -1,
    ) -> bytes:
        """The bytes at a path, or a range of them; without a path those of the only member.

        A directory member is its tar stream.
        """
        member, entry = self._file(path)
        size = entry.size if entry is not None else self.members[member].size
        length = -1 if length is None else length
        if offset < 0:
            raise UsageError("the offset is not negative")
        if entry is None and not self._opened().states_sizes:
            data = self._read_all(member)
            return data[offset:] if length < 0 else data[offset : offset + length]
        end = size if length < 0 else min(size, offset + length)
        return self._read(member, entry, offset, end)

    def _file(self, path: str | bytes | PathLike[str] | None) -> tuple[int, Entry | None]:
        member, entry = self.locate(path)
        if entry is not None and entry.kind != "file":
            if entry.kind == "directory":
                raise IsADirectoryError(f"{entry.path!r} is a directory")
            raise UsageError(f"{entry.path!r} is a {entry.kind}, which has no content")
        return member, entry

    @overload
    def open(
        self, path: str | bytes | PathLike[str] | None = None, *, buffering: Literal[0]
    ) -> MemberFile: ...
    @overload
    def open(
        self, path: str | bytes | PathLike[str] | None = None, buffering: Literal[-1, 1] = -1
    ) -> io.BufferedReader: ...
    @overload
    def open(
        self, path: str | bytes | PathLike[str] | None = None, buffering: int = -1
    ) -> MemberFile | io.BufferedReader: ...
    def open(
        self, path: str | bytes | PathLike[str] | None = None, buffering: int = -1
    ) -> MemberFile | io.BufferedReader:
        """A seekable binary file; with buffering=0 a MemberFile, otherwise an io.BufferedReader
        over one."""
        if not isinstance(buffering, int):
            raise TypeError("buffering is a number of bytes: files in archives are binary")
        member, entry = self._file(path)
        if entry is None and not self._opened().states_sizes:
            raise UnsupportedError(
                "files of other formats do not state the size of their content: read, "
                "RefrainFile and decompress read it from front to back"
            )
        name = entry.path if entry is not None else self.members[member].name
        raw = MemberFile(self, member, entry, name)
        if buffering == 0:
            return raw
        return io.BufferedReader(raw, BUFFER_BYTES if buffering < 2 else buffering)

    def children(self, path: str | bytes | PathLike[str] = "") -> list[Entry | Member]:
        """What is directly in a directory. At the top of an archive with several members: these."""
        native = self._opened()
        plain = os.fsencode(path).strip(b"/")
        if not plain:
            if native.member_count != 1 or not has_entries(self.members[0]):
                return list(self.members)
            return list(native.children(0, b""))
        member, entry = self.locate(plain)
        if entry is None:
            if not has_entries(self.members[member]):
                raise NotADirectoryError(f"{os.fsdecode(plain)!r} is not a directory")
            return list(native.children(member, b""))
        if entry.kind != "directory":
            raise NotADirectoryError(f"{entry.path!r} is not a directory")
        return list(native.children(member, self._inner(entry)))

    def below(self, member: Member, path: str | bytes = "") -> list[Entry]:
        """All entries of a member at or below a path of the archive, in one pass."""
        native = self._opened()
        within = os.fsencode(path).strip(b"/")
        if native.member_count > 1 and within:
            name = os.fsencode(member.name)
            if within != name and not within.startswith(name + b"/"):
                return []
            within = within[len(name) + 1 :]
        return list(native.below(member.number, within))

    def _inner(self, entry: Entry) -> bytes:
        """The path of an entry in its member."""
        path = os.fsencode(entry.path)
        if self._opened().member_count > 1:
            path = path[len(os.fsencode(self.members[entry.member].name)) + 1 :]
        return path

    def extract(
        self,
        directory: str | PathLike[str],
        paths: Sequence[str | bytes] | None = None,
        *,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> list[Problem]:
        """Restores files with their metadata below a directory: everything, or these paths.

        The only directory member is restored as that directory, several members below it by name.
        Returns what could not be restored. Damage ends it: see recover.
        """
        if isinstance(paths, (str, bytes)):
            raise TypeError("paths are a list, also of one path")
        if paths is None and not self._opened().states_sizes:
            # A file of another format, which is read from front to back.
            file, options = self._recipe
            return restore_all(file, directory, options, False, overwrite, progress).problems
        wanted: dict[int, list[bytes]] = {}
        if paths is None:
            wanted = {member.number: [] for member in self.members}
        else:
            for path in paths:
                member, entry = self.locate(path)
                within = wanted.setdefault(member, [])
                if entry is not None:
                    within.append(self._inner(entry))
        problems: list[Problem] = []
        for number, within in wanted.items():
            only = len(self.members) == 1 and has_entries(self.members[number])
            to = (directory, not only, unnamed(self._recipe[0]))
            found = self._restore(number, to, within, overwrite, progress)
            start = self.members[number].name + "/" if len(self.members) > 1 else ""
            problems += [Problem(start + os.fsdecode(path), reason) for path, reason in found]
        return problems

    def _restore(
        self,
        member: int,
        to: tuple[str | PathLike[str], bool, bytes],
        paths: list[bytes],
        overwrite: bool,
        progress: Progress | None,
    ) -> list[tuple[bytes, str]]:
        native, job = self._opened(), Job()
        return run(
            job,
            self._inputs,
            lambda: native.restore(job, member, to, paths, overwrite, progress),
        )

    def close(self) -> None:
        """Ends the use of the archive; its files cannot be read any more."""
        self._is_open = False
        if "_native" in self.__dict__:
            del self._native

    @property
    def closed(self) -> bool:
        return not self._is_open

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self._is_open:
            return "<Archive, closed>"
        return f"<Archive with {self._native.member_count} members>"

    def __reduce__(self) -> Any:
        """Archives that were opened by a path or URL can be sent to other processes."""
        file, options = self._recipe
        if not isinstance(file, (str, os.PathLike, bytes)):
            raise TypeError("an archive of a file object cannot be sent to another process")
        return (Archive, (file, options))


def _joined(directory: bytes, target: bytes) -> bytes | None:
    """A relative path from a directory; None if it leaves the member."""
    if target.startswith(b"/"):
        return None
    parts = directory.split(b"/") if directory else []
    for part in target.split(b"/"):
        if part == b"..":
            if not parts:
                return None
            parts.pop()
        elif part not in (b"", b"."):
            parts.append(part)
    return b"/".join(parts)


def open(
    file: str | PathLike[str] | Buffer | Readable,
    *,
    password: str | bytes | None = None,
    identities: Sequence[str] | None = None,
    threads: int | None = None,
    memory: int | None = None,
    temporary: str | PathLike[str] | None = None,
    generation: int | str | None = None,
) -> Archive:
    """Opens an archive: a path, a URL (http, https, s3; others through fsspec), a buffer with the
    archive itself, or a seekable file object.

    memory is the budget in bytes for decoded blocks and the index (1 GiB by default), temporary a
    directory. A damaged archive is opened, too, if anything is left: see Archive.is_damaged.
    """
    options = reading_options(
        password=password,
        identities=identities,
        threads=threads,
        memory=memory,
        temporary=temporary,
        generation=generation,
    )
    return Archive(file, options)


__all__ = ["Archive", "Entries", "MemberFile", "open"]
