//! `refrain list` of a file of another format.

use std::sync::Arc;

use refrain::foreign::{Contents, Format, Zip};
use refrain::storage::Source;
use refrain::{EntryKind, ErrorKind, Member, MemberKind, ReadOptions};

use crate::failure::{Failure, Result};
use crate::names;
use crate::plan::SeekableInput;
use crate::report::{Listing, Meter, Row};
use crate::selection::ListSelection;

/// What a file holds, as rows.
pub struct List<'a> {
    pub input: &'a SeekableInput,
    pub options: &'a ReadOptions,
    /// Whether rows state the length of the content, for which all of it has to be decoded.
    pub needs_size: bool,
    pub meter: &'a Meter<'a>,
}

impl List<'_> {
    /// Adds the entries of a compressed tar stream, or the only content of the file.
    pub fn add(
        &self,
        (format, source): (Format, Arc<dyn Source>),
        selection: &ListSelection,
        matched: &mut [bool],
        listing: &mut Listing,
    ) -> Result<()> {
        if !format.is_stream() {
            return self.add_zip(source, selection, matched, listing);
        }
        let label = &self.input.label;
        let engine_failure = |error| Failure::engine(label, error);
        let contents = Contents::open(source, format, self.options).map_err(engine_failure)?;
        let name = names::of_member(&self.input.path, b"");
        let mut patterns = selection.of_member(b"", 1)?;
        if !contents.is_tar() {
            if !patterns.wants(&name, false, matched) {
                return Ok(());
            }
            let content_bytes = if self.needs_size {
                contents.count(self.meter).map_err(engine_failure)?
            } else {
                0
            };
            self.meter.erase();
            return listing.add(&Row::of_member(label, &name, &member(content_bytes)));
        }
        let mut stopped = None;
        let listed = contents.for_each_entry(self.meter, &mut |entry| {
            let is_directory = entry.kind == EntryKind::Directory;
            if !patterns.wants(&entry.path, is_directory, matched) {
                return Ok(());
            }
            self.meter.erase();
            let added = listing.add(&Row::of_entry(label, &name, &entry.path, entry));
            added.map_err(|failure| {
                let text = failure.to_string();
                stopped = Some(failure);
                refrain::Error::new(ErrorKind::Io, text)
            })
        });
        self.meter.erase();
        match stopped {
            Some(failure) => Err(failure),
            None => listed.map_err(engine_failure),
        }
    }

    /// Adds the entries of a zip file.
    fn add_zip(
        &self,
        source: Arc<dyn Source>,
        selection: &ListSelection,
        matched: &mut [bool],
        listing: &mut Listing,
    ) -> Result<()> {
        let label = &self.input.label;
        let zip = Zip::open(source, self.options).map_err(|error| Failure::engine(label, error))?;
        zip.report_others(self.meter);
        self.meter.erase();
        let name = names::of_member(&self.input.path, b"");
        let mut patterns = selection.of_member(b"", 1)?;
        for entry in zip.entries() {
            let is_directory = entry.kind == EntryKind::Directory;
            if patterns.wants(&entry.path, is_directory, matched) {
                listing.add(&Row::of_entry(label, &name, &entry.path, entry))?;
            }
        }
        Ok(())
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
