//! All that encoder and decoder must agree on, and what memory follows from it.

use super::profile::Profile;
use super::table::{LINE_BYTES, LINES_LOG_MAX, LINES_LOG_MIN};
use crate::error::{Error, Result};
use crate::params::Params;

/// Levels, from fast to dense.
pub(crate) const LEVEL_MAX: u8 = 3;
pub(crate) const LEVEL_DEFAULT: u8 = 2;

/// What a level may take.
pub(crate) struct Effort {
    /// Lines of the table of histories, log2 of the most.
    lines_log_max: u32,
    /// Matches of this length make a byte all but sure: see `sure`.
    pub(crate) sure_bytes: u32,
}

/// By level. At level 2, twice the lines gain 0.3 percent on executables; with four times, a sixth
/// of all samples stand at prefetches that wait for page walks.
const EFFORTS: [Effort; LEVEL_MAX as usize] = [
    Effort {
        lines_log_max: 20,
        sure_bytes: 32,
    },
    Effort {
        lines_log_max: 21,
        sure_bytes: 32,
    },
    Effort {
        lines_log_max: 22,
        sure_bytes: 64,
    },
];
const _: () = assert!(EFFORTS[LEVEL_MAX as usize - 1].lines_log_max <= LINES_LOG_MAX);

/// Lines per raw byte that pay, log2: every byte touches two of each context.
const LINES_PER_BYTE_LOG: u32 = 2;
/// Most positions that a match model remembers, log2; and the fewest.
const POSITIONS_LOG_MAX: u32 = 20;
const POSITIONS_LOG_MIN: u32 = 10;
/// Bytes of a remembered position, in both match models.
const POSITION_BYTES: u64 = 2 * 4;
/// Contexts of direct maps, log2: those of order 1 are byte and partial byte, and short blocks keep
/// the lower bits.
const DIRECT_LOG_MIN: u32 = 8;
const DIRECT_LOG_MAX: u32 = 16;
/// Bytes of a direct context in all maps together: a row of the refining map and three counters.
const DIRECT_BYTES: u64 = 64 + 3 * 4;
/// Memory beside the table of histories and the match models, bytes, upper bound: weights of three sets
/// 64 KiB, the second refining map 256 KiB, trust in bytes 64 KiB, worth of histories 16 KiB.
const FIXED_BYTES: u64 = 512 << 10;

/// A model, as the parameters of a block state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) level: u8,
    pub(crate) profile: Profile,
    /// In the parameters, too, so that a forged length does not open to something else: the last
    /// bytes of a block may cost no payload at all.
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
            return Err(refused("cm level", u64::from(level)));
        }
        let stated = u32::from_le_bytes([a, b, c, d]);
        if u64::from(stated) != raw_length_bytes {
            return Err(refused("cm raw length", u64::from(stated)));
        }
        Ok(Self {
            level,
            profile: Profile::from_number(profile),
            raw_length_bytes: stated,
        })
    }

    /// Settings of the level.
    pub(crate) fn effort(self) -> &'static Effort {
        let row = usize::from(self.level).clamp(1, EFFORTS.len()) - 1;
        &EFFORTS[row]
    }

    /// Lines of the table of histories, log2.
    pub(crate) fn lines_log(self) -> u32 {
        (self.raw_length_log() + LINES_PER_BYTE_LOG)
            .clamp(LINES_LOG_MIN, self.effort().lines_log_max)
    }

    /// Positions that each match model remembers, log2.
    pub(crate) fn positions_log(self) -> u32 {
        self.raw_length_log()
            .clamp(POSITIONS_LOG_MIN, POSITIONS_LOG_MAX)
    }

    /// Contexts of maps that are indexed directly, log2. All of order 1 in large blocks; short ones
    /// would take longer to clear them than to fill them.
    pub(crate) fn direct_log(self) -> u32 {
        self.raw_length_log().clamp(DIRECT_LOG_MIN, DIRECT_LOG_MAX)
    }

    /// Working memory, bytes, to squeeze as to open.
    pub(crate) fn memory_bytes(self) -> u64 {
        ((LINE_BYTES as u64) << self.lines_log())
            + (POSITION_BYTES << self.positions_log())
            + (DIRECT_BYTES << self.direct_log())
            + FIXED_BYTES
    }

    /// Bits of the raw length as a number.
    fn raw_length_log(self) -> u32 {
        u32::BITS - self.raw_length_bytes.max(1).leading_zeros()
    }
}

fn refused(field: &'static str, value: u64) -> Error {
    Error::Description { field, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_come_back_and_forged_ones_are_refused() {
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
    fn memory_follows_the_length_and_is_bounded() {
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
        for level in 1..=LEVEL_MAX {
            let lengths = (0..31).map(|log| memory(level, 1 << log));
            assert!(lengths.collect::<Vec<_>>().is_sorted());
        }
    }
}
