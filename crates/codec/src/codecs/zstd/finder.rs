//! The match finder of the fast levels, chosen by what the block holds.
//!
//! zstd's own choices are made for whole files. A block has gone through the match stage before, so what still repeats in it is short
//! or far apart; and what is best differs by content more than by level. The measurements are with [`own_finder`] and [`others`].

use crate::error::Result;
use crate::sample::{self, Content};
use crate::workspace::Workspace;

/// Smaller blocks are left to zstd, which has other settings for them.
const OWN_FINDER_FROM_BYTES: u64 = 256 << 10;
/// Higher levels search so long that they find the near match among the far ones.
const LEVEL_MAX: i32 = 5;
/// What a trial runs over, at most, from the middle of the block: more than zstd takes for a small input.
///
/// Less misleads: of 56 MB of disassembled programs level 3 makes 4 % more than level 1, but 1.6 % less of pieces of 128 KiB.
const TRIAL_BYTES_MAX: usize = 320 << 10;
const _: () = assert!(TRIAL_BYTES_MAX as u64 > OWN_FINDER_FROM_BYTES);

/// One of zstd's match finders with a table of a size that suits the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Finder {
    /// zstd's level, from which all else comes.
    pub(super) level: i32,
    /// log2 of the entries of its table (at level 3: the larger one); `None`: zstd's own.
    pub(super) hash_log: Option<u32>,
    /// Shortest match, bytes; `None`: zstd's own.
    pub(super) match_bytes_min: Option<u32>,
}

