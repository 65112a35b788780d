"""Where bytes come from and go to: paths, URLs, buffers, file objects, iterables.

File objects and iterables are read in threads of Python, which pass their bytes on. An exception
there ends the run, which then raises it.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from ._errors import StorageError, UsageError, from_engine
from ._refrain import Exchange, Job, Pipe

# Type checkers take it for true. The module typing would take longer to import than the package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

READ_BYTES = 1 << 20

# Trusted authorities, where systems keep them.
_CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


def is_buffer(value: object) -> bool:
    try:
        memoryview(value).release()  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def scheme_of(value: object) -> str | None:
    """The scheme of a URL, if it is one."""
    if isinstance(value, str) and "://" in value:
        scheme = value.split("://", 1)[0]
        if scheme and scheme.replace("+", "").replace(":", "").isalnum():
            return scheme.lower()
    return None


def _certificates() -> bytes:
    named = os.environ.get("SSL_CERT_FILE")
    for path in (named,) if named else _CERTIFICATES:
        try:
            with io.open(path, "rb") as file:
                return file.read()
        except OSError:
            if named:
                raise
    return b""


def _remote(url: str) -> tuple[str, Any]:
    """A URL that the engine reads, with the environment that Amazon's tools use."""
    get = os.environ.get
    settings: dict[str, Any] = {"url": url, "certificates": _certificates()}
    if not get("AWS_NO_SIGN_REQUEST"):
        settings["access_key_id"] = get("AWS_ACCESS_KEY_ID")
        settings["secret_access_key"] = get("AWS_SECRET_ACCESS_KEY")
        settings["session_token"] = get("AWS_SESSION_TOKEN")
    settings["endpoint"] = get("AWS_ENDPOINT_URL_S3") or get("AWS_ENDPOINT_URL")
    settings["region"] = get("AWS_REGION") or get("AWS_DEFAULT_REGION")
    return ("url", settings)


def _plain_file(file: object) -> str | None:
    """A path that leads to the same file, if this object is nothing more than an open file."""
    raw = file.raw if type(file) is io.BufferedReader else file
    if type(raw) is not io.FileIO or not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        return None
    return f"/proc/self/fd/{raw.fileno()}" if os.path.isdir("/proc/self/fd") else None


class FileThread:
    """Answers requests for ranges of a file object, until nobody asks any more."""

    def __init__(self, file: Any) -> None:
        import threading

        self.exception: BaseException | None = None
        self.size: int = file.seek(0, os.SEEK_END)
        self.exchange = Exchange()
        arguments = (self, self.exchange, file)
        threading.Thread(target=FileThread._answer, args=arguments, daemon=True).start()

    def _answer(self, exchange: Exchange, file: Any) -> None:
        while request := exchange.next_request():
            try:
                data = _read_range(file, *request)
            except BaseException as exception:
                self.exception = exception
                exchange.fail()
            else:
                exchange.reply(data)

    def take(self) -> BaseException | None:
        """The exception of the file object, once."""
        exception, self.exception = self.exception, None
        return exception


def _read_range(file: Any, offset: int, length: int) -> bytes:
    file.seek(offset)
    data = _checked(file.read(length), length)
    if not data or len(data) == length:
        return data
    parts, done = [data], len(data)
    while done < length and (data := _checked(file.read(length - done), length - done)):
        parts.append(data)
        done += len(data)
    return b"".join(parts)


def _checked(data: Any, length: int) -> bytes:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"read() returned {type(data).__name__}, not bytes")
    if len(data) > length:
        raise OSError(f"read({length}) returned {len(data)} bytes")
    return data  # type: ignore[return-value]


class Pump:
    """Writes what a file object or an iterable yields into a pipe, in a thread."""

    def __init__(self, job: Job, source: Any) -> None:
        import threading

        self.job = job
        self.pipe = Pipe(job)
        self.exception: BaseException | None = None
        threading.Thread(target=self._run, args=(source,), daemon=True).start()

    def _run(self, source: Any) -> None:
        try:
            for piece in _pieces(source):
                self.pipe.write(piece)
        except BaseException as exception:
            # The run may need no more.
            is_unread = isinstance(exception, StorageError) and exception.errno == errno.EPIPE
            if not is_unread and not self.job.is_cancelled:
                self.exception = exception
                self.job.cancel()
        finally:
            self.pipe.close_writer()


