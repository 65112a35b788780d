//! Recovery data: `refrain protect`, `refrain repair`, and the share as an option.

use std::path::PathBuf;

use clap::Args;
use refrain::{RecoveryOptions, RecoveryShare};

use super::report::ReportArgs;
use super::resources::ResourceArgs;

/// `refrain protect`
#[derive(Debug, Args)]
#[command(after_help = PROTECT_TEXT)]
pub struct ProtectArgs {
    /// Archives, or any other files
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// How much of each file may be lost anywhere and healed
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = parse_share)]
    pub recovery: RecoveryShare,
    /// Write to PATH instead, and leave FILE as it is
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(short, long)]
    pub force: bool,
    /// Read back what was written, from the disk itself where the system allows it, before it gets
    /// its name
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

const PROTECT_TEXT: &str = "\
Appends recovery data to an archive of the native format, or replaces what it has. The archive is \
written anew beside the old one and takes its name when it is complete, so it needs space for both. \
Recovery data of any other FILE (lrzip archives, zip, images) goes to FILE.rfr, because its format \
has no place for it.
FILE is protected as it is: test it first. A FILE that is damaged by what its recovery data says is \
refused. If something was added to an archive with recovery data, the last of it is replaced by some for \
the whole archive.";

/// `refrain repair`
#[derive(Debug, Args)]
#[command(after_help = REPAIR_TEXT)]
pub struct RepairArgs {
    /// The damaged archive, or another file with recovery data in FILE.rfr
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Damaged copies of it, or a file with its recovery data
    #[arg(value_name = "COPY")]
    pub copies: Vec<PathBuf>,
    /// Write the healed file to PATH, and leave FILE as it is
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Overwrite an existing PATH
    #[arg(short, long, requires = "output")]
    pub force: bool,
    /// Read back what was written, from the disk itself where the system allows it, before FILE is
    /// replaced
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

const REPAIR_TEXT: &str = "\
Finds what is intact, also where bytes were inserted or lost, computes the rest, and checks the \
result. Only then FILE is replaced; it needs space for both. If there is more damage than the \
recovery data can heal, nothing is written and the exit code is 2: name further copies, or restore \
what is left with `refrain decompress --salvage`. Damaged copies of an archive help each other even \
without recovery data.";

/// Parses a share such as `10%`.
pub fn parse_share(text: &str) -> Result<RecoveryShare, String> {
    text.parse::<RecoveryShare>()
        .map_err(|error| error.to_string())
}

impl ResourceArgs {
    /// Options for making and using recovery data, which needs little memory for any size of file.
    pub fn recovery_options(&self, share: RecoveryShare) -> RecoveryOptions {
        let read = self.read_options();
        RecoveryOptions {
            share,
            threads: read.threads,
            memory_bytes: match self.memory {
                Some(_) => read.memory_bytes,
                None => read.memory_bytes.min(MEMORY_BYTES),
            },
            temporary: read.temporary,
        }
    }
}

/// More memory makes nothing faster, and suffices for files up to 512 GiB.
const MEMORY_BYTES: u64 = 192 << 20;
