//! Forward ranks: where a move-to-front code says which symbol comes next, a forward rank says when
//! the present one comes again (Grebnov's `libbsc` codes transforms like that).
//!
//! A queue has all byte values, in the order of their next runs. The symbol of a run is at its
//! front; after the run, it goes back behind as many others as come before it. So a decoder knows
//! the symbol of a run, and that of the next one, before it decodes anything about the run.

use crate::host::Host;

/// All byte values, in the order of their next runs.
pub(super) type Order = [u8; 256];

/// What `find` returns.
pub(super) struct Found {
    /// The number of runs.
    pub(super) runs: usize,
    /// The number of symbols that occur: those at the front of the order. The others rise.
    pub(super) symbols: usize,
    /// The order at the first run.
    pub(super) order: Order,
}

/// The bytes between two check-ins, at 1 to 30 ns.
const PIECE_BYTES: usize = 1 << 14;

/// Finds the forward rank of each run of `bytes`: the number of symbols that come before its symbol
/// comes again, and in the order of the queue. That is its move-to-front rank in the runs from the
/// last one to the first. Writes them from the last run to the first to `ranks`, which has space
/// for one per byte.
pub(super) fn find(host: Host, bytes: &[u8], ranks: &mut [i32]) -> Found {
    let mut order: Order = std::array::from_fn(|index| index as u8);
    let mut occurs = [false; 256];
    let (mut runs, mut after) = (0, None);
    for piece in bytes.rchunks(PIECE_BYTES) {
        for &symbol in piece.iter().rev() {
            if after == Some(symbol) {
                continue;
            }
            after = Some(symbol);
            occurs[usize::from(symbol)] = true;
            let rank = order.iter().position(|&other| other == symbol);
            let rank = rank.unwrap_or(order.len() - 1);
            order.copy_within(..rank, 1);
            order[0] = symbol;
            ranks[runs] = rank as i32;
            runs += 1;
        }
        (host.check_in)();
    }
    Found {
        runs,
        symbols: occurs.iter().filter(|&&occurs| occurs).count(),
        order,
    }
}

/// The number of symbols that are kept in a register.
const FRONT: usize = size_of::<u64>();

/// The symbols in the order of their next runs.
pub(super) struct Queue {
    /// The first symbols, the first of all in the lowest byte.
    front: u64,
    rest: [u8; 256 - FRONT],
}

impl Queue {
    pub(super) fn new(order: &Order) -> Self {
        let (front, rest) = order
            .split_first_chunk::<FRONT>()
            .unwrap_or((&[0; FRONT], &[]));
        let mut queue = Self {
            front: u64::from_le_bytes(*front),
            rest: [0; 256 - FRONT],
        };
        for (symbol, &given) in queue.rest.iter_mut().zip(rest) {
            *symbol = given;
        }
        queue
    }

    #[inline(always)]
    pub(super) fn first(&self) -> u8 {
        self.front as u8
    }

    /// The first symbol after the next `put_back`.
    #[inline(always)]
    pub(super) fn second(&self) -> u8 {
        (self.front >> 8) as u8
    }

    /// Puts the first symbol back behind `rank` (1 to 255) others.
    #[inline(always)]
    pub(super) fn put_back(&mut self, rank: u8) {
        let (symbol, rank) = (self.front & 0xFF, usize::from(rank));
        if rank < FRONT {
            let at = 8 * rank;
            let before = (1 << at) - 1;
            let after = !before & !(0xFF << at);
            self.front = self.front >> 8 & before | symbol << at | self.front & after;
        } else {
            self.front = self.front >> 8 | u64::from(self.rest[0]) << (8 * (FRONT - 1));
            let at = rank - FRONT;
            self.rest.copy_within(1..=at, 0);
            self.rest[at] = symbol as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::{random_bytes, text};

    #[test]
    fn queue_returns_the_symbols_of_all_runs() {
        let few: Vec<u8> = random_bytes(20_000, 8)
            .iter()
            .map(|byte| byte & byte >> 3)
            .collect();
        for bytes in [
            few,
            random_bytes(20_000, 9),
            text(20_000, 1),
            vec![0; 9],
            vec![9],
        ] {
            let mut ranks = vec![0; bytes.len()];
            let Found { runs, order, .. } = find(Host::default(), &bytes, &mut ranks);
            let mut queue = Queue::new(&order);
            let mut expected = bytes.clone();
            expected.dedup();
            assert_eq!(runs, expected.len());
            for (index, &symbol) in expected.iter().enumerate() {
                assert_eq!(queue.first(), symbol);
                if let Some(&next) = expected.get(index + 1) {
                    assert_eq!(queue.second(), next);
                    queue.put_back(ranks[runs - 1 - index] as u8);
                }
            }
        }
    }

    #[test]
    fn queue_agrees_with_a_list() {
        let mut list: Vec<u8> = (0..=255).rev().collect();
        let mut queue = Queue::new(&std::array::from_fn(|index| 255 - index as u8));
        for rank in random_bytes(5000, 4) {
            let rank = rank.max(1) >> (rank % 7);
            let rank = rank.max(1);
            queue.put_back(rank);
            let symbol = list.remove(0);
            list.insert(rank.into(), symbol);
            let front = u64::from_le_bytes(*list.first_chunk().unwrap());
            assert_eq!((queue.front, &queue.rest[..]), (front, &list[FRONT..]));
        }
    }
}
