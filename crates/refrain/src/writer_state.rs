//! Where a machine remembers what it needs to add to an encrypted archive without a secret.

use std::path::{Path, PathBuf};

/// What a machine remembers of an encrypted archive, so that it adds to it without a secret: names,
/// sizes and digests of what it added, and a public key. In a directory that its owner alone reads,
/// and that is created when something is written (`docs/format-envelope.md`, section 8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterState {
    pub(crate) directory: PathBuf,
}

impl WriterState {
    /// The state in a directory.
    #[must_use]
    pub fn new(directory: impl AsRef<Path>) -> WriterState {
        WriterState {
            directory: directory.as_ref().to_owned(),
        }
    }
}
