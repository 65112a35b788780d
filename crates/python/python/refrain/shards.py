"""Shard archives as one file system: a manifest says which shard has which file.

    fsspec.filesystem("refrain-shards", fo="s3://bucket/shards/manifest.rfn")

The manifest is an archive with two members: `shards`, a line of JSON for each, and `paths`, sorted
lines with path, size and the number of the shard. A path is found by bisection, so a manifest of
any size is read in a few small pieces.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

import fsspec
from fsspec.spec import AbstractFileSystem

from ._archive import Archive, MemberFile, open as open_archive
from ._errors import DamagedError
from ._verbs import compress
from .fsspec import opened

MANIFEST = "manifest.rfn"

# What stays as it is in a path: everything printable but the percent sign.
_SAFE = "/ !\"#$&'()*+,-.:;<=>?@[\\]^_`{|}~"

# How much is read around a place of the list of paths.
_PIECE_BYTES = 4096

# How many shards are kept open.
_SHARDS_OPEN = 16


def quoted(path: str) -> bytes:
    """A path as the manifest has it, and by which it is sorted."""
    return quote_from_bytes(os.fsencode(path), _SAFE).encode()


def _plain(path: bytes) -> str:
    return os.fsdecode(unquote_to_bytes(path))


def manifest_of(shards: list[tuple[dict[str, Any], list[tuple[str, int]]]]) -> bytes:
    """The manifest of shards with their files. Equal for equal shards, in any order."""
    ordered = sorted(shards, key=lambda shard: shard[0]["name"])
    lines = sorted(
        (quoted(path), size, number)
        for number, (_, files) in enumerate(ordered)
        for path, size in files
    )
    facts = "".join(json.dumps(fact, sort_keys=True) + "\n" for fact, _ in ordered)
    paths = b"".join(b"%s\t%d\t%d\n" % line for line in lines)
    return compress({"shards": facts.encode(), "paths": paths}, purpose="serve")


class _Lines:
    """The sorted lines of the manifest."""

    def __init__(self, file: MemberFile) -> None:
        self._file = file
        self.size = file.size

    def _line_after(self, offset: int) -> tuple[int, bytes]:
        """The first line that begins at or after an offset, and where it begins."""
        at = offset
        if offset > 0:
            at = offset - 1
            while at < self.size:
                piece = self._file.pread(_PIECE_BYTES, at)
                end = piece.find(b"\n")
                if end >= 0:
                    at += end + 1
                    break
                at += len(piece)
        return at, self._line_at(at)

    def _line_at(self, start: int) -> bytes:
        line = b""
        while start + len(line) < self.size:
            piece = self._file.pread(_PIECE_BYTES, start + len(line))
            end = piece.find(b"\n")
            if end >= 0:
                return line + piece[: end + 1]
            line += piece
        return line

    def find(self, key: bytes) -> int:
        """Where the first line begins whose path is not less than the key."""
        low, high = 0, self.size
        while low < high:
            middle = (low + high) // 2
            at, line = self._line_after(middle)
            if at < high and line.split(b"\t", 1)[0] < key:
                low = at + len(line)
            else:
                high = middle
        return self._line_after(low)[0]

    def after(self, offset: int) -> Iterator[tuple[int, str, bytes, int, int]]:
        """The lines from an offset on: the offset behind each, path, quoted path, size, shard."""
        rest, base = b"", offset
        while base < self.size or rest:
            piece = self._file.pread(1 << 16, base)
            base += len(piece)
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                offset += len(line) + 1
                path, size, shard = line.split(b"\t")
                yield offset, _plain(path), path, int(size), int(shard)
            if not piece:
                return


class ShardsFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """The files of all shards, read-only."""

    protocol = "refrain-shards"
    root_marker = ""
    cachable = True

    def __init__(
        self,
        fo: str = "",
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        memory: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.fo = fo
        self._target = (target_protocol, target_options or {})
        self._memory = memory
        self._manifest = open_archive(opened(fo, *self._target))
        facts = self._manifest.read("shards").decode().splitlines()
        self.shards: list[dict[str, Any]] = [json.loads(fact) for fact in facts]
        self._lines = _Lines(self._manifest.open("paths", buffering=0))
        self._open_shards: OrderedDict[int, Archive] = OrderedDict()

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        stripped = super()._strip_protocol(path)
        return stripped.strip("/") if isinstance(stripped, str) else stripped

    def _found(self, path: str) -> tuple[int, int] | None:
        """Size and shard of a file."""
        key = quoted(path)
        for _, _, found, size, shard in self._lines.after(self._lines.find(key)):
            return (size, shard) if found == key else None
        return None

    def _below(self, path: str) -> Iterator[tuple[int, str, bytes, int, int]]:
        prefix = quoted(path) + b"/" if path else b""
        for line in self._lines.after(self._lines.find(prefix)):
            if not line[2].startswith(prefix):
                return
            yield line

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        if path and (found := self._found(path)) is not None:
            return {"name": path, "size": found[0], "type": "file", "shard": found[1]}
        if not path or next(self._below(path), None) is not None:
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        path = self._strip_protocol(path)
        start = len(path) + 1 if path else 0
        prefix = quoted(path) + b"/" if path else b""
        facts: list[dict[str, Any]] = []
        at: int | None = self._lines.find(prefix)
        while at is not None:
            at, found = self._children(at, prefix, start, facts)
            if found is not None:
                # Everything below a directory is skipped: the byte after the slash is the zero.
                at = self._lines.find(found + b"0")
        if not facts:
            fact = self.info(path)
            facts = [fact] if fact["type"] == "file" else []
        return facts if detail else [fact["name"] for fact in facts]

    def _children(
        self, at: int, prefix: bytes, start: int, facts: list[dict[str, Any]]
    ) -> tuple[int | None, bytes | None]:
        """Adds files of a directory, up to the next directory in it, whose path is returned."""
        for _, name, line, size, shard in self._lines.after(at):
            if not line.startswith(prefix):
                return None, None
            slash = line.find(b"/", len(prefix))
            if slash >= 0:
                end = name.index("/", start)
                facts.append({"name": name[:end], "size": 0, "type": "directory"})
                return at, line[:slash]
            facts.append({"name": name, "size": size, "type": "file", "shard": shard})
        return None, None

    def find(
        self,
        path: str,
        maxdepth: int | None = None,
        withdirs: bool = False,
        detail: bool = False,
        **kwargs: Any,
    ) -> Any:
        path = self._strip_protocol(path)
        if maxdepth is not None or withdirs:
            return super().find(path, maxdepth, withdirs, detail, **kwargs)
        facts = {
            name: {"name": name, "size": size, "type": "file", "shard": shard}
            for _, name, _, size, shard in self._below(path)
        }
        if not facts and path and self._found(path) is not None:
            facts[path] = self.info(path)
        return facts if detail else sorted(facts)

    def _shard(self, number: int) -> Archive:
        archive = self._open_shards.get(number)
        if archive is None:
            url = f"{str(self.fo).rpartition('/')[0]}/{self.shards[number]['name']}"
            archive = open_archive(opened(url, *self._target), memory=self._memory)
            root_hash = archive.info()["root_hash"]
            if root_hash is None or root_hash.hex() != self.shards[number]["root_hash"]:
                raise DamagedError(f"{url} is not the shard that the manifest names")
            self._open_shards[number] = archive
            while len(self._open_shards) > _SHARDS_OPEN:
                self._open_shards.popitem(last=False)
        self._open_shards.move_to_end(number)
        return archive

    def _open(self, path: str, mode: str = "rb", *args: Any, **kwargs: Any) -> Any:
        if mode != "rb":
            raise OSError("shards are read-only")
        path = self._strip_protocol(path)
        found = self._found(path)
        if found is None:
            raise FileNotFoundError(path)
        return self._shard(found[1]).open(path)


fsspec.register_implementation("refrain-shards", ShardsFileSystem, clobber=True)
