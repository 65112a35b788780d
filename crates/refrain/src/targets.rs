//! Targets for the members of an extraction.

use std::path::Path;

use refrain_entries::Selection;
use refrain_filesystem::restore::TreeRestore;
use refrain_storage::{Sink, temporary_content};

use crate::archive_info::{Member, MemberStart};
use crate::damage::DamagedFile;
use crate::error::{Error, ErrorKind, Result};
use crate::read::content_visitor::WalkTotals;

/// What was read and checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtractSummary {
    /// Bytes of all members, with a directory as a tar stream, as
    /// [`CompressSummary::content_bytes`](crate::CompressSummary::content_bytes).
    pub content_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Number of members. The BLAKE3 hash of each was compared.
    pub members: usize,
    /// Number of entries in the lists of tree members.
    pub entries: u64,
}

/// Where a member goes.
pub enum Target {
    /// Nowhere: its bytes are checked but not written.
    Nowhere,
    /// Nowhere, and its bytes are not read if that can be avoided.
    Skipped,
    /// Its bytes go to a sink; a directory becomes a tar stream.
    Sink(Box<dyn Sink>),
    /// A directory or tar member is restored as files. The engine writes the files, and returns the
    /// target to the caller, who finishes it.
    Tree(Box<TreeTarget>),
}

impl Target {
    /// The sink, if it is one.
    pub fn into_sink(self) -> Option<Box<dyn Sink>> {
        match self {
            Target::Sink(sink) => Some(sink),
            Target::Nowhere | Target::Skipped | Target::Tree(_) => None,
        }
    }
}

/// Where a directory or tar member is restored.
pub struct TreeTarget {
    /// The directory.
    pub restore: TreeRestore,
    /// What to restore; `None`: everything.
    pub selection: Option<Selection>,
}

/// Receives the members of an extraction, one after the other in archive order.
pub trait Targets {
    /// Returns the target of a member.
    ///
    /// # Errors
    /// Any error ends the extraction.
    fn open(&mut self, member: &MemberStart) -> Result<Target>;

    /// All bytes of the member were written and its hash is correct: publish it.
    ///
    /// # Errors
    /// Any error ends the extraction.
    fn close(&mut self, member: &Member, target: Target) -> Result<()>;

    /// A part of the member could not be read. The target has what was delivered, as described by
    /// `file`, and is dropped unless this publishes it and records that in `file`.
    ///
    /// # Errors
    /// Any error ends the extraction.
    fn close_broken(
        &mut self,
        _member: &Member,
        _target: Target,
        _file: &mut DamagedFile,
    ) -> Result<()> {
        Ok(())
    }

    /// Whether only a part of the archive is requested. What only the rest of it needs is then
    /// neither read nor checked.
    fn is_part(&self) -> bool {
        false
    }

    /// Whether data after a broken member cannot be told from it, so that nothing more is
    /// delivered.
    fn ends_at_damage(&self) -> bool {
        false
    }

    /// A sink for the content of a directory from a non-seekable stream. Its names are known only
    /// after its content, so the content is written there first and read back. The sink must
    /// support [`Sink::read_back`]; it is dropped without being published.
    ///
    /// # Errors
    /// Any error ends the extraction. Without an implementation, directories are not extracted from
    /// streams.
    fn spill(&mut self) -> Result<Box<dyn Sink>> {
        spill_in(None)
    }
}

/// A sink for [`Targets::spill`], in a file without a name.
///
/// # Errors
/// `Usage` without a directory; of the file system.
pub fn spill_in(directory: Option<&Path>) -> Result<Box<dyn Sink>> {
    let Some(directory) = directory else {
        let text = "a directory in an archive from a pipe needs room for temporary content";
        return Err(Error::new(ErrorKind::Usage, text));
    };
    Ok(temporary_content(directory)?)
}

/// Reads everything and keeps nothing.
pub(crate) struct Nowhere;

impl Targets for Nowhere {
    fn open(&mut self, _member: &MemberStart) -> Result<Target> {
        Ok(Target::Nowhere)
    }

    fn close(&mut self, _member: &Member, _target: Target) -> Result<()> {
        Ok(())
    }
}

impl From<WalkTotals> for ExtractSummary {
    fn from(totals: WalkTotals) -> ExtractSummary {
        ExtractSummary {
            content_bytes: totals.view_bytes,
            archive_bytes: totals.archive_bytes,
            members: totals.members,
            entries: totals.entries,
        }
    }
}
