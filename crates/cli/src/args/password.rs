//! The secrets of encrypted archives: passwords and keys.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use clap::Args;
use refrain::{Identity, PasswordSource, ReadOptions};
use zeroize::Zeroizing;

use crate::failure::Result;
use crate::{keys, password};

/// Where a password comes from: a file, a descriptor, a command, or a prompt.
#[derive(Debug, Clone, Default, Args)]
pub struct PasswordArgs {
    /// Read the password of an encrypted archive from the first line of FILE
    #[arg(long, value_name = "FILE", conflicts_with_all = ["password_fd", "password_command"])]
    pub password_file: Option<PathBuf>,
    /// Read it from an open file descriptor
    #[arg(long, value_name = "N", conflicts_with = "password_command")]
    pub password_fd: Option<u32>,
    /// Read it from the output of a command, which a shell runs
    #[arg(long, value_name = "COMMAND")]
    pub password_command: Option<String>,
}

/// What opens an encrypted archive.
#[derive(Debug, Clone, Default, Args)]
pub struct SecretArgs {
    #[command(flatten)]
    pub password: PasswordArgs,
    /// Open encrypted archives with the secret key in FILE: one made by `refrain key generate` or
    /// age, or a private key of OpenSSH (ed25519). May be repeated
    #[arg(long, value_name = "FILE")]
    pub identity: Vec<PathBuf>,
}

impl SecretArgs {
    /// `options` with the secrets. The password is read only if the archive needs it.
    ///
    /// # Errors
    /// `Usage` for a file without a secret key; `Io`.
    pub fn with(&self, options: ReadOptions) -> Result<ReadOptions> {
        let args = self.password.clone();
        let is_asked = args.given().is_some() || self.identity.is_empty();
        Ok(ReadOptions {
            // Nobody is asked who names a key.
            password: is_asked.then(|| asked_once(move || args.read())),
            identities: self.identities()?,
            ..options
        })
    }

    /// The secret keys.
    ///
    /// # Errors
    /// As [`SecretArgs::with`].
    pub fn identities(&self) -> Result<Vec<Identity>> {
        let found: Result<Vec<_>> = self
            .identity
            .iter()
            .map(|path| keys::identities(path))
            .collect();
        Ok(found?.concat())
    }

    /// The name of an option that was given.
    pub fn given(&self) -> Option<&'static str> {
        let identity = (!self.identity.is_empty()).then_some("--identity");
        self.password.given().or(identity)
    }
}

impl PasswordArgs {
    /// The name of an option that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--password-file", self.password_file.is_some()),
            ("--password-fd", self.password_fd.is_some()),
            ("--password-command", self.password_command.is_some()),
        ];
        given
            .iter()
            .find_map(|(name, is_given)| is_given.then_some(*name))
    }

    /// The password of a new archive; on a terminal it is typed twice.
    pub fn new_password(&self) -> PasswordSource {
        let args = self.clone();
        asked_once(move || match args.given() {
            Some(_) => args.read(),
            None => password::typed_twice(),
        })
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        match (
            &self.password_file,
            self.password_fd,
            &self.password_command,
        ) {
            (Some(path), ..) => password::from_file(path),
            (None, Some(number), _) => {
                password::from_file(&PathBuf::from(format!("/dev/fd/{number}")))
            }
            (None, None, Some(command)) => password::from_command(command),
            (None, None, None) => password::from_terminal(),
        }
    }
}

/// Asks once for all archives of a run.
fn asked_once(ask: impl Fn() -> io::Result<Vec<u8>> + Send + Sync + 'static) -> PasswordSource {
    let known: Arc<OnceLock<Zeroizing<Vec<u8>>>> = Arc::default();
    PasswordSource::new(move || {
        if let Some(password) = known.get() {
            return Ok(password.to_vec());
        }
        keys::keep_secrets();
        let password = ask()?;
        Ok(known.get_or_init(|| Zeroizing::new(password)).to_vec())
    })
}
