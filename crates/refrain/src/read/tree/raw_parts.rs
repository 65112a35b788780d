//! Parts of a tar stream that are not complete entries: after a damaged header, or where the stream
//! is truncated. Their bytes are kept, but do not become files.

use refrain_entries::tar::{cut_from, is_global_header};
use refrain_entries::{Entry, EntryKind};

use refrain_filesystem::Problem;

use crate::error::Result;
use crate::progress::Watch;
use crate::read::store_reader::Depth;
use crate::read::tree::content::TreeContent;

/// The content examined at once.
const READ_BYTES: u64 = 64 << 10;

/// What was found so far. Zeros, which end and pad a tar stream, do not count.
#[derive(Debug, Default)]
pub(crate) struct RawParts {
    bytes: u64,
    is_cut: bool,
}

impl RawParts {
    pub(crate) fn add(&mut self, piece: &[u8]) {
        if piece.iter().any(|byte| *byte != 0) {
            self.bytes += piece.len() as u64;
        }
    }

    /// The stream ends inside an entry.
    pub(crate) fn set_cut(&mut self) {
        self.is_cut = true;
    }

    /// Reports to the watch what was found, if anything.
    pub(crate) fn report(&self, member: usize, watch: &dyn Watch) {
        for problem in self.problems() {
            watch.problem(member, &problem);
        }
    }

    pub(crate) fn problems(&self) -> Vec<Problem> {
        let mut texts = Vec::new();
        if self.bytes > 0 {
            texts.push(format!(
                "{} bytes of the tar stream belong to no entry: a header is damaged, or other data is \
                 in between",
                self.bytes
            ));
        }
        if self.is_cut {
            texts.push("the tar stream is cut off".to_owned());
        }
        let problems = texts.into_iter();
        problems.map(|text| Problem::damaged(b"", text)).collect()
    }
}

/// Examines the entries of a tar member, one after the other.
pub(crate) struct TarCheck<'a> {
    content: &'a dyn TreeContent,
    is_recorded: bool,
    raw: RawParts,
}

impl<'a> TarCheck<'a> {
    pub(crate) fn new(content: &'a dyn TreeContent) -> TarCheck<'a> {
        TarCheck {
            content,
            is_recorded: content.is_recorded(),
            raw: RawParts::default(),
        }
    }

    /// Examines the next entry. Returns what is wrong if it is incomplete.
    ///
    /// # Errors
    /// From reading content.
    pub(crate) fn look(&mut self, entry: &Entry) -> Result<Option<Problem>> {
        if !self.is_recorded {
            return Ok(None);
        }
        if entry.kind == EntryKind::Raw {
            self.look_at_raw(entry)?;
            return Ok(None);
        }
        let Some(stated) = cut_from(entry) else {
            return Ok(None);
        };
        self.raw.set_cut();
        let text = format!("cut off: has {} of {stated} bytes", entry.stored_bytes());
        Ok(Some(Problem::damaged(&entry.path, text)))
    }

    fn look_at_raw(&mut self, entry: &Entry) -> Result<()> {
        let range = entry.content_range();
        let mut buffer = vec![0; READ_BYTES.min(range.end - range.start) as usize];
        let mut offset = range.start;
        while offset < range.end {
            let length = (range.end - offset).min(READ_BYTES) as usize;
            let piece = &mut buffer[..length];
            self.content.read(offset, piece, Depth::for_read(length))?;
            if offset == range.start && is_global_header(piece) {
                return Ok(());
            }
            self.raw.add(piece);
            offset += length as u64;
        }
        Ok(())
    }

    /// What was found about the stream as a whole.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        self.raw.problems()
    }
}
