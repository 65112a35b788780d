//! Where the members of an archive go that a program restores at a path, or below it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use refrain_entries::Timestamp;
use refrain_filesystem::restore::{Problem, RestoreOptions, RestoreSummary, TreeRestore};
use refrain_storage::{AtomicFile, ConfinedDirectory, OutputOptions, Sink, create_output};

use crate::archive_info::{Member, MemberKind, MemberStart};
use crate::damage::DamagedFile;
use crate::error::{Error, ErrorKind, Result};
use crate::targets::{Target, Targets, TreeTarget, spill_in};

/// How [`RestoreTo`] restores.
#[derive(Debug, Clone, Default)]
pub struct RestoreToOptions {
    /// How files are written. Their mode and time are the members'.
    pub file: OutputOptions,
    /// How directories are restored.
    pub directory: RestoreOptions,
    /// Whether tar members become directories, not tar files.
    pub unpacks_tar: bool,
    /// Whether [`recover`](crate::recover()) leaves damaged files, with zeros for what is missing.
    pub keeps_broken: bool,
    /// Whether members whose names are refused are problems, and left out: otherwise they end the
    /// run.
    pub leaves_out_refused: bool,
    /// The name of a member without one, below a path.
    pub unnamed: Vec<u8>,
    /// Where the content of a directory in a stream waits until its names are known.
    pub temporary: Option<PathBuf>,
}

/// Restores the members of an archive at a path, or below it under their names, which are not
/// trusted: paths that lead elsewhere are refused, as are two members of one name.
pub struct RestoreTo {
    path: PathBuf,
    below: Option<ConfinedDirectory>,
    /// Where members went below the path: joined archives may have several of one name.
    taken: HashSet<PathBuf>,
    options: RestoreToOptions,
    problem_count: u64,
    problems: Vec<Problem>,
}

impl RestoreTo {
    /// Restores the only member to `path`, which is then a file or a directory.
    pub fn at(path: &Path, options: RestoreToOptions) -> RestoreTo {
        RestoreTo {
            path: path.to_owned(),
            below: None,
            taken: HashSet::new(),
            options,
            problem_count: 0,
            problems: Vec::new(),
        }
    }

    /// Restores members below `path`, which is created if it does not exist.
    ///
    /// # Errors
    /// Of the file system.
    pub fn below(path: &Path, options: RestoreToOptions) -> Result<RestoreTo> {
        Ok(RestoreTo {
            below: Some(ConfinedDirectory::open(path)?),
            ..RestoreTo::at(path, options)
        })
    }

    /// Whether members go below the path, under their names.
    pub fn is_below(&self) -> bool {
        self.below.is_some()
    }

    /// The number of entries of directories that were not restored, or not completely.
    pub fn problem_count(&self) -> u64 {
        self.problem_count
    }

    /// These entries, as far as there is memory for them: their paths below the path.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// As [`RestoreTo::problems`].
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Where a member goes below the path, if it goes there.
    fn name(&mut self, member: &MemberStart) -> Result<PathBuf> {
        if self.below.is_none() {
            return Ok(PathBuf::new());
        }
        let unnamed = &self.options.unnamed;
        let name = if member.name.is_empty() { unnamed } else { &member.name };
        untaken_path(name, &mut self.taken)
    }

    fn file(&self, name: &Path, member: &MemberStart) -> Result<Box<dyn Sink>> {
        let options = OutputOptions {
            mode: member.mode,
            modified: member.modified.and_then(Timestamp::to_system_time),
            ..self.options.file.clone()
        };
        Ok(match &self.below {
            None => create_output(&self.path, &options)?,
            Some(root) => Box::new(AtomicFile::create_below(root, name, &options)?),
        })
    }

    fn directory(&self, name: &Path) -> Result<TreeRestore> {
        let options = self.options.directory;
        Ok(match &self.below {
            None => TreeRestore::create(&self.path, options)?,
            Some(root) => TreeRestore::create_below(root, name, options)?,
        })
    }

    fn finish(&mut self, member: &Member, summary: RestoreSummary) -> Result<()> {
        if let Some(error) = summary.stopped {
            return Err(error.into());
        }
        self.problem_count += summary.problem_count;
        let is_below = self.is_below();
        self.problems
            .extend(summary.problems.into_iter().map(|problem| Problem {
                path: if is_below {
                    [&member.name[..], b"/", &problem.path].concat()
                } else {
                    problem.path
                },
                error: problem.error,
            }));
        Ok(())
    }
}

impl Targets for RestoreTo {
    fn open(&mut self, member: &MemberStart) -> Result<Target> {
        let name = match self.name(member) {
            Err(error) if self.options.leaves_out_refused => {
                self.problem_count += 1;
                self.problems.push(Problem {
                    path: member.name.clone(),
                    error: io::Error::new(io::ErrorKind::InvalidData, error),
                });
                return Ok(Target::Skipped);
            }
            name => name?,
        };
        let is_directory = match member.kind {
            MemberKind::Tree => true,
            MemberKind::Tar => self.options.unpacks_tar,
            _ => false,
        };
        if !is_directory {
            return self.file(&name, member).map(Target::Sink);
        }
        let restore = self.directory(&name)?;
        let selection = None;
        Ok(Target::Tree(Box::new(TreeTarget { restore, selection })))
    }

    fn close(&mut self, member: &Member, target: Target) -> Result<()> {
        match target {
            Target::Sink(mut sink) => Ok(sink.publish()?),
            Target::Tree(tree) => {
                let summary = tree.restore.finish()?;
                self.finish(member, summary)
            }
            Target::Nowhere | Target::Skipped => Ok(()),
        }
    }

    fn close_broken(
        &mut self,
        _member: &Member,
        target: Target,
        file: &mut DamagedFile,
    ) -> Result<()> {
        file.delivered_bytes = 0;
        if let Target::Sink(mut sink) = target
            && self.options.keeps_broken
            && !file.missing.is_empty()
        {
            sink.publish()?;
            file.is_kept = true;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<Box<dyn Sink>> {
        spill_in(self.options.temporary.as_deref())
    }
}

/// The path of a member that no other one of the archive has.
fn untaken_path(name: &[u8], taken: &mut HashSet<PathBuf>) -> Result<PathBuf> {
    let path = plain_path(name)?;
    if taken.insert(path.clone()) {
        return Ok(path);
    }
    let text = format!(
        "two members are named {}: read them as a stream",
        path.display()
    );
    Err(Error::new(ErrorKind::Usage, text))
}

/// A member's name as a path below a directory. Names in an archive are not trusted.
fn plain_path(name: &[u8]) -> Result<PathBuf> {
    let path = Path::new(OsStr::from_bytes(name));
    let mut components = path.components().peekable();
    let is_plain = |component| matches!(component, Component::Normal(_));
    if components.peek().is_some() && components.all(is_plain) && !name.contains(&0) {
        return Ok(path.to_owned());
    }
    let text = format!("refused: member name {}", path.display());
    Err(Error::new(ErrorKind::Usage, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", "/etc/passwd", "../a", "a/../../b", "a\0b", "."] {
            assert!(plain_path(name.as_bytes()).is_err(), "{name:?}");
        }
        assert_eq!(plain_path(b"a/b").unwrap(), Path::new("a/b"));
    }

    #[test]
    fn no_two_members_go_to_one_file() {
        let mut taken = HashSet::new();
        for (name, is_free) in [("a", true), ("a/b", true), ("a//b", false), ("a", false)] {
            let path = untaken_path(name.as_bytes(), &mut taken);
            assert_eq!(path.is_ok(), is_free, "{name}");
        }
    }
}
