//! The entries of a tar stream and their data, read from front to back.

use std::ops::Range;

use refrain_entries::tar::{SplitStep, TarSplitter, is_global_header};
use refrain_entries::{Entry, EntryKind};

use crate::error::{Error, Result};
use crate::progress::Watch;
use crate::read::foreign::content::Content;
use crate::read::tree::raw_parts::RawParts;

/// How much is decoded at once.
const READ_BYTES: usize = 256 << 10;

/// The unread data of the present entry.
#[derive(Default)]
struct Unread {
    data_bytes: u64,
    padding_bytes: u64,
    /// Whether it belongs to no entry.
    is_lost: bool,
}

/// A tar stream. Bytes between its entries that are not tar are skipped and counted.
pub(crate) struct TarStream {
    content: Content,
    splitter: TarSplitter,
    buffer: Vec<u8>,
    visible: Range<usize>,
    has_ended: bool,
    unread: Unread,
    raw: RawParts,
}

impl TarStream {
    pub(crate) fn new(content: Content) -> TarStream {
        TarStream {
            content,
            splitter: TarSplitter::new(),
            buffer: Vec::new(),
            visible: 0..0,
            has_ended: false,
            unread: Unread::default(),
            raw: RawParts::default(),
        }
    }

    /// Reports what was skipped in the stream, and what was ignored in the file.
    pub(crate) fn report_losses(&mut self, watch: &dyn Watch) {
        self.raw.report(0, watch);
        self.content.report_ignored(watch);
    }

    /// The content, at its end if there are no more entries.
    pub(crate) fn into_content(self) -> Content {
        self.content
    }

    /// The bytes of the file decoded so far.
    pub(crate) fn archive_bytes(&self) -> u64 {
        self.content.archive_bytes()
    }

    /// Makes `count` bytes visible, or all up to the end.
    fn show(&mut self, count: usize) -> Result<()> {
        while self.visible.len() < count && !self.has_ended {
            self.buffer.copy_within(self.visible.clone(), 0);
            self.visible = 0..self.visible.len();
            let wanted = count.max(READ_BYTES);
            if self.buffer.len() < wanted {
                self.buffer.resize(wanted, 0);
            }
            let read = self.content.read(&mut self.buffer[self.visible.end..])?;
            self.has_ended = read == 0;
            self.visible.end += read;
        }
        Ok(())
    }

    /// The next entry, whose data can then be read; `None` at the end of the stream.
    ///
    /// # Errors
    /// From the content; `Damaged` if the stream ends inside an entry.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>> {
        loop {
            self.pass_data()?;
            // Recipes, which reproduce the headers, are not needed here.
            self.splitter.restart();
            let window = &self.buffer[self.visible.clone()];
            match self.splitter.next(window, self.has_ended) {
                SplitStep::NeedBytes(count) => self.show(count)?,
                SplitStep::End => return Ok(None),
                SplitStep::Item(item) => {
                    let is_raw = item.entry.kind == EntryKind::Raw;
                    self.unread.is_lost = is_raw && !is_global_header(window);
                    self.visible.start += item.header_bytes;
                    self.unread.data_bytes = item.data_bytes;
                    self.unread.padding_bytes = item.padding_bytes;
                    if !is_raw {
                        return Ok(Some(item.entry));
                    }
                }
            }
        }
    }

    /// Reads the stored data of the present entry, without holes. Returns the number of bytes; 0
    /// only at the end of the data.
    ///
    /// # Errors
    /// As [`TarStream::next`].
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let left = usize::try_from(self.unread.data_bytes).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        let buffer = &mut buffer[..wanted];
        let count = match self.visible.len().min(wanted) {
            0 if wanted > 0 => self.content.read(buffer)?,
            count => {
                let from = self.visible.start;
                buffer[..count].copy_from_slice(&self.buffer[from..from + count]);
                self.visible.start += count;
                count
            }
        };
        if count == 0 && wanted > 0 {
            return Err(self.ends_early());
        }
        self.unread.data_bytes -= count as u64;
        Ok(count)
    }

    /// Skips the rest of the present entry.
    fn pass_data(&mut self) -> Result<()> {
        while self.unread.data_bytes > 0 {
            self.show(1)?;
            if self.visible.is_empty() {
                return Err(self.ends_early());
            }
            let left = usize::try_from(self.unread.data_bytes).unwrap_or(usize::MAX);
            let passed = left.min(self.visible.len());
            if self.unread.is_lost {
                let bytes = &self.buffer[self.visible.start..self.visible.start + passed];
                self.raw.add(bytes);
            }
            self.visible.start += passed;
            self.unread.data_bytes -= passed as u64;
        }
        let padding_bytes = std::mem::take(&mut self.unread.padding_bytes) as usize;
        self.show(padding_bytes)?;
        if self.visible.len() < padding_bytes {
            self.raw.set_cut();
        }
        self.visible.start += padding_bytes.min(self.visible.len());
        Ok(())
    }

    fn ends_early(&self) -> Error {
        Error::damaged("the tar stream ends inside the data of an entry")
            .at_content(self.content.content_bytes())
    }
}
