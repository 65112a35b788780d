//! The password of an encrypted archive.

use std::path::PathBuf;

use clap::Args;
use refrain::{PasswordSource, ReadOptions};

use crate::password;

/// Where the password of an encrypted archive comes from: a file, a descriptor, or a prompt.
#[derive(Debug, Clone, Default, Args)]
pub struct PasswordArgs {
    /// Read the password of an encrypted archive from the first line of FILE
    #[arg(long, value_name = "FILE", conflicts_with = "password_fd")]
    pub password_file: Option<PathBuf>,
    /// Read it from an open file descriptor
    #[arg(long, value_name = "N")]
    pub password_fd: Option<u32>,
}

impl PasswordArgs {
    /// `options` with the password, which is read only if the archive is encrypted.
    pub fn with(&self, options: ReadOptions) -> ReadOptions {
        let path = self.path();
        let source = PasswordSource::new(move || match &path {
            Some(path) => password::from_file(path),
            None => password::from_terminal(),
        });
        ReadOptions {
            password: Some(source),
            ..options
        }
    }

    /// The name of an option that was given.
    pub fn given(&self) -> Option<&'static str> {
        match (&self.password_file, self.password_fd) {
            (Some(_), _) => Some("--password-file"),
            (None, Some(_)) => Some("--password-fd"),
            (None, None) => None,
        }
    }

    /// The file with the password; `None` prompts on the terminal.
    pub fn path(&self) -> Option<PathBuf> {
        match self.password_fd {
            Some(number) => Some(PathBuf::from(format!("/dev/fd/{number}"))),
            None => self.password_file.clone(),
        }
    }
}
