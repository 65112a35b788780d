//! The archive that is made of others, while it grows.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use refrain_format::GenerationInfo;
use refrain_pool::Lock;
use refrain_protect::HASH_BYTES;
use refrain_storage::{ReadBack, Sink, Source};

use crate::add::{Earlier, Predecessors, continuation_of, empty_archive, growing_options};
use crate::compress::{CopiedContent, copy_behind};
use crate::earlier_decoders::earlier_decoders;
use crate::error::{Error, ErrorKind, Result};
use crate::merge::members::{Copied, GenerationCopy, GenerationToCopy};
use crate::merge::new_bytes::NewBytes;
use crate::merge::pieces::Pair;
use crate::merge::prefix::Prefix;
use crate::merge::source::Opened;
use crate::options::{CompressOptions, Level};
use crate::progress::{Progress, Watch};
use crate::read::native::indexed::IndexedArchive;
use crate::read::opened_archive::Serving;
use crate::store::complete_end::beginning;
use crate::write::pipeline::pieces::pieces_max;

/// The shares of the memory for reading the archive, of which those for lists of extents are a
/// part.
const TARGET_SHARE: u64 = 6;
const EXTENTS_SHARE: u64 = 64;

/// The share of the memory for knowing where the new archive has what it has of the others.
pub(super) const MAPS_SHARE: u64 = 16;

/// What was merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeSummary {
    /// The number of generations of the new archive.
    pub generations: usize,
    /// Bytes of all members of all generations; a directory counts with what its generation stores
    /// of it.
    pub content_bytes: u64,
    /// Bytes of the store.
    pub store_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// The root hash of the last generation, which covers all of them.
    pub root_hash: [u8; HASH_BYTES],
}

/// An archive that grows in a sink.
pub(super) struct Target<'a> {
    sink: &'a mut dyn Sink,
    /// Its length.
    written: u64,
    level: Level,
    options: &'a CompressOptions,
    memory_bytes: u64,
    root_hash: [u8; HASH_BYTES],
    content_bytes: u64,
    store_bytes: u64,
}

