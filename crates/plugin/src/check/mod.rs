//! Tries a library on samples.

mod codec;
mod filter;
mod guard;

use std::path::Path;

use crate::error::Error;
use crate::library::Loaded;

/// What a library did with the samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: u16,
    /// The number of samples.
    pub samples: usize,
    /// What it has.
    pub kind: Kind,
}

/// What a library has, and what that did with the samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A codec.
    Codec {
        /// The samples that it made smaller.
        smaller: usize,
        /// The bytes of all samples.
        raw_bytes: u64,
        /// The bytes of the data, of a sample that it did not make smaller those of the sample.
        data_bytes: u64,
    },
    /// A filter.
    Filter {
        /// The samples that it filtered with all parameters that were tried.
        filtered: usize,
    },
}

/// Loads a library and tries it: samples come back the same, and twice the same; lengths are true;
/// nothing outside the buffers is written; of a codec, damaged and cut data, and other lengths than
/// that of the raw bytes, do not pass for right.
///
/// # Errors
/// As [`Plugin::load`](crate::Plugin::load) and [`Plugin::register`](crate::Plugin::register), by
/// the same rules, and `Sample` for the first that it does wrong.
pub fn check(path: &Path) -> Result<Checked, Error> {
    let samples = samples();
    let count = samples.len();
    let loaded = Loaded::open(path)?;
    loaded.check_free()?;
    match loaded {
        Loaded::Codec(loaded) => {
            let (mut smaller, mut raw_bytes, mut data_bytes) = (0, 0, 0);
            for (sample, raw) in samples {
                let tried = codec::try_sample(&loaded, &raw);
                let bytes = tried.map_err(|cause| Error::Sample { sample, cause })?;
                smaller += usize::from(bytes < raw.len());
                raw_bytes += raw.len() as u64;
                data_bytes += bytes as u64;
            }
            Ok(Checked {
                name: loaded.name.clone(),
                number: loaded.number,
                samples: count,
                kind: Kind::Codec {
                    smaller,
                    raw_bytes,
                    data_bytes,
                },
            })
        }
        Loaded::Filter(loaded) => {
            let mut filtered = 0;
            for (sample, raw) in samples {
                let tried = filter::try_sample(&loaded, &raw);
                let is_filtered = tried.map_err(|cause| Error::Sample { sample, cause })?;
                filtered += usize::from(is_filtered);
            }
            Ok(Checked {
                name: loaded.name.clone(),
                number: loaded.number.into(),
                samples: count,
                kind: Kind::Filter { filtered },
            })
        }
    }
}

fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    let words = [
        "the ", "plug-in ", "encodes ", "and ", "decodes ", "blocks. ",
    ];
    let text = (0..20_000).map(|_| words[usize::from(noise()) % words.len()]);
    let text: String = text.collect();
    let numbers = (0..30_000_u32).flat_map(|number| (number * 3).to_le_bytes());
    vec![
        ("one byte", vec![7]),
        ("two bytes", vec![0, 255]),
        ("zeros", vec![0; 100_000]),
        ("numbers", numbers.collect()),
        ("text", text.into_bytes()),
        ("noise", (0..70_000).map(|_| noise()).collect()),
    ]
}
