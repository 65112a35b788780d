//! The input of one file.

use std::fs::{self, Metadata};
use std::path::Path;

use crate::lrzip::error::Failed;

/// One file, looked at.
pub struct Input<'a> {
    pub path: &'a Path,
    /// `None` is standard input.
    pub metadata: Option<Metadata>,
}

/// A regular file, symbolic links followed.
pub fn regular(path: &Path) -> Result<Metadata, Failed> {
    let found = fs::metadata(path)
        .map_err(|_| Failed::Because(format!("Failed to stat {}", path.display())))?;
    match found.is_file() {
        true => Ok(found),
        false => Err(Failed::Because(
            "lrzip only works directly on regular FILES.\n\
             Use -r recursive, lrztar or pipe through tar for compressing directories."
                .into(),
        )),
    }
}