impl Finder {
    /// zstd's own choice.
    pub(super) const fn of_level(level: i32) -> Self {
        Self {
            level,
            hash_log: None,
            match_bytes_min: None,
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

/// The finder for a block, by content and, where that says too little, by trial.
///
/// `size_of` tells how many bytes something takes with a finder. A function of the bytes alone, so that archives are the same everywhere.
pub(super) fn choose(
    workspace: &mut Workspace,
    raw: &[u8],
    level: i32,
    size_of: impl Fn(&mut Workspace, &[u8], Finder) -> Result<usize>,
) -> Result<Finder> {
    let length_bytes = raw.len() as u64;
    if length_bytes <= OWN_FINDER_FROM_BYTES || level > LEVEL_MAX {
        return Ok(Finder::of_level(level));
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

/// What the level's own finder must be better by on a piece, to be taken for the block.
///
/// Level 3's has the larger memory, whose harm shows in the whole block: without this, logs at level 3 are larger than at level 2 (4.04 and
/// 4.02 MB), with it smaller (4.02; disassembled programs 5.75 -> 5.71). At levels 1 and 2 it does harm (molecules 44.2 -> 44.6), at level 4 nothing.
fn handicap_bytes(level: i32, own_bytes: usize) -> usize {
    match level {
        3 => own_bytes >> 6,
        _ => 0,
    }
}

/// The level's finder, whose tables are no smaller than those of [`others`].
///
/// Sizes of tables: 2^14, 2^16 and 2^17 are zstd's. Two kernel trees and 490 MB of programs at level 1, without long-distance mode, MB
/// and processor time of the whole: 217.0 and 143.8 (4.8 s), with 2^15 211.3 and 141.1 (4.9 s), with 2^16 207.6 and 138.9 (5.5 s), with
/// 2^13 225.0. Level 2: 208.0 and 133.8 -> 206.7 and 131.2, level 3: 196.1 and 126.6 -> 195.3 and 125.5.
///
/// Shortest match: in text and figures one of 6 bytes from far away costs as much as its letters, and stands in the way of a longer
/// one. Level 2 with 7 instead of 6: JSON 7.78 -> 7.60 MB, text 26.43 -> 26.19, disassembled programs 5.93 -> 5.74, circuit drawings
/// 30.0 -> 28.5, 700 MB of kernel trees 73.86 -> 73.68, in 0.90 to 0.93 of the time; but programs 131.2 -> 134.2. Level 1 with 6 instead
/// of 7: programs 140.9 -> 137.6 in 0.97 of the time; but JSON 7.66 -> 7.81, circuit drawings 28.0 -> 29.0. At level 3 other lengths than
/// zstd's pay only where [`others`] win.
pub(super) fn own_finder(level: i32, raw_length_bytes: u64, content: Content) -> Finder {
    let match_bytes_min = match content {
        Content::Binary => 6,
        Content::Text | Content::Figures => 7,
    };
    match level {
        _ if raw_length_bytes <= OWN_FINDER_FROM_BYTES => Finder::of_level(level),
        1 => Finder::fast(1, 15, match_bytes_min),
        2 => Finder::fast(2, 17, match_bytes_min),
        3 => Finder {
            hash_log: Some(18),
            ..Finder::of_level(3)
        },
        _ => Finder::of_level(level),
    }
}

/// Finders that may do better than the level's own.
///
/// Where much of the text is figures, they repeat often and by chance, and every match that a better finder adds has a dear distance:
/// there level 3 is often larger than level 1 (so is zstd's), and a table so small that it forgets may beat both.
/// MB at levels 1, 2 and 3, without and with the choice: circuit drawings 28.0, 30.0, 30.4 -> 28.0, 28.1, 28.0; logs of system calls
/// 4.29, 4.22, 4.27 -> 4.12, 4.02, 4.02; lists of files 5.21, 5.26, 5.22 -> 5.14, 5.17, 5.16; disassembled programs 5.69, 5.93, 5.94 ->
/// 5.69, 5.71, 5.71; atoms of molecules 45.2, 44.4, 43.5 -> 45.2, 44.2, 43.5. The time is the same within the noise: 0.79 to 1.04 times.
fn others(level: i32, content: Content) -> &'static [Finder] {
    match (content, level) {
        (Content::Figures, 1) => &FORGETFUL[..1],
        (Content::Figures, 2) => &FORGETFUL[..2],
        (Content::Figures, _) => &FORGETFUL,
        _ => &[],
    }
}

/// From what has just come by to what levels 1 and 2 remember of text.
const FORGETFUL: [Finder; 3] = [
    Finder::fast(1, 13, 7),
    Finder::fast(1, 15, 7),
    Finder::fast(2, 17, 7),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data;

    const LENGTH_BYTES: usize = 1 << 20;

    /// What is chosen when each finder makes of anything as many bytes as `bytes_of` says; and how often that was asked.
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
    fn content_decides_without_a_trial() {
        let unasked = |raw: &[u8], level| match chosen(raw, level, |_| 0) {
            (finder, 0) => finder,
            (_, trials) => panic!("{trials} trials"),
        };
        let text = test_data::text(LENGTH_BYTES, 1);
        let code = test_data::x86_code(LENGTH_BYTES, 1);
        for (level, hash_log) in [(1, 15), (2, 17)] {
            assert_eq!(unasked(&text, level), Finder::fast(level, hash_log, 7));
            assert_eq!(unasked(&code, level), Finder::fast(level, hash_log, 6));
        }
        assert_eq!(unasked(&text, 4), Finder::of_level(4));
    }

    #[test]
    fn the_smallest_wins_among_figures() {
        let figures = test_data::figures(LENGTH_BYTES, 1);
        for level in 1..=LEVEL_MAX {
            let own = own_finder(level, LENGTH_BYTES as u64, Content::Figures);
            let others = others(level, Content::Figures);
            let bytes_of = |finder| if finder == own { 900 } else { 1000 };
            assert_eq!(chosen(&figures, level, bytes_of), (own, 1 + others.len()));
            for &best in others {
                let bytes_of = |finder| if finder == best { 899 } else { 900 };
                assert_eq!(chosen(&figures, level, bytes_of).0, best);
            }
        }
    }

    #[test]
    fn small_blocks_and_slow_levels_are_zstds() {
        let figures = test_data::figures(LENGTH_BYTES, 1);
        let small = &figures[..OWN_FINDER_FROM_BYTES as usize];
        assert_eq!(chosen(small, 1, |_| 0), (Finder::of_level(1), 0));
        assert_eq!(chosen(&figures, 6, |_| 0), (Finder::of_level(6), 0));
    }
}
