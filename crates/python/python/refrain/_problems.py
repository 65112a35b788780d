"""What could not be restored."""

from __future__ import annotations

# Type checkers take it for true. The module typing would take longer to import than the package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Problem:
    """A file that could not be restored, or not as it was.

    Of a damaged file also its size in bytes, the missing ranges as pairs of start and end, and
    whether it was kept with zeros in their place. A member that is a file, and was not kept, is
    missing from its first damage on.
    """

    def __init__(
        self,
        path: str,
        reason: str,
        size: int | None = None,
        missing: Sequence[tuple[int, int]] = (),
        is_kept: bool = False,
    ) -> None:
        self.path = path
        self.reason = reason
        self.size = size
        self.missing = missing
        self.is_kept = is_kept

    def __repr__(self) -> str:
        return f"<Problem {self.path!r}: {self.reason}>"
