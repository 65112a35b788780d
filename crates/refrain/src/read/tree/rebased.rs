//! Reads files whose machine code is rebased in the content: pages of code are read whole, and
//! their references restored.

use std::ops::Range;
use std::sync::Arc;

use refrain_codec::rebase::Code;

use crate::error::{Error, ErrorKind, Result};
use crate::read::store_reader::Depth;
use crate::read::tree::content::TreeContent;
use crate::read::tree::recovery::{Recovery, goes_on};
use crate::store::machine_code::{around, header_bytes, read_converted};

/// A rebased file.
pub(crate) struct RebasedFile<'a> {
    content: &'a dyn TreeContent,
    /// Where it is in the member's content.
    range: Range<u64>,
    code: Arc<Code>,
}

/// A range of a rebased file.
pub(crate) struct RebasedPart {
    /// As the content has it.
    pub stored: Vec<u8>,
    /// The missing ranges of the content, ascending.
    pub missing: Vec<Range<u64>>,
    pub error: Option<Error>,
}

impl<'a> RebasedFile<'a> {
    /// Reads where the code of the file is whose content is at `range`.
    ///
    /// # Errors
    /// `Damaged` if the file is no program, and from reading its beginning.
    pub(crate) fn open(content: &'a dyn TreeContent, range: Range<u64>) -> Result<RebasedFile<'a>> {
        let code = content
            .opened_code()
            .get(&range, || find_code(content, &range))?;
        Ok(RebasedFile {
            content,
            range,
            code,
        })
    }

    fn file_bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Fills `buffer` with the file at `offset_in_file`, within it.
    ///
    /// # Errors
    /// From reading content.
    pub(crate) fn read(&self, offset_in_file: u64, buffer: &mut [u8], depth: Depth) -> Result<()> {
        let file = (&*self.code, self.file_bytes());
        read_converted(file, offset_in_file, buffer, Code::restore, |at, part| {
            self.content.read(self.range.start + at, part, depth)
        })
    }

    /// Restores what was read of the content, which begins with a page. `missing`, ranges of the
    /// content, becomes what is unknown of the file: zeros. That includes a page that is cut off.
    pub(crate) fn restore(
        &self,
        offset_in_file: u64,
        bytes: &mut [u8],
        missing: &mut Vec<Range<u64>>,
    ) {
        self.code.restore(offset_in_file, bytes);
        let start = self.range.start;
        let end_in_file = offset_in_file + bytes.len() as u64;
        let last = end_in_file.saturating_sub(1)..end_in_file;
        let is_cut = around(&self.code, self.file_bytes(), last.clone()).end > end_in_file;
        let in_file =
            |lost: &Range<u64>| lost.start.saturating_sub(start)..lost.end.saturating_sub(start);
        let lost = missing.iter().map(in_file).chain(is_cut.then_some(last));
        let mut unknown: Vec<Range<u64>> = vec![];
        for lost in lost {
            let pages = around(&self.code, self.file_bytes(), lost);
            let from = pages.start.clamp(offset_in_file, end_in_file);
            let to = pages.end.clamp(from, end_in_file);
            bytes[(from - offset_in_file) as usize..(to - offset_in_file) as usize].fill(0);
            match unknown.last_mut() {
                Some(last) if start + from <= last.end => last.end = last.end.max(start + to),
                _ => unknown.push(start + from..start + to),
            }
        }
        *missing = unknown;
    }
}

/// Reads the beginning of the file whose content is at `range`.
fn find_code(content: &dyn TreeContent, range: &Range<u64>) -> Result<Code> {
    let mut header = vec![0; header_bytes(range.end - range.start)];
    let depth = Depth::for_read(header.len());
    content.read(range.start, &mut header, depth)?;
    Code::find(&header).ok_or_else(|| {
        let text = "the code of a file is stated to be rebased, and its beginning has none";
        Error::damaged(text).at_content(range.start)
    })
}

/// Fills `buffer` with a part of the rebased file at `file`, whose content is at `start`, or zeros
/// where damage keeps it unknown.
///
/// # Errors
/// From reading, but for damage.
pub(crate) fn read_part(
    content: &dyn TreeContent,
    file: &Range<u64>,
    start: u64,
    buffer: &mut [u8],
) -> Result<RebasedPart> {
    let all = start..start + buffer.len() as u64;
    let opened = match RebasedFile::open(content, file.clone()) {
        Ok(opened) => opened,
        Err(error) if error.kind == ErrorKind::Damaged => {
            return Ok(RebasedPart {
                stored: vec![0; buffer.len()],
                missing: vec![all],
                error: Some(error),
            });
        }
        Err(error) => return Err(error),
    };
    let in_file = start - file.start..all.end - file.start;
    let pages = around(&opened.code, opened.file_bytes(), in_file);
    let mut bytes = vec![0; (pages.end - pages.start) as usize];
    let at = file.start + pages.start;
    let (mut missing, error) = match content.read(at, &mut bytes, Depth::Whole) {
        Ok(()) => (vec![], None),
        Err(error) if error.kind == ErrorKind::Damaged => {
            (content.read_remains(at, &mut bytes)?, Some(error))
        }
        Err(error) => return Err(error),
    };
    let from = (start - at) as usize;
    let within = from..from + buffer.len();
    let stored = bytes[within.clone()].to_vec();
    opened.restore(pages.start, &mut bytes, &mut missing);
    buffer.copy_from_slice(&bytes[within]);
    for lost in &mut missing {
        *lost = lost.start.max(all.start)..lost.end.min(all.end);
    }
    missing.retain(|lost| !lost.is_empty());
    Ok(RebasedPart {
        stored,
        missing,
        error,
    })
}

/// The data of a file whose content is at `file`, from what was read of it at `start`: whole pages
/// of it. Where `missing` keeps it unknown, zeros.
///
/// # Errors
/// As [`RebasedFile::open`], unless the pass goes on after damage.
pub(crate) fn restored(
    content: &dyn TreeContent,
    recovery: Option<&Recovery<'_>>,
    file: Range<u64>,
    (start, stored): (u64, &[u8]),
    missing: &mut Vec<Range<u64>>,
) -> Result<Vec<u8>> {
    let opened = match RebasedFile::open(content, file.clone()) {
        Err(error) if goes_on(recovery, &error) => {
            missing.clear();
            missing.push(start..start + stored.len() as u64);
            return Ok(vec![0; stored.len()]);
        }
        opened => opened?,
    };
    let mut bytes = stored.to_vec();
    opened.restore(start - file.start, &mut bytes, missing);
    Ok(bytes)
}
