//! Positions in lists of paths.

/// The entries of a page of a list; positions of different pages are apart by this. The format
/// allows no frame with more.
pub(super) const PAGE_ROWS: u64 = 1 << 16;

/// A position in a list: the page, times [`PAGE_ROWS`], plus the number of the row in it.
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

    /// The position as a number.
    pub(super) fn number(self) -> u64 {
        self.0
    }

    /// The position with this number.
    pub(super) fn from_number(number: u64) -> Position {
        Position(number)
    }

    pub(super) fn next(self) -> Position {
        Position(self.0 + 1)
    }
}
