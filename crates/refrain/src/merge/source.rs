//! The archives that are merged.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_format::GenerationInfo;
use refrain_storage::Source;

use crate::add::archive_level;
use crate::error::{Error, ErrorKind, Result};
use crate::options::{Level, ReadOptions};
use crate::read::native::index_reading::find_archives;
use crate::read::native::indexed::IndexedArchive;
use crate::read::opened_archive::Serving;
use crate::store::complete_end::complete_part;
use crate::store::envelope::open::opened_envelope;

/// The share of the memory for reading all archives that are merged.
const SOURCES_SHARE: u64 = 6;

/// The shares for lists of extents, and for decoded entries.
const EXTENTS_SHARE: u64 = 64;
const ENTRIES_SHARE: u64 = 30;

/// An archive to be merged.
pub struct MergeSource {
    /// What errors call it.
    pub name: String,
    /// Its bytes.
    pub source: Arc<dyn Source>,
    /// The secrets that open it, if it is encrypted.
    pub options: ReadOptions,
}

/// An archive that was opened.
pub(crate) struct Opened {
    pub name: String,
    pub archive: Arc<IndexedArchive>,
    pub store_bytes: u64,
    /// Where it ends, without what is appended.
    pub archive_bytes: u64,
    /// Whether it is a single frame, which cannot grow.
    pub is_whole: bool,
}

impl Opened {
    /// Opens one of `count` archives.
    ///
    /// # Errors
    /// As [`Merge::open`](super::Merge::open).
    pub(crate) fn open(
        source: MergeSource,
        memory_bytes: u64,
        count: u64,
        threads: usize,
    ) -> Result<Opened> {
        let MergeSource {
            name,
            source,
            options,
        } = source;
        let share = memory_bytes / SOURCES_SHARE / count;
        let secrets = options;
        let options = ReadOptions {
            threads,
            // One archive is read at a time: decoding a block may take as much as all have.
            memory_bytes: memory_bytes / SOURCES_SHARE,
            ..ReadOptions::default()
        };
        let open = || {
            let source: Arc<dyn Source> = match opened_envelope(source.clone(), &secrets)? {
                Some(envelope) => envelope,
                None => complete_part(source.clone())?,
            };
            let mut found = find_archives(&*source)?;
            let Some(only) = found.pop().filter(|_| found.is_empty()) else {
                let text = "the file has several archives, one behind the other: join them first";
                return Err(Error::new(ErrorKind::Unsupported, text));
            };
            let archive = IndexedArchive::open(source, &only, &options, 1)?;
            archive.set_cache_bytes(share / 8 * 6, memory_bytes / EXTENTS_SHARE / count);
            archive.set_entries_bytes(memory_bytes / ENTRIES_SHARE / count);
            Ok((Arc::new(archive), only))
        };
        let (archive, found) = open().map_err(|error: Error| error.in_file(name.clone()))?;
        Ok(Opened {
            name,
            archive,
            store_bytes: found.end.store_bytes,
            archive_bytes: found.end.archive_bytes,
            is_whole: found.is_whole,
        })
    }

    pub(crate) fn level(&self) -> Level {
        archive_level(self.archive.head())
    }
}

/// The generations of archives in the order of a new one.
pub(crate) fn in_order(archives: &[Opened]) -> Vec<(usize, GenerationInfo)> {
    let rows = archives
        .iter()
        .map(|opened| opened.archive.kept_generations());
    joined_by_time(rows.collect())
}

/// Joins lists of generations, each of which stays in its order.
fn joined_by_time(rows: Vec<Vec<GenerationInfo>>) -> Vec<(usize, GenerationInfo)> {
    let mut rest: Vec<VecDeque<_>> = rows.into_iter().map(VecDeque::from).collect();
    let mut order = Vec::new();
    loop {
        let heads = rest.iter().enumerate();
        let heads = heads.filter_map(|(number, rows)| Some((rows.front()?.created, number)));
        let Some((_, next)) = heads.min() else {
            return order;
        };
        let row = rest.get_mut(next).and_then(VecDeque::pop_front);
        order.extend(row.map(|row| (next, row)));
    }
}
