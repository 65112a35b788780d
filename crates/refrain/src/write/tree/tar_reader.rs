//! Reads a tar stream and takes it apart, batch by batch, on one thread.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use refrain_codec::rebase::Code;
use refrain_entries::Entry;
use refrain_entries::tar::{SplitItem, SplitStep, TarSplitter};
use refrain_format::{ENTRIES_PER_BATCH, entry_bytes};
use refrain_pool::trace::{Device, reading};
use refrain_protect::{DigestHasher, HASH_BYTES, SEGMENT_BYTES, content_hash};

use crate::store::machine_code::{code_to_rebase, rebase};
use crate::write::tree::batch_bytes::BatchBytes;
use crate::write::tree::file_data::WHOLE_BYTES_MAX;

/// The data of a batch, in bytes, unless a single entry has more.
const BATCH_BYTES: usize = 1 << 20;
/// The maximum data bytes of a batch.
pub(crate) const BATCH_BYTES_MAX: u64 = BATCH_BYTES as u64 + WHOLE_BYTES_MAX;
/// The maximum number of items in a batch.
const BATCH_ITEMS_MAX: usize = 4096;
/// The maximum bytes of a window's entries, as the format counts them.
const WINDOW_ENTRY_BYTES_MAX: u64 = 16 << 20;
/// How much is read from the stream at once.
const READ_BYTES: usize = 256 << 10;

/// A part of a tar stream.
pub(crate) enum TarItem {
    /// An entry with all of its data.
    Entry {
        entry: Entry,
        data: Range<usize>,
        offset_in_stream: u64,
        hash: [u8; HASH_BYTES],
    },
    /// A piece of the next entry's data, which is too large for one batch.
    Piece {
        data: Range<usize>,
        offset_in_stream: u64,
        offset_in_file: u64,
        /// The length of all pieces, unless the stream is cut off.
        file_bytes: u64,
        /// The code of the entry, which is rebased.
        code: Option<Arc<Code>>,
    },
    /// An entry whose data is in the pieces before it.
    LargeEntry(Entry),
    /// The entries before it form a window: the view restarts here.
    WindowEnd,
}

/// Consecutive parts of a tar stream.
#[derive(Default)]
pub(crate) struct TarBatch {
    pub bytes: BatchBytes,
    pub items: Vec<TarItem>,
    code_bytes_min: u64,
    /// Whether the stream is complete.
    pub is_last: bool,
}

impl TarBatch {
    /// Rebases code, and hashes contents as they are stored.
    pub(crate) fn hash(&mut self) {
        for item in &mut self.items {
            match item {
                TarItem::Entry {
                    entry, data, hash, ..
                } if data.start < data.end => {
                    let bytes = self.bytes.get_mut(data.clone());
                    if let Some(code) = code_to_rebase(entry, bytes, self.code_bytes_min) {
                        entry.is_rebased = true;
                        rebase(&code, 0, bytes);
                    }
                    *hash = content_hash(bytes);
                }
                TarItem::Piece {
                    data,
                    offset_in_file,
                    code: Some(code),
                    ..
                } => rebase(code, *offset_in_file, self.bytes.get_mut(data.clone())),
                _ => {}
            }
        }
    }
}

/// An entry with data still to be read.
struct LargeEntry {
    entry: Entry,
    left: u64,
    padding_bytes: u64,
    /// The data before what is left.
    done_bytes: u64,
    code: Option<Arc<Code>>,
}

/// A stream with the bytes that were read and not used yet.
struct Window {
    stream: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    is_end: bool,
    /// The offset of `start` in the stream.
    offset: u64,
    /// Hashes of the whole stream.
    digests: Vec<DigestHasher>,
}

impl Window {
    fn visible(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn read(stream: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
        reading(Device::Stream, || {
            loop {
                match stream.read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    result => return result,
                }
            }
        })
    }

