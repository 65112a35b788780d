//! `refrain decompress`: which archives are read, and where their members go.

use std::path::{Path, PathBuf};

use refrain::ReadOptions;

use super::inputs::{ArchiveInput, or_stdin};
use crate::args::{DecompressArgs, OutputArgs};
use crate::failure::Result;
use crate::paths::is_dash;
use crate::terminal::check_stdout;

/// The archives of a run.
#[derive(Debug)]
pub struct DecompressPlan {
    pub options: ReadOptions,
    /// How files are created.
    pub output: OutputArgs,
    /// Whether inputs that are not archives are copied to standard output.
    pub copies_other_input: bool,
    /// One per archive; a refused one does not stop the others.
    pub archives: Vec<Result<RestorePlan>>,
}

/// One archive to restore.
#[derive(Debug)]
pub struct RestorePlan {
    pub archive: ArchiveInput,
    pub destination: Destination,
}

/// Where the members of an archive go. The path of each member depends on what the archive holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    Stdout,
    /// Without `-o`: beside the archive, or below the current directory.
    Default,
    /// With `-o PATH`.
    Path(PathBuf),
}

impl DecompressPlan {
    /// Plans a run.
    ///
    /// # Errors
    /// `Usage` without any input.
    pub fn new(args: &DecompressArgs) -> Result<DecompressPlan> {
        let archives = or_stdin(&args.archives)?;
        Ok(DecompressPlan {
            options: args.password.with(args.resources.read_options()),
            output: args.output.clone(),
            copies_other_input: args.copies_other_input,
            archives: archives
                .iter()
                .map(|path| restore_plan(path, &args.output))
                .collect(),
        })
    }
}

fn restore_plan(path: &Path, output: &OutputArgs) -> Result<RestorePlan> {
    let archive = ArchiveInput::new(path)?;
    let destination = match &output.output {
        Some(output) if is_dash(output) => Destination::Stdout,
        Some(output) => Destination::Path(output.clone()),
        // What a pipe holds has no name of its own.
        None if archive.is_stream() => Destination::Stdout,
        None => Destination::Default,
    };
    if destination == Destination::Stdout {
        check_stdout(output.force)?;
    }
    Ok(RestorePlan {
        archive,
        destination,
    })
}
