//! Where output goes and what happens to what was there before.

use std::path::PathBuf;

use clap::Args;

/// Where output goes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write to PATH; '-' is standard output
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Overwrite what exists, write binary to a terminal, compress what ends in .rfn already
    #[arg(short, long)]
    pub force: bool,
    /// Remove each source once its output is in place (regular files only)
    #[arg(long, overrides_with = "keep")]
    pub rm: bool,
    /// Keep sources (this is the default)
    #[arg(short, long, overrides_with = "rm")]
    pub keep: bool,
    /// Wait until the output is on the disk, so that it survives a power cut (--rm implies it)
    #[arg(long)]
    pub sync: bool,
}

impl OutputArgs {
    /// Whether the output has to be on the disk before the run is over. Like gzip, xz and zstd we
    /// leave that to the system, unless the only other copy is about to go.
    pub fn is_synced(&self) -> bool {
        self.sync || self.rm
    }

    /// Whether `-o -` was given.
    pub fn is_stdout(&self) -> bool {
        self.output.as_deref().is_some_and(crate::files::is_dash)
    }
}
