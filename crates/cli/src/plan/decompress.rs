//! `refrain decompress`: which archives are read, and where their members go.

use std::path::{Path, PathBuf};

use refrain::{ReadOptions, Trust};

use super::effects;
use super::inputs::{ArchiveInput, or_stdin};
use crate::args::{DecompressArgs, OutputArgs, OwnerArgs};
use crate::failure::{Failure, Result};
use crate::paths::{check_no_url, is_dash, is_directory, label};
use crate::selection::ArchiveSelection;

/// The archives of a run.
#[derive(Debug)]
pub struct DecompressPlan {
    pub options: ReadOptions,
    /// What to restore from the archives.
    pub selection: ArchiveSelection,
    /// How owners are restored.
    pub owners: OwnerArgs,
    /// How files are created.
    pub output: OutputArgs,
    /// Whether inputs that are not archives are copied to standard output.
    pub copies_other_input: bool,
    /// Whether to restore files with missing parts.
    pub keep_broken: bool,
    /// Who must vouch for the archives.
    pub trust: Trust,
    /// One per archive; a refused one does not stop the others.
    pub archives: Vec<Result<RestorePlan>>,
}

/// An archive to restore.
#[derive(Debug)]
pub struct RestorePlan {
    pub archive: ArchiveInput,
    pub destination: Destination,
}

/// Where an archive's members go. The path of each member depends on the archive's contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    Stdout,
    /// Without `-o`: a file beside its archive, a directory below the current directory.
    Default,
    /// With `-o PATH`.
    Path(PathBuf),
}

impl Destination {
    /// The argument of `-o`, if it is a path.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Destination::Path(path) => Some(path),
            Destination::Stdout | Destination::Default => None,
        }
    }
}

impl DecompressPlan {
    /// Plans a run.
    ///
    /// # Errors
    /// `Usage` without any input, and for restoring a part of an archive to standard output.
    pub fn new(
        args: &DecompressArgs,
        archives: &[PathBuf],
        selection: ArchiveSelection,
        copies_other_input: bool,
    ) -> Result<DecompressPlan> {
        let archives = or_stdin(archives)?;
        effects::check_decompress(args, &archives, !selection.is_everything())?;
        check_one_output(&args.output, &archives)?;
        let options = args.resources.read_options();
        let options = args.decoders.with(options, args.report.quiet);
        let options = (args.generation).with((args.limits).with(args.secrets.with(options)?));
        let archives = archives
            .iter()
            .map(|path| restore_plan(path, args, &options));
        Ok(DecompressPlan {
            archives: archives.collect(),
            options,
            selection,
            owners: args.owners.clone(),
            output: args.output.clone(),
            copies_other_input,
            keep_broken: args.keep_broken,
            trust: args.trust.trust()?,
        })
    }
}

/// Refuses to restore several archives to one file, each overwriting the previous one.
fn check_one_output(output: &OutputArgs, archives: &[PathBuf]) -> Result<()> {
    match &output.output {
        Some(path) if archives.len() > 1 && !is_dash(path) && !is_directory(path) => {
            let text = format!(
                "{} archives cannot all become this: name a directory, with a slash at its end (-o {}/)",
                archives.len(),
                path.display()
            );
            Err(Failure::usage(label(path), text))
        }
        _ => Ok(()),
    }
}

fn restore_plan(path: &Path, args: &DecompressArgs, options: &ReadOptions) -> Result<RestorePlan> {
    let output = &args.output;
    let archive = ArchiveInput::new(path, options)?.with_password(&args.secrets);
    if !archive.is_file() && output.rm {
        let text = "cannot be removed: --rm removes files";
        return Err(Failure::usage(archive.label, text));
    }
    if let Some(output) = &output.output {
        check_no_url(output)?;
    }
    let destination = match &output.output {
        Some(output) if is_dash(output) => Destination::Stdout,
        Some(output) => Destination::Path(output.clone()),
        // Content from a pipe has no name of its own.
        None if archive.is_stream() => Destination::Stdout,
        None => Destination::Default,
    };
    Ok(RestorePlan {
        archive,
        destination,
    })
}