    /// Makes at least `count` bytes visible, or all up to the end of the stream.
    fn show(&mut self, count: usize) -> io::Result<()> {
        while self.end - self.start < count && !self.is_end {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            let wanted = count.max(self.end + READ_BYTES);
            if self.buffer.len() < wanted {
                self.buffer.resize(wanted, 0);
            }
            let read = Window::read(&mut *self.stream, &mut self.buffer[self.end..])?;
            self.is_end = read == 0;
            self.end += read;
        }
        Ok(())
    }

    /// Skips `count` visible bytes.
    fn skip(&mut self, count: usize) {
        let passed = &self.buffer[self.start..self.start + count];
        self.digests
            .iter_mut()
            .for_each(|digest| digest.update(passed));
        self.start += count;
        self.offset += count as u64;
    }

    /// Fills `target` with the next bytes. Returns their number, less only at the end of the
    /// stream.
    fn take(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let mut done = target.len().min(self.end - self.start);
        target[..done].copy_from_slice(&self.visible()[..done]);
        self.skip(done);
        while done < target.len() && !self.is_end {
            let read = Window::read(&mut *self.stream, &mut target[done..])?;
            self.is_end = read == 0;
            let passed = &target[done..done + read];
            self.digests
                .iter_mut()
                .for_each(|digest| digest.update(passed));
            self.offset += read as u64;
            done += read;
        }
        Ok(done)
    }
}

/// Takes a tar stream apart.
pub(crate) struct TarReader {
    window: Window,
    splitter: TarSplitter,
    large: Option<LargeEntry>,
    entries_in_window: usize,
    bytes_in_window: usize,
    window_bytes: u64,
    /// Whether the window ends with the next entry.
    ends_window: bool,
    /// How much code makes a program one whose code is rebased, bytes.
    code_bytes_min: u64,
}

impl TarReader {
    /// `digests` hash the whole stream. A window is complete when its entries have `window_bytes`,
    /// as the format counts them. Programs with `code_bytes_min` are rebased.
    pub(crate) fn new(
        stream: Box<dyn Read + Send>,
        digests: Vec<DigestHasher>,
        window_bytes: u64,
        code_bytes_min: u64,
    ) -> TarReader {
        TarReader {
            window: Window {
                stream,
                buffer: Vec::new(),
                start: 0,
                end: 0,
                is_end: false,
                offset: 0,
                digests,
            },
            splitter: TarSplitter::new(),
            large: None,
            entries_in_window: 0,
            bytes_in_window: 0,
            window_bytes: window_bytes.min(WINDOW_ENTRY_BYTES_MAX),
            ends_window: false,
            code_bytes_min,
        }
    }

    /// Ends the window with the next entry, even if it is not full.
    pub(crate) fn end_window_soon(&mut self) {
        self.ends_window = true;
    }

    /// The digests of the stream, once it is complete.
    pub(crate) fn take_digests(&mut self) -> Vec<DigestHasher> {
        std::mem::take(&mut self.window.digests)
    }

    /// The bytes of the stream that were used.
    pub(crate) fn passed_bytes(&self) -> u64 {
        self.window.offset
    }

    /// The first bytes of the stream, at most `count`.
    pub(crate) fn first_bytes(&mut self, count: usize) -> io::Result<&[u8]> {
        self.window.show(count)?;
        let visible = self.window.visible();
        Ok(&visible[..visible.len().min(count)])
    }

    /// Reads bytes without taking them apart, up to a segment; fewer only at the end.
    pub(crate) fn read_raw(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.window.take(buffer)
    }

    /// Reads the next batch into `memory`.
    pub(crate) fn read_batch(&mut self, memory: Vec<u8>) -> io::Result<TarBatch> {
        let mut batch = TarBatch {
            bytes: BatchBytes::in_memory_of(memory),
            code_bytes_min: self.code_bytes_min,
            ..TarBatch::default()
        };
        while batch.bytes.len() < BATCH_BYTES && batch.items.len() < BATCH_ITEMS_MAX {
            if self.large.is_some() {
                self.read_piece(&mut batch)?;
                continue;
            }
            if self.entries_in_window == 0 {
                self.splitter.restart();
            }
            match self
                .splitter
                .next(self.window.visible(), self.window.is_end)
            {
                SplitStep::NeedBytes(count) => self.window.show(count)?,
                SplitStep::Item(item) => self.read_item(item, &mut batch)?,
                SplitStep::End => {
                    batch.items.push(TarItem::WindowEnd);
                    batch.is_last = true;
                    break;
                }
            }
        }
        Ok(batch)
    }

