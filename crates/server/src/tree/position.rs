//! Positions in lists of paths.

/// The distance of positions on successive pages. The format allows at most this many entries per
/// frame.
pub(super) const PAGE_ROWS: u64 = 1 << 16;

/// A position in a list: the page times [`PAGE_ROWS`], plus the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Position(u64);

impl Position {
    pub(super) fn new(page: usize, row: usize) -> Position {
        Position(page as u64 * PAGE_ROWS + row as u64)
    }

    pub(super) fn page(self) -> usize {
        (self.0 / PAGE_ROWS) as usize
    }

    pub(super) fn row(self) -> usize {
        (self.0 % PAGE_ROWS) as usize
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }

    pub(super) fn from_number(number: u64) -> Position {
        Position(number)
    }

    pub(super) fn next(self) -> Position {
        Position(self.0 + 1)
    }
}
