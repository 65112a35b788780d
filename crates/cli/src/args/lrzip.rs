//! The options of `--format lrz`, which writes lrzip archives.

use clap::{Args, ValueEnum};
use refrain::lrzip::{LrzipBackEnd, LrzipCipher, LrzipEncryption, LrzipOptions};
use refrain::{Level, PasswordSource};

use super::compression::CompressionArgs;
use super::password::PasswordArgs;
use super::resources::ResourceArgs;
use super::size::Size;
use crate::failure::{Failure, Result};
use crate::password;

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
    /// Encrypt an archive of --format lrz. lrzip 0.6 can read cbc, which is weak; gcm needs lrzip
    /// 0.7
    #[arg(long, value_name = "CIPHER", requires = "format")]
    pub encrypt: Option<CipherArg>,
    #[command(flatten)]
    pub password: PasswordArgs,
}

/// [`LrzipCipher`] as an option value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CipherArg {
    /// AES-128-CBC, not authenticated
    Cbc,
    /// AES-256-GCM
    Gcm,
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
            ("--encrypt", self.encrypt.is_some()),
        ];
        let given = lrzip_only.iter().find(|(_, is_given)| *is_given);
        if let Some((flag, _)) = given.filter(|_| !self.is_lrzip()) {
            return Err(Failure::usage("", format!("{flag} needs --format lrz")));
        }
        match (self.password.given(), self.encrypt) {
            // Never write in plain text what somebody meant to encrypt.
            (Some(flag), None) => {
                let text = format!(
                    "{flag} is about encryption, and nothing would be encrypted: add --format lrz \
                     --encrypt gcm (archives of Refrain cannot be encrypted yet), or leave it out"
                );
                Err(Failure::usage("", text))
            }
            _ => Ok(()),
        }
    }

    /// The engine's options, except memory and threads.
    ///
    /// # Errors
    /// `Usage` for options of the native format.
    pub fn options(
        &self,
        compression: &CompressionArgs,
        resources: &ResourceArgs,
    ) -> Result<LrzipOptions> {
        let native_only = [
            ("--temporary", resources.temporary.is_some()),
            ("--for", compression.purpose.is_some()),
            ("--codec", compression.codec.is_some()),
            ("--block-size", compression.block_size.is_some()),
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
            encryption: self.encrypt.map(|cipher| LrzipEncryption {
                cipher: match cipher {
                    CipherArg::Cbc => LrzipCipher::Aes128Cbc,
                    CipherArg::Gcm => LrzipCipher::Aes256Gcm,
                },
                password: new_password(&self.password),
            }),
            ..default
        })
    }
}

/// The password of a new archive; on a terminal it is typed twice.
fn new_password(args: &PasswordArgs) -> PasswordSource {
    let path = args.path();
    PasswordSource::new(move || match &path {
        Some(path) => password::from_file(path),
        None => {
            let first = password::from_terminal()?;
            if password::from_terminal()? == first {
                Ok(first)
            } else {
                Err(std::io::Error::other("the two passwords differ"))
            }
        }
    })
}

fn parse_back_end(text: &str) -> std::result::Result<LrzipBackEnd, String> {
    text.parse::<LrzipBackEnd>()
        .map_err(|error| error.to_string())
}
