//! The content of a tar stream that is taken apart: one thread reads and splits it, others hash its
//! entries' data, and it is taken in stream order.

use std::collections::{BTreeMap, VecDeque};

use refrain_entries::Entry;
use refrain_entries::tar::looks_like_tar;
use refrain_pool::Lane;
use refrain_pool::stages::stage;

use crate::error::{Error, Result};
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::feed::{ContentFeed, FeedStep};
use crate::write::tree::content::ContentWriter;
use crate::write::tree::entry_list::{EntryList, StreamKind};
use crate::write::tree::jobs::Jobs;
use crate::write::tree::tar_reader::{BATCH_BYTES_MAX, TarBatch, TarItem, TarReader};
use crate::write::tree::tar_runs::{RunEnd, TarRuns};

/// The length of a tar record, by which a tar stream is recognized.
const RECORD_BYTES: usize = 512;

enum JobResult {
    Recognized {
        reader: Box<TarReader>,
        is_tar: Result<bool>,
    },
    Read {
        reader: Box<TarReader>,
        batch: Result<TarBatch>,
    },
    Hashed {
        number: u64,
        batch: TarBatch,
    },
    Raw {
        reader: Box<TarReader>,
        bytes: Result<Vec<u8>>,
        is_last: bool,
    },
    Packed(Result<()>),
}

/// The feed of a stream that may be a tar stream.
pub(crate) struct TarFeed {
    /// `None` while a job reads.
    reader: Option<Box<TarReader>>,
    /// Whether the stream is a tar stream; `None` until its beginning was read.
    is_tar: Option<bool>,
    is_read: bool,
    next_batch: u64,
    next_taken: u64,
    hashed: BTreeMap<u64, TarBatch>,
    bytes_in_flight: u64,
    /// The bytes of the stream that were used.
    read_bytes: u64,
    jobs: Jobs<JobResult>,
    spare: Vec<Vec<u8>>,
    content: ContentWriter,
    list: EntryList,
    /// The entries of the window so far.
    entries: Vec<Entry>,
    /// Complete windows to pack, and where their content ends.
    windows: VecDeque<(Vec<Entry>, u64)>,
    runs: TarRuns,
    /// The offset of the first piece of a large entry.
    large_start: u64,
}

impl TarFeed {
    /// `run_bytes_max`: entries are written at least this often, in bytes of content.
    pub(crate) fn new(
        reader: TarReader,
        content: ContentWriter,
        list: EntryList,
        run_bytes_max: u64,
    ) -> TarFeed {
        TarFeed {
            reader: Some(Box::new(reader)),
            is_tar: None,
            is_read: false,
            next_batch: 0,
            next_taken: 0,
            hashed: BTreeMap::new(),
            bytes_in_flight: 0,
            read_bytes: 0,
            jobs: Jobs::new(),
            spare: Vec::new(),
            content,
            list,
            entries: Vec::new(),
            windows: VecDeque::new(),
            runs: TarRuns::new(run_bytes_max),
            large_start: 0,
        }
    }

    /// Takes the results of jobs. Returns the batches to hash.
    fn collect(&mut self, context: &PipelineContext) -> Result<Option<FeedStep>> {
        while let Some(result) = self.jobs.take() {
            match result {
                JobResult::Recognized { reader, is_tar } => {
                    let is_tar = is_tar?;
                    self.reader = Some(reader);
                    self.is_tar = Some(is_tar);
                    self.list
                        .set_kind(if is_tar { StreamKind::Tar } else { StreamKind::Other });
                }
                JobResult::Read { mut reader, batch } => {
                    let batch = batch?;
                    self.read_bytes = reader.passed_bytes();
                    self.runs.batch_read(self.read_bytes);
                    self.is_read = batch.is_last;
                    self.bytes_in_flight += batch.bytes.len() as u64;
                    if self.is_read {
                        self.list.set_digests(reader.take_digests());
                    }
                    self.reader = Some(reader);
                    return Ok(Some(self.hash_job(batch)));
                }
                JobResult::Hashed { number, batch } => {
                    self.hashed.insert(number, batch);
                }
                JobResult::Raw {
                    mut reader,
                    bytes,
                    is_last,
                } => {
                    self.is_read = is_last;
                    self.read_bytes = reader.passed_bytes();
                    if is_last {
                        self.list.set_digests(reader.take_digests());
                    }
                    self.reader = Some(reader);
                    self.content.add_segment(bytes?);
                }
                JobResult::Packed(packed) => packed?,
            }
        }
        while let Some(batch) = self.hashed.remove(&self.next_taken) {
            self.next_taken += 1;
            self.take(batch, context)?;
        }
        Ok(None)
    }

    fn hash_job(&mut self, mut batch: TarBatch) -> FeedStep {
        let number = self.next_batch;
        self.next_batch += 1;
        self.jobs.start(Lane::Normal, move |_| {
            let _stage = stage("hash files", batch.bytes.len() as u64);
            batch.hash();
            JobResult::Hashed { number, batch }
        })
    }

