//! Options for reports about the run.

use clap::{ArgAction, Args};

/// Options for reports about the run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Reporting")]
pub struct ReportArgs {
    /// Print errors only: no progress, no summary
    #[arg(short, long, overrides_with = "verbose")]
    pub quiet: bool,
    /// More detail, and each file's name when it is done; twice: a line per block
    #[arg(short, long, action = ArgAction::Count, overrides_with = "quiet")]
    pub verbose: u8,
    /// One JSON document on standard output (on standard error if data goes there)
    #[arg(long)]
    pub json: bool,
}
