//! The parameters that encoder and decoder share, and the memory that follows from them.

use super::profile::Profile;
use super::table::{LINE_BYTES, LINES_LOG_MAX, LINES_LOG_MIN};
use crate::error::{Error, Result};
use crate::params::Params;

pub(crate) const LEVEL_MAX: u8 = 3;
pub(crate) const LEVEL_DEFAULT: u8 = 2;

pub(crate) struct LevelSettings {
    /// The maximum number of lines of the table of histories, log2.
    lines_log_max: u32,
    /// The match length from which bytes are coded by one flag: see `byte_flag`.
    pub(crate) flag_match_bytes: u32,
}

/// By level. At level 2, twice the lines save 0.3 percent on executables; with four times, a sixth
/// of all samples of a profiler are at prefetches that wait for page walks.
const LEVEL_SETTINGS: [LevelSettings; LEVEL_MAX as usize] = [
    LevelSettings {
        lines_log_max: 20,
        flag_match_bytes: 32,
    },
    LevelSettings {
        lines_log_max: 21,
        flag_match_bytes: 32,
    },
    LevelSettings {
        lines_log_max: 22,
        flag_match_bytes: 64,
    },
];
const _: () = assert!(LEVEL_SETTINGS[LEVEL_MAX as usize - 1].lines_log_max <= LINES_LOG_MAX);

/// The useful number of lines per raw byte, log2: every byte accesses two of each context.
const LINES_PER_BYTE_LOG: u32 = 2;
/// The maximum and the minimum number of positions in a match model, log2.
const POSITIONS_LOG_MAX: u32 = 20;
const POSITIONS_LOG_MIN: u32 = 10;
/// The bytes of a position, in both match models.
const POSITION_BYTES: u64 = 2 * 4;
/// The contexts of direct maps, log2. Order 1 uses byte and partial byte; short blocks use only the
/// lower bits.
const DIRECT_LOG_MIN: u32 = 8;
const DIRECT_LOG_MAX: u32 = 16;
/// The bytes of a direct context in all maps together: a row of the refining map and three
/// counters.
const DIRECT_BYTES: u64 = 64 + 3 * 4;
/// The memory beside the table of histories and the match models, bytes, upper bound: weights of
/// three sets 64 KiB, the second refining map 256 KiB, counters of predicted bytes 64 KiB,
/// probabilities of histories 16 KiB.
const FIXED_BYTES: u64 = 512 << 10;

/// The lengths of blocks that have two segments, which are coded at the same time. In shorter ones
/// that would cost more than two percent. Longer ones are among others, which use the other cores:
/// 64 MiB is the block size of the level of archives that uses this codec.
const TWO_SEGMENTS_BYTES: std::ops::Range<u32> = 16 << 20..64 << 20;

/// The largest length of a block with two segments, which takes more memory than a longer one.
pub(crate) const TWO_SEGMENTS_MAX_BYTES: u64 = TWO_SEGMENTS_BYTES.end as u64 - 1;

/// A model, as stated by the parameters of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) level: u8,
    pub(crate) profile: Profile,
    /// Also in the parameters, so that a forged length does not decode to something else: the last
    /// bytes of a block may need no payload at all.
    pub(crate) raw_length_bytes: u32,
}

impl Model {
    /// The parameter bytes: level, profile, raw length (little-endian).
    pub(crate) fn to_params(self) -> Params {
        let [a, b, c, d] = self.raw_length_bytes.to_le_bytes();
        Params::from_array([self.level, self.profile.number(), a, b, c, d])
    }

    /// Reads untrusted parameters.
    ///
    /// # Errors
    /// `Description`.
    pub(crate) fn from_params(params: &Params, raw_length_bytes: u64) -> Result<Self> {
        let [level, profile, a, b, c, d] = params.to_array()?;
        if !(1..=LEVEL_MAX).contains(&level) {
            return Err(invalid_field("cm level", u64::from(level)));
        }
        let stated = u32::from_le_bytes([a, b, c, d]);
        if u64::from(stated) != raw_length_bytes {
            return Err(invalid_field("cm raw length", u64::from(stated)));
        }
        Ok(Self {
            level,
            profile: Profile::from_number(profile),
            raw_length_bytes: stated,
        })
    }

