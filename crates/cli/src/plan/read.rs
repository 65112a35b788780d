//! `refrain test`, `info`, `list` and `cat`: archives read without restoring files.

use std::ffi::OsString;
use std::path::PathBuf;

use refrain::{ReadOptions, Trust};

use super::inputs::{ArchiveInput, SeekableInput, or_stdin};
use super::tiers::tiers;
use crate::args::{ByteRange, CatArgs, InfoArgs, SecretArgs, TestArgs};
use crate::failure::{Failure, Result};

/// Archives to check.
#[derive(Debug)]
pub struct TestPlan {
    pub options: ReadOptions,
    /// Whether content is not decoded.
    pub is_fast: bool,
    pub archives: Vec<Result<ArchiveInput>>,
    /// Who must vouch for them.
    pub trust: Trust,
    /// The only members to check; empty: all.
    pub members: Vec<OsString>,
}

impl TestPlan {
    /// Plans a run of `test`.
    ///
    /// # Errors
    /// `Usage` without any input.
    pub fn new(args: &TestArgs) -> Result<TestPlan> {
        let archives = or_stdin(&args.archives)?;
        let options = args.resources.read_options();
        let options = args.decoders.with(options, args.report.quiet);
        let options = (args.generation).with((args.limits).with(args.secrets.with(options)?));
        let archives = archives
            .iter()
            .map(|path| Ok(ArchiveInput::new(path, &options)?.with_password(&args.secrets)));
        Ok(TestPlan {
            trust: args.trust.trust()?,
            members: args.member.clone(),
            archives: archives.collect(),
            is_fast: args.fast,
            options,
        })
    }
}

/// Archives to describe.
#[derive(Debug)]
pub struct InspectPlan {
    pub options: ReadOptions,
    pub archives: Vec<Result<SeekableInput>>,
    /// Who must vouch for them.
    pub trust: Trust,
}

impl InspectPlan {
    /// Plans a run of `info`.
    ///
    /// # Errors
    /// As [`SecretArgs::with`].
    pub fn for_info(args: &InfoArgs) -> Result<InspectPlan> {
        let options = (args.generation).with(args.secrets.with(args.resources.read_options())?);
        let plan = InspectPlan::new(options, &args.archives, &args.secrets);
        Ok(InspectPlan {
            trust: args.trust.trust()?,
            ..plan
        })
    }

    /// Plans a run over these archives.
    pub fn new(options: ReadOptions, archives: &[PathBuf], password: &SecretArgs) -> InspectPlan {
        let archives = archives
            .iter()
            .map(|path| SeekableInput::new(path, &options, password));
        InspectPlan {
            archives: archives.collect(),
            options,
            trust: Trust::default(),
        }
    }
}

/// A range to write to standard output.
#[derive(Debug)]
pub struct CatPlan {
    pub options: ReadOptions,
    pub archive: SeekableInput,
    /// Members, entries and patterns; empty means the only member.
    pub paths: Vec<OsString>,
    /// The range in the only path.
    pub range: Option<ByteRange>,
    /// Whether binary content may go to a terminal.
    pub force: bool,
    /// Who must vouch for it.
    pub trust: Trust,
}

impl CatPlan {
    /// Plans a run of `cat`.
    ///
    /// # Errors
    /// `Usage` if the archive is a pipe; `Io` if the file does not exist.
    pub fn new(args: &CatArgs) -> Result<CatPlan> {
        if args.range.is_some() && args.paths.len() > 1 {
            let text = "--range applies to one file: name only that";
            return Err(Failure::usage("", text));
        }
        let options = args.resources.read_options();
        let options = args.decoders.with(options, args.report.quiet);
        let options = (args.generation).with((args.limits).with(args.secrets.with(options)?));
        Ok(CatPlan {
            archive: SeekableInput::new(&args.archive, &options, &args.secrets)?
                .behind(tiers(&args.caching)?),
            options,
            paths: args.paths.clone(),
            range: args.range,
            force: args.force,
            trust: args.trust.trust()?,
        })
    }
}
