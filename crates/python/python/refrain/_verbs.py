"""compress, decompress and test: whole archives at once."""

from __future__ import annotations

import os

from . import _refrain
from ._endpoints import Input, output as _output, temporary_directory, unnamed
from ._errors import UsageError
from ._problems import Problem
from ._refrain import Job
from ._runs import run

# Type checkers take it for true. The module typing would take longer to import than the package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from os import PathLike
    from typing import Any, overload

    from typing_extensions import Buffer, Unpack

    from ._types import Progress, Readable, ReadingOptions, Writable, WritingOptions
else:

    def overload(function):
        return function


class Summary:
    """What was written."""

    def __init__(
        self,
        content_bytes: int,
        archive_bytes: int,
        store_bytes: int,
        members: int,
        files: int,
        problems: int,
        root_hash: bytes,
    ) -> None:
        self.content_bytes = content_bytes
        self.archive_bytes = archive_bytes
        self.store_bytes = store_bytes
        self.members = members
        self.files = files
        self.problems = problems
        self.root_hash = root_hash

    def __repr__(self) -> str:
        sizes = f"{self.content_bytes} -> {self.archive_bytes} bytes"
        return f"<Summary of {self.members} members, {sizes}>"


def _password(password: str | bytes) -> bytes:
    if isinstance(password, str):
        return password.encode()
    if not isinstance(password, bytes):
        raise TypeError(f"a password is text or bytes, not {type(password).__name__}")
    return password


def check_options(verb: str, options: Mapping[str, Any], *known: Callable[..., object]) -> None:
    """Refuses what none of the functions that take the options knows."""
    names = [name for function in known for name in parameters(function)]
    for option in options:
        if option not in names:
            raise TypeError(f"{verb} has no option {option!r}; it has: {', '.join(names)}")


def parameters(function: Callable[..., object]) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def reading_options(
    password: str | bytes | None = None,
    identities: Iterable[str] | None = None,
    threads: int | None = None,
    memory: int | None = None,
    temporary: str | PathLike[str] | None = None,
    content_max: int | None = None,
    generation: int | str | None = None,
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if password is not None:
        options["password"] = _password(password)
    if identities is not None:
        options["identities"] = list(identities)
    if threads is not None:
        options["threads"] = threads
    if memory is not None:
        options["memory"] = memory
    if content_max is not None:
        options["content_max"] = content_max
    if generation is not None:
        options["generation"] = str(generation)
    options["temporary"] = temporary if temporary is not None else temporary_directory()
    return options


def writing_options(
    level: int | None = None,
    purpose: str | None = None,
    codec: str | None = None,
    block_bytes: int | None = None,
    threads: int | None = None,
    memory: int | None = None,
    reach: int | None = None,
    temporary: str | PathLike[str] | None = None,
    password: str | bytes | None = None,
    recipients: Iterable[str] | None = None,
    recovery: str | None = None,
) -> dict[str, Any]:
    return {
        "level": level,
        "purpose": purpose,
        "codec": codec,
        "block_bytes": block_bytes,
        "threads": threads,
        "memory": memory,
        "reach": reach,
        "temporary": temporary if temporary is not None else temporary_directory(),
        "password": _password(password) if password is not None else None,
        "recipients": list(recipients) if recipients is not None else None,
        "recovery": recovery,
    }


@overload
def compress(
    data: Buffer | str | PathLike[str] | Readable | Iterable[Buffer] | Mapping[str, Any],
    output: None = None,
    *,
    name: str | bytes | None = None,
    progress: Progress | None = None,
    **options: Unpack[WritingOptions],
) -> bytes: ...
@overload
def compress(
    data: Buffer | str | PathLike[str] | Readable | Iterable[Buffer] | Mapping[str, Any],
    output: str | PathLike[str] | Writable,
    *,
    name: str | bytes | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Unpack[WritingOptions],
) -> Summary: ...
def compress(
    data: Buffer | str | PathLike[str] | Readable | Iterable[Buffer] | Mapping[str, Any],
    output: str | PathLike[str] | Writable | None = None,
    *,
    name: str | bytes | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Unpack[WritingOptions],
) -> bytes | Summary:
    """Compresses a buffer, a file or directory (by its path), a file object or an iterable of
    buffers; of a mapping each value becomes a member with its key as name.

    Returns the archive or, with an output (a path or a file object), a summary of it. A file
    appears under its name when it is complete, or not at all.

    Options: level (1 to 9), purpose ("archive", "serve"), codec ("zstd:19"), block_bytes,
    threads, memory (bytes), reach (bytes), temporary (a directory), password, recipients,
    recovery ("5%").

    progress(content_bytes_done, content_bytes_total or None, archive_bytes) is called now and
    then. An exception that it raises ends the run.
    """
    check_options("compress", options, writing_options)
    job = Job()
    chosen = writing_options(**options)
    to = _output(output, overwrite)
    inputs = Input(job)
    given: Any = data
    try:
        if hasattr(given, "keys"):
            if name is not None:
                raise UsageError("each member of a mapping has its key as its name")
            members = [inputs.member(value, key) for key, value in given.items()]
        else:
            members = [inputs.member(data, name)]
    except BaseException:
        job.cancel()
        raise

    def verb() -> tuple[dict[str, Any], bytes | None]:
        return _refrain.compress(job, members, to, chosen, progress)

    summary, archive = run(job, inputs, verb)
    return archive if archive is not None else Summary(**summary)


@overload
def decompress(
    data: Buffer | str | PathLike[str] | Readable | Iterable[Buffer],
    output: None = None,
    *,
    progress: Progress | None = None,
    **options: Unpack[ReadingOptions],
) -> bytes: ...
@overload
def decompress(
    data: Buffer | str | PathLike[str] | Readable | Iterable[Buffer],
    output: str | PathLike[str] | Writable,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ReadingOptions],
) -> None: ...
def decompress(
    data: Buffer | str | PathLike[str] | Readable | Iterable[Buffer],
    output: str | PathLike[str] | Writable | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ReadingOptions],
) -> bytes | None:
    """The content of an archive with one member; of a directory the tar stream. Also reads gzip,
    xz, zstd, bzip2, lz4 and lrzip.

    The archive is a buffer, a path or URL, a file object or an iterable of buffers. Returns the
    content, or writes it to a path or a file object. Everything is compared with its hash.

    Options: password, identities, threads, memory (bytes), temporary (a directory), content_max
    (bytes), generation.
    """
    check_options("decompress", options, reading_options)
    job = Job()
    chosen = reading_options(**options)
    to = _output(output, overwrite)
    inputs = Input(job)
    source = inputs.any_access(data)
    return run(job, inputs, lambda: _refrain.decompress(job, source, to, chosen, progress))


