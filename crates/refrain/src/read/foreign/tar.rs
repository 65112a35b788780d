//! Lists, finds, reads and restores entries of compressed tar streams.

use std::collections::BTreeMap;
use std::ops::Range;

use refrain_entries::{Entry, EntryKind, Selection};
use refrain_filesystem::restore::{HardLink, TreeRestore};
use refrain_storage::Sink;

use refrain_filesystem::Problem;

use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Progress, Watch, is_cancelled};
use crate::read::foreign::content::{Again, Content};
use crate::read::foreign::tar_stream::TarStream;
use crate::read::tree::chosen::Chosen;

/// How much of a file is read and written at once.
const READ_BYTES: usize = 256 << 10;

fn report(stream: &TarStream, content_bytes: u64, watch: &dyn Watch) -> Result<()> {
    watch.progress(&Progress {
        content_bytes_done: content_bytes,
        content_bytes_total: None,
        archive_bytes: stream.archive_bytes(),
    });
    if is_cancelled(watch) { Err(Error::cancelled()) } else { Ok(()) }
}

/// Calls `each` for every entry of a tar stream, in order. Their `content_offset` is their number.
///
/// # Errors
/// From the content and `each`; `Damaged` for a stream that ends inside an entry.
pub(crate) fn for_each_entry(
    content: Content,
    watch: &dyn Watch,
    each: &mut dyn FnMut(&Entry) -> Result<()>,
) -> Result<()> {
    let mut stream = TarStream::new(content);
    let mut number = 0;
    let listed = loop {
        match stream.next() {
            Ok(Some(mut entry)) => {
                entry.content_offset = number;
                number += 1;
                each(&entry)?;
            }
            ended => break ended.map(|_| ()),
        }
    };
    stream.report_losses(watch);
    listed
}

/// Writes a range of the file that is this entry, as listed by [`for_each_entry`]; holes as zeros.
///
/// # Errors
/// As [`for_each_entry`]; errors of the sink; `Usage` if there is no such entry.
pub(crate) fn write_entry(
    content: Content,
    listed: &Entry,
    range: &Range<u64>,
    sink: &mut dyn Sink,
    watch: &dyn Watch,
) -> Result<()> {
    let mut stream = TarStream::new(content);
    for _ in 0..listed.content_offset {
        stream.next()?;
        report(&stream, 0, watch)?;
    }
    let Some(entry) = stream.next()? else {
        let message = "the tar stream changed while it was read";
        return Err(Error::new(ErrorKind::Usage, message));
    };
    let mut position = 0;
    let whole = 0..entry.size_bytes;
    let ranges = entry.data_ranges.as_deref();
    let ranges = ranges.unwrap_or(std::slice::from_ref(&whole));
    let mut buffer = vec![0; READ_BYTES];
    for data in ranges {
        write_hole(sink, range, position..data.start)?;
        position = data.start;
        while position < data.end && position < range.end {
            let left = usize::try_from(data.end - position).unwrap_or(usize::MAX);
            let wanted = left.min(buffer.len());
            let count = stream.read(&mut buffer[..wanted])?;
            if count == 0 {
                break;
            }
            let piece = overlap(range, &(position..position + count as u64));
            let from = (piece.start - position) as usize;
            let length = (piece.end - piece.start) as usize;
            sink.write_all(&buffer[from..from + length])?;
            position += count as u64;
            report(&stream, position, watch)?;
        }
    }
    write_hole(sink, range, position..entry.size_bytes)?;
    stream.into_content().check_read(watch)
}

/// The intersection of `range` and `part`; empty at a place inside `part` if there is none.
fn overlap(range: &Range<u64>, part: &Range<u64>) -> Range<u64> {
    let start = range.start.clamp(part.start, part.end);
    let end = range.end.clamp(start, part.end);
    start..end
}

fn write_hole(sink: &mut dyn Sink, range: &Range<u64>, hole: Range<u64>) -> Result<()> {
    let hole = overlap(range, &(hole.start..hole.end.max(hole.start)));
    Ok(sink.write_zeros(hole.end - hole.start)?)
}

