"""What file objects must have. Only for type checkers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Progress = Callable[[int, "int | None", int], object]


class Readable(Protocol):
    """An object with a method read."""

    def read(self, size: int, /) -> Any: ...


class Writable(Protocol):
    """An object with a method write."""

    def write(self, data: bytes, /) -> Any: ...
