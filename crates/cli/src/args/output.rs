//! Output options: where it goes, and what happens to existing files and to sources.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};

use crate::paths::{dash_for_stdout, is_dash};

/// Output options.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write to PATH; '-' is standard output
    #[arg(short, long, value_name = "PATH", value_parser = output_path())]
    pub output: Option<PathBuf>,
    /// Overwrite existing files, write binary data to a terminal, compress files that already end
    /// in .rfn
    #[arg(short, long)]
    pub force: bool,
    /// Remove each source once its output is complete (regular files only)
    #[arg(long, overrides_with = "keep")]
    pub rm: bool,
    /// Keep sources (the default)
    #[arg(short, long, overrides_with = "rm")]
    pub keep: bool,
    /// Call fsync, so that the output survives a power cut (implied by --rm)
    #[arg(long)]
    pub sync: bool,
    /// Read back what was written, from the disk itself where the system allows it, before it gets
    /// its name and any source is removed (implies --sync)
    #[arg(long)]
    pub check: bool,
}

fn output_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(dash_for_stdout)
}

impl OutputArgs {
    /// Whether output must be on disk before the run ends. Like gzip, xz and zstd, this program
    /// leaves that to the system unless a source is removed.
    pub fn is_synced(&self) -> bool {
        self.sync || self.rm || self.check
    }

    /// Whether `-o -` was given.
    pub fn is_stdout(&self) -> bool {
        self.output.as_deref().is_some_and(is_dash)
    }
}
