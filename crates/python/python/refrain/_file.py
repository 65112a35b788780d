"""RefrainFile: the content of an archive as a file, like gzip.GzipFile and lzma.LZMAFile."""

from __future__ import annotations

import io
import os
import sys
from _thread import allocate_lock
from errno import EEXIST, EISDIR, ENOENT

from . import _refrain
from ._archive import BUFFER_BYTES, open as open_archive
from ._endpoints import Input, is_path, is_seekable, output
from ._errors import FileExistsAlreadyError, LimitError, MissingFileError, UsageError
from ._refrain import Job, Pipe
from ._runs import run
from ._verbs import check_options, reading_options, writing_options

# Type checkers take it for true. The module typing would take longer to import than the package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike
    from typing import Any, Literal, overload

    from typing_extensions import Buffer, Unpack

    from ._types import FileOptions
else:

    def overload(function):
        return function


# Smaller pieces are collected before they go to the engine.
_WRITE_BYTES = 1 << 17


class _Background:
    """A run of the engine in a thread of its own."""

    def __init__(self, job: Job, inputs: Input | None, verb: Callable[[], object]) -> None:
        import threading

        self.exception: BaseException | None = None
        self.job = job
        self._thread = threading.Thread(target=self._run, args=(inputs, verb), daemon=True)
        self._thread.start()

    def _run(self, inputs: Input | None, verb: Callable[[], object]) -> None:
        try:
            run(self.job, inputs, verb)
        except BaseException as exception:
            self.exception = exception

    def finish(self) -> None:
        """Waits for the end, and raises the exception of the run."""
        try:
            self._thread.join()
        except BaseException:
            self.job.cancel()
            raise
        if self.exception is not None:
            exception, self.exception = self.exception, None
            raise exception


class _Stream(io.RawIOBase):
    """Content that is decoded in the background while it is read."""

    def __init__(self, file: Any, options: dict[str, Any]) -> None:
        job = Job()
        inputs = Input(job)
        source = inputs.any_access(file)
        self._pipe = Pipe(job)
        to = ("pipe", self._pipe, False)
        self._job = job
        self._background = _Background(
            job, inputs, lambda: _refrain.decompress(job, source, to, options, None)
        )

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        if self.closed:
            raise UsageError("the file is closed")
        try:
            count = self._pipe.readinto(buffer)
        except OSError:
            self._background.finish()
            raise
        if count == 0 and memoryview(buffer).nbytes > 0:
            self._background.finish()
        return count

    def close(self) -> None:
        if not self.closed and "_pipe" in self.__dict__:
            self._job.cancel()
            self._pipe.close_reader()
        super().close()