    /// Takes the next batch in the stream.
    fn take(&mut self, batch: TarBatch, context: &PipelineContext) -> Result<()> {
        self.bytes_in_flight -= batch.bytes.len() as u64;
        for item in batch.items {
            match item {
                TarItem::Entry {
                    mut entry,
                    data,
                    offset_in_stream,
                    hash,
                } => {
                    let origin = offset_in_stream..offset_in_stream + data.len() as u64;
                    let bytes = batch.bytes.get(data);
                    let ranges = std::slice::from_ref(&origin);
                    entry.content_offset =
                        self.content
                            .add_whole(bytes, hash, b"", Some(ranges), None, context)?;
                    if entry.is_rebased {
                        self.content.note_rebased(entry.content_range());
                    }
                    self.entries.push(entry);
                }
                TarItem::Piece {
                    data,
                    offset_in_stream,
                    offset_in_file,
                    file_bytes,
                    code,
                } => {
                    let bytes = batch.bytes.get(data);
                    let offset =
                        self.content
                            .add_piece(bytes, b"", offset_in_stream, None, context)?;
                    if offset_in_file == 0 {
                        self.large_start = offset;
                        if code.is_some() {
                            self.content.note_rebased(offset..offset + file_bytes);
                        }
                    }
                }
                TarItem::LargeEntry(mut entry) => {
                    entry.content_offset = match entry.stored_bytes() {
                        0 => 0,
                        _ => self.large_start,
                    };
                    self.entries.push(entry);
                }
                TarItem::WindowEnd if self.entries.is_empty() => {}
                TarItem::WindowEnd => {
                    let entries = std::mem::take(&mut self.entries);
                    (self.windows).push_back((entries, self.content.length_bytes()));
                }
            }
        }
        self.runs.batch_taken(self.content.length_bytes());
        self.spare.extend(batch.bytes.into_memory());
        Ok(())
    }

    fn read_job(&mut self) -> Option<FeedStep> {
        self.reader.as_ref()?;
        let run_end = match self.is_tar {
            Some(true) => self.runs.decide(self.read_bytes),
            _ => RunEnd::No,
        };
        if run_end == RunEnd::Unknown {
            return None;
        }
        let mut reader = self.reader.take()?;
        if run_end == RunEnd::Yes {
            reader.end_window_soon();
        }
        let Some(is_tar) = self.is_tar else {
            return Some(self.jobs.start(Lane::Input, move |_| {
                let is_tar = reader.first_bytes(RECORD_BYTES).map(looks_like_tar);
                let is_tar = is_tar.map_err(Error::from);
                JobResult::Recognized { reader, is_tar }
            }));
        };
        let memory = self.spare.pop().unwrap_or_default();
        Some(if is_tar {
            self.jobs.start(Lane::Input, move |_| {
                let mut stage = stage("read", 0);
                let batch = reader.read_batch(memory).map_err(Error::from);
                let bytes = batch.as_ref().map_or(0, |batch| batch.bytes.len());
                stage.add_bytes(bytes as u64);
                JobResult::Read { reader, batch }
            })
        } else {
            self.jobs.start(Lane::Input, move |context| {
                let length = refrain_protect::SEGMENT_BYTES;
                let bytes = context
                    .segment_buffer(length)
                    .and_then(|buffer| context.read(buffer, |buffer| reader.read_raw(buffer)));
                let is_last = bytes.as_ref().is_ok_and(|bytes| bytes.len() < length);
                JobResult::Raw {
                    reader,
                    bytes,
                    is_last,
                }
            })
        })
    }

    /// The bytes read, or being read, that are in no segment yet.
    fn bytes_ahead(&self) -> u64 {
        self.bytes_in_flight + self.content.pending_bytes()
    }

    fn is_complete(&self) -> bool {
        self.is_read && !self.jobs.is_busy() && self.windows.is_empty()
    }
}

impl ContentFeed for TarFeed {
    fn next(&mut self, room_bytes: u64, context: &PipelineContext) -> Result<FeedStep> {
        if let Some(step) = self.collect(context)? {
            return Ok(step);
        }
        if let Some((entries, content_end)) = self.windows.pop_front() {
            let pack = self.list.add(entries, content_end);
            return Ok(self
                .jobs
                .start(Lane::Normal, move |_| JobResult::Packed(pack.run())));
        }
        if self.is_complete() {
            self.content.finish();
        }
        if let Some(segment) = self.content.take_segment() {
            return Ok(FeedStep::Segment(segment));
        }
        if self.is_complete() {
            return Ok(FeedStep::Done);
        }
        // Counted after the results were taken: known content makes room.
        let may_read = self.bytes_ahead() < room_bytes && !self.is_read;
        let read = may_read.then(|| self.read_job()).flatten();
        Ok(read.unwrap_or(FeedStep::Wait))
    }
    fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    fn next_read_bytes_max(&self) -> u64 {
        match self.is_tar {
            Some(true) => BATCH_BYTES_MAX,
            Some(false) | None => refrain_protect::SEGMENT_BYTES as u64,
        }
    }
}
