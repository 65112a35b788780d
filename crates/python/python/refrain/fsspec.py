"""Archives as a file system of fsspec, and .rfn as one of its compressions.

    refrain://docs/a.csv::s3://bucket/p.rfn    a file inside an archive, wherever that is
    fsspec.open("a.csv.rfn", compression="rfn")

The file system is registered by the package's metadata. The compression is registered when this
module is imported, which the first use of the file system does.
"""

from __future__ import annotations

import io
import os
from datetime import datetime, timezone
from typing import Any

import fsspec
from fsspec.asyn import AsyncFileSystem
from fsspec.caching import BlockCache
from fsspec.compression import register_compression
from fsspec.spec import AbstractFileSystem
from fsspec.utils import stringify_path

from ._archive import Archive, has_entries, open as open_archive
from ._errors import PathError
from ._file import RefrainFile
from ._refrain import Entry, Member

# The least that is asked of a store at once.
_REQUEST_BYTES = 1 << 18

# How many answers are kept: the index, and what is near to what was read.
_REQUESTS_KEPT = 64

_LOCAL = (None, "file", "local")


class _Ranges(io.RawIOBase):
    """An object of a store, which gives ranges."""

    def __init__(self, filesystem: AbstractFileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path
        self._size: int = filesystem.info(path)["size"]
        self._position = 0
        self._cache = BlockCache(_REQUEST_BYTES, self._request, self._size, _REQUESTS_KEPT)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(0, self._size - self._position)
        count = left if size is None or size < 0 else min(size, left)
        if count == 0:
            return b""
        data: bytes = self._cache._fetch(self._position, self._position + count)
        self._position += len(data)
        return data

    def _request(self, start: int, end: int) -> bytes:
        data: bytes = self._filesystem.cat_file(self._path, start=start, end=end)
        return data


def opened(fo: Any, protocol: str | None, options: dict[str, Any]) -> Any:
    """What `refrain.open` reads best for an inner URL."""
    if not isinstance(fo, (str, os.PathLike)):
        return fo
    path = stringify_path(fo)
    if protocol is None and "://" in path:
        protocol = path.split("://", 1)[0]
    if protocol in _LOCAL:
        return path.removeprefix("file://").removeprefix("local://")
    if protocol in ("http", "https") and not options:
        return path
    if "::" in path:
        filesystem, inner = fsspec.core.url_to_fs(path, protocol=protocol, **options)
    else:
        # Not by url_to_fs: an option may be called `url`, as that of dvc is.
        kind = fsspec.get_filesystem_class(protocol)
        filesystem = kind(**(kind._get_kwargs_from_urls(path) | options))
        inner = filesystem._strip_protocol(path)
    if isinstance(filesystem, AsyncFileSystem):
        return _Ranges(filesystem, inner)
    return filesystem.open(inner, "rb")


class RefrainFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """What an archive holds, read-only."""

    protocol = "refrain"
    root_marker = ""
    cachable = True

    def __init__(
        self,
        fo: Any = "",
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        password: str | bytes | None = None,
        threads: int | None = None,
        memory: int | None = None,
        generation: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.fo = fo
        source = opened(fo, target_protocol, target_options or {})
        self.archive: Archive = open_archive(
            source, password=password, threads=threads, memory=memory, generation=generation
        )

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        stripped = super()._strip_protocol(path)
        return stripped.strip("/") if isinstance(stripped, str) else stripped

    def _fact(self, found: Entry | Member) -> dict[str, Any]:
        """What fsspec tells of a file or directory."""
        if isinstance(found, Member):
            kind = "directory" if has_entries(found) else "file"
            fact = {"name": found.name, "size": found.size, "type": kind, "mode": found.mode}
            return {**fact, "mtime": found.modified, "islink": False}
        target: Entry | None = found
        if found.kind in ("symlink", "hardlink"):
            try:
                target = self.archive.locate(found.path)[1]
            except PathError:
                target = None
        kind = target.kind if target is not None else "other"
        return {
            "name": found.path,
            "size": target.size if target is not None else 0,
            "type": kind if kind in ("file", "directory") else "other",
            "mode": found.mode,
            "mtime": found.modified,
            "islink": found.kind == "symlink",
        }

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        if not path:
            return {"name": "", "size": 0, "type": "directory"}
        try:
            member, entry = self.archive.locate(path)
        except PathError:
            # A directory that only paths of other entries mention.
            if self.archive.children(path.rpartition("/")[0]) and self._below(path):
                return {"name": path, "size": 0, "type": "directory"}
            raise
        found = entry if entry is not None else self.archive.members[member]
        return {**self._fact(found), "name": path}

    def _below(self, path: str) -> bool:
        parent = path.rpartition("/")[0]
        try:
            names = [self._fact(child)["name"] for child in self.archive.children(parent)]
        except OSError:
            return False
        return path in names

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        path = self._strip_protocol(path)
        try:
            found = [self._fact(child) for child in self.archive.children(path)]
        except NotADirectoryError:
            found = [self.info(path)]
        return found if detail else [fact["name"] for fact in found]

    def find(
        self,
        path: str,
        maxdepth: int | None = None,
        withdirs: bool = False,
        detail: bool = False,
        **kwargs: Any,
    ) -> Any:
        """All files below a path, in one pass over the entries."""
        path = self._strip_protocol(path)
        if maxdepth is not None:
            return super().find(path, maxdepth, withdirs, detail, **kwargs)
        facts = {}
        for fact in self._everything(path):
            if fact["type"] != "directory" or withdirs and fact["name"] != path:
                facts[fact["name"]] = fact
        if not facts and path and self.exists(path) and self.isfile(path):
            facts[path] = self.info(path)
        names = sorted(facts)
        return {name: facts[name] for name in names} if detail else names

    def _everything(self, path: str) -> Any:
        for member in self.archive.members:
            if not has_entries(member):
                if not path or member.name == path or member.name.startswith(path + "/"):
                    yield self._fact(member)
                continue
            for entry in self.archive.below(member, path):
                yield self._fact(entry)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        if mode != "rb":
            raise OSError("archives are read-only")
        return self.archive.open(self._strip_protocol(path))

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any
    ) -> bytes:
        path = self._strip_protocol(path)
        size = self.info(path)["size"] if (start or 0) < 0 or (end or 0) < 0 else 0
        first = (start or 0) + (size if (start or 0) < 0 else 0)
        last = end if end is None or end >= 0 else end + size
        length = -1 if last is None else max(0, last - first)
        return self.archive.read(path, max(0, first), length)

    def modified(self, path: str) -> datetime:
        time = self.info(path).get("mtime")
        if time is None:
            raise FileNotFoundError(path)
        return datetime.fromtimestamp(time, tz=timezone.utc)

    def ukey(self, path: str) -> str:
        fact = self.info(path)
        return f"{self.archive.info()['root_hash']!r} {fact['name']} {fact['size']}"


def _compressed(infile: Any, mode: str = "rb", **options: Any) -> RefrainFile:
    # The engine reads files of this machine itself.
    is_local = type(infile).__name__ == "LocalFileOpener" and "r" in mode
    return RefrainFile(fileobj=infile.f if is_local else infile, mode=mode, **options)


register_compression("rfn", _compressed, "rfn", force=True)
