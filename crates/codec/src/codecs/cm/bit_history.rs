//! Bit histories: the bits seen in a context, in one byte.
//!
//! A state represents the number of zeros and ones seen, bounded, and the last one or two bits
//! (indirect context models: Mahoney, "Data Compression Explained", 4.1.3, and the ICM of the ZPAQ
//! specification). The transition table is computed at compile time from the rules below; it is not
//! a published one.

/// The number of a state; 0 means no bits. Higher numbers mean at least as many bits, so the number
/// is also the priority of a slot for replacement.
pub(crate) type HistoryState = u8;

/// The maximum of the larger count, by the smaller count.
const LARGER_MAX: [u8; 5] = [48, 20, 10, 6, 5];
/// Up to this many bits, and if both values occurred, the last two bits are stored, else the last.
const TWO_BITS_TOTAL_MAX: u8 = 6;
/// A count is reduced to this when the other bit occurs: a long run may have ended.
const CONTRADICTED: [u8; 49] = contradicted();

const fn contradicted() -> [u8; 49] {
    let mut table = [0; 49];
    let mut count = 0;
    while count < table.len() {
        table[count] = match count {
            0..=2 => count as u8,
            3 => 2,
            4..=5 => 3,
            6..=9 => 4,
            10..=19 => 5,
            _ => 6,
        };
        count += 1;
    }
    table
}

#[derive(Clone, Copy)]
pub(crate) struct BitHistory {
    pub(crate) counts: [u8; 2],
    /// The last bits, newest lowest, as many as are stored.
    recent: u8,
}

struct Table {
    histories: [BitHistory; 256],
    length: usize,
    next: [[HistoryState; 2]; 256],
}

const TABLE: Table = build();
static NEXT: [[HistoryState; 2]; 256] = TABLE.next;
pub(crate) const STATES: usize = TABLE.length;
const _: () = assert!(STATES > 200 && STATES <= 256);

#[inline(always)]
pub(crate) fn next(state: HistoryState, bit: u32) -> HistoryState {
    NEXT[usize::from(state)][(bit & 1) as usize]
}

/// The history of a state; states beyond `STATES` have an empty one.
pub(crate) fn history_of(state: usize) -> BitHistory {
    const HISTORIES: [BitHistory; 256] = TABLE.histories;
    HISTORIES[state & 255]
}

/// The nearest representable history.
const fn bounded(counts: [u8; 2], recent: u8) -> BitHistory {
    let mut counts = counts;
    let small = (counts[1] < counts[0]) as usize;
    let small_max = LARGER_MAX.len() as u8 - 1;
    if counts[small] > small_max {
        counts[small] = small_max;
    }
    let most = LARGER_MAX[counts[small] as usize];
    if counts[1 - small] > most {
        counts[1 - small] = most;
    }
    let stored = if counts[0] == 0 || counts[1] == 0 {
        0 // The counts are sufficient.
    } else if counts[0] + counts[1] <= TWO_BITS_TOTAL_MAX {
        recent & 3
    } else {
        recent & 1
    };
    BitHistory {
        counts,
        recent: stored,
    }
}

const fn next_history(history: BitHistory, bit: usize) -> BitHistory {
    let mut counts = history.counts;
    let mut recent = history.recent << 1 | bit as u8;
    if counts[bit] == 0 {
        // The bits before had the other value, and are not stored.
        recent = (1 - bit as u8) << 1 | bit as u8;
    } else if counts[1 - bit] == 0 {
        recent = (bit as u8) << 1 | bit as u8;
    }
    counts[bit] += 1;
    counts[1 - bit] = CONTRADICTED[counts[1 - bit] as usize];
    bounded(counts, recent)
}

const fn same(a: BitHistory, b: BitHistory) -> bool {
    a.counts[0] == b.counts[0] && a.counts[1] == b.counts[1] && a.recent == b.recent
}

/// The position of `wanted` in the first `length` histories, or `length`.
const fn position(histories: &[BitHistory; 256], length: usize, wanted: BitHistory) -> usize {
    let mut index = 0;
    while index < length && !same(histories[index], wanted) {
        index += 1;
    }
    index
}

/// Collects the reachable histories, orders them by the number of bits, and numbers them.
const fn build() -> Table {
    let nothing = BitHistory {
        counts: [0; 2],
        recent: 0,
    };
    let mut histories = [nothing; 256];
    let (mut length, mut done) = (1, 0);
    while done < length {
        let mut bit = 0;
        while bit < 2 {
            let successor = next_history(histories[done], bit);
            if position(&histories, length, successor) == length {
                histories[length] = successor;
                length += 1;
            }
            bit += 1;
        }
        done += 1;
    }
    // A stable insertion sort.
    let mut index = 1;
    while index < length {
        let moved = histories[index];
        let total = moved.counts[0] + moved.counts[1];
        let mut at = index;
        while at > 0 && histories[at - 1].counts[0] + histories[at - 1].counts[1] > total {
            histories[at] = histories[at - 1];
            at -= 1;
        }
        histories[at] = moved;
        index += 1;
    }
    let mut next = [[0; 2]; 256];
    let mut index = 0;
    while index < length {
        next[index][0] =
            position(&histories, length, next_history(histories[index], 0)) as HistoryState;
        next[index][1] =
            position(&histories, length, next_history(histories[index], 1)) as HistoryState;
        index += 1;
    }
    Table {
        histories,
        length,
        next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_in_range_and_ordered_by_their_counts() {
        for state in 0..STATES {
            let now = history_of(state);
            for bit in 0..2 {
                let then = usize::from(next(state as HistoryState, bit));
                assert!(then > 0 && then < STATES);
                assert!(history_of(then).counts[bit as usize] > 0);
            }
            if state > 0 {
                let before = history_of(state - 1).counts;
                assert!(before[0] + before[1] <= now.counts[0] + now.counts[1]);
            }
        }
    }

    #[test]
    fn short_histories_are_all_different() {
        let mut states = std::collections::BTreeSet::new();
        for length in 0..=3_u32 {
            for bits in 0..1 << length {
                let state = (0..length)
                    .rev()
                    .fold(0, |state, index| next(state, bits >> index & 1));
                assert!(states.insert(state), "{bits:b} of {length} bits");
            }
        }
        assert_eq!(states.len(), 15);
    }

    #[test]
    fn the_other_bit_shortens_a_long_run() {
        let run = (0..100).fold(0, |state, _| next(state, 1));
        assert_eq!(history_of(usize::from(run)).counts, [0, 48]);
        let broken = history_of(usize::from(next(run, 0))).counts;
        assert_eq!(broken, [1, 6]);
    }
}
