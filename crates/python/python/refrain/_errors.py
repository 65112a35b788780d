"""The exceptions of this package: all are RefrainError, and what Python users expect besides."""

from __future__ import annotations

import errno as _errno
import os

# Type checkers take it for true. The module typing would take longer to import than the package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike


class RefrainError(Exception):
    """Something failed. Offsets are in bytes, and None where they are not known."""

    archive_offset: int | None = None
    block: int | None = None
    content_offset: int | None = None


class UsageError(RefrainError, ValueError):
    """The call is invalid: an option that does not exist, a closed file, a missing member."""


class LockedError(UsageError):
    """The password or key that the archive needs is missing or wrong."""


class PathError(RefrainError, FileNotFoundError):
    """The archive has nothing at this path."""


class DamagedError(RefrainError, OSError):
    """The archive is damaged, cut off or forged (gzip's BadGzipFile is an OSError, too)."""


class UnsupportedError(RefrainError, ValueError):
    """The archive has a newer format, or needs something that this build lacks."""


class LimitError(RefrainError, ValueError):
    """A stated limit would be exceeded: memory, sizes, counts."""


class StorageError(RefrainError, OSError):
    """Reading or writing failed."""


class MissingFileError(StorageError, FileNotFoundError):
    """A file does not exist."""


class FileExistsAlreadyError(StorageError, FileExistsError):
    """The output exists, and was not to be replaced."""


class DeniedError(StorageError, PermissionError):
    """The system does not permit it."""


class DirectoryError(StorageError, IsADirectoryError):
    """A file is needed, and this is a directory."""


class CancelledError(RefrainError):
    """The run was cancelled; nothing of it is left."""


class InternalError(RefrainError, RuntimeError):
    """A defect of the engine. Nothing was published."""


_KINDS: dict[str, type[RefrainError]] = {
    "usage": UsageError,
    "locked": LockedError,
    "damaged": DamagedError,
    "unsupported": UnsupportedError,
    "limit": LimitError,
    "storage": StorageError,
    "cancelled": CancelledError,
    "internal": InternalError,
}

_NUMBERS: dict[int, type[StorageError]] = {
    _errno.ENOENT: MissingFileError,
    _errno.EEXIST: FileExistsAlreadyError,
    _errno.EISDIR: DirectoryError,
    _errno.EACCES: DeniedError,
    _errno.EPERM: DeniedError,
}

_Location = tuple["int | None", "int | None", "int | None"]


def from_engine(
    kind: str,
    message: str,
    number: int | None,
    location: _Location,
    path: str | bytes | PathLike[str] | None,
) -> RefrainError:
    """The exception for an error of the engine. Called by the compiled part."""
    chosen = _KINDS.get(kind, InternalError)
    error: RefrainError
    if kind == "storage" and number is not None:
        of_number = _NUMBERS.get(number, chosen)
        if path is not None:
            error = of_number(number, os.strerror(number), os.fspath(path))
        else:
            error = of_number(number, message)
    else:
        error = chosen(message)
    error.archive_offset, error.block, error.content_offset = location
    return error
