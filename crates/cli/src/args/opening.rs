//! Options for opening an archive.

use clap::Args;

/// Options for opening an archive to read parts of it.
#[derive(Debug, Args, Default)]
pub struct OpeningArgs {
    /// For damaged archives: find every intact frame instead of using the index; reads the whole
    /// archive
    #[arg(long)]
    pub scan: bool,
}
