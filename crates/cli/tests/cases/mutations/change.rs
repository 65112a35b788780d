//! Changes of a file's bytes.

use std::ops::Range;

use refrain_testkit::Rng;

/// One change at random, and its description.
pub fn change(bytes: &[u8], rng: &mut Rng) -> (Vec<u8>, String) {
    let mut changed = bytes.to_vec();
    let part = range(bytes.len(), rng);
    let what = match rng.below(8) {
        0 | 1 => {
            let (at, bit) = (rng.below(bytes.len() as u64) as usize, rng.below(8));
            changed[at] ^= 1 << bit;
            format!("bit {bit} of byte {at}")
        }
        2 => {
            rng.fill(&mut changed[part.clone()]);
            format!("{part:?} overwritten")
        }
        3 => {
            changed[part.clone()].fill(0);
            format!("{part:?} zeroed")
        }
        4 => {
            changed.truncate(part.start);
            format!("cut to {}", part.start)
        }
        5 => {
            changed.drain(part.clone());
            format!("{part:?} removed")
        }
        6 => {
            let mut inserted = vec![0; part.len()];
            rng.fill(&mut inserted);
            changed.splice(part.start..part.start, inserted);
            format!("{} bytes inserted at {}", part.len(), part.start)
        }
        _ => return move_part(bytes, part, rng),
    };
    (changed, what)
}

/// Duplicates a part, or exchanges it with another one.
fn move_part(bytes: &[u8], part: Range<usize>, rng: &mut Rng) -> (Vec<u8>, String) {
    let mut changed = bytes.to_vec();
    if rng.once_in(2) {
        let copy = bytes[part.clone()].to_vec();
        changed.splice(part.end..part.end, copy);
        return (changed, format!("{part:?} twice"));
    }
    let to = rng.below((bytes.len() - part.len()) as u64 + 1) as usize;
    let taken: Vec<u8> = changed.drain(part.clone()).collect();
    changed.splice(to..to, taken);
    (changed, format!("{part:?} moved to {to}"))
}

/// A part of the file: short ones as often as long ones.
fn range(length: usize, rng: &mut Rng) -> Range<usize> {
    let start = rng.below(length as u64) as usize;
    let longest = 1 << rng.below(u64::from(length.ilog2()) + 1);
    start..(start + rng.length(1, longest)).min(length)
}
