//! The match finder of the fast levels, chosen by the content of the block.
//!
//! zstd chooses parameters for whole files. A block has passed the match stage before, so the
//! repeats left in it are short or far apart, and the best parameters depend on the content more
//! than on the level. The measurements are at [`own_finder`] and [`others`].

use crate::error::Result;
use crate::sample::{self, Content};
use crate::workspace::Workspace;

/// Smaller blocks use zstd's parameters, which are different for them.
const OWN_FINDER_ABOVE_BYTES: u64 = 256 << 10;
/// Higher levels search so long that they find the near match among the far ones.
const LEVEL_MAX: i32 = 5;
/// The maximum length of a trial, which uses the middle of the block: more than zstd treats as a
/// small input.
///
/// Less is misleading: of 56 MB of disassembled programs, level 3 makes 4 % more than level 1, but
/// 1.6 % less of pieces of 128 KiB.
const TRIAL_BYTES_MAX: usize = 320 << 10;
const _: () = assert!(TRIAL_BYTES_MAX as u64 > OWN_FINDER_ABOVE_BYTES);

/// One of zstd's match finders with a table size that suits the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Finder {
    /// The zstd level, which determines the other parameters.
    pub(super) level: i32,
    /// log2 of the entries of its table (at level 3: the larger one); `None`: the default of zstd.
    pub(super) hash_log: Option<u32>,
    /// The shortest match, bytes; `None`: the default of zstd.
    pub(super) match_bytes_min: Option<u32>,
}

impl Finder {
    pub(super) const fn for_level(level: i32) -> Self {
        Self {
            level,
            hash_log: None,
            match_bytes_min: None,
        }
    }

    /// The finder beside long-distance mode, where a table of 2^16 entries takes no more time than
    /// one of 2^15 at level 1 (79 MB of JSON 7.83 -> 7.77 MB).
    pub(super) fn beside(self, long_distance: bool) -> Self {
        let grown = self.hash_log.map(|log| log.max(16));
        Self {
            hash_log: if long_distance { grown } else { self.hash_log },
            ..self
        }
    }

    const fn fast(level: i32, hash_log: u32, match_bytes_min: u32) -> Self {
        Self {
            level,
            hash_log: Some(hash_log),
            match_bytes_min: Some(match_bytes_min),
        }
    }
}

/// Chooses the finder for a block, by content and, where content is not sufficient, by trial.
///
/// `size_of` returns the compressed size of some bytes with a finder. The choice is a function of
/// the bytes alone, so that archives are the same everywhere.
pub(super) fn choose(
    workspace: &mut Workspace,
    raw: &[u8],
    level: i32,
    size_of: impl Fn(&mut Workspace, &[u8], Finder) -> Result<usize>,
) -> Result<Finder> {
    let length_bytes = raw.len() as u64;
    if length_bytes <= OWN_FINDER_ABOVE_BYTES || level > LEVEL_MAX {
        return Ok(Finder::for_level(level));
    }
    sample::take_sample(&[raw], &mut workspace.sample);
    let content = sample::content(&sample::histogram(&workspace.sample));
    let own = own_finder(level, length_bytes, content);
    let others = others(level, content);
    if others.is_empty() {
        return Ok(own);
    }
    let length = raw.len().min(TRIAL_BYTES_MAX);
    let start = (raw.len() - length) / 2;
    let piece = &raw[start..start + length];
    let own_bytes = size_of(workspace, piece, own)?;
    let mut best = (own_bytes + handicap_bytes(level, own_bytes), own);
    for &other in others {
        let bytes = size_of(workspace, piece, other)?;
        if bytes < best.0 {
            best = (bytes, other);
        }
    }
    Ok(best.1)
}

/// By how many bytes the level's own finder must be better on a piece to be used for the block.
///
/// The finder of level 3 has the larger history, whose disadvantage shows only in the whole block:
/// without this, logs at level 3 are larger than at level 2 (4.04 and 4.02 MB), with it smaller
/// (4.02; disassembled programs 5.75 -> 5.71). At levels 1 and 2 it does harm (molecules 44.2 ->
/// 44.6), at level 4 it changes nothing.
fn handicap_bytes(level: i32, own_bytes: usize) -> usize {
    match level {
        3 => own_bytes >> 6,
        _ => 0,
    }
}

