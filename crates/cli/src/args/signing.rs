//! Signatures: `refrain sign`, who signs a new archive, and whose signatures are asked for.

use std::path::PathBuf;

use clap::Args;
use refrain::{Trust, TrustedSigner};

use super::password::SecretArgs;
use super::report::ReportArgs;
use super::resources::ResourceArgs;
use crate::failure::{Failure, Result};
use crate::{keys, wall_clock};

/// `refrain sign`
#[derive(Debug, Args)]
#[command(after_help = SIGN_TEXT)]
pub struct SignArgs {
    /// Archives
    #[arg(value_name = "ARCHIVE", required = true)]
    pub archives: Vec<PathBuf>,
    /// Sign with the secret key in FILE: minisign's, or a private key of OpenSSH (ed25519)
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present_any = ["attach", "statement"],
        conflicts_with_all = ["attach", "statement"]
    )]
    pub key: Option<PathBuf>,
    /// Read the passphrase of the secret key from the first line of FILE
    #[arg(long, value_name = "FILE", conflicts_with_all = ["attach", "statement"])]
    pub key_password_file: Option<PathBuf>,
    /// Append the signature in FILE, which another program made of the statement
    #[arg(long, value_name = "FILE", conflicts_with_all = ["statement", "output"])]
    pub attach: Option<PathBuf>,
    /// Print the statement that is signed, for another program
    #[arg(long, conflicts_with = "output")]
    pub statement: bool,
    /// With --attach: check it by this public key, if it does not have its own
    #[arg(long, value_name = "KEY", requires = "attach", conflicts_with = "key")]
    pub signer: Vec<TrustedSigner>,
    /// With --attach: check it by the public keys in FILE
    #[arg(long, value_name = "FILE", requires = "attach", conflicts_with = "key")]
    pub signers_file: Vec<PathBuf>,
    /// Write the signature to PATH, and leave the archive as it is
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Overwrite an existing PATH
    #[arg(short, long, requires = "output")]
    pub force: bool,
    /// Read back what was written, from the disk itself where the system allows it, before it gets
    /// its name
    #[arg(long, conflicts_with = "statement")]
    pub check: bool,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

const SIGN_TEXT: &str = "\
Signs the root hash, which covers everything that the archive holds, and appends the signature. The \
archive is written anew beside the old one and takes its name when it is complete, so it needs space \
for both. Recovery data is renewed, and protects the signature. Content is not read: test the \
archive first if somebody else stored it. `refrain test --signer` checks signatures.";

/// Who signs a new archive.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Signatures")]
pub struct NewSignatureArgs {
    /// Sign the archive with the secret key in FILE: minisign's, or a private key of OpenSSH
    /// (ed25519)
    #[arg(long, value_name = "FILE")]
    pub sign: Option<PathBuf>,
    /// Read the passphrase of the secret key from the first line of FILE
    #[arg(long, value_name = "FILE", requires = "sign")]
    pub key_password_file: Option<PathBuf>,
}

/// Whose signatures are asked for.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Signatures")]
pub struct TrustArgs {
    /// Refuse archives that are not signed by this public key, "ssh-ed25519 ..." or minisign's
    /// RW.... May be repeated: one signature is enough
    #[arg(long, value_name = "KEY")]
    pub signer: Vec<TrustedSigner>,
    /// Trust all public keys in FILE: minisign's, authorized_keys, or allowed signers of SSH
    #[arg(long, value_name = "FILE")]
    pub signers_file: Vec<PathBuf>,
    /// Count the signature in FILE as if the archive had it
    #[arg(long, value_name = "FILE")]
    pub signature: Vec<PathBuf>,
    /// Refuse archives with another root hash than this one, which `refrain info` shows
    #[arg(long, value_name = "HASH", value_parser = parse_root_hash)]
    pub root_hash: Option<RootHash>,
}

/// A root hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootHash(pub [u8; 32]);

/// Parses 64 hexadecimal digits.
fn parse_root_hash(text: &str) -> std::result::Result<RootHash, String> {
    let mut hash = [0; 32];
    let digits = text.as_bytes().as_chunks::<2>();
    if text.len() != 64 {
        return Err(format!("a root hash has 64 digits, not {}", text.len()));
    }
    for (byte, digits) in hash.iter_mut().zip(digits.0) {
        let digit = |at: usize| char::from(digits[at]).to_digit(16);
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return Err("a root hash has only hexadecimal digits".into());
        };
        *byte = (high << 4 | low) as u8;
    }
    Ok(RootHash(hash))
}

impl TrustArgs {
    /// What the archives must be.
    ///
    /// # Errors
    /// `Usage` for a file without a public key, or without a signature, and for signatures without
    /// a key; `Io`.
    pub fn trust(&self) -> Result<Trust> {
        let signers = all_signers(&self.signer, &self.signers_file)?;
        if signers.is_empty() && !self.signature.is_empty() {
            let text = "--signature proves nothing without the key of its signer: add --signer or \
                        --signers-file";
            return Err(Failure::usage("", text));
        }
        let signatures = self.signature.iter().map(|path| keys::signature(path));
        Ok(Trust {
            signers,
            root_hash: self.root_hash.map(|hash| hash.0),
            signatures: signatures.collect::<Result<_>>()?,
            unix_seconds: i64::try_from(wall_clock::unix_seconds()).unwrap_or(i64::MAX),
        })
    }
}

/// The public keys of options.
///
/// # Errors
/// As [`TrustArgs::trust`].
pub fn all_signers(given: &[TrustedSigner], files: &[PathBuf]) -> Result<Vec<TrustedSigner>> {
    let mut signers = given.to_vec();
    for path in files {
        signers.extend(keys::signers(path)?);
    }
    Ok(signers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_hash_has_64_hexadecimal_digits() {
        let text = format!("0fA0{}", "11".repeat(30));
        let RootHash(hash) = parse_root_hash(&text).expect("a hash");
        assert_eq!(hash[..3], [0x0f, 0xa0, 0x11]);
        for wrong in ["", "12", &"g".repeat(64), &"1".repeat(63), &"é".repeat(32)] {
            assert!(parse_root_hash(wrong).is_err(), "{wrong}");
        }
    }
}
