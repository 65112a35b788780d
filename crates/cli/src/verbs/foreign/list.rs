//! `refrain list` for files of other formats.

use refrain::foreign::ForeignFile;
use refrain::{EntryKind, Member, MemberKind};

use super::super::entries::{ended, stop};
use crate::failure::{Failure, Result};
use crate::names;
use crate::plan::SeekableInput;
use crate::report::{Listing, Meter, Row};
use crate::selection::ListSelection;

/// The contents of a file, as rows.
pub struct List<'a> {
    pub input: &'a SeekableInput,
    /// Whether rows have the length of the content, which requires decoding all of it.
    pub needs_size: bool,
    pub meter: &'a Meter<'a>,
}

impl List<'_> {
    /// Adds the entries of a compressed tar stream or a zip file, or the only content of the file.
    pub fn add(
        &self,
        mut file: ForeignFile,
        selection: &ListSelection,
        matched: &mut [bool],
        listing: &mut Listing,
    ) -> Result<()> {
        let label = &self.input.label;
        let engine_failure = |error| Failure::engine(label, error);
        let name = names::of_member(&self.input.path, b"");
        let mut patterns = selection.of_member(b"", 1)?;
        if !file.has_entries().map_err(engine_failure)? {
            if !patterns.wants(&name, false, matched) {
                return Ok(());
            }
            let content_bytes = if self.needs_size {
                file.count(self.meter).map_err(engine_failure)?
            } else {
                0
            };
            self.meter.erase();
            return listing.add(&Row::of_member(label, &name, &member(content_bytes)));
        }
        let mut stopped = None;
        let listed = file.for_each_entry(self.meter, &mut |entry| {
            let is_directory = entry.kind == EntryKind::Directory;
            if !patterns.wants(&entry.path, is_directory, matched) {
                return Ok(());
            }
            self.meter.erase();
            stop(
                &mut stopped,
                listing.add(&Row::of_entry(label, &name, &entry.path, entry)),
            )
        });
        self.meter.erase();
        ended(stopped, listed, label)
    }
}

/// The only content of a file.
fn member(content_bytes: u64) -> Member {
    Member {
        name: Vec::new(),
        kind: MemberKind::Stream,
        mode: None,
        modified: None,
        content_bytes,
        blake3: [0; 32],
        is_sparse: false,
        digests: Vec::new(),
        entries: 0,
    }
}
