//! Properties of splitter and view, for property tests and fuzz targets.

use crate::entry::{Entry, EntryKind};
use crate::tar::record::{MAGIC, RECORD_BYTES, Record, field, put_checksum};
use crate::tar::split::{SplitItem, SplitStep, TarSplitter};
use crate::tar::view::{TarView, ViewItem};

/// How a stream is taken apart.
#[derive(Debug, Clone, Copy)]
pub struct Cuts {
    /// The length of the windows that the splitter is shown first; it gets longer ones on request.
    pub window_bytes: usize,
    /// Restarts before every entry whose number is a multiple of this.
    pub restart_every: usize,
}

/// A tar stream taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// The entries in the order of the stream.
    pub entries: Vec<Entry>,
    /// Their content.
    pub content: Vec<u8>,
}

/// Takes a whole stream apart.
///
/// # Panics
/// If the splitter asks for bytes that it already sees, or for too many.
#[must_use]
pub fn split(stream: &[u8], cuts: Cuts) -> Parts {
    let mut parts = Parts::default();
    let mut splitter = TarSplitter::new();
    let mut rest = stream;
    let mut window_bytes = cuts.window_bytes;
    loop {
        if parts.entries.len().is_multiple_of(cuts.restart_every) {
            splitter.restart();
        }
        let window = rest.get(..window_bytes).unwrap_or(rest);
        match splitter.next(window, window.len() == rest.len()) {
            SplitStep::End => return parts,
            SplitStep::NeedBytes(needed) => {
                assert!(needed > window.len(), "asks for {needed} bytes again");
                assert!(needed <= super::WINDOW_BYTES_MAX, "{needed} bytes");
                window_bytes = needed;
            }
            SplitStep::Item(item) => {
                rest = take_item(&mut splitter, item, rest, &mut parts);
                window_bytes = cuts.window_bytes;
            }
        }
    }
}

/// Skips an item and returns the rest of the stream.
fn take_item<'a>(
    splitter: &mut TarSplitter,
    item: SplitItem,
    stream: &'a [u8],
    parts: &mut Parts,
) -> &'a [u8] {
    let SplitItem { mut entry, .. } = item;
    assert_eq!(entry.stored_bytes(), item.data_bytes);
    assert!(entry.kind != EntryKind::Raw || item.data_bytes > 0);
    let after_header = &stream[item.header_bytes..];
    let data_bytes = item.data_bytes.min(after_header.len() as u64);
    let (data, after_data) = after_header.split_at(usize::try_from(data_bytes).unwrap_or(0));
    let padding_bytes = usize::try_from(item.padding_bytes).unwrap_or(usize::MAX);
    let padding = after_data.get(..padding_bytes);
    let is_zero = padding.is_some_and(|padding| padding.iter().all(|byte| *byte == 0));
    let mut rest = after_data;
    if data_bytes < item.data_bytes {
        splitter.data_ended(&mut entry, data_bytes);
    } else if is_zero {
        rest = &after_data[padding_bytes..];
    } else {
        splitter.odd_padding(&mut entry);
    }
    entry.content_offset = parts.content.len() as u64;
    check_entry(&entry);
    assert_eq!(entry.stored_bytes(), data_bytes);
    parts.content.extend_from_slice(data);
    parts.entries.push(entry);
    rest
}

fn check_entry(entry: &Entry) {
    let link = entry.link_target.as_deref();
    let texts = [&entry.path, &entry.owner.user, &entry.owner.group];
    let names = entry.attributes.iter().map(|attribute| &attribute.name);
    for text in texts.into_iter().chain(names) {
        assert!(text.len() <= 65_535 && !text.contains(&0));
    }
    assert!(!link.unwrap_or_default().contains(&0));
    assert_eq!(link.is_some(), entry.kind.is_link());
    assert_eq!(entry.path.is_empty(), entry.kind == EntryKind::Raw);
    assert!((entry.attributes).is_sorted_by(|left, right| left.name < right.name));
    assert!(entry.size_bytes < 1 << 61 && entry.modified.is_valid());
    assert!(entry.size_bytes == 0 || entry.kind.has_data());
    assert!(entry.device == (0, 0) || entry.kind.is_device());
    let mut end = None;
    for range in entry.data_ranges.iter().flatten() {
        assert!(end.is_none_or(|end| range.start > end) && range.start < range.end);
        assert!(range.end <= entry.size_bytes && entry.kind == EntryKind::File);
        end = Some(range.end);
    }
}

/// The tar stream of entries and content.
///
/// # Panics
/// If an entry has no view, or refers to missing content.
#[must_use]
pub fn join(mut view: TarView, parts: &Parts, restart_every: usize) -> Vec<u8> {
    let mut stream = Vec::new();
    for (number, entry) in parts.entries.iter().enumerate() {
        if number.is_multiple_of(restart_every) {
            view.restart();
        }
        let item = view.entry(entry);
        let item = item.unwrap_or_else(|error| unreachable!("{error}: {entry:?}"));
        append(&mut stream, &item, &parts.content);
        let canonical = TarView::canonical().entry(entry);
        assert_eq!(
            TarView::canonical().entry_bytes(entry),
            canonical.map(|item| item.view_bytes())
        );
    }
    append(&mut stream, &view.end(), &parts.content);
    stream
}

fn append(stream: &mut Vec<u8>, item: &ViewItem, content: &[u8]) {
    let before = stream.len() as u64;
    stream.extend_from_slice(&item.header);
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    stream.extend_from_slice(&content[at(item.content.start)..at(item.content.end)]);
    stream.resize(stream.len() + at(item.padding_bytes), 0);
    assert_eq!(stream.len() as u64 - before, item.view_bytes());
}

/// Any stream comes back from its entries and content, and its division into windows makes no
/// difference.
///
/// # Panics
/// If the property does not hold.
pub fn tar_streams_come_back(stream: &[u8], cuts: Cuts) -> Parts {
    let cuts = Cuts {
        window_bytes: cuts.window_bytes.max(1),
        restart_every: cuts.restart_every.max(1),
    };
    let parts = split(stream, cuts);
    let back = join(TarView::recorded(), &parts, cuts.restart_every);
    assert!(back == stream, "{cuts:?} does not give the stream back");
    let whole = Cuts {
        window_bytes: stream.len().max(1),
        ..cuts
    };
    assert!(split(stream, whole) == parts, "the windows matter");
    parts
}

/// Makes the checksums of all records with a magic valid, so that changes of other fields matter.
pub fn with_valid_checksums(stream: &mut [u8]) {
    for record in stream.chunks_exact_mut(RECORD_BYTES) {
        let Ok(record) = <&mut Record>::try_from(record) else {
            return;
        };
        if field(record, MAGIC).starts_with(b"ustar") {
            put_checksum(record);
        }
    }
}

/// The canonical view of entries is taken apart into the same entries.
///
/// # Panics
/// If the property does not hold.
pub fn canonical_views_are_taken_apart(parts: &Parts) {
    let stream = join(TarView::canonical(), parts, 1);
    let cuts = Cuts {
        window_bytes: 4096,
        restart_every: 100,
    };
    let mut back = tar_streams_come_back(&stream, cuts);
    assert_eq!(back.entries.pop().map(|end| end.kind), Some(EntryKind::Raw));
    back.content.truncate(back.content.len() - 1024);
    assert!(back.content == parts.content);
    for entry in &mut back.entries {
        entry.header_recipe.clear();
    }
    assert_eq!(back.entries, parts.entries);
}
