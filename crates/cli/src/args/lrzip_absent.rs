//! `--format` in a build without the feature `lrzip`: accepted, but refuses lrzip's format.

use clap::{Args, ValueEnum};

use crate::failure::{Failure, Result};

/// The format to write.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Format")]
pub struct LrzipArgs {
    /// Archive format; this build writes only Refrain's
    #[arg(long, value_name = "NAME")]
    pub format: Option<FormatArg>,
}

/// An archive format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Refrain's
    Rfn,
    /// lrzip's, which this build cannot write
    Lrz,
}

impl LrzipArgs {
    /// Whether an lrzip archive is requested.
    pub fn is_lrzip(&self) -> bool {
        self.format == Some(FormatArg::Lrz)
    }

    /// Refuses lrzip's format.
    ///
    /// # Errors
    /// `Usage`.
    pub fn check(&self) -> Result<()> {
        if self.is_lrzip() {
            Err(Failure::usage(
                "",
                "this build cannot write --format lrz: it was compiled without the feature lrzip",
            ))
        } else {
            Ok(())
        }
    }
}
