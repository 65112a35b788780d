//! What a caller can choose.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use refrain_codec::{by_name, codecs};
use refrain_protect::DigestAlgorithm;

use crate::error::{Error, ErrorKind, Result};

/// Speed against size: 1 is the fastest, 9 the densest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(pub u8);

impl Default for Level {
    fn default() -> Self {
        Level(3)
    }
}

/// What an archive is for: which side of the level table it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// To be kept: large blocks, small archives.
    #[default]
    Archive,
    /// To be read at random places all the time: small blocks, and codecs that open fast.
    Serve,
}

/// A codec by name, with a level of its own scale if one is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecChoice {
    /// As listed by [`codec_names`].
    pub name: String,
    /// In the codec's own scale.
    pub level: Option<i32>,
}

impl FromStr for CodecChoice {
    type Err = Error;

    /// Parses `NAME` or `NAME:LEVEL`.
    fn from_str(text: &str) -> Result<CodecChoice> {
        let usage = |message: String| Error::new(ErrorKind::Usage, message);
        let (name, level) = match text.split_once(':') {
            None => (text, None),
            Some((name, level)) => {
                let level = level.parse::<i32>();
                let level =
                    level.map_err(|_| usage(format!("codec level in '{text}' is not a number")))?;
                (name, Some(level))
            }
        };
        let Some(codec) = by_name(name) else {
            let names: Vec<_> = codec_names().collect();
            return Err(usage(format!(
                "there is no codec '{name}'; there are {}",
                names.join(", ")
            )));
        };
        let levels = codec.describe().levels;
        match level {
            Some(level) if !levels.contains(&level) => {
                let (first, last) = (levels.start(), levels.end());
                Err(usage(match first == last {
                    true => format!("codec {name} has only level {first}, not {level}"),
                    false => format!("codec {name} has levels {first} to {last}, not {level}"),
                }))
            }
            _ => Ok(CodecChoice {
                name: name.to_owned(),
                level,
            }),
        }
    }
}

impl fmt::Display for CodecChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            Some(level) => write!(f, "{}:{level}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The names that [`CodecChoice`] takes.
pub fn codec_names() -> impl Iterator<Item = &'static str> {
    codecs().map(|codec| codec.describe().name)
}

/// The codecs that [`CodecChoice`] takes, for help texts: `NAME[:FIRST..LAST]`, or `NAME` alone for a
/// codec with a single level.
pub fn codec_usages() -> impl Iterator<Item = String> {
    codecs().map(|codec| {
        let codec = codec.describe();
        let (first, last) = (codec.levels.start(), codec.levels.end());
        match first == last {
            true => codec.name.to_owned(),
            false => format!("{}[:{first}..{last}]", codec.name),
        }
    })
}

/// How to compress. `threads` changes nothing but the time; everything else may change the archive's bytes.
#[derive(Debug, Clone)]
pub struct CompressOptions {
    /// Speed against size.
    pub level: Level,
    /// What the archive is for.
    pub purpose: Purpose,
    /// Another codec than the level's.
    pub codec: Option<CodecChoice>,
    /// Content bytes in one block, at most, a multiple of 64 KiB: what the codec sees at once, and what a random read may have
    /// to open. `None`: the level's, or less if the memory is small.
    pub block_bytes: Option<u64>,
    /// Worker threads, at least 1.
    pub threads: usize,
    /// Memory that may be used, in bytes; `None`: the level's fixed default. A level whose codec does not fit is the next one below that
    /// does, and a notice says so.
    pub memory_bytes: Option<u64>,
    /// How many of the archive's latest bytes a decoder that cannot seek has to keep. `None`: all of them, or, from pipe to
    /// pipe (a member that cannot be read again, a sink that cannot be read back), a quarter of the memory; more
    /// than a half of it is refused there.
    pub reach_bytes: Option<u64>,
    /// Further digests of each member's content to be stored; BLAKE3 is always there. They are made on one thread.
    pub digests: Vec<DigestAlgorithm>,
}

impl Default for CompressOptions {
    fn default() -> Self {
        CompressOptions {
            level: Level::default(),
            purpose: Purpose::default(),
            codec: None,
            block_bytes: None,
            threads: 1,
            memory_bytes: None,
            reach_bytes: None,
            digests: Vec::new(),
        }
    }
}

/// Gives a password when one is needed.
#[derive(Clone)]
pub struct PasswordSource(Arc<dyn Fn() -> io::Result<Vec<u8>> + Send + Sync>);

impl PasswordSource {
    /// A password that `ask` gives.
    pub fn new(ask: impl Fn() -> io::Result<Vec<u8>> + Send + Sync + 'static) -> PasswordSource {
        PasswordSource(Arc::new(ask))
    }

    /// This very password.
    pub fn of(password: &[u8]) -> PasswordSource {
        let password = password.to_vec();
        PasswordSource::new(move || Ok(password.clone()))
    }

    /// The password.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub fn password(&self) -> io::Result<Vec<u8>> {
        (self.0)()
    }
}

impl fmt::Debug for PasswordSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordSource")
    }
}

/// How to read. None of it changes what comes out.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Worker threads, at least 1.
    pub threads: usize,
    /// Memory that may be used, in bytes.
    pub memory_bytes: u64,
    /// Where the password of an encrypted archive comes from. It is asked once, when the archive turns out to be encrypted.
    pub password: Option<PasswordSource>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            threads: 1,
            memory_bytes: 1 << 30,
            password: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codec_choices_parse_and_refuse() {
        let choice: CodecChoice = "zstd:19".parse().expect("a codec");
        assert_eq!(
            choice,
            CodecChoice {
                name: "zstd".into(),
                level: Some(19)
            }
        );
        assert_eq!(choice.to_string(), "zstd:19");
        for wrong in ["", "zip", "zstd:x", "zstd:23", "zstd:0x1"] {
            let error = wrong.parse::<CodecChoice>().expect_err(wrong);
            assert_eq!(error.kind, ErrorKind::Usage);
        }
    }

    #[test]
    fn usage_of_a_codec_with_one_level_is_its_name() {
        let usages: Vec<_> = codec_usages().collect();
        assert!(usages.contains(&"zstd[:1..22]".to_owned()), "{usages:?}");
        assert!(usages.contains(&"bwt".to_owned()), "{usages:?}");
        let error = "bwt:3".parse::<CodecChoice>().expect_err("no such level");
        let message = error.to_string();
        assert!(
            message.ends_with("codec bwt has only level 1, not 3"),
            "{message}"
        );
    }
}