impl<'a> Target<'a> {
    /// For an archive at this level, which is to be written to `sink`.
    pub(super) fn new(
        sink: &'a mut dyn Sink,
        (level, memory_bytes): (Level, u64),
        options: &'a CompressOptions,
    ) -> Target<'a> {
        Target {
            sink,
            written: 0,
            level,
            options,
            memory_bytes,
            root_hash: [0; HASH_BYTES],
            content_bytes: 0,
            store_bytes: 0,
        }
    }

    /// Begins without members.
    ///
    /// # Errors
    /// `Usage` for options that cannot be; `Io`.
    pub(super) fn empty(mut self) -> Result<Target<'a>> {
        let bytes = empty_archive(self.level, self.options)?;
        self.sink.write_all(&bytes)?;
        self.written = bytes.len() as u64;
        Ok(self)
    }

    /// Begins with what another archive begins with.
    ///
    /// # Errors
    /// `Io`; `Cancelled`.
    pub(super) fn beginning_with(
        mut self,
        prefix: &Prefix,
        watch: &dyn Watch,
    ) -> Result<Target<'a>> {
        self.written = prefix.write(self.sink, watch)?;
        (self.content_bytes, self.store_bytes) = prefix.sums();
        self.root_hash = prefix.root_hash();
        Ok(self)
    }

    /// Opens what was written so far.
    fn open(&self) -> Result<(Arc<IndexedArchive>, Arc<dyn Source>)> {
        let Some(source) = self.sink.read_back() else {
            let text = "what is merged is read again: the new archive must be a file";
            return Err(Error::new(ErrorKind::Usage, text));
        };
        let bytes = beginning(source, self.written);
        let earlier = Earlier::of(bytes.clone())?;
        let share = self.memory_bytes / TARGET_SHARE;
        let archive = earlier.open(share, self.options.threads)?;
        archive.set_cache_bytes(share / 8 * 6, self.memory_bytes / EXTENTS_SHARE);
        Ok((Arc::new(archive), bytes))
    }

    /// Adds a generation of another archive. `is_compared`: the next generation that is added to
    /// the new archive will be compared with it.
    ///
    /// # Errors
    /// From reading and writing; `Cancelled`.
    pub(super) fn add(
        &mut self,
        opened: &Opened,
        info: &GenerationInfo,
        copied: &mut Copied,
        is_compared: bool,
        watch: &dyn Watch,
    ) -> Result<()> {
        let (archive, bytes) = self.open()?;
        let growth = archive.growth()?;
        let base = growth.base;
        let memory_bytes = self.memory_bytes;
        let options = growing_options(self.options, Some(self.level), &base.archive, memory_bytes)?;
        let generation = GenerationToCopy {
            pair: Pair {
                from: opened.archive.clone(),
                to: archive.clone(),
            },
            info: info.clone(),
            first_member: base.end.member_count,
            content_start: base.end.content_bytes,
            pieces_max: if is_compared { pieces_max(memory_bytes) } else { 0 },
        };
        let plan = generation.plan(copied, watch)?;
        let new = NewBytes::of(opened.archive.clone(), &plan.new);
        let returned = Arc::new(Lock::new(None));
        let (new_bytes, content_bytes) = (plan.new_bytes, plan.content_bytes);
        let known = std::mem::take(copied);
        let content = CopiedContent {
            members: Box::new(GenerationCopy::new(
                generation,
                plan,
                known,
                returned.clone(),
            )),
            new: Arc::new(new),
            new_bytes,
            content_bytes,
        };
        let none = Predecessors::default();
        let decoders = earlier_decoders(&archive, options.carry_decoders, true)?;
        let mut continuation =
            continuation_of((archive, bytes), growth, info.clone(), none, memory_bytes)?;
        continuation.decoders = decoders;
        continuation.read_bytes += memory_bytes / MAPS_SHARE;
        let mut sink = Unpublished(&mut *self.sink);
        let added = copy_behind(content, &mut sink, &options, continuation, watch)?;
        let missing = || Error::new(ErrorKind::Internal, "a copy did not end");
        *copied = returned.lock().take().ok_or_else(missing)?;
        self.written = base.end.archive_bytes + added.archive_bytes;
        self.content_bytes += content_bytes;
        self.store_bytes += added.store_bytes;
        self.root_hash = added.root_hash;
        Ok(())
    }

    /// Publishes the archive, which has so many generations.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn finish(self, generations: usize) -> Result<MergeSummary> {
        self.sink.publish()?;
        Ok(MergeSummary {
            generations,
            content_bytes: self.content_bytes,
            store_bytes: self.store_bytes,
            archive_bytes: self.written,
            root_hash: self.root_hash,
        })
    }
}

/// A sink that is published later.
struct Unpublished<'a>(&'a mut dyn Sink);

impl Sink for Unpublished<'_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.0.write_zeros(length_bytes)
    }

    fn read_back(&self) -> Option<Arc<dyn Source>> {
        self.0.read_back()
    }

    fn is_stored(&self) -> bool {
        self.0.is_stored()
    }

    fn read_back_result(&self) -> Option<ReadBack> {
        self.0.read_back_result()
    }

    fn file_id(&self) -> Option<(u64, u64)> {
        self.0.file_id()
    }

    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The progress of a merge: that of all generations.
pub(super) struct MergeWatch<'a> {
    inner: &'a dyn Watch,
    done_bytes: AtomicU64,
    total_bytes: u64,
}

impl<'a> MergeWatch<'a> {
    pub(super) fn new(inner: &'a dyn Watch, total_bytes: u64) -> MergeWatch<'a> {
        MergeWatch {
            inner,
            done_bytes: AtomicU64::new(0),
            total_bytes,
        }
    }

    pub(super) fn generation_done(&self, content_bytes: u64) {
        self.done_bytes.fetch_add(content_bytes, Ordering::Relaxed);
    }
}

impl Watch for MergeWatch<'_> {
    fn progress(&self, progress: &Progress) {
        let done = self.done_bytes.load(Ordering::Relaxed) + progress.content_bytes_done;
        self.inner.progress(&Progress {
            content_bytes_done: done.min(self.total_bytes),
            content_bytes_total: Some(self.total_bytes),
            archive_bytes: progress.archive_bytes,
        });
    }

    fn notice(&self, notice: &str) {
        self.inner.notice(notice);
    }

    fn cancel_flag(&self) -> Option<&AtomicBool> {
        self.inner.cancel_flag()
    }
}
