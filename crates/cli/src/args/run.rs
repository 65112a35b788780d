//! Options of the run as a whole, which every verb and `rfn` take.

use clap::Args;

/// Options of the run as a whole.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct RunArgs {
    /// Print at the end, on standard error, the time, CPU time and bytes of each stage of the work
    #[arg(long, global = true, help_heading = "Reporting")]
    pub profile: bool,
    /// Use only processor time and disk bandwidth that nothing else needs (Linux: the idle
    /// scheduling classes)
    #[arg(long, global = true, help_heading = "Resources")]
    pub background: bool,
}
