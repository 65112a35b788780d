//! Where the members of an archive go that is restored: to a path, or below it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use refrain::directory::{RestoreSummary, TreeRestore};
use refrain::storage::{AtomicFile, OutputOptions, Sink};
use refrain::{
    Error, ErrorKind, Member, MemberKind, MemberStart, Target, Targets, Timestamp, TreeTarget,
};
use refrain_storage::{ConfinedDirectory, create_output};

use crate::settings::Settings;

/// A sink for the content of a directory until its entries are known.
///
/// # Errors
/// `Usage` if the settings allow no temporary files; of the file system.
pub(crate) fn content_spill(settings: &Settings) -> refrain::Result<Box<dyn Sink>> {
    let Some(directory) = settings.temporary() else {
        let text = "a directory in an archive from a stream needs a temporary file";
        return Err(Error::new(ErrorKind::Usage, text));
    };
    let options = OutputOptions {
        sparse: true,
        // It may hold data from files that others may not read.
        mode: Some(0o600),
        ..OutputOptions::default()
    };
    let name = format!(".librefrain-{}.content", std::process::id());
    Ok(Box::new(AtomicFile::create(
        directory.join(name),
        &options,
    )?))
}

/// Restores the members of an archive.
pub(crate) struct Restore<'a> {
    path: &'a Path,
    /// Whether the members go below the path, under their names.
    below: Option<ConfinedDirectory>,
    /// Where members went below the path: joined archives may have several of one name.
    taken: HashSet<PathBuf>,
    settings: &'a Settings,
    /// Files that were not restored, and the first of them.
    pub exceptions: u64,
    pub first_exception: Option<String>,
}

impl<'a> Restore<'a> {
    /// Restores one member to `path`, several below it.
    ///
    /// # Errors
    /// Of the file system.
    pub(crate) fn new(
        path: &'a Path,
        member_count: usize,
        settings: &'a Settings,
    ) -> refrain::Result<Restore<'a>> {
        let below = (member_count > 1).then(|| ConfinedDirectory::open(path));
        Ok(Restore {
            path,
            below: below.transpose()?,
            taken: HashSet::new(),
            settings,
            exceptions: 0,
            first_exception: None,
        })
    }

    fn output_options(&self, member: &MemberStart) -> OutputOptions {
        OutputOptions {
            mode: member.mode,
            modified: member.modified.and_then(Timestamp::to_system_time),
            ..self.settings.output_options()
        }
    }

    fn file(&mut self, member: &MemberStart) -> refrain::Result<Box<dyn Sink>> {
        let options = self.output_options(member);
        Ok(match &self.below {
            None => create_output(self.path, &options)?,
            Some(root) => {
                let name = untaken_path(&member.name, &mut self.taken)?;
                Box::new(AtomicFile::create_below(root, &name, &options)?)
            }
        })
    }

    fn tree(&mut self, member: &MemberStart) -> refrain::Result<TreeRestore> {
        let options = self.settings.restore_options();
        Ok(match &self.below {
            None => TreeRestore::create(self.path, options)?,
            Some(root) => {
                let name = untaken_path(&member.name, &mut self.taken)?;
                TreeRestore::create_below(root, &name, options)?
            }
        })
    }

    fn count(&mut self, summary: RestoreSummary) -> refrain::Result<()> {
        if let Some(error) = summary.stopped {
            return Err(error.into());
        }
        self.exceptions += summary.problem_count;
        let first = summary.problems.first().map(ToString::to_string);
        self.first_exception = self.first_exception.take().or(first);
        Ok(())
    }
}

/// The path of a member that no other one of the archive has.
fn untaken_path(name: &[u8], taken: &mut HashSet<PathBuf>) -> refrain::Result<PathBuf> {
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
fn plain_path(name: &[u8]) -> refrain::Result<PathBuf> {
    let path = Path::new(OsStr::from_bytes(name));
    let mut components = path.components().peekable();
    let is_plain = |component| matches!(component, Component::Normal(_));
    if components.peek().is_some() && components.all(is_plain) && !name.contains(&0) {
        return Ok(path.to_owned());
    }
    let text = format!("refused: member name {}", path.display());
    Err(Error::new(ErrorKind::Usage, text))
}

impl Targets for Restore<'_> {
    fn open(&mut self, member: &MemberStart) -> refrain::Result<Target> {
        if member.kind != MemberKind::Tree {
            return self.file(member).map(Target::Sink);
        }
        let restore = self.tree(member)?;
        let selection = None;
        Ok(Target::Tree(Box::new(TreeTarget { restore, selection })))
    }

    fn close(&mut self, _member: &Member, target: Target) -> refrain::Result<()> {
        match target {
            Target::Sink(mut sink) => Ok(sink.publish()?),
            Target::Tree(tree) => {
                let summary = tree.restore.finish()?;
                self.count(summary)
            }
            Target::Nowhere | Target::Skipped => Ok(()),
        }
    }

    fn spill(&mut self) -> refrain::Result<Box<dyn Sink>> {
        content_spill(self.settings)
    }
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
