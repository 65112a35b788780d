//! Finds matches: thoroughly in `trees`, quickly in `rows`.

use super::rows::Rows;
use super::trees::Trees;
use crate::host::Host;

/// A match: `length` bytes that also stand `distance` bytes before.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub length: u32,
    pub distance: u32,
}

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
            // The next search inserts what lies before it.
            Self::Rows(_) => {}
            Self::Trees(trees) => trees.find(raw, position, limit, found),
        }
    }
}

#[inline(always)]
pub(super) fn add_longer(
    found: &mut Vec<Match>,
    longest: &mut usize,
    length: usize,
    distance: u32,
) {
    if length > *longest {
        *longest = length;
        found.push(Match {
            length: length as u32,
            distance,
        });
    }
}

#[inline(always)]
pub(super) fn hash(bytes: [u8; 4], bits: u32) -> usize {
    (u32::from_le_bytes(bytes).wrapping_mul(0x9E37_79B1) >> (u32::BITS - bits)) as usize
}

pub(super) fn zeros<T: Copy + Default>(host: Host, length: usize) -> Option<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(length).ok()?;
    host.resize(&mut list, length);
    Some(list)
}

/// The number of equal bytes from two positions on, at most `limit`.
#[inline(always)]
pub(super) fn common(raw: &[u8], a: usize, b: usize, limit: usize) -> usize {
    let (Some(a), Some(b)) = (raw.get(a..a + limit), raw.get(b..b + limit)) else {
        return 0;
    };
    let (x, x_rest) = a.as_chunks::<8>();
    let (y, y_rest) = b.as_chunks::<8>();
    for (index, (x, y)) in x.iter().zip(y).enumerate() {
        let difference = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if difference != 0 {
            return index * 8 + difference.trailing_zeros() as usize / 8;
        }
    }
    x.len() * 8
        + x_rest
            .iter()
            .zip(y_rest)
            .take_while(|(x, y)| x == y)
            .count()
}
