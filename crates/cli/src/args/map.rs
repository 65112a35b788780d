//! The arguments of `refrain map`.

use std::path::PathBuf;

use clap::Args;

use super::generations::GenerationArgs;
use super::password::SecretArgs;
use super::read_limits::ReadLimitArgs;
use super::report::ReportArgs;
use super::resources::ResourceArgs;

/// `refrain map`
#[derive(Debug, Args)]
#[command(after_help = MAP_TEXT)]
pub struct MapArgs {
    /// An archive, or two to compare; '-' is standard input, which must be a file
    #[arg(value_name = "ARCHIVE", required = true, num_args = 1..=2)]
    pub archives: Vec<PathBuf>,
    /// Write a page (.html), a picture (.svg) or all numbers (.json) instead of printing a table
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(short, long, requires = "output")]
    pub force: bool,
    #[command(flatten)]
    pub generation: GenerationArgs,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub limits: ReadLimitArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

const MAP_TEXT: &str = "\
The map of one archive says where passages repeat and how far apart, what runs and repeats saved \
in which part, how the blocks compressed, and what every folder costs: the bytes of the archive that \
hold what occurs there for the first time. No block is decoded.
The map of two archives says what they share. For that the unique bytes of both are decoded and cut \
into pieces by their content; equal pieces are found by their hashes.";
