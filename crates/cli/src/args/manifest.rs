//! The arguments of `refrain manifest`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::generations::GenerationArgs;
use super::password::SecretArgs;
use super::read_limits::ReadLimitArgs;
use super::report::ReportArgs;
use super::resources::ResourceArgs;

/// `refrain manifest`
#[derive(Debug, Args)]
#[command(after_help = MANIFEST_TEXT)]
#[command(group = ArgGroup::new("where").args(["served", "stored"]).required(true).multiple(true))]
pub struct ManifestArgs {
    /// An archive
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// Where the archive is served: refer to what `refrain serve --http` answers there
    #[arg(long, value_name = "URL")]
    pub served: Option<String>,
    /// Where the archive itself is: refer to its bytes, for files that it stores as they are
    #[arg(long, value_name = "URL")]
    pub stored: Option<String>,
    /// Write a file instead of printing the manifest
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

const MANIFEST_TEXT: &str = "\
The manifest says for every file where its bytes are: a URL, an offset and a length, in the JSON of \
kerchunk (version 1), which fsspec's ReferenceFileSystem reads, and with it zarr, xarray and others. \
Paths are those of `refrain cat`. Symbolic links are left out, and so are names that are not UTF-8.
With --stored a file is referred to in the archive if it is in one piece in a block that no codec \
changed, as files that are compressed already often are. With --served, too, all others are referred \
to there; without it they are left out.";
