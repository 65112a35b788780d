//! Writes the tar stream of a part of a tree.

use refrain_entries::tar::TarView;
use refrain_entries::{Decision, Entry, EntryKind, Selection};
use refrain_storage::Sink;

use crate::error::{Error, Result};
use crate::progress::{Progress, Watch, is_cancelled};
use crate::read::content_limit::ContentMeter;
use crate::read::store_reader::Depth;
use crate::read::tree::content::TreeContent;
use crate::read::tree::rebased::RebasedFile;
use crate::read::tree::view_frames::malformed;

/// The maximum content bytes read at once.
const READ_BYTES: u64 = 4 << 20;

/// Where the stream goes.
pub(crate) struct PartOutput<'a> {
    pub sink: &'a mut dyn Sink,
    /// Counts the bytes of the stream.
    pub meter: &'a ContentMeter,
    pub watch: &'a dyn Watch,
}

/// Writes the selected entries as a tar stream. A hard link to an unselected file becomes a file,
/// which `find` finds. Returns the number of entries.
///
/// # Errors
/// `Damaged` and others for the frames that are read, errors of the sink, `Cancelled`.
pub(crate) fn write_part<'a>(
    content: &'a dyn TreeContent,
    selection: &Selection,
    find: &dyn Fn(&[u8]) -> Result<Option<Entry>>,
    output: PartOutput<'a>,
) -> Result<u64> {
    // Recorded headers depend on those before them, which are not written.
    let mut writer = PartWriter {
        content,
        view: TarView::canonical(),
        output,
        written_bytes: 0,
    };
    let is_wanted = |entry: &Entry| {
        let is_directory = entry.kind == EntryKind::Directory;
        selection.decide(&entry.path, is_directory) == Decision::Include
    };
    let mut count = 0;
    for frame in 0..content.entry_frames()? {
        for mut entry in content.entries_of(frame)?.into_vec() {
            if entry.kind == EntryKind::Raw || !is_wanted(&entry) {
                continue;
            }
            if let (EntryKind::Hardlink, Some(target)) = (entry.kind, &entry.link_target)
                && selection.decide(target, false) != Decision::Include
                && let Some(file) = find(target)?
            {
                entry = Entry {
                    path: entry.path,
                    ..file
                };
            }
            writer.add(&entry)?;
            count += 1;
        }
    }
    let end = writer.view.end();
    writer.bytes(&end.header)?;
    writer.zeros(end.padding_bytes)?;
    Ok(count)
}

struct PartWriter<'a> {
    content: &'a dyn TreeContent,
    view: TarView,
    output: PartOutput<'a>,
    written_bytes: u64,
}

impl PartWriter<'_> {
    fn add(&mut self, entry: &Entry) -> Result<()> {
        let item = self.view.entry(entry).map_err(malformed)?;
        self.bytes(&item.header)?;
        let (mut offset, end) = (item.content.start, item.content.end);
        let open = || RebasedFile::open(self.content, item.content.clone());
        let file = item.is_rebased.then(open).transpose()?;
        let mut buffer = vec![0; end.saturating_sub(offset).min(READ_BYTES) as usize];
        while offset < end {
            let length = (end - offset).min(READ_BYTES) as usize;
            let piece = buffer.get_mut(..length).unwrap_or_default();
            match &file {
                Some(file) => file.read(offset - item.content.start, piece, Depth::Whole)?,
                None => self.content.read(offset, piece, Depth::Whole)?,
            }
            offset += length as u64;
            self.bytes(buffer.get(..length).unwrap_or_default())?;
        }
        self.zeros(item.padding_bytes)
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if is_cancelled(self.output.watch) {
            return Err(Error::cancelled());
        }
        self.output.meter.add(bytes.len() as u64)?;
        self.output.sink.write_all(bytes)?;
        self.written_bytes += bytes.len() as u64;
        self.output.watch.progress(&Progress {
            content_bytes_done: self.written_bytes,
            content_bytes_total: None,
            archive_bytes: 0,
        });
        Ok(())
    }

    fn zeros(&mut self, count: u64) -> Result<()> {
        self.bytes(&vec![0; count as usize])
    }
}
