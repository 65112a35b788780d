//! The options of `--format lrz`, which writes lrzip archives.

use clap::{Args, ValueEnum};
use refrain::Level;
use refrain::lrzip::{LrzipBackEnd, LrzipCipher, LrzipEncryption, LrzipOptions};

use super::compression::CompressionArgs;
use super::encryption::{CipherArg, EncryptionArgs};
use super::resources::ResourceArgs;
use super::size::Size;
use crate::failure::{Failure, Result};
use crate::wall_clock;

/// The format to write, and options of lrzip's format.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Format")]
pub struct LrzipArgs {
    /// Archive format: rfn (Refrain, the default) or lrz (lrzip 0.6, for a single file or
    /// directory)
    #[arg(long, value_name = "NAME")]
    pub format: Option<FormatArg>,
    /// Codec of --format lrz: none, bzip2, gzip, lzo, lzma (the default), zpaq
    #[arg(long, value_name = "NAME", value_parser = parse_back_end, requires = "format")]
    pub back_end: Option<LrzipBackEnd>,
    /// Largest chunk of --format lrz, in multiples of 16M. Repeats are found only within a chunk
    /// (default: one chunk for everything)
    #[arg(long, value_name = "SIZE", requires = "format")]
    pub window: Option<Size>,
}

/// An archive format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Refrain
    Rfn,
    /// lrzip
    Lrz,
}

impl LrzipArgs {
    /// Whether to write an lrzip archive.
    pub fn is_lrzip(&self) -> bool {
        self.format == Some(FormatArg::Lrz)
    }

    /// Refuses lrzip's options without `--format lrz`.
    ///
    /// # Errors
    /// `Usage`.
    pub fn check(&self) -> Result<()> {
        let lrzip_only = [
            ("--back-end", self.back_end.is_some()),
            ("--window", self.window.is_some()),
        ];
        let given = lrzip_only.iter().find(|(_, is_given)| *is_given);
        if let Some((flag, _)) = given.filter(|_| !self.is_lrzip()) {
            return Err(Failure::usage("", format!("{flag} needs --format lrz")));
        }
        Ok(())
    }

    /// The engine's options, except memory and threads.
    ///
    /// # Errors
    /// `Usage` for options of the native format.
    pub fn options(
        &self,
        compression: &CompressionArgs,
        encryption: &EncryptionArgs,
        resources: &ResourceArgs,
    ) -> Result<LrzipOptions> {
        encryption.check()?;
        let native_only = [
            ("--recipient", !encryption.recipient.is_empty()),
            ("--recipients-file", !encryption.recipients_file.is_empty()),
            ("--pad", encryption.pad),
            ("--temporary", resources.temporary.is_some()),
            ("--for", compression.purpose.is_some()),
            ("--codec", compression.codec.is_some()),
            ("--filter", compression.filter.is_some()),
            ("--block-size", compression.block_size.is_some()),
            ("--block-hashes", compression.block_hashes),
            ("--reach", compression.reach.is_some()),
            ("--hash", !compression.hash.is_empty()),
        ];
        if let Some((flag, _)) = native_only.iter().find(|(_, is_given)| *is_given) {
            let text = format!("{flag} cannot be used with --format lrz");
            return Err(Failure::usage("", text));
        }
        let default = LrzipOptions::default();
        Ok(LrzipOptions {
            back_end: self.back_end.unwrap_or_default(),
            level: compression.level.level.map_or(default.level, Level),
            chunk_bytes: self.window.map(|size| size.bytes),
            encryption: encryption.encrypt.map(|cipher| LrzipEncryption {
                cipher: match cipher {
                    Some(CipherArg::Cbc) => LrzipCipher::Aes128Cbc,
                    Some(CipherArg::Gcm) | None => LrzipCipher::Aes256Gcm,
                },
                password: encryption.password.new_password(),
                written_unix_seconds: wall_clock::unix_seconds(),
            }),
            ..default
        })
    }
}

fn parse_back_end(text: &str) -> std::result::Result<LrzipBackEnd, String> {
    text.parse::<LrzipBackEnd>()
        .map_err(|error| error.to_string())
}
