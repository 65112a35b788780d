//! Tar streams taken apart into entries and content.

use crate::entry::{Entry, EntryKind};
use crate::tar::group::{self, GROUP_BYTES_MAX, Overrides, Owners, Parsed};
use crate::tar::predict::Predictor;
use crate::tar::recipe;
use crate::tar::record::{
    GID, LINK, MAGIC, MODE, MTIME, NAME, RECORD_BYTES, Record, SIZE, TYPE, UID, field, number,
    padding_bytes, text,
};

/// The length of the first piece of a long stretch that is not tar. Each following piece is twice
/// as long, up to [`RAW_PIECE_BYTES_MAX`].
pub const RAW_PIECE_BYTES: usize = 64 << 10;

/// The length of the longest pieces of a stretch that is not tar.
pub const RAW_PIECE_BYTES_MAX: usize = RAW_PIECE_BYTES << RAW_DOUBLINGS;

const RAW_DOUBLINGS: u32 = 6;

/// The most bytes that a splitter needs to see at once. Ordinary headers need 512 to 1536.
pub const WINDOW_BYTES_MAX: usize = GROUP_BYTES_MAX;

/// What the splitter found at the current position of the stream, or needs.
#[derive(Debug)]
pub enum SplitStep {
    /// The window must have at least this many bytes, or reach the end of the stream.
    NeedBytes(usize),
    /// An entry.
    Item(SplitItem),
    /// The stream is complete.
    End,
}

/// An entry and the bytes of the stream that belong to it, in this order: header group, data,
/// padding.
#[derive(Debug)]
pub struct SplitItem {
    /// The entry; its `content_offset` is 0.
    pub entry: Entry,
    /// The number of bytes at the start of the window that the entry's recipe gives back.
    pub header_bytes: usize,
    /// The number of bytes after the header that become content: the entry's `stored_bytes`. They
    /// need not be visible, and the stream may end before them; see [`TarSplitter::data_ended`].
    pub data_bytes: u64,
    /// The number of bytes after the data that should be zero, see [`TarSplitter::odd_padding`].
    pub padding_bytes: u64,
}

/// Takes a tar stream apart. The caller holds the stream and its position; it shows the splitter
/// what is there and skips the parts of each item:
///
/// ```
/// use refrain_entries::tar::{SplitStep, TarSplitter};
///
/// # let stream = b"no tar".to_vec();
/// let (mut entries, mut content) = (Vec::new(), Vec::new());
/// let mut splitter = TarSplitter::new();
/// let mut rest = stream.as_slice();
/// // The whole stream is visible here, so the splitter never needs more.
/// while let SplitStep::Item(mut item) = splitter.next(rest, true) {
///     rest = &rest[item.header_bytes..];
///     let data_bytes = item.data_bytes.min(rest.len() as u64);
///     if data_bytes < item.data_bytes {
///         splitter.data_ended(&mut item.entry, data_bytes);
///     }
///     let (data, tail) = rest.split_at(data_bytes as usize);
///     item.entry.content_offset = content.len() as u64;
///     content.extend_from_slice(data);
///     let padding = &tail[..tail.len().min(item.padding_bytes as usize)];
///     let is_as_expected = padding.len() as u64 == item.padding_bytes
///         && padding.iter().all(|byte| *byte == 0);
///     rest = match is_as_expected || data_bytes < item.data_bytes {
///         true => &tail[padding.len()..],
///         false => {
///             splitter.odd_padding(&mut item.entry);
///             tail
///         }
///     };
///     entries.push(item.entry);
/// }
/// assert_eq!(content, b"no tar");
/// ```
///
/// The entries depend on the stream only, not on the lengths of the windows.
#[derive(Debug, Default)]
pub struct TarSplitter {
    predictor: Predictor,
    owners: Owners,
    globals: Overrides,
    /// The header group of the last item.
    last_header: Vec<u8>,
    /// How many bytes of odd padding come next.
    odd_bytes: usize,
    /// The number of headerless pieces just before.
    raw_pieces: u32,
}

impl TarSplitter {
    /// A splitter at the start of a stream.
    #[must_use]
    pub fn new() -> TarSplitter {
        TarSplitter::default()
    }

    /// Makes the recipe of the next entry independent of earlier entries. Call it at the same
    /// entries as [`TarView::restart`](crate::tar::TarView::restart).
    pub fn restart(&mut self) {
        self.predictor.restart();
    }

    /// Examines the bytes at the current position, after the padding of the last item. `is_end`:
    /// the stream ends with them.
    pub fn next(&mut self, window: &[u8], is_end: bool) -> SplitStep {
        if window.is_empty() {
            return if is_end { SplitStep::End } else { SplitStep::NeedBytes(RECORD_BYTES) };
        }
        if self.odd_bytes > 0 {
            return self.odd(window, is_end);
        }
        match group::parse(window, &mut self.globals, &mut self.owners) {
            Parsed::NeedBytes(needed) if !is_end => SplitStep::NeedBytes(needed),
            Parsed::NeedBytes(_) | Parsed::Garbage => self.raw_scan(window, is_end),
            Parsed::Raw(length) => raw_item(length),
            Parsed::Group(group) => {
                self.raw_pieces = 0;
                let header = window.get(..group.header_bytes).unwrap_or_default();
                self.entry(group.entry, header)
            }
        }
    }