def _pieces(source: Any) -> Iterable[Any]:
    if not hasattr(source, "read"):
        for piece in source:
            if isinstance(piece, int):
                raise TypeError("an iterable of bytes-like objects is needed, not of numbers")
            yield piece
        return
    while True:
        data = source.read(READ_BYTES)
        if data is None:
            raise BlockingIOError("the file object has no bytes now: it is not blocking")
        if not (data := _checked(data, READ_BYTES)):
            return
        yield data


def _mode(path: str | bytes) -> int:
    try:
        return os.stat(path).st_mode
    except OSError as error:
        raise from_engine("storage", "", error.errno, (None, None, None), path) from None


class Input:
    """What a run reads, and the threads that supply it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.suppliers: list[Pump | FileThread] = []

    def random_access(self, value: Any) -> tuple[str, Any]:
        """Something that is read at any offset."""
        if (scheme := scheme_of(value)) is not None:
            if scheme in ("http", "https", "s3"):
                return _remote(value)
            import fsspec

            return self.random_access(fsspec.open(value, "rb").open())
        if is_path(value):
            return ("path", os.fspath(value))
        if type(value) is io.BytesIO:
            return ("buffer", value.getvalue())
        if is_buffer(value):
            return ("buffer", value)
        if not hasattr(value, "read"):
            raise TypeError(f"a path, buffer or file object is needed, not {type(value).__name__}")
        if path := _plain_file(value):
            return ("path", path)
        if not is_seekable(value):
            raise UsageError("the file object cannot seek: read it by RefrainFile or decompress")
        thread = FileThread(value)
        self.suppliers.append(thread)
        return ("exchange", (thread.exchange, thread.size))

    def any_access(self, value: Any) -> tuple[str, Any]:
        """Something that is read at any offset, or only forward."""
        is_stream = not is_path(value) and not is_buffer(value)
        if is_stream and not (hasattr(value, "read") and is_seekable(value)):
            return ("pipe", self._pump(value))
        if is_stream and value.tell() != 0:
            return ("pipe", self._pump(value))
        return self.random_access(value)

    def member(self, value: Any, name: str | bytes | None) -> tuple[bytes, str, Any]:
        """A member to write."""
        label = os.fsencode(name) if name is not None else b""
        if (scheme := scheme_of(value)) is not None:
            import fsspec

            return (label, "pipe", self._pump(fsspec.open(value, "rb").open()))
        if is_path(value):
            path = os.fspath(value)
            if name is None:
                label = os.fsencode(os.path.basename(os.path.abspath(path)))
            mode = _mode(path)
            if stat.S_ISDIR(mode):
                return (label, "directory", path)
            if stat.S_ISREG(mode):
                return (label, "path", path)
            return (label, "pipe", self._pump(io.open(path, "rb", buffering=0)))
        if is_buffer(value):
            return (label, "buffer", value)
        if not hasattr(value, "read") and not hasattr(value, "__iter__"):
            raise TypeError(f"cannot compress an object of type {type(value).__name__}")
        if (path := _plain_file(value)) and value.tell() == 0:
            return (label, "path", path)
        return (label, "pipe", self._pump(value))

    def _pump(self, value: Any) -> Pipe:
        pump = Pump(self.job, value)
        self.suppliers.append(pump)
        return pump.pipe

    def exception(self) -> BaseException | None:
        """The exception of a file object or an iterable, if there was one."""
        for supplier in self.suppliers:
            if supplier.exception is not None:
                return supplier.exception
        return None


def unnamed(archive: Any) -> bytes:
    """The name of a file for a member without one: that of the archive, without its suffix."""
    name = os.path.basename(os.fsencode(archive)) if is_path(archive) else b""
    return name.removesuffix(b".rfn") or b"content"


def is_seekable(file: Any) -> bool:
    seekable = getattr(file, "seekable", None)
    return bool(seekable()) if seekable is not None else hasattr(file, "seek")


def output(value: Any, overwrite: bool) -> tuple[str, Any, bool]:
    """Where a run writes: memory, a path, a file object."""
    if value is None:
        return ("memory", None, False)
    if is_path(value):
        return ("path", os.fspath(value), overwrite)
    if not hasattr(value, "write"):
        raise TypeError(f"a path or a file object is needed, not {type(value).__name__}")
    return ("write", value.write, False)


def temporary_directory() -> str | None:
    """Where content of pipes waits that memory does not hold: on a disk."""
    for path in (os.environ.get("TMPDIR"), "/var/tmp"):
        if path and os.access(path, os.W_OK | os.X_OK):
            return path
    return None


