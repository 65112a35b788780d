//! What is reported about the run.

use clap::{ArgAction, Args};

/// What is reported.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Reporting")]
pub struct ReportArgs {
    /// Only errors: no progress, no summary
    #[arg(short, long, overrides_with = "verbose")]
    pub quiet: bool,
    /// More detail, and the name of each file when it is done; twice: a line per block
    #[arg(short, long, action = ArgAction::Count, overrides_with = "quiet")]
    pub verbose: u8,
    /// One JSON document on standard output (on standard error when data goes there)
    #[arg(long)]
    pub json: bool,
}