/// The finder of the level. Its tables are at least as large as in [`others`].
///
/// Table sizes: the defaults of zstd are 2^14, 2^16 and 2^17. Two kernel trees and 490 MB of
/// programs at level 1, without long-distance mode, MB and processor time of both: 217.0 and 143.8
/// (4.8 s), with 2^15 211.3 and 141.1 (4.9 s), with 2^16 207.6 and 138.9 (5.5 s), with 2^13 225.0.
/// Level 2: 208.0 and 133.8 -> 206.7 and 131.2, level 3: 196.1 and 126.6 -> 195.3 and 125.5.
///
/// Shortest match: in text and numeric content a match of 6 bytes at a large distance costs as much
/// as its letters, and prevents a longer one. Level 2 with 7 instead of 6: JSON 7.78 -> 7.60 MB,
/// text 26.43 -> 26.19, disassembled programs 5.93 -> 5.74, circuit drawings 30.0 -> 28.5, 700 MB
/// of kernel trees 73.86 -> 73.68, in 0.90 to 0.93 of the time; but programs 131.2 -> 134.2. Level
/// 1 with 6 instead of 7: programs 140.9 -> 137.6 in 0.97 of the time; but JSON 7.66 -> 7.81,
/// circuit drawings 28.0 -> 29.0. At level 3, lengths other than the default pay only where
/// [`others`] win.
pub(super) fn own_finder(level: i32, raw_length_bytes: u64, content: Content) -> Finder {
    let match_bytes_min = match content {
        Content::Binary => 6,
        Content::Text | Content::Numeric => 7,
    };
    match level {
        _ if raw_length_bytes <= OWN_FINDER_ABOVE_BYTES => Finder::for_level(level),
        1 => Finder::fast(1, 15, match_bytes_min),
        2 => Finder::fast(2, 17, match_bytes_min),
        3 => Finder {
            hash_log: Some(18),
            ..Finder::for_level(3)
        },
        _ => Finder::for_level(level),
    }
}

/// Finders that may be better than the level's.
///
/// Numbers repeat often and by chance, and every additional match that a better finder finds has a
/// large, expensive distance: there level 3 is often larger than level 1 (also with zstd's
/// defaults), and a table so small that it loses old entries may be better than both. MB at levels
/// 1, 2 and 3, without and with the choice: circuit drawings 28.0, 30.0, 30.4 -> 28.0, 28.1, 28.0;
/// logs of system calls 4.29, 4.22, 4.27 -> 4.12, 4.02, 4.02; lists of files 5.21, 5.26, 5.22 ->
/// 5.14, 5.17, 5.16; disassembled programs 5.69, 5.93, 5.94 -> 5.69, 5.71, 5.71; atoms of molecules
/// 45.2, 44.4, 43.5 -> 45.2, 44.2, 43.5. The time is the same within the variation: 0.79 to 1.04
/// times.
fn others(level: i32, content: Content) -> &'static [Finder] {
    match (content, level) {
        (Content::Numeric, 1) => &SHORT_HISTORIES[..1],
        (Content::Numeric, 2) => &SHORT_HISTORIES[..2],
        (Content::Numeric, _) => &SHORT_HISTORIES,
        _ => &[],
    }
}

/// From a short history to the tables of levels 1 and 2 for text.
const SHORT_HISTORIES: [Finder; 3] = [
    Finder::fast(1, 13, 7),
    Finder::fast(1, 15, 7),
    Finder::fast(2, 17, 7),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data;

    const LENGTH_BYTES: usize = 1 << 20;

    /// The finder chosen when each finder compresses anything to `bytes_of` bytes, and the number
    /// of trials.
    fn chosen(raw: &[u8], level: i32, bytes_of: impl Fn(Finder) -> usize) -> (Finder, usize) {
        let trials = std::cell::Cell::new(0);
        let finder = choose(&mut Workspace::new(), raw, level, |_, piece, finder| {
            assert_eq!(piece.len(), raw.len().min(TRIAL_BYTES_MAX));
            trials.set(trials.get() + 1);
            Ok(bytes_of(finder))
        });
        (finder.unwrap(), trials.get())
    }

    #[test]
    fn text_and_binary_content_need_no_trial() {
        let without_trial = |raw: &[u8], level| match chosen(raw, level, |_| 0) {
            (finder, 0) => finder,
            (_, trials) => panic!("{trials} trials"),
        };
        let text = test_data::text(LENGTH_BYTES, 1);
        let code = test_data::x86_code(LENGTH_BYTES, 1);
        for (level, hash_log) in [(1, 15), (2, 17)] {
            assert_eq!(
                without_trial(&text, level),
                Finder::fast(level, hash_log, 7)
            );
            assert_eq!(
                without_trial(&code, level),
                Finder::fast(level, hash_log, 6)
            );
        }
        assert_eq!(without_trial(&text, 4), Finder::for_level(4));
    }

    #[test]
    fn chooses_the_smallest_result_for_numeric_content() {
        let coordinates = test_data::coordinates(LENGTH_BYTES, 1);
        for level in 1..=LEVEL_MAX {
            let own = own_finder(level, LENGTH_BYTES as u64, Content::Numeric);
            let others = others(level, Content::Numeric);
            let bytes_of = |finder| if finder == own { 900 } else { 1000 };
            assert_eq!(
                chosen(&coordinates, level, bytes_of),
                (own, 1 + others.len())
            );
            for &best in others {
                let bytes_of = |finder| if finder == best { 899 } else { 900 };
                assert_eq!(chosen(&coordinates, level, bytes_of).0, best);
            }
        }
    }

    #[test]
    fn small_blocks_and_slow_levels_use_the_defaults_of_zstd() {
        let coordinates = test_data::coordinates(LENGTH_BYTES, 1);
        let small = &coordinates[..OWN_FINDER_ABOVE_BYTES as usize];
        assert_eq!(chosen(small, 1, |_| 0), (Finder::for_level(1), 0));
        assert_eq!(chosen(&coordinates, 6, |_| 0), (Finder::for_level(6), 0));
    }
}