    fn read_item(&mut self, item: SplitItem, batch: &mut TarBatch) -> io::Result<()> {
        let mut entry = item.entry;
        self.window.skip(item.header_bytes);
        if item.data_bytes > WHOLE_BYTES_MAX {
            self.large = Some(LargeEntry {
                entry,
                left: item.data_bytes,
                padding_bytes: item.padding_bytes,
                done_bytes: 0,
                code: None,
            });
            return Ok(());
        }
        let (start, offset_in_stream) = (batch.bytes.len(), self.window.offset);
        let target = batch.bytes.extend(item.data_bytes as usize);
        let count = self.window.take(target)?;
        batch.bytes.truncate(start + count);
        if (count as u64) < item.data_bytes {
            self.splitter.data_ended(&mut entry, count as u64);
        } else {
            self.pass_padding(&mut entry, item.padding_bytes)?;
        }
        self.note(&entry);
        batch.items.push(TarItem::Entry {
            entry,
            data: start..start + count,
            offset_in_stream,
            hash: [0; HASH_BYTES],
        });
        self.end_window(batch);
        Ok(())
    }

    fn read_piece(&mut self, batch: &mut TarBatch) -> io::Result<()> {
        let Some(mut large) = self.large.take() else {
            return Ok(());
        };
        let wanted = large.left.min(SEGMENT_BYTES as u64);
        let (start, offset_in_stream) = (batch.bytes.len(), self.window.offset);
        let count = self.window.take(batch.bytes.extend(wanted as usize))?;
        batch.bytes.truncate(start + count);
        if large.done_bytes == 0 {
            let code = code_to_rebase(
                &large.entry,
                batch.bytes.get(start..start + count),
                self.code_bytes_min,
            );
            large.entry.is_rebased = code.is_some();
            large.code = code.map(Arc::new);
        }
        batch.items.push(TarItem::Piece {
            data: start..start + count,
            offset_in_stream,
            offset_in_file: large.done_bytes,
            file_bytes: large.entry.stored_bytes(),
            code: large.code.clone(),
        });
        large.left -= count as u64;
        large.done_bytes += count as u64;
        let is_cut = (count as u64) < wanted;
        if large.left > 0 && !is_cut {
            self.large = Some(large);
            return Ok(());
        }
        let mut entry = large.entry;
        if is_cut {
            let data_bytes = entry.stored_bytes() - large.left;
            self.splitter.data_ended(&mut entry, data_bytes);
        } else {
            self.pass_padding(&mut entry, large.padding_bytes)?
        }
        self.note(&entry);
        batch.items.push(TarItem::LargeEntry(entry));
        self.end_window(batch);
        Ok(())
    }

    /// Skips the padding, if it is as expected.
    fn pass_padding(&mut self, entry: &mut Entry, padding_bytes: u64) -> io::Result<()> {
        let count = padding_bytes as usize;
        self.window.show(count)?;
        let padding = self.window.visible().get(..count);
        if padding.is_some_and(|padding| padding.iter().all(|&byte| byte == 0)) {
            self.window.skip(count)
        } else {
            self.splitter.odd_padding(entry)
        }
        Ok(())
    }

    fn note(&mut self, entry: &Entry) {
        self.entries_in_window += 1;
        self.bytes_in_window += entry_bytes(entry);
    }

    /// Ends the window if it is full, or was requested to end.
    fn end_window(&mut self, batch: &mut TarBatch) {
        if self.entries_in_window >= ENTRIES_PER_BATCH
            || self.bytes_in_window as u64 >= self.window_bytes
            || self.ends_window
        {
            self.ends_window = false;
            batch.items.push(TarItem::WindowEnd);
            (self.entries_in_window, self.bytes_in_window) = (0, 0);
        }
    }
}
