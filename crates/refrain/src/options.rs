//! Options of the verbs.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use refrain_codec::{FilterChain, by_name, codecs};
use refrain_protect::DigestAlgorithm;
use refrain_protect::envelope::{Identity, Recipient};
use refrain_protect::signature::SigningKey;

use crate::decoder_choice::{DecoderChoice, DecoderListener};
use crate::error::{Error, ErrorKind, Result};
use crate::generation::GenerationChoice;
use crate::recovery_share::RecoveryShare;
use crate::writer_state::WriterState;

/// A compression level: 1 is the fastest, 9 the densest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(pub u8);

impl Default for Level {
    fn default() -> Self {
        Level(3)
    }
}

/// The purpose of an archive, which selects one half of the level table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// Storage: large blocks, small archives.
    #[default]
    Archive,
    /// Frequent random access: small blocks and codecs that decode quickly.
    Serve,
}

/// A codec by name, optionally with a level on the codec's own scale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecChoice {
    /// As listed by [`codec_names`].
    pub name: String,
    /// A level on the codec's own scale.
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
                Err(usage(if first == last {
                    format!("codec {name} has only level {first}, not {level}")
                } else {
                    format!("codec {name} has levels {first} to {last}, not {level}")
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

/// The names accepted by [`CodecChoice`].
pub fn codec_names() -> impl Iterator<Item = &'static str> {
    codecs().map(|codec| codec.describe().name)
}

/// The codecs accepted by [`CodecChoice`], for help texts: `NAME[:FIRST..LAST]`, or `NAME` for a
/// codec with a single level.
pub fn codec_usages() -> impl Iterator<Item = String> {
    codecs().map(|codec| {
        let codec = codec.describe();
        let (first, last) = (codec.levels.start(), codec.levels.end());
        if first == last {
            codec.name.to_owned()
        } else {
            format!("{}[:{first}..{last}]", codec.name)
        }
    })
}

/// Where temporary content may be put on a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemporarySpace {
    /// The directory of the temporary file, which has no name and vanishes with the process.
    pub directory: PathBuf,
    /// Its maximum size in bytes; `None`: sixteen times the memory budget.
    pub bytes_max: Option<u64>,
}

impl TemporarySpace {
    /// In `directory`, with the default size.
    pub fn new(directory: impl Into<PathBuf>) -> TemporarySpace {
        TemporarySpace {
            directory: directory.into(),
            bytes_max: None,
        }
    }

    /// The maximum size, with this memory budget.
    pub(crate) fn bytes_max(&self, memory_bytes: u64) -> u64 {
        self.bytes_max.unwrap_or(memory_bytes.saturating_mul(16))
    }
}

/// How to compress. `threads` changes only the time; every other option may change the archive's
/// bytes, `temporary` only where it says so.
#[derive(Debug, Clone)]
pub struct CompressOptions {
    /// The level.
    pub level: Level,
    /// The archive's purpose.
    pub purpose: Purpose,
    /// A codec to use instead of the level's.
    pub codec: Option<CodecChoice>,
    /// Whether the index states a hash of each block, by which shared caches know blocks that
    /// several archives have: 18 bytes each. [`add`](crate::add()) goes on as the archive was
    /// begun. Of no use in an archive that is encrypted, whose blocks no other has.
    pub block_hashes: bool,
    /// Filters for all blocks, instead of those that a trial chooses for each. A block that they
    /// and the codec do not make smaller is stored without them.
    pub filters: Option<FilterChain>,
    /// The maximum store bytes in one block, a multiple of 64 KiB: what the codec compresses at
    /// once and what a random read may have to decode. `None`: the level's size, or less if memory
    /// is small.
    pub block_bytes: Option<u64>,
    /// Worker threads, at least 1.
    pub threads: usize,
    /// The memory budget in bytes; `None`: the level's fixed default. If the level's codec does not
    /// fit, the next lower level that fits is used, and a notice says so.
    pub memory_bytes: Option<u64>,
    /// How many of the archive's latest bytes a decoder that cannot seek has to keep. `None`: all,
    /// or from a stream to a stream (a member that cannot be read again, a sink that cannot be read
    /// back) three eighths of the memory, a quarter of less than 1 GiB. There, more than half of
    /// the memory is an error; everywhere, less than four blocks or some 3 MiB is.
    pub reach_bytes: Option<u64>,
    /// Where to put earlier content of members that cannot be read again if it does not fit into
    /// memory. `None`: it is decoded again from the archive, which takes far longer. With codecs
    /// that decode slowly, extents refer back as far as `bytes_max`; without a temporary file, as
    /// far as compressed copies in memory reach. Otherwise it does not change the archive's bytes.
    pub temporary: Option<TemporarySpace>,
    /// Further digests of each member's content to store in addition to BLAKE3. They are computed
    /// on one thread.
    pub digests: Vec<DigestAlgorithm>,
    /// How much recovery data to append. An archive for a sink that cannot be read back needs
    /// `temporary` for it. `None`: none.
    pub recovery: Option<RecoveryShare>,
    /// For whom the archive is encrypted; `None`: it is not.
    pub encryption: Option<Encryption>,
    /// Whether the archive carries a decoder, as a WebAssembly module of at most 100 KiB, for each
    /// codec and filter that it uses. [`add`](crate::add()) and [`Merge`](crate::Merge) go on as
    /// an archive was begun, and with this also carry what it lacks.
    pub carry_decoders: bool,
    /// Who signs the archive; `None`: nobody.
    pub signing_key: Option<Arc<SigningKey>>,
    /// [`add`](crate::add()) reads what seems unchanged as well, and compares it with what the
    /// archive has: stamps and digests of earlier generations do not count.
    pub force_read: bool,
    /// The x86-64 code from which on a program or library in a directory or tar stream is stored
    /// rebased (`docs/machine-code.md`), bytes. By default 32 MiB: far less is converted as well
    /// inside blocks.
    pub rebased_code_bytes_min: u64,
    /// Where this machine remembers what it needs to add to an encrypted archive without a secret.
    /// Only [`add`](crate::add()) uses it.
    pub writer_state: Option<WriterState>,
}

impl Default for CompressOptions {
    fn default() -> Self {
        CompressOptions {
            level: Level::default(),
            purpose: Purpose::default(),
            codec: None,
            filters: None,
            block_hashes: false,
            block_bytes: None,
            threads: 1,
            memory_bytes: None,
            reach_bytes: None,
            temporary: None,
            digests: Vec::new(),
            recovery: None,
            encryption: None,
            carry_decoders: false,
            signing_key: None,
            force_read: false,
            rebased_code_bytes_min: 32 << 20,
            writer_state: None,
        }
    }
}

/// Supplies a password when one is needed.
#[derive(Clone)]
pub struct PasswordSource(Arc<dyn Fn() -> io::Result<Vec<u8>> + Send + Sync>);

impl PasswordSource {
    /// A password returned by `ask`.
    pub fn new(ask: impl Fn() -> io::Result<Vec<u8>> + Send + Sync + 'static) -> PasswordSource {
        PasswordSource(Arc::new(ask))
    }

    /// A fixed password.
    pub fn from_bytes(password: &[u8]) -> PasswordSource {
        let password = password.to_vec();
        PasswordSource::new(move || Ok(password.clone()))
    }

    /// Checks a password for a new archive. Making one does the same first.
    ///
    /// # Errors
    /// `Usage` for an empty one.
    pub fn check(password: &[u8]) -> Result<()> {
        if password.is_empty() {
            let text = "an empty password protects nothing";
            return Err(Error::new(ErrorKind::Usage, text));
        }
        Ok(())
    }

    /// The password.
    ///
    /// # Errors
    /// The error of reading the password.
    pub fn password(&self) -> io::Result<Vec<u8>> {
        (self.0)()
    }
}

impl fmt::Debug for PasswordSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordSource")
    }
}

