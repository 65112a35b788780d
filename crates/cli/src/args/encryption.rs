//! For whom a new archive is encrypted.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use refrain::{Encryption, Recipient};

use super::password::PasswordArgs;
use crate::failure::{Failure, Result};
use crate::keys;

/// Options of compression about secrets.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Encryption")]
pub struct EncryptionArgs {
    /// Encrypt the archive with a password, which is typed twice if no option supplies it. With
    /// --format lrz, by a cipher of lrzip: gcm (the default) needs lrzip 0.7, cbc is weak
    #[arg(long, value_name = "CIPHER", num_args = 0..=1, require_equals = true)]
    pub encrypt: Option<Option<CipherArg>>,
    /// Encrypt the archive for this public key: age1... or "ssh-ed25519 ...". May be repeated
    #[arg(long, value_name = "KEY")]
    pub recipient: Vec<Recipient>,
    /// Encrypt it for all public keys in FILE, one a line
    #[arg(long, value_name = "FILE")]
    pub recipients_file: Vec<PathBuf>,
    /// Hide the size of the encrypted archive: up to 12% more, 2% from some hundred megabytes on
    #[arg(long)]
    pub pad: bool,
    #[command(flatten)]
    pub password: PasswordArgs,
}

/// A cipher of lrzip's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CipherArg {
    /// AES-128-CBC, not authenticated
    Cbc,
    /// AES-256-GCM
    Gcm,
}

impl EncryptionArgs {
    /// The engine's options for Refrain's own format; `None`: the archive is not encrypted.
    ///
    /// # Errors
    /// `Usage` for options that would leave in plain text what somebody meant to encrypt, or have
    /// no effect; `Io` for files of keys.
    pub fn options(&self) -> Result<Option<Encryption>> {
        self.check()?;
        if let Some(Some(_)) = self.encrypt {
            let text = "--encrypt=CIPHER chooses a cipher of lrzip's: it needs --format lrz; --encrypt alone encrypts \
                        Refrain's archives";
            return Err(Failure::usage("", text));
        }
        if !self.is_encrypted() {
            return Ok(None);
        }
        let recipients = self.recipients()?;
        Ok(Some(Encryption {
            passwords: self
                .encrypt
                .iter()
                .map(|_| self.password.new_password())
                .collect(),
            recipients,
            is_padded: self.pad,
        }))
    }

    /// The public keys.
    ///
    /// # Errors
    /// `Usage` for a file without one; `Io`.
    pub fn recipients(&self) -> Result<Vec<Recipient>> {
        let mut recipients = self.recipient.clone();
        for path in &self.recipients_file {
            recipients.extend(keys::recipients(path)?);
        }
        Ok(recipients)
    }

    /// The name of an option that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--encrypt", self.encrypt.is_some()),
            ("--recipient", !self.recipient.is_empty()),
            ("--recipients-file", !self.recipients_file.is_empty()),
            ("--pad", self.pad),
        ];
        let of = given
            .iter()
            .find_map(|(name, is_given)| is_given.then_some(*name));
        of.or(self.password.given())
    }

    /// Whether these options say for whom an archive is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.encrypt.is_some() || !self.recipient.is_empty() || !self.recipients_file.is_empty()
    }

    /// Refuses options that would have no effect.
    ///
    /// # Errors
    /// `Usage`.
    pub fn check(&self) -> Result<()> {
        if let (Some(flag), None) = (self.password.given(), self.encrypt) {
            let text = format!(
                "{flag} is about encryption, and no password would be used: add --encrypt, or leave it out"
            );
            return Err(Failure::usage("", text));
        }
        if self.pad && !self.is_encrypted() {
            let text = "--pad hides the size of an encrypted archive: add --encrypt or --recipient, or leave it out";
            return Err(Failure::usage("", text));
        }
        Ok(())
    }
}
