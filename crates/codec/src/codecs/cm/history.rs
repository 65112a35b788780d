//! Bit histories: what was seen in a context, in one byte.
//!
//! A state stands for the number of zeros and ones seen, bounded, and for the last one or two bits
//! (indirect context models: Mahoney, "Data Compression Explained", 4.1.3, and the ICM of the ZPAQ
//! specification). The transition table is made while compiling from the rules below; it is not a
//! published one.

/// A state number; 0 means that nothing was seen. Rising numbers mean more bits seen, so the number
/// also says how much a slot is worth keeping.
pub(crate) type State = u8;

/// The larger count is at most this, by the smaller count.
const LARGER_MAX: [u8; 5] = [48, 20, 10, 6, 5];
/// Up to this many bits, and when both values were seen, the last two bits are kept, else the last.
const TWO_BITS_TOTAL_MAX: u8 = 6;
/// A count that is contradicted shrinks to this: what was long true may have ended.
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

/// What a state stands for.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    /// Zeros and ones counted.
    pub(crate) counts: [u8; 2],
    /// The last bits, newest lowest; as many as are kept.
    recent: u8,
}

struct Table {
    seen: [Seen; 256],
    length: usize,
    next: [[State; 2]; 256],
}

const TABLE: Table = build();
/// Successor of a state for each bit.
static NEXT: [[State; 2]; 256] = TABLE.next;
/// Number of states in use.
pub(crate) const STATES: usize = TABLE.length;
const _: () = assert!(STATES > 200 && STATES <= 256);

/// The state after one more bit.
#[inline(always)]
pub(crate) fn next(state: State, bit: u32) -> State {
    NEXT[usize::from(state)][(bit & 1) as usize]
}

/// What this state stands for; states beyond `STATES` stand for nothing seen.
pub(crate) fn seen(state: usize) -> Seen {
    const SEEN: [Seen; 256] = TABLE.seen;
    SEEN[state & 255]
}

/// The nearest representable history.
const fn bounded(counts: [u8; 2], recent: u8) -> Seen {
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
    let kept = if counts[0] == 0 || counts[1] == 0 {
        0 // the counts say it all
    } else if counts[0] + counts[1] <= TWO_BITS_TOTAL_MAX {
        recent & 3
    } else {
        recent & 1
    };
    Seen {
        counts,
        recent: kept,
    }
}

const fn after(seen: Seen, bit: usize) -> Seen {
    let mut counts = seen.counts;
    let mut recent = seen.recent << 1 | bit as u8;
    if counts[bit] == 0 {
        // The bits before were all the other value, and are not kept.
        recent = (1 - bit as u8) << 1 | bit as u8;
    } else if counts[1 - bit] == 0 {
        recent = (bit as u8) << 1 | bit as u8;
    }
    counts[bit] += 1;
    counts[1 - bit] = CONTRADICTED[counts[1 - bit] as usize];
    bounded(counts, recent)
}

const fn same(a: Seen, b: Seen) -> bool {
    a.counts[0] == b.counts[0] && a.counts[1] == b.counts[1] && a.recent == b.recent
}

/// Position of `wanted` among the first `length`, or `length`.
const fn position(seen: &[Seen; 256], length: usize, wanted: Seen) -> usize {
    let mut index = 0;
    while index < length && !same(seen[index], wanted) {
        index += 1;
    }
    index
}

/// Collects what is reachable, orders it by the number of bits seen, and numbers it.
const fn build() -> Table {
    let nothing = Seen {
        counts: [0; 2],
        recent: 0,
    };
    let mut seen = [nothing; 256];
    let (mut length, mut done) = (1, 0);
    while done < length {
        let mut bit = 0;
        while bit < 2 {
            let successor = after(seen[done], bit);
            if position(&seen, length, successor) == length {
                seen[length] = successor;
                length += 1;
            }
            bit += 1;
        }
        done += 1;
    }
    // Insertion sort, stable.
    let mut index = 1;
    while index < length {
        let moved = seen[index];
        let total = moved.counts[0] + moved.counts[1];
        let mut at = index;
        while at > 0 && seen[at - 1].counts[0] + seen[at - 1].counts[1] > total {
            seen[at] = seen[at - 1];
            at -= 1;
        }
        seen[at] = moved;
        index += 1;
    }
    let mut next = [[0; 2]; 256];
    let mut index = 0;
    while index < length {
        next[index][0] = position(&seen, length, after(seen[index], 0)) as State;
        next[index][1] = position(&seen, length, after(seen[index], 1)) as State;
        index += 1;
    }
    Table { seen, length, next }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_stay_in_range_and_are_ordered_by_what_they_saw() {
        for state in 0..STATES {
            let now = seen(state);
            for bit in 0..2 {
                let then = usize::from(next(state as State, bit));
                assert!(then > 0 && then < STATES);
                assert!(seen(then).counts[bit as usize] > 0);
            }
            if state > 0 {
                let before = seen(state - 1).counts;
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
    fn a_contradiction_makes_a_long_run_short() {
        let run = (0..100).fold(0, |state, _| next(state, 1));
        assert_eq!(seen(usize::from(run)).counts, [0, 48]);
        let broken = seen(usize::from(next(run, 0))).counts;
        assert_eq!(broken, [1, 6]);
    }
}
