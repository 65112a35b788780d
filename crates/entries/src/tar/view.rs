//! Entries as a tar stream.

use std::fmt;
use std::ops::Range;

use crate::entry::{Entry, EntryKind};
use crate::tar::canonical;
use crate::tar::predict::Predictor;
use crate::tar::recipe;
use crate::tar::record::{RECORD_BYTES, padding_bytes};

/// An entry's part of a tar stream: a header group, the data and zeros.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ViewItem {
    /// The header group, with the map of a sparse file.
    pub header: Vec<u8>,
    /// The data, as a range of the member's content. May be empty.
    pub content: Range<u64>,
    /// Whether the content is a file with machine code to restore.
    pub is_rebased: bool,
    /// The number of zero bytes after the data.
    pub padding_bytes: u64,
}

impl ViewItem {
    /// The number of bytes of the stream.
    #[must_use]
    pub fn view_bytes(&self) -> u64 {
        let content_bytes = self.content.end.saturating_sub(self.content.start);
        (self.header.len() as u64)
            .saturating_add(content_bytes)
            .saturating_add(self.padding_bytes)
    }
}

/// Why an entry has no view. Entries come from archives and are not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewError {
    /// The header recipe is malformed.
    Recipe,
    /// The data ranges overlap, go backwards or exceed the size of the file.
    DataRanges,
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ViewError::Recipe => "the header recipe of a tar entry is malformed",
            ViewError::DataRanges => "the data ranges of a sparse file are malformed",
        })
    }
}

impl std::error::Error for ViewError {}

/// Makes a tar stream of entries, which are passed one by one in order.
#[derive(Debug, Clone)]
pub struct TarView {
    /// Only for the recorded view.
    predictor: Option<Predictor>,
}

impl TarView {
    /// The view of a tree that was read from a directory.
    #[must_use]
    pub fn canonical() -> TarView {
        TarView { predictor: None }
    }

    /// The view of a tar stream that was taken apart.
    #[must_use]
    pub fn recorded() -> TarView {
        TarView {
            predictor: Some(Predictor::default()),
        }
    }

    /// Makes the next entry's view independent of earlier entries. Call it at the same entries as
    /// [`TarSplitter::restart`](crate::tar::TarSplitter::restart); a canonical view never depends
    /// on earlier entries.
    pub fn restart(&mut self) {
        if let Some(predictor) = &mut self.predictor {
            predictor.restart();
        }
    }

    /// The next entry's part of the stream. Takes memory for the header group.
    ///
    /// # Errors
    /// [`ViewError`] if the entry's ranges or recipe are malformed. The view is then unusable until
    /// the next restart.
    pub fn entry(&mut self, entry: &Entry) -> Result<ViewItem, ViewError> {
        check_ranges(entry)?;
        if entry.kind == EntryKind::Raw {
            return Ok(ViewItem {
                content: entry.content_range(),
                ..ViewItem::default()
            });
        }
        let (header, has_padding) = match &mut self.predictor {
            None => (canonical::header_group(entry), true),
            Some(predictor) => {
                let header = recipe::apply(&entry.header_recipe, predictor, entry);
                let header = header.ok_or(ViewError::Recipe)?;
                predictor.learn(entry, &header);
                (header, recipe::has_padding(&entry.header_recipe))
            }
        };
        Ok(ViewItem {
            header,
            content: entry.content_range(),
            is_rebased: entry.is_rebased,
            padding_bytes: if has_padding { padding_bytes(entry.stored_bytes()) } else { 0 },
        })
    }

    /// The size in bytes of the next entry's part of the stream, as [`TarView::entry`] returns it.
    /// A canonical view does not make the headers for this.
    ///
    /// # Errors
    /// As [`TarView::entry`].
    pub fn entry_bytes(&mut self, entry: &Entry) -> Result<u64, ViewError> {
        if self.predictor.is_some() || entry.kind == EntryKind::Raw {
            return Ok(self.entry(entry)?.view_bytes());
        }
        check_ranges(entry)?;
        let data_bytes = entry.stored_bytes();
        Ok(canonical::header_group_bytes(entry)
            .saturating_add(data_bytes)
            .saturating_add(padding_bytes(data_bytes)))
    }

    /// What follows the last entry: two zero records in the canonical view. A recorded stream has
    /// its end mark, if any, as entries of kind [`EntryKind::Raw`].
    #[must_use]
    pub fn end(&self) -> ViewItem {
        let padding_bytes = match self.predictor {
            None => 2 * RECORD_BYTES as u64,
            Some(_) => 0,
        };
        ViewItem {
            padding_bytes,
            ..ViewItem::default()
        }
    }
}

fn check_ranges(entry: &Entry) -> Result<(), ViewError> {
    let mut end = 0;
    for range in entry.data_ranges.iter().flatten() {
        if range.start < end || range.end < range.start || range.end > entry.size_bytes {
            return Err(ViewError::DataRanges);
        }
        end = range.end;
    }
    Ok(())
}