/// Restores entries of a tar stream below a target. A selected hard link to an unselected file
/// needs that file: the stream is read `again` for it. Returns the content, at its end, and the
/// number of all entries.
///
/// Damage ends the restore: the entries before it are complete and stay, and the watch is told.
///
/// # Errors
/// From the content, but not `Damaged`. Problems of single entries are recorded by the target.
pub(crate) fn restore_tar(
    content: Content,
    again: Option<&Again<'_>>,
    (target, selection): (&TreeRestore, Option<&Selection>),
    memory_bytes: u64,
    watch: &dyn Watch,
) -> Result<(Content, u64)> {
    let mut stream = TarStream::new(content);
    let mut chosen = Chosen::for_recorded(selection, memory_bytes);
    let mut count = 0;
    let restored = restore_entries(&mut stream, &mut chosen, target, &mut count, watch);
    let is_whole = restored.is_ok();
    report_damage(restored, watch)?;
    stream.report_losses(watch);
    if is_whole && selection.is_some() && !target.has_ended() {
        restore_linked_files(again, target, watch)?;
    }
    Ok((stream.into_content(), count))
}

/// Reports damage to the watch; returns other errors.
fn report_damage(result: Result<()>, watch: &dyn Watch) -> Result<()> {
    match result {
        Err(error) if error.kind == ErrorKind::Damaged => {
            let text = format!("{error}; what follows was not restored");
            watch.problem(0, &Problem::damaged(b"", text));
            Ok(())
        }
        result => result,
    }
}

/// Restores the chosen entries. `count` counts all entries.
fn restore_entries(
    stream: &mut TarStream,
    chosen: &mut Chosen<'_>,
    target: &TreeRestore,
    count: &mut u64,
    watch: &dyn Watch,
) -> Result<()> {
    let mut data_bytes = 0_u64;
    while let Some(entry) = stream.next()? {
        *count += 1;
        let mut file = None;
        chosen.choose(entry, |entry| {
            target.expect(&entry);
            if entry.kind == EntryKind::Other {
                watch.problem(0, &Problem::unusual(&entry.path));
            }
            match entry.kind {
                EntryKind::Directory => target.directory(&entry),
                EntryKind::File | EntryKind::Other => file = Some(entry),
                _ => target.other(&entry),
            }
        })?;
        target.link_if_many();
        if let Some(entry) = file {
            let written = write_file(stream, &entry, target, &mut data_bytes, watch);
            if let Err(error) = &written
                && error.kind == ErrorKind::Damaged
            {
                let text = "left out: its data is damaged or cut off";
                watch.problem(0, &Problem::damaged(&entry.path, text));
            }
            written?;
        }
        report(stream, data_bytes, watch)?;
        if target.has_ended() {
            break;
        }
    }
    Ok(())
}

/// Writes the data of the present entry to a file.
fn write_file(
    stream: &mut TarStream,
    entry: &Entry,
    target: &TreeRestore,
    data_bytes: &mut u64,
    watch: &dyn Watch,
) -> Result<()> {
    // Without a file, the failure was recorded.
    let Some(file) = target.file(entry) else {
        return Ok(());
    };
    let mut buffer = vec![0; READ_BYTES];
    let mut offset = 0;
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            // A failure is recorded, and the rest is skipped.
            count if file.write_at(offset, &buffer[..count]).is_ok() => offset += count as u64,
            _ => break,
        }
        *data_bytes = data_bytes.saturating_add(READ_BYTES as u64);
        report(stream, *data_bytes, watch)?;
    }
    // A failure is recorded.
    let _ = file.finish();
    Ok(())
}

/// Restores the files needed by selected hard links, each under the path of the first such link.
fn restore_linked_files(
    again: Option<&Again<'_>>,
    target: &TreeRestore,
    watch: &dyn Watch,
) -> Result<()> {
    let mut waiting: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for HardLink { path, target } in target.link() {
        waiting.entry(target).or_default().push(path);
    }
    if waiting.is_empty() {
        return Ok(());
    }
    if let Some(again) = again {
        let mut stream = TarStream::new(again.open()?);
        let mut data_bytes = 0;
        while let Some(entry) = stream.next()? {
            let is_file = entry.kind == EntryKind::File;
            if let Some(paths) = waiting.get_mut(&entry.path).filter(|_| is_file)
                && let Some(first) = paths.first().cloned()
            {
                paths.remove(0);
                let mut others = std::mem::take(paths);
                others.retain(|path| *path != first);
                let file = Entry {
                    path: first.clone(),
                    ..entry
                };
                write_file(&mut stream, &file, target, &mut data_bytes, watch)?;
                for path in others {
                    target.other(&hard_link(path, &first));
                }
            }
            report(&stream, data_bytes, watch)?;
        }
    }
    // Links without any file: the target reports them.
    for (linked, paths) in waiting {
        for path in paths {
            target.other(&hard_link(path, &linked));
        }
    }
    Ok(())
}

fn hard_link(path: Vec<u8>, target: &[u8]) -> Entry {
    Entry {
        path,
        kind: EntryKind::Hardlink,
        link_target: Some(target.to_vec()),
        ..Entry::default()
    }
}