def test(
    data: Buffer | str | PathLike[str] | Readable | Iterable[Buffer],
    *,
    progress: Progress | None = None,
    **options: Unpack[ReadingOptions],
) -> int:
    """Decodes everything and compares it with its hashes. Returns the bytes of content.

    Raises DamagedError at the first byte that is wrong. Options are those of decompress, without
    generation.
    """
    check_options("test", options, reading_options)
    if options.get("generation") is not None:
        raise UsageError("test checks all generations")
    job = Job()
    chosen = reading_options(**options)
    inputs = Input(job)
    source = inputs.any_access(data)
    return run(job, inputs, lambda: _refrain.test(job, source, chosen, progress))


class Recovery:
    """What is left of a damaged archive.

    problems names every file that was not restored, or not as it was. lost_entries says how many
    are lost with their names, as far as that is known: incomplete_lists says in how many
    directories and tar members there may be more. Without any of these everything was restored,
    also if is_damaged is true. incomplete_bytes is the length of what follows the last complete
    generation, if a file of generations was cut off or its writer was killed.
    """

    def __init__(
        self,
        problems: list[Problem],
        lost_entries: int,
        incomplete_lists: int,
        incomplete_bytes: int,
        is_damaged: bool,
    ) -> None:
        self.problems = problems
        self.lost_entries = lost_entries
        self.incomplete_lists = incomplete_lists
        self.incomplete_bytes = incomplete_bytes
        self.is_damaged = is_damaged

    @property
    def is_complete(self) -> bool:
        """Whether everything was restored that the archive had."""
        lost = self.lost_entries or self.incomplete_lists or self.incomplete_bytes
        return not self.problems and not lost

    def __repr__(self) -> str:
        state = "complete" if self.is_complete else "incomplete"
        return f"<Recovery, {state}, {len(self.problems)} problems>"


def recover(
    data: Buffer | str | PathLike[str] | Readable,
    directory: str | PathLike[str],
    *,
    keep_broken: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Unpack[ReadingOptions],
) -> Recovery:
    """Restores below a directory what is intact of an archive that may be damaged or cut off, like
    Archive.extract: of each file everything, or nothing.

    With keep_broken damaged files are restored, too, with zeros for what is missing. The archive is
    a buffer, a path or URL, or a seekable file object. Raises DamagedError if it finds no part of
    an archive. Options are those of decompress.
    """
    check_options("recover", options, reading_options)
    chosen = reading_options(**options)
    return restore_all(data, directory, chosen, keep_broken, overwrite, progress)


def restore_all(
    data: Any,
    directory: str | PathLike[str],
    chosen: dict[str, Any],
    keep_broken: bool,
    overwrite: bool,
    progress: Progress | None,
) -> Recovery:
    job = Job()
    inputs = Input(job)
    source = inputs.random_access(data)

    def verb() -> Recovery:
        to = (directory, unnamed(data))
        found, entries, lists, incomplete_bytes, is_damaged = _refrain.recover(
            job, source, to, keep_broken, overwrite, chosen, progress
        )
        problems = [
            Problem(os.fsdecode(path), reason, size, missing, is_kept)
            for path, reason, size, missing, is_kept in found
        ]
        return Recovery(problems, entries, lists, incomplete_bytes, is_damaged)

    return run(job, inputs, verb)
