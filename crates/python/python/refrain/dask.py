"""A data set of any size as shard archives, written by the workers of a dask cluster.

    archive("s3://bucket/data", "s3://bucket/shards", client)

Every shard is a pure function of its files: the same bytes on any worker, any number of times. It
is created only where there is none, so workers that die, tasks that run twice and shards that turn
out to be damaged all lead to the same shards, and to the same manifest. `refrain.shards` reads it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import re
import tarfile
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import fsspec

from . import __version__
from ._archive import open as open_archive
from ._errors import RefrainError, UsageError
from ._verbs import compress, test
from .shards import MANIFEST, manifest_of, quoted

# A group of neighbours is at most this part of a shard.
_GROUPS_IN_SHARD = 8

# The sketch of a group: the least hashes of what follows certain bytes in its first files. Python
# sketches 10 MB/s: with 64 KiB of each file, trees of sources took longer than their compression.
_SKETCH_HASHES = 64
_SKETCH_FILES = 8
_SKETCH_BYTES = 1 << 13
_ANCHOR = re.compile(rb"[\x00\x0a\x20\x3c\x80\xff](?=(.{24}))", re.DOTALL)

# What is sent to the scheduler at once: a sketch has eight files, a shard may have 100,000.
_TASKS_AT_ONCE = 1000

# Groups that have this part of their sketches in common belong together.
_SIMILAR = 0.1

_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Source:
    """A file of the data set."""

    path: str
    url: str
    size: int
    version: str


@dataclass(frozen=True)
class Shard:
    """What a task makes: an archive of these files, in this order."""

    files: tuple[Source, ...]
    target: str
    options: tuple[tuple[str, Any], ...]
    source_options: str
    target_options: str

    @property
    def name(self) -> str:
        """A name by what the shard is made of, so that other contents have other names."""
        facts = [[file.path, file.size, file.version] for file in self.files]
        text = json.dumps([__version__, facts, self.options], sort_keys=True)
        return f"shard-{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}.rfn"

    def __reduce__(self) -> tuple[Any, ...]:
        # It goes through the scheduler. Paths repeat, and are most of it.
        files = [(file.path, file.url, file.size, file.version) for file in self.files]
        facts = (files, self.target, self.options, self.source_options, self.target_options)
        return _shard, (zlib.compress(pickle.dumps(facts), 1),)


def _shard(packed: bytes) -> Shard:
    files, *rest = pickle.loads(zlib.decompress(packed))
    return Shard(tuple(Source(*file) for file in files), *rest)


@dataclass
class _Group:
    files: list[Source]
    size: int = 0
    sketch: frozenset[int] = frozenset()


def sources(url: str, options: dict[str, Any]) -> list[Source]:
    """The files below a URL, in the order of their paths. Links to files are those files.

    Raises FileNotFoundError if there are none.
    """
    filesystem, root = fsspec.core.url_to_fs(url, **options)
    found, left_out = [], []
    for name, fact in filesystem.find(root, detail=True).items():
        if fact.get("islink") and os.path.isfile(name):
            # The facts are those of the link.
            led_to = os.stat(name)
            fact = {"type": "file", "size": led_to.st_size, "mtime": led_to.st_mtime}
        if fact["type"] != "file":
            left_out.append(name)
            continue
        path = name[len(root) :].lstrip("/") or os.path.basename(name)
        version = fact.get("ETag") or fact.get("mtime") or fact.get("created") or ""
        found.append(Source(path, filesystem.unstrip_protocol(name), fact["size"], str(version)))
    if not found:
        raise FileNotFoundError(f"there are no files below {url}")
    if left_out:
        text = (
            f"{len(left_out)} that are no files are not archived (links to directories or to "
            f"nothing, sockets and others), the first of them {left_out[0]}"
        )
        warnings.warn(text, stacklevel=2)
    return sorted(found, key=lambda source: quoted(source.path))


def _groups(files: list[Source], bytes_max: int) -> list[_Group]:
    """Neighbours: files of one directory, as many as a group may have."""
    groups: list[_Group] = []
    directory: str | None = None
    for file in files:
        parent = os.path.dirname(file.path)
        if parent != directory or groups[-1].size + file.size > bytes_max:
            groups.append(_Group([]))
            directory = parent
        groups[-1].files.append(file)
        groups[-1].size += file.size
    return groups


def sketch(files: tuple[Source, ...], options: str) -> frozenset[int]:
    """Hashes that files with passages in common share, wherever in the files those are."""
    hashes: set[int] = set()
    for file in files[:_SKETCH_FILES]:
        with fsspec.open(file.url, "rb", **json.loads(options)) as opened:
            data = opened.read(_SKETCH_BYTES)
        hashes.update(zlib.crc32(found.group(1)) for found in _ANCHOR.finditer(data))
    return frozenset(sorted(hashes)[:_SKETCH_HASHES])


def _clusters(groups: list[_Group]) -> list[list[_Group]]:
    """Groups with passages in common, in the order of their first group."""
    clusters: list[list[_Group]] = []
    owners: dict[int, int] = {}
    for group in groups:
        votes = Counter(owners[found] for found in group.sketch if found in owners)
        number, count = max(votes.items(), key=lambda vote: (vote[1], -vote[0]), default=(0, 0))
        if count == 0 or count < _SIMILAR * len(group.sketch):
            number = len(clusters)
            clusters.append([])
        clusters[number].append(group)
        for found in group.sketch:
            owners.setdefault(found, number)
    return clusters


def _assign(groups: list[_Group], bytes_max: int) -> list[list[_Group]]:
    """Fills one shard after the other, so that similar groups meet, and neighbours otherwise."""
    shards: list[list[_Group]] = []
    size = 0
    for group in chain.from_iterable(_clusters(groups)):
        if not shards or size + group.size > bytes_max:
            shards.append([])
            size = 0
        shards[-1].append(group)
        size += group.size
    return shards


def plan(
    source: str,
    target: str,
    client: Any,
    *,
    shard_bytes: int = 1 << 30,
    sketches: bool = True,
    source_options: dict[str, Any] | None = None,
    target_options: dict[str, Any] | None = None,
    **options: Any,
) -> list[Shard]:
    """Which files go into which shard. Depends on nothing but names, sizes and contents."""
    read_options = json.dumps(source_options or {}, sort_keys=True)
    groups = _groups(sources(source, source_options or {}), shard_bytes // _GROUPS_IN_SHARD)
    if sketches:
        heads = [tuple(group.files[:_SKETCH_FILES]) for group in groups]
        futures = client.map(
            sketch, heads, options=read_options, pure=True, retries=3, batch_size=_TASKS_AT_ONCE
        )
        for group, found in zip(groups, client.gather(futures)):
            group.sketch = found
    return [
        Shard(
            tuple(file for group in planned for file in group.files),
            target.rstrip("/"),
            tuple(sorted(options.items())),
            read_options,
            json.dumps(target_options or {}, sort_keys=True),
        )
        for planned in _assign(groups, shard_bytes)
    ]


def _tar(shard: Shard) -> Iterator[bytes]:
    """The files as a tar stream, with nothing in it that depends on who makes it."""
    options = json.loads(shard.source_options)
    for file in shard.files:
        info = tarfile.TarInfo(file.path)
        info.size = file.size
        yield info.tobuf(tarfile.PAX_FORMAT)
        left = file.size
        with fsspec.open(file.url, "rb", **options) as opened:
            while left and (data := opened.read(min(left, _READ_BYTES))):
                left -= len(data)
                yield data
        if left:
            raise OSError(f"{file.url} is shorter than it was when the shards were planned")
        yield bytes(-file.size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _publish(filesystem: Any, local: str, path: str) -> None:
    """Creates a file from one on this machine, complete or not at all.

    Raises FileExistsError if there is one.
    """
    protocols = filesystem.protocol
    if "file" in ((protocols,) if isinstance(protocols, str) else protocols):
        # In the same directory, so that it can be linked.
        beside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
        try:
            filesystem.put_file(local, beside)
            os.link(beside, path)
        finally:
            if os.path.exists(beside):
                os.unlink(beside)
        return
    filesystem.put_file(local, path, mode="create")


def _facts(filesystem: Any, path: str) -> dict[str, Any]:
    """Tests a shard where it is, and describes it."""
    with filesystem.open(path, "rb") as file:
        test(file)
    with filesystem.open(path, "rb") as file, open_archive(file) as archive:
        info = archive.info()
    return {
        "name": os.path.basename(path),
        "archive_bytes": info["archive_bytes"],
        "root_hash": info["root_hash"].hex(),
    }


def build(shard: Shard) -> dict[str, Any]:
    """Makes a shard, unless it exists and is whole. Runs on a worker."""
    filesystem, root = fsspec.core.url_to_fs(shard.target, **json.loads(shard.target_options))
    path = f"{root}/{shard.name}"
    for _ in range(3):
        if filesystem.exists(path):
            try:
                return _facts(filesystem, path)
            except RefrainError:
                filesystem.rm_file(path)
                filesystem.invalidate_cache()
        with tempfile.TemporaryDirectory() as directory:
            local = os.path.join(directory, "shard.rfn")
            compress(_tar(shard), local, **dict(shard.options))
            test(local)
            try:
                _publish(filesystem, local, path)
            except FileExistsError:
                pass  # Another worker was faster: what it wrote is tested as well.
        filesystem.invalidate_cache()
    raise OSError(f"{path} is damaged each time that it is written")


def _check(
    shard_bytes: int = 1,
    sketches: bool = True,
    source_options: object = None,
    target_options: object = None,
    **options: Any,
) -> None:
    """Refuses what each worker would refuse."""
    if shard_bytes < 1:
        raise UsageError(f"shard_bytes is {shard_bytes}, but must be 1 or more")
    if options.get("password") is not None or options.get("recipients") is not None:
        raise UsageError("shards cannot be encrypted")
    compress(b"", **options)


def archive(source: str, target: str, client: Any = None, **options: Any) -> str:
    """Archives all files below the URL `source` as shards below `target` (file:// or s3://), and
    returns the URL of the manifest.

    client is that of a cluster (by default the current one). Options: shard_bytes, the content of
    a shard; sketches=False, if only neighbours are to meet; source_options and target_options for
    fsspec; level, codec and others as for refrain.compress, but no encryption.

    Raises FileNotFoundError if there are no files below the source. Warns of what is no file.
    """
    _check(**options)
    if client is None:
        import distributed

        client = distributed.get_client()
    shards = plan(source, target, client, **options)
    target_options = options.get("target_options") or {}
    filesystem, root = fsspec.core.url_to_fs(target.rstrip("/"), **target_options)
    filesystem.makedirs(root, exist_ok=True)
    facts = client.gather(client.map(build, shards, pure=False, retries=3))
    listed = [[(file.path, file.size) for file in shard.files] for shard in shards]
    manifest = manifest_of(list(zip(facts, listed)))
    path = f"{root}/{MANIFEST}"
    with tempfile.TemporaryDirectory() as directory:
        local = os.path.join(directory, MANIFEST)
        with io.open(local, "wb") as file:
            file.write(manifest)
        try:
            _publish(filesystem, local, path)
        except FileExistsError:
            if filesystem.cat_file(path) != manifest:
                filesystem.rm_file(path)
                _publish(filesystem, local, path)
    return f"{target.rstrip('/')}/{MANIFEST}"