    /// The number of segments of the block: about equal in length, and coded independently.
    pub(crate) fn segments(self) -> usize {
        if TWO_SEGMENTS_BYTES.contains(&self.raw_length_bytes) { 2 } else { 1 }
    }

    /// The length of the first segment, which is not shorter than the second.
    pub(crate) fn segment_bytes(self) -> usize {
        (self.raw_length_bytes as usize).div_ceil(self.segments())
    }

    pub(crate) fn level_settings(self) -> &'static LevelSettings {
        let row = usize::from(self.level).clamp(1, LEVEL_SETTINGS.len()) - 1;
        &LEVEL_SETTINGS[row]
    }

    /// The number of lines of the table of a segment, log2. With half as many for each of two
    /// segments, 24 releases of typescript take 2.9 percent more.
    pub(crate) fn lines_log(self) -> u32 {
        (self.segment_length_log() + LINES_PER_BYTE_LOG)
            .clamp(LINES_LOG_MIN, self.level_settings().lines_log_max)
    }

    pub(crate) fn positions_log(self) -> u32 {
        self.segment_length_log()
            .clamp(POSITIONS_LOG_MIN, POSITIONS_LOG_MAX)
    }

    /// The number of contexts of maps that are indexed directly, log2. All of order 1 in large
    /// blocks; in short ones it would take longer to clear them than to fill them.
    pub(crate) fn direct_log(self) -> u32 {
        self.segment_length_log()
            .clamp(DIRECT_LOG_MIN, DIRECT_LOG_MAX)
    }

    /// The working memory, bytes, for encoding and for decoding.
    pub(crate) fn memory_bytes(self) -> u64 {
        let segment = ((LINE_BYTES as u64) << self.lines_log())
            + (POSITION_BYTES << self.positions_log())
            + (DIRECT_BYTES << self.direct_log())
            + FIXED_BYTES;
        segment * self.segments() as u64
    }

    fn segment_length_log(self) -> u32 {
        usize::BITS - self.segment_bytes().max(1).leading_zeros()
    }
}

fn invalid_field(field: &'static str, value: u64) -> Error {
    Error::Description { field, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_round_trip_and_forged_ones_are_errors() {
        for level in 1..=LEVEL_MAX {
            for profile in [Profile::Text, Profile::Binary] {
                let model = Model {
                    level,
                    profile,
                    raw_length_bytes: 77_777,
                };
                let params = model.to_params();
                assert_eq!(Model::from_params(&params, 77_777), Ok(model));
                assert!(Model::from_params(&params, 77_778).is_err());
            }
        }
        for bytes in [
            &[][..],
            &[0, 0, 1, 0, 0, 0],
            &[LEVEL_MAX + 1, 0, 1, 0, 0, 0],
            &[1, 0, 1, 0, 0],
            &[1, 0, 1, 0, 0, 0, 0],
            &[1, 0, 2, 0, 0, 0],
        ] {
            let forged = Params::new(bytes).unwrap();
            let result = Model::from_params(&forged, 1);
            assert!(
                matches!(result, Err(Error::Description { .. })),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn memory_grows_with_the_length_and_is_bounded() {
        let memory = |level, raw_length_bytes| {
            Model {
                level,
                profile: Profile::Text,
                raw_length_bytes,
            }
            .memory_bytes()
        };
        assert!(memory(3, 1000) < 1 << 20);
        assert!(memory(2, 1 << 30) <= 160 << 20);
        assert!(memory(3, 1 << 30) <= 280 << 20);
        assert!(memory(3, 1 << 25) <= 560 << 20);
        for level in 1..=LEVEL_MAX {
            let lengths = (0..26).map(|log| memory(level, 1 << log));
            assert!(lengths.collect::<Vec<_>>().is_sorted());
        }
    }
}