/// For whom an archive is encrypted: anybody with one of the secrets reads it.
#[derive(Debug, Clone, Default)]
pub struct Encryption {
    /// Passwords, each asked for once.
    pub passwords: Vec<PasswordSource>,
    /// Public keys.
    pub recipients: Vec<Recipient>,
    /// Whether the size of the archive is hidden, which takes up to 12 percent, 2 percent for
    /// hundreds of megabytes (Padmé).
    pub is_padded: bool,
}

/// The default of [`ReadOptions::work_max`]. With the default memory, a pass decodes every block of
/// an ordinary archive about once. With a sixteenth of it, or for blocks of 16 MiB a quarter,
/// source code and eight versions of a program needed up to 60 bytes, as counted here, in a pass,
/// and 280 in random reads of 8 MiB.
pub const WORK_MAX_DEFAULT: u64 = 4096;

/// How to read. No option changes the result, but a limit may refuse it.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Worker threads, at least 1.
    pub threads: usize,
    /// The memory budget in bytes.
    pub memory_bytes: u64,
    /// The directory of a temporary file for parts of an archive from a non-seekable stream that
    /// later extents refer to and that do not fit into memory. `None`: an archive that needs more
    /// memory is refused.
    pub temporary: Option<PathBuf>,
    /// The source of the password, called once if the archive is encrypted.
    pub password: Option<PasswordSource>,
    /// The secret keys to try before the password is asked for, if the archive is encrypted.
    pub identities: Vec<Identity>,
    /// The maximum bytes that a verb delivers or checks: an archive of a few hundred bytes may
    /// claim 2^61 bytes of content. `None`: 16 TiB, or 4,096 times the size of the archive if that
    /// is more.
    pub content_bytes_max: Option<u64>,
    /// The maximum bytes that a verb or a single random read decodes per byte that it delivers from
    /// blocks, and per byte of these blocks in the archive, plus 1 GiB or the memory budget if that
    /// is more. Only forged archives come near the default, or archives with blocks far larger than
    /// the memory. lrzip archives have no such limit.
    pub work_max: u64,
    /// How many parts the budget has for what an opened archive cannot give back: its index and
    /// decoders. More than 1 for archives that share their memory
    /// ([`Archive::share_memory`](crate::Archive::share_memory)); limits are those of the whole.
    pub memory_parts: usize,
    /// Which generation is read, of an archive to which something was added.
    pub generation: GenerationChoice,
    /// Which decoders are used.
    pub decoders: DecoderChoice,
    /// Who is told which decoders of an archive are used.
    pub decoder_listener: DecoderListener,
}

impl ReadOptions {
    /// Whether there is anything that may open an encrypted archive.
    pub(crate) fn has_secrets(&self) -> bool {
        self.password.is_some() || !self.identities.is_empty()
    }

    /// The memory that an opened archive keeps for itself, in bytes: all, or a part of it.
    pub(crate) fn own_memory_bytes(&self) -> u64 {
        self.memory_bytes / self.memory_parts.max(1) as u64
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            threads: 1,
            memory_bytes: 1 << 30,
            temporary: None,
            password: None,
            identities: Vec::new(),
            content_bytes_max: None,
            work_max: WORK_MAX_DEFAULT,
            memory_parts: 1,
            generation: GenerationChoice::Latest,
            decoders: DecoderChoice::Own,
            decoder_listener: DecoderListener::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_codec_choices_and_refuses_invalid_ones() {
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
