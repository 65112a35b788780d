//! Finds matches: thoroughly in `trees`, quickly in `rows`.

use super::matches::Match;
use super::rows::Rows;
use super::trees::Trees;
use crate::host::Host;

/// Where a finder looks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    /// Among the last positions of a hash.
    Rows,
    /// Among at most `candidates` of all positions of a hash.
    Trees { candidates: u32 },
}

pub(super) enum Finder {
    Rows(Rows),
    Trees(Trees),
}

impl Finder {
    pub(super) fn memory_bytes(raw_bytes: u64, search: Search) -> u64 {
        match search {
            Search::Rows => Rows::memory_bytes(raw_bytes),
            Search::Trees { .. } => Trees::memory_bytes(raw_bytes),
        }
    }

    /// A finder for a block of `raw_bytes`; `None` if there is not enough memory.
    pub(super) fn new(host: Host, raw_bytes: usize, search: Search) -> Option<Self> {
        Some(match search {
            Search::Rows => Self::Rows(Rows::new(host, raw_bytes)?),
            Search::Trees { candidates } => Self::Trees(Trees::new(host, raw_bytes, candidates)?),
        })
    }

    /// Sets `found` to matches of at most `limit` bytes at `position`, of rising length and
    /// distance. Every position in turn is found or skipped.
    #[inline(always)]
    pub(super) fn find(
        &mut self,
        raw: &[u8],
        position: usize,
        limit: usize,
        found: &mut Vec<Match>,
    ) {
        match self {
            Self::Rows(rows) => rows.find(raw, position, limit, found),
            Self::Trees(trees) => trees.find(raw, position, limit, found),
        }
    }

    /// Passes a position whose matches nobody needs; `found` becomes undefined.
    #[inline(always)]
    pub(super) fn skip(
        &mut self,
        raw: &[u8],
        position: usize,
        limit: usize,
        found: &mut Vec<Match>,
    ) {
        match self {
            Self::Rows(rows) => rows.insert(raw, position),
            Self::Trees(trees) => trees.find(raw, position, limit, found),
        }
    }
}
