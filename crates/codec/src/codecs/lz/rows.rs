//! Finds matches quickly: the last positions of each hash of four bytes, which stand side by side
//! (as the rows of zstd's matcher), and the newest of each hash of three bytes.

use super::matches::{Match, add_longer, common, hash, zeros};
use crate::host::Host;

/// Positions of one hash, newest first.
const ROW: usize = 32;
const ROWS_LOG_MIN: u32 = 8;
const ROWS_LOG_MAX: u32 = 22;
const TRIPLES_LOG: u32 = 16;
const TRIPLE_BYTES: usize = 3;
/// A match of three bytes may begin this far away: farther ones cost more than they save.
const TRIPLE_DISTANCE_MAX: u32 = 1 << 18;

/// Positions are stored plus 1; 0 stands for none.
pub(super) struct Rows {
    triples: Vec<u32>,
    rows: Vec<[u32; ROW]>,
    rows_log: u32,
}

impl Rows {
    pub(super) fn memory_bytes(raw_bytes: u64) -> u64 {
        let rows = size_of::<[u32; ROW]>() as u64 * (1 << rows_log(raw_bytes));
        rows + size_of::<u32>() as u64 * (1 << TRIPLES_LOG)
    }

    /// Rows for a block of `raw_bytes`; `None` if there is not enough memory.
    pub(super) fn new(host: Host, raw_bytes: usize) -> Option<Self> {
        let rows_log = rows_log(raw_bytes as u64);
        Some(Self {
            triples: zeros(host, 1 << TRIPLES_LOG)?,
            rows: zeros(host, 1 << rows_log)?,
            rows_log,
        })
    }

    /// Sets `found` to the matches of at most `limit` bytes at `position`, of rising length and
    /// distance, and inserts the position.
    #[inline(always)]
    pub(super) fn find(
        &mut self,
        raw: &[u8],
        position: usize,
        limit: usize,
        found: &mut Vec<Match>,
    ) {
        found.clear();
        let Some(&[a, b, c, d]) = raw[position..].first_chunk() else { return };
        let limit = limit.min(raw.len() - position);
        let now = position as u32 + 1;
        let mut longest = TRIPLE_BYTES - 1;
        let old = self.triples[hash([0, a, b, c], TRIPLES_LOG)];
        if old > 0 && now - old < TRIPLE_DISTANCE_MAX {
            let length = common(raw, old as usize - 1, position, limit);
            add_longer(found, &mut longest, length, now - old);
        }
        for old in self.rows[hash([a, b, c, d], self.rows_log)] {
            let Some(start) = (old as usize).checked_sub(1) else { break };
            if longest >= limit {
                break;
            }
            if raw[start + longest] == raw[position + longest] {
                let length = common(raw, start, position, limit);
                add_longer(found, &mut longest, length, now - old);
            }
        }
        self.insert(raw, position);
    }

    /// Inserts a position.
    #[inline(always)]
    pub(super) fn insert(&mut self, raw: &[u8], position: usize) {
        let Some(&[a, b, c, d]) = raw[position..].first_chunk() else { return };
        let now = position as u32 + 1;
        self.triples[hash([0, a, b, c], TRIPLES_LOG)] = now;
        let row = &mut self.rows[hash([a, b, c, d], self.rows_log)];
        row.copy_within(..ROW - 1, 1);
        row[0] = now;
    }
}

/// Twice as many positions as places.
fn rows_log(raw_bytes: u64) -> u32 {
    let positions_log = raw_bytes.max(1).ilog2();
    (positions_log.saturating_sub(ROW.ilog2() + 1)).clamp(ROWS_LOG_MIN, ROWS_LOG_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::{random_bytes, text};

    #[test]
    fn finds_true_matches_of_rising_length_and_distance() {
        const LIMIT: usize = 40;
        let few: Vec<u8> = random_bytes(2000, 4).iter().map(|byte| byte % 3).collect();
        for raw in [text(3000, 1), few, vec![7; 600]] {
            let mut rows = Rows::new(Host::default(), raw.len()).unwrap();
            let mut found = Vec::new();
            for position in 0..raw.len() {
                if position % 3 > 0 {
                    rows.insert(&raw, position);
                    continue;
                }
                rows.find(&raw, position, LIMIT, &mut found);
                let mut last = (0, 0);
                for &Match { length, distance } in &found {
                    let start = position - distance as usize;
                    let same = common(&raw, start, position, LIMIT.min(raw.len() - position));
                    assert_eq!(same, length as usize);
                    assert!(length > last.0 && distance > last.1, "{found:?}");
                    last = (length, distance);
                }
            }
        }
    }

    /// What no other position displaced from its row is found.
    #[test]
    fn finds_the_longest_match_among_few_positions() {
        let passage = random_bytes(100, 1);
        let raw = [&passage[..], &random_bytes(500, 2), &passage].concat();
        let mut rows = Rows::new(Host::default(), raw.len()).unwrap();
        let mut found = Vec::new();
        (0..600).for_each(|position| rows.insert(&raw, position));
        rows.find(&raw, 600, 100, &mut found);
        let whole = Match {
            length: 100,
            distance: 600,
        };
        assert_eq!(found.last(), Some(&whole));
    }
}
