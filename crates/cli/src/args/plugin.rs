//! The arguments of `refrain plugin`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `refrain plugin`
#[derive(Debug, Args)]
#[command(after_help = "\
make compiles a plug-in from one file of C (.c; by cc) or Rust (.rs; by rustc), unless the library is as new as that file \
and all that it includes or imports. check loads a library and tries it on samples. header writes the header for C. A \
plug-in has no sandbox: it can do whatever this program can.")]
pub struct PluginArgs {
    /// What to do
    #[arg(value_enum)]
    pub action: PluginAction,
    /// make: the source; check: the library
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// make: the library (default: SOURCE with the suffix .so)
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
}

/// What `refrain plugin` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PluginAction {
    /// Compile a plug-in, if its sources changed
    Make,
    /// Try a plug-in on samples
    Check,
    /// Write the header for sources in C
    Header,
}
