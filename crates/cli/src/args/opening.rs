//! How an archive is opened.

use clap::Args;

/// How an archive is opened for reading parts of it
#[derive(Debug, Args, Default)]
pub struct OpeningArgs {
    /// For damaged archives: find every intact frame instead of using the index; reads the whole
    /// archive
    #[arg(long)]
    pub scan: bool,
}
