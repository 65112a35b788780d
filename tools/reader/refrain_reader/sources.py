"""What archives are read from: files, which can seek, and pipes, which cannot."""

from __future__ import annotations

from typing import BinaryIO

from .errors import ReaderError


class File:
    """A file; `size` is its length."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.size = file.seek(0, 2)

    def read_at(self, offset: int, count: int) -> bytes:
        """Up to `count` bytes from `offset` on; fewer only at the end."""
        self.file.seek(offset)
        return self.file.read(count)


class Pipe:
    """A pipe: bytes before the latest offset are gone."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.start = 0
        self.buffer = b""

    def read_at(self, offset: int, count: int) -> bytes:
        """As `File.read_at`, for offsets that never decrease."""
        if offset < self.start:
            raise ReaderError("a pipe cannot be read twice")
        while offset > self.start + len(self.buffer):
            self.start += len(self.buffer)
            self.buffer = self.file.read(min(1 << 20, offset - self.start))
            if not self.buffer:
                return b""
        self.buffer = self.buffer[offset - self.start :]
        self.start = offset
        while len(self.buffer) < count:
            more = self.file.read(count - len(self.buffer))
            if not more:
                break
            self.buffer += more
        return self.buffer[:count]
