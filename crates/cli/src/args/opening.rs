//! How an archive is opened.

use std::sync::Arc;

use clap::Args;
use refrain::storage::Source;
use refrain::{Archive, ReadOptions};

/// How an archive is opened for reading parts of it
#[derive(Debug, Args, Default)]
pub struct OpeningArgs {
    /// For damaged archives: find every intact frame instead of using the index; reads the whole
    /// archive
    #[arg(long)]
    pub scan: bool,
}

impl OpeningArgs {
    /// Opens `source` by its index, or by a scan.
    pub fn open(&self, source: Arc<dyn Source>, options: &ReadOptions) -> refrain::Result<Archive> {
        match self.scan {
            true => Archive::open_by_scan(source, options),
            false => Archive::open(source, options),
        }
    }
}