class RefrainFile(io.BufferedIOBase):
    """The content of an archive with one member, as a binary file.

    Reading seeks quickly to any place where the archive can be seeked; what cannot seek (a pipe, a
    socket) is read forward. Writing makes an archive with one member without a name. It appears
    when the file is closed; if a `with` block ends by an exception, there is none.
    """

    def __init__(
        self,
        filename: str | PathLike[str] | Any = None,
        mode: str = "rb",
        fileobj: Any = None,
        *,
        member: str | bytes | None = None,
        **options: Unpack[FileOptions],
    ) -> None:
        self._reader: io.BufferedReader | None = None
        self._background: _Background | None = None
        file = fileobj if fileobj is not None else filename
        if file is None:
            raise UsageError("a file name or a file object is needed")
        if not is_path(file) and not hasattr(file, "read") and not hasattr(file, "write"):
            raise TypeError("a file name or a file object is needed")
        self.name = os.fspath(file) if is_path(file) else getattr(file, "name", "")
        if mode in ("r", "rb"):
            check_options("RefrainFile, to read,", options, reading_options)
            self.mode = "rb"
            self._open_to_read(file, member, options)
        elif mode in ("w", "wb", "x", "xb"):
            check_options("RefrainFile, to write,", options, writing_options)
            self.mode = "wb"
            self._open_to_write(file, "x" not in mode, options)
        else:
            raise UsageError(f"the mode is 'rb', 'wb' or 'xb', not {mode!r}")

    def _open_to_read(
        self, file: Any, member: str | bytes | None, options: Mapping[str, Any]
    ) -> None:
        if is_path(file) or is_seekable(file) and file.tell() == 0:
            limit = options.get("content_max")
            given = {name: value for name, value in options.items() if name != "content_max"}
            archive = open_archive(file, **given)
            if not archive._opened().states_sizes and archive.members[0].kind != "directory":
                # Another format, which is read from front to back.
                archive.close()
                self._open_stream(file, member, options)
                return
            if member is None and len(archive.members) != 1:
                names = ", ".join(repr(found.name) for found in archive.members[:10])
                raise UsageError(f"the archive has several members: {names}; name one")
            raw = archive.open(member, buffering=0)
            if limit is not None and raw.size > limit:
                raise LimitError(f"the content has {raw.size} bytes, the limit is {limit}")
            self._reader = io.BufferedReader(raw, BUFFER_BYTES)
        else:
            self._open_stream(file, member, options)

    def _open_stream(
        self, file: Any, member: str | bytes | None, options: Mapping[str, Any]
    ) -> None:
        if member is not None:
            raise UsageError("a member can be named only where the archive can be seeked")
        raw = _Stream(file, reading_options(**options))
        self._reader = io.BufferedReader(raw, BUFFER_BYTES)

    def _open_to_write(self, file: Any, overwrite: bool, options: Mapping[str, Any]) -> None:
        chosen = writing_options(**options)
        if is_path(file):
            _check_place(os.fspath(file), overwrite)
        to = output(file, overwrite)
        job = Job()
        pipe = Pipe(job)
        members: list[tuple[bytes, str, Any]] = [(b"", "pipe", pipe)]
        self._pipe = pipe
        # Of what is written: threads may share the file.
        self._lock = allocate_lock()
        self._waiting = bytearray()
        self._position = 0
        self._background = _Background(
            job, None, lambda: _refrain.compress(job, members, to, chosen, None)
        )

    def _to_read(self) -> io.BufferedReader:
        if self.closed:
            raise UsageError("the file is closed")
        if self._reader is None:
            raise io.UnsupportedOperation("the file was opened for writing")
        return self._reader

    def _to_write(self) -> _Background:
        if self.closed:
            raise UsageError("the file is closed")
        if self._background is None:
            raise io.UnsupportedOperation("the file was opened for reading")
        return self._background

    # ------------------------------------------------------------------------------- reading

    def readable(self) -> bool:
        return self._reader is not None

    def seekable(self) -> bool:
        return self._reader is not None and self._reader.seekable()

    def read(self, size: int | None = -1, /) -> bytes:
        return self._to_read().read(size)

    def read1(self, size: int = -1, /) -> bytes:
        return self._to_read().read1(size)

    def readinto(self, buffer: Buffer, /) -> int:
        return self._to_read().readinto(buffer)

    def readinto1(self, buffer: Buffer, /) -> int:
        return self._to_read().readinto1(buffer)

    def peek(self, size: int = 0, /) -> bytes:
        return self._to_read().peek(size)

    def readline(self, size: int | None = -1, /) -> bytes:
        return self._to_read().readline(-1 if size is None else size)

    def __next__(self) -> bytes:
        return next(self._to_read())

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._to_read().seek(offset, whence)

    def tell(self) -> int:
        if self._reader is None and not self.closed:
            return self._position
        return self._to_read().tell()

    # ------------------------------------------------------------------------------- writing

    def writable(self) -> bool:
        return self._background is not None

    def write(self, data: Buffer, /) -> int:
        background = self._to_write()
        view = memoryview(data)
        length = view.nbytes
        with self._lock:
            if length >= _WRITE_BYTES:
                self._send(background)
                self._pass(background, view)
            else:
                self._waiting += view.cast("B") if view.contiguous else view.tobytes()
                if len(self._waiting) >= _WRITE_BYTES:
                    self._send(background)
            self._position += length
        return length

    def _send(self, background: _Background) -> None:
        waiting, self._waiting = self._waiting, bytearray()
        if waiting:
            self._pass(background, waiting)

    def _pass(self, background: _Background, data: Any) -> None:
        try:
            self._pipe.write(data)
        except OSError:
            # The run ended: its own reason says more.
            background.finish()
            raise

    def flush(self) -> None:
        if self._background is not None and not self.closed:
            with self._lock:
                self._send(self._background)

    def abort(self) -> None:
        """Ends writing without an archive."""
        if self._background is not None and not self.closed:
            background, self._background = self._background, None
            background.job.cancel()
            background._thread.join()
        self.close()

    def close(self) -> None:
        if self.closed:
            return
        try:
            if self._reader is not None:
                self._reader.close()
            elif self._background is not None:
                background = self._background
                with self._lock:
                    self._send(background)
                    self._background = None
                    self._pipe.close_writer()
                background.finish()
        finally:
            self._background = None
            super().close()

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is not None:
            self.abort()
        self.close()

    def __del__(self) -> None:
        # Nobody said that what was written is all: no archive is better than half of one. (The base
        # class would close it.)
        if self.__dict__.get("_background") is None or sys.is_finalizing():
            return
        import warnings

        text = f"{self.name!r} was written to and not closed: no archive is made"
        warnings.warn(text, ResourceWarning, source=self, stacklevel=2)
        self.abort()


def _check_place(path: str | bytes, overwrite: bool) -> None:
    """What is certain to fail when the archive is complete fails before anything is written."""
    if os.path.isdir(path):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), path)
    if not overwrite and os.path.lexists(path):
        raise FileExistsAlreadyError(EEXIST, os.strerror(EEXIST), path)
    directory = os.path.dirname(path)
    if directory and not os.path.isdir(directory):
        raise MissingFileError(ENOENT, os.strerror(ENOENT), directory)


@overload
def open_file(
    filename: str | PathLike[str] | Any,
    mode: Literal["r", "rb", "w", "wb", "x", "xb"] = "rb",
    **options: Unpack[FileOptions],
) -> RefrainFile: ...
@overload
def open_file(
    filename: str | PathLike[str] | Any,
    mode: Literal["rt", "wt", "xt"],
    *,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    **options: Unpack[FileOptions],
) -> io.TextIOWrapper: ...
@overload
def open_file(
    filename: str | PathLike[str] | Any,
    mode: str,
    *,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    **options: Unpack[FileOptions],
) -> RefrainFile | io.TextIOWrapper: ...
def open_file(
    filename: str | PathLike[str] | Any,
    mode: str = "rb",
    *,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    **options: Unpack[FileOptions],
) -> RefrainFile | io.TextIOWrapper:
    """A RefrainFile, or with a mode like "rt" a text file over one: as lzma.open."""
    if "t" not in mode:
        if (encoding, errors, newline) != (None, None, None):
            raise UsageError("encoding, errors and newline are for text, with a mode like 'rt'")
        return RefrainFile(filename, mode, **options)
    binary = RefrainFile(filename, mode.replace("t", "") + "b", **options)
    return io.TextIOWrapper(binary, encoding, errors, newline)
