"""Refrain: archives that find what repeats at any distance, and give any range back quickly.

>>> import refrain
>>> archive = refrain.compress(b"over and over again " * 1000)
>>> refrain.decompress(archive)[:8]
b'over and'
"""

from ._archive import Archive, Entries, MemberFile, open
from ._errors import (
    CancelledError,
    DamagedError,
    DeniedError,
    DirectoryError,
    FileExistsAlreadyError,
    InternalError,
    LimitError,
    LockedError,
    MissingFileError,
    PathError,
    RefrainError,
    StorageError,
    UnsupportedError,
    UsageError,
)
from ._file import RefrainFile, open_file
from ._problems import Problem
from ._refrain import Entry, Member, __version__
from ._verbs import Recovery, Summary, compress, decompress, recover, test

__all__ = [
    "Archive",
    "CancelledError",
    "DamagedError",
    "DeniedError",
    "DirectoryError",
    "Entries",
    "Entry",
    "FileExistsAlreadyError",
    "InternalError",
    "LimitError",
    "LockedError",
    "Member",
    "MemberFile",
    "MissingFileError",
    "PathError",
    "Problem",
    "Recovery",
    "RefrainError",
    "RefrainFile",
    "StorageError",
    "Summary",
    "UnsupportedError",
    "UsageError",
    "__version__",
    "compress",
    "decompress",
    "open",
    "open_file",
    "recover",
    "test",
]
