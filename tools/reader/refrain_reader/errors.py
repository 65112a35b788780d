"""The three classes of errors (section 1) and their exit codes."""

from __future__ import annotations


class ReaderError(Exception):
    """An archive that cannot be read; `exit_code` is that of the command line."""

    exit_code = 1
    category = "error"

    def __str__(self) -> str:
        return f"{self.category}: {super().__str__()}"


class Damaged(ReaderError):
    """No writer of this version writes these bytes."""

    exit_code = 2
    category = "damaged"


class Unsupported(ReaderError):
    """A later version may define these bytes."""

    exit_code = 3
    category = "unsupported"


class Limit(ReaderError):
    """A value exceeds a limit of the format or of this reader."""

    exit_code = 4
    category = "limit"


def need(condition: bool, message: str) -> None:
    """Raises Damaged with `message` unless `condition` holds."""
    if not condition:
        raise Damaged(message)


def within(value: int, maximum: int, what: str) -> int:
    """Returns `value`, or raises Limit if it is above `maximum`."""
    if value > maximum:
        raise Limit(f"{what} is {value}, at most {maximum} is possible")
    return value
