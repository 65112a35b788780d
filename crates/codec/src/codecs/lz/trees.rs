//! Finds matches: a binary tree for the positions of each hash of four bytes, sorted by what
//! follows them, the newest at the root (as in LZMA's encoder), and the newest position of each
//! hash of two and three bytes.

use super::matches::{Match, add_longer, common, hash, zeros};
use crate::host::Host;

const PAIRS: usize = 1 << 16;
const TRIPLES_LOG: u32 = 18;
const TREES_LOG_MIN: u32 = 10;
const TREES_LOG_MAX: u32 = 24;

/// Positions are stored plus 1; 0 stands for none.
pub(super) struct Trees {
    pairs: Vec<u32>,
    triples: Vec<u32>,
    trees: Vec<u32>,
    trees_log: u32,
    /// For each position, the trees of what sorts before it and after it.
    nodes: Vec<[u32; 2]>,
    candidates: u32,
}

impl Trees {
    pub(super) fn memory_bytes(raw_bytes: u64) -> u64 {
        let heads = PAIRS as u64 + (1 << TRIPLES_LOG) + (1 << trees_log(raw_bytes));
        heads * size_of::<u32>() as u64 + raw_bytes * size_of::<[u32; 2]>() as u64
    }

    /// Trees for a block of `raw_bytes` that compares at most `candidates` for each position;
    /// `None` if there is not enough memory.
    pub(super) fn new(host: Host, raw_bytes: usize, candidates: u32) -> Option<Self> {
        let trees_log = trees_log(raw_bytes as u64);
        Some(Self {
            pairs: zeros(host, PAIRS)?,
            triples: zeros(host, 1 << TRIPLES_LOG)?,
            trees: zeros(host, 1 << trees_log)?,
            trees_log,
            nodes: zeros(host, raw_bytes)?,
            candidates,
        })
    }

    /// Inserts `position` and sets `found` to the matches of at most `limit` bytes there, of rising
    /// length and distance.
    pub(super) fn find(
        &mut self,
        raw: &[u8],
        position: usize,
        limit: usize,
        found: &mut Vec<Match>,
    ) {
        found.clear();
        let here = &raw[position..];
        // The same limit at every position but the last ones: the order in a tree relies on it.
        let limit = limit.min(here.len());
        let Some(&[a, b, c, d]) = here.first_chunk() else { return };
        let now = position as u32 + 1;
        let pair = usize::from(u16::from_le_bytes([a, b]));
        let triple = hash([0, a, b, c], TRIPLES_LOG);
        let mut longest = 1;
        for head in [&mut self.pairs[pair], &mut self.triples[triple]] {
            let old = std::mem::replace(head, now);
            if old > 0 {
                let length = common(raw, old as usize - 1, position, limit);
                add_longer(found, &mut longest, length, now - old);
            }
        }
        let head = &mut self.trees[hash([a, b, c, d], self.trees_log)];
        let root = std::mem::replace(head, now);
        self.descend(raw, position, limit, root, longest, found);
    }

    /// Searches the tree with this root, and makes `position` its root.
    #[inline(always)]
    fn descend(
        &mut self,
        raw: &[u8],
        position: usize,
        limit: usize,
        root: u32,
        mut longest: usize,
        found: &mut Vec<Match>,
    ) {
        const BEFORE: usize = 0;
        const AFTER: usize = 1;
        let mut candidate = root;
        // The places that wait for a tree, and the bytes that everything there shares with
        // `position`.
        let (mut before, mut after) = ((position, BEFORE), (position, AFTER));
        let (mut common_before, mut common_after) = (0, 0);
        for _ in 0..self.candidates {
            if candidate == 0 {
                break;
            }
            let start = candidate as usize - 1;
            let known = usize::min(common_before, common_after);
            let length = known + common(raw, start + known, position + known, limit - known);
            add_longer(found, &mut longest, length, (position - start) as u32);
            let children = self.nodes[start];
            if length == limit {
                self.nodes[before.0][before.1] = children[BEFORE];
                self.nodes[after.0][after.1] = children[AFTER];
                return;
            }
            if raw[start + length] < raw[position + length] {
                self.nodes[before.0][before.1] = candidate;
                before = (start, AFTER);
                common_before = length;
                candidate = children[AFTER];
            } else {
                self.nodes[after.0][after.1] = candidate;
                after = (start, BEFORE);
                common_after = length;
                candidate = children[BEFORE];
            }
        }
        self.nodes[before.0][before.1] = 0;
        self.nodes[after.0][after.1] = 0;
    }
}

fn trees_log(raw_bytes: u64) -> u32 {
    raw_bytes.max(1).ilog2().clamp(TREES_LOG_MIN, TREES_LOG_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::{random_bytes, text};

    /// The nearest match of each length, found by comparing with every earlier position.
    fn all(raw: &[u8], position: usize, limit: usize) -> Vec<Match> {
        let mut found: Vec<Match> = Vec::new();
        let limit = limit.min(raw.len() - position);
        for start in (0..position).rev() {
            let length = common(raw, start, position, limit) as u32;
            if length >= found.last().map_or(2, |longest| longest.length + 1) {
                found.push(Match {
                    length,
                    distance: (position - start) as u32,
                });
            }
        }
        found
    }

    #[test]
    fn finds_the_nearest_match_of_each_length() {
        let few = random_bytes(2000, 4).iter().map(|byte| byte % 3).collect();
        for raw in [text(3000, 1), few, vec![7; 600]] {
            let mut finder = Trees::new(Host::default(), raw.len(), u32::MAX).unwrap();
            let mut found = Vec::new();
            for position in 0..raw.len() - 3 {
                finder.find(&raw, position, 40, &mut found);
                let expected = all(&raw, position, 40);
                assert_eq!(
                    found.last().map(|m| m.length),
                    expected.last().map(|m| m.length)
                );
                for &Match { length, distance } in &found {
                    let start = position - distance as usize;
                    let limit = 40.min(raw.len() - position);
                    assert_eq!(common(&raw, start, position, limit), length as usize);
                }
                // Hashes of three bytes may collide; four and more are compared.
                let from_four = |list: &[Match]| -> Vec<Match> {
                    list.iter().copied().filter(|m| m.length > 4).collect()
                };
                assert_eq!(from_four(&found), from_four(&expected));
            }
        }
    }
}
