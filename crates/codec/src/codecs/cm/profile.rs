//! Selects the set of contexts for a block.

use crate::sample::histogram;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Text, source code, markup, logs.
    Text,
    /// Executables and mixed binary data.
    Binary,
    /// Tables of fixed-size records.
    Record {
        /// Bytes from one record to the next, 2..=255.
        stride_bytes: usize,
    },
}

impl Profile {
    /// The number in archives: 0 text, 1 binary, 2 and above a stride.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
            Self::Record { stride_bytes } => stride_bytes as u8,
        }
    }

    /// The profile with this number. Every byte is valid.
    pub(crate) fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Text,
            1 => Self::Binary,
            stride => Self::Record {
                stride_bytes: usize::from(stride),
            },
        }
    }

    /// The profiles worth a trial on a sample of a block, the likeliest first. Never empty.
    pub(crate) fn candidates(sample: &[u8]) -> Vec<Self> {
        let text = histogram(sample)
            .iter()
            .enumerate()
            .filter(|(byte, _)| matches!(byte, 9 | 10 | 13 | 32..=126))
            .map(|(_, &count)| count as usize)
            .sum::<usize>();
        if text >= sample.len() - sample.len() / OTHER_BYTES_ONE_IN {
            return vec![Self::Text];
        }
        let mut candidates = vec![Self::Binary];
        if text >= sample.len() / 2 {
            candidates.push(Self::Text);
        }
        if let Some(stride_bytes) = stride(sample) {
            candidates.push(Self::Record { stride_bytes });
        }
        candidates
    }
}

/// A sample with less than one byte in this many that is not text is text without a trial.
const OTHER_BYTES_ONE_IN: usize = 64;
/// The longest record that is detected.
const STRIDE_MAX_BYTES: usize = 255;
/// A stride must repeat at least one byte in this many.
const STRIDE_SHARE: usize = 12;

/// The distance at which bytes repeat most often. Runs repeat at any distance and do not count.
fn stride(sample: &[u8]) -> Option<usize> {
    let mut repeats = [0_usize; STRIDE_MAX_BYTES + 1];
    for window in sample.windows(STRIDE_MAX_BYTES + 1) {
        let (&last, before) = window.split_last()?;
        if before.last() == Some(&last) {
            continue;
        }
        for (count, &byte) in repeats[2..].iter_mut().zip(before.iter().rev().skip(1)) {
            *count += usize::from(byte == last);
        }
    }
    let most = repeats.iter().max().copied().unwrap_or(0);
    // Multiples of the stride repeat about as often.
    let stride = repeats.iter().position(|&count| count >= most - most / 8)?;
    (most >= (sample.len() / STRIDE_SHARE).max(1)).then_some(stride)
}

/// Shorter blocks are their own sample, and need no trial.
pub(crate) const TRIAL_MIN_BYTES: usize = 64 << 10;
const PIECES: usize = 4;
const PIECE_BYTES: usize = 32 << 10;

/// The sample: pieces spread over a block, or all of it when it is short.
pub(crate) fn sample(raw: &[u8]) -> Vec<u8> {
    if raw.len() <= PIECES * PIECE_BYTES {
        return raw.to_vec();
    }
    let last_start = raw.len() - PIECE_BYTES;
    (0..PIECES)
        .flat_map(|index| &raw[last_start * index / (PIECES - 1)..][..PIECE_BYTES])
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data;

    #[test]
    fn numbers_round_trip() {
        for number in 0..=255 {
            assert_eq!(Profile::from_number(number).number(), number);
        }
    }

    #[test]
    fn detects_text_and_records() {
        let text = test_data::text(100_000, 1);
        assert_eq!(Profile::candidates(&text), [Profile::Text]);
        let random = test_data::random_bytes(100_000, 1);
        assert_eq!(Profile::candidates(&random), [Profile::Binary]);
        let mut records = random;
        for (index, byte) in records.iter_mut().enumerate() {
            if index % 24 < 6 {
                *byte = 200 + (index % 24) as u8;
            }
        }
        let record = Profile::Record { stride_bytes: 24 };
        assert_eq!(Profile::candidates(&records), [Profile::Binary, record]);
    }

    #[test]
    fn samples_are_bounded_and_spread() {
        for length in [1, 1000, 131_072, 131_073, 5_000_000] {
            let raw: Vec<u8> = (0..length).map(|index| (index >> 15) as u8).collect();
            let sample = sample(&raw);
            assert!(!sample.is_empty() && sample.len() <= PIECES * PIECE_BYTES);
            assert_eq!((sample.first(), sample.last()), (raw.first(), raw.last()));
        }
    }
}