    /// Reports that the stream ended after `data_bytes` of the last item's data, fewer than it
    /// stated. Changes the entry so that the view restores what was there.
    pub fn data_ended(&mut self, entry: &mut Entry, data_bytes: u64) {
        match &mut entry.data_ranges {
            None => entry.size_bytes = data_bytes,
            Some(ranges) => {
                let mut left = data_bytes;
                for range in ranges.iter_mut() {
                    range.end = range.end.min(range.start.saturating_add(left));
                    left -= range.end - range.start;
                }
                ranges.retain(|range| !range.is_empty());
            }
        }
        if entry.kind != EntryKind::Raw {
            entry.header_recipe = recipe::raw(&self.last_header);
            recipe::set_no_padding(&mut entry.header_recipe);
        }
    }

    /// Reports that the last item's data is complete, but its padding is not zero, or is cut off by
    /// the end of the stream. Changes the entry; the next item holds the padding.
    pub fn odd_padding(&mut self, entry: &mut Entry) {
        recipe::set_no_padding(&mut entry.header_recipe);
        // Padding is shorter than a record.
        self.odd_bytes = usize::try_from(padding_bytes(entry.stored_bytes())).unwrap_or(0);
    }

    fn odd(&mut self, window: &[u8], is_end: bool) -> SplitStep {
        if window.len() < self.odd_bytes && !is_end {
            return SplitStep::NeedBytes(self.odd_bytes);
        }
        let length = self.odd_bytes.min(window.len());
        self.odd_bytes = 0;
        raw_item(length as u64)
    }

    /// A piece that is not tar: from the start of the window, where there is no header, to the next
    /// header, if that is not far.
    fn raw_scan(&mut self, window: &[u8], is_end: bool) -> SplitStep {
        let limit = RAW_PIECE_BYTES << self.raw_pieces.min(RAW_DOUBLINGS);
        if window.len() < limit && !is_end {
            return SplitStep::NeedBytes(limit);
        }
        self.raw_pieces = self.raw_pieces.saturating_add(1);
        let window = window.get(..limit).unwrap_or(window);
        let records = window.chunks(RECORD_BYTES).skip(1);
        let is_header = |record: &[u8]| record.first_chunk().is_some_and(group::is_header);
        let length = match records.map(is_header).position(|is_header| is_header) {
            Some(at) => (at + 1) * RECORD_BYTES,
            None => window.len(),
        };
        raw_item(length as u64)
    }

    fn entry(&mut self, mut entry: Entry, header: &[u8]) -> SplitStep {
        entry.header_recipe = recipe::make(&self.predictor, &entry, header);
        self.predictor.learn(&entry, header);
        self.last_header.clear();
        self.last_header.extend_from_slice(header);
        let data_bytes = entry.stored_bytes();
        SplitStep::Item(SplitItem {
            header_bytes: header.len(),
            data_bytes,
            padding_bytes: padding_bytes(data_bytes),
            entry,
        })
    }
}

fn raw_item(length_bytes: u64) -> SplitStep {
    SplitStep::Item(SplitItem {
        entry: Entry {
            kind: EntryKind::Raw,
            size_bytes: length_bytes,
            ..Entry::default()
        },
        header_bytes: 0,
        data_bytes: length_bytes,
        padding_bytes: 0,
    })
}

/// Whether a stream that begins with this record, 512 bytes, is a tar stream: the record is a
/// header with a valid checksum, and has a known magic or looks entirely like a header from before
/// POSIX.
#[must_use]
pub fn looks_like_tar(first_record: &[u8]) -> bool {
    let Some(record) = first_record.first_chunk::<RECORD_BYTES>() else {
        return false;
    };
    group::is_header(record) && (has_magic(record) || is_plausible_v7(record))
}

/// Whether a part of a stream that is not an entry is a global pax header: it describes the entries
/// after it, and nothing is lost without it.
#[must_use]
pub fn is_global_header(part: &[u8]) -> bool {
    part.first_chunk::<RECORD_BYTES>()
        .is_some_and(|record| group::is_header(record) && field(record, TYPE) == b"g")
}

/// The number of data bytes that an entry's header states, if the stream ended before them. Such an
/// entry is the last one; its size counts only the data present.
#[must_use]
pub fn cut_from(entry: &Entry) -> Option<u64> {
    let header = recipe::unpadded_group(&entry.header_recipe)?;
    let parsed = group::parse(header, &mut Overrides::default(), &mut Owners::default());
    let Parsed::Group(group) = parsed else {
        return None;
    };
    let stated = group.entry.stored_bytes();
    (stated > entry.stored_bytes()).then_some(stated)
}

fn has_magic(record: &Record) -> bool {
    field(record, MAGIC).starts_with(b"ustar") && has_numbers(record)
}

fn has_numbers(record: &Record) -> bool {
    let fields = [MODE, UID, GID, SIZE, MTIME];
    (fields.into_iter()).all(|at| number(field(record, at)).is_some())
}

/// Headers from before POSIX have nothing after the link, but GNU tar writes device numbers there.
fn is_plausible_v7(record: &Record) -> bool {
    let after_link = record.get(LINK.0 + LINK.1..).unwrap_or_default();
    let type_flag = field(record, TYPE).first().copied();
    !text(record, NAME).is_empty()
        && matches!(type_flag, Some(0 | b'0'..=b'6' | b'V'))
        && (after_link.iter()).all(|byte| matches!(byte, 0 | b' ' | b'0'..=b'7'))
        && has_numbers(record)
}

const _: () = assert!(RAW_PIECE_BYTES_MAX < WINDOW_BYTES_MAX);
