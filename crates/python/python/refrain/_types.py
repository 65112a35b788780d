"""What file objects must have. Only for type checkers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike
from typing import Any, Protocol, TypedDict

Progress = Callable[[int, "int | None", int], object]


class Readable(Protocol):
    """An object with a method read."""

    def read(self, size: int, /) -> Any: ...


class Writable(Protocol):
    """An object with a method write."""

    def write(self, data: bytes, /) -> Any: ...


class ReadingOptions(TypedDict, total=False):
    """The options of decompress and test."""

    password: str | bytes | None
    identities: Iterable[str] | None
    threads: int | None
    memory: int | None
    temporary: str | PathLike[str] | None
    content_max: int | None
    generation: int | str | None


class WritingOptions(TypedDict, total=False):
    """The options of compress."""

    level: int | None
    purpose: str | None
    codec: str | None
    block_bytes: int | None
    threads: int | None
    memory: int | None
    reach: int | None
    temporary: str | PathLike[str] | None
    password: str | bytes | None
    recipients: Iterable[str] | None
    recovery: str | None


class FileOptions(ReadingOptions, WritingOptions, total=False):
    """The options of RefrainFile: those of its mode."""
