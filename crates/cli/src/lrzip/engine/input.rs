//! The input files.

use std::fs::{self, Metadata};
use std::path::Path;

use crate::lrzip::error::RunError;

/// An input file with its metadata.
pub struct InputFile<'a> {
    pub path: &'a Path,
    /// `None` for standard input.
    pub metadata: Option<Metadata>,
}

/// The metadata of a regular file. Follows symbolic links.
pub fn regular_file(path: &Path) -> Result<Metadata, RunError> {
    let found = fs::metadata(path)
        .map_err(|_| RunError::Message(format!("Failed to stat {}", path.display())))?;
    if found.is_file() {
        Ok(found)
    } else {
        Err(RunError::Message(
            "lrzip only works directly on regular FILES.\n\
         Use -r recursive, lrztar or pipe through tar for compressing directories."
                .into(),
        ))
    }
}
