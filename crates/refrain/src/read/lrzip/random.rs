//! Random access to an lrzip archive.
//!
//! Opening reads the records of every chunk without applying them. The first read maps all content.
//! Each later read decodes the literals of its range, from the beginning of their blocks, which is
//! slower than in a native archive with its small blocks.

use std::ops::Range;
use std::sync::Arc;

use refrain_format::lrzip::{Cipher, DigestKind, Header, Prefilter};
use refrain_pool::{Lock, OnceValue, Turns};
use refrain_storage::Source;

use super::chunk_layout::{Chunk, LayoutReader, Tail};
use super::digest::ContentDigest;
use super::epochs::{ArchiveStep, EpochReader};
use super::headers::block_info;
use super::input::ArchiveInput;
use super::literals::store_reader;
use super::member::{member_end, member_start};
use super::reader_memory::ReaderMemory;
use super::record_summary::{RecordSummary, summarize_chunks};
use super::unfilter::RangeUnfilter;
use super::whole_check::WholeCheck;
use crate::archive_info::{ArchiveInfo, BlockInfo, CodecUses, LrzipInfo, Member, member};
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::read::content_check::ContentCheck;
use crate::read::epoch_map::EpochMap;
use crate::read::opened_archive::{Layout, Members, Provable, Remains, Serving, no_member};
use crate::read::read_control::ReadControl;
use crate::read::store_reader::{Depth, StoreReader};
use crate::read::tree::content::TreeContent;

/// An lrzip archive, opened for random access.
pub(crate) struct LrzipArchive {
    /// Starts at the first chunk.
    layout: LayoutReader,
    options: ReadOptions,
    header: Header,
    chunks: Vec<ContentChunk>,
    blocks: Vec<BlockInfo>,
    /// The size of all records in the archive, and their number.
    records_stored_bytes: u64,
    records: u64,
    run_bytes: u64,
    tail: Tail,
    member: Member,
    mapped: OnceValue<MappedArchive>,
    /// The state after the last read of a filtered chunk.
    unfilter: Lock<Option<RangeUnfilter>>,
    unfilter_turns: Turns,
}

/// The maps of all content.
struct MappedArchive {
    maps: Vec<Arc<EpochMap>>,
    store: StoreReader,
}

struct ContentChunk {
    content_start: u64,
    crc: Option<u32>,
    prefilter: Option<Prefilter>,
}

impl LrzipArchive {
    /// Reads the structure and the records of an archive.
    pub(crate) fn open(source: Arc<dyn Source>, options: &ReadOptions) -> Result<LrzipArchive> {
        let input = Arc::new(ArchiveInput::from_source(source)?);
        let layout = LayoutReader::open(input, options.password.as_ref())?;
        let (mut chunks, mut blocks) = (Vec::new(), Vec::<BlockInfo>::new());
        let (mut records_stored_bytes, mut records, mut run_bytes) = (0, 0, 0);
        let mut store_bytes = 0;
        let each = |chunk: Chunk, summary: RecordSummary, content_start| {
            chunks.push(ContentChunk {
                content_start,
                crc: summary.crc,
                prefilter: chunk.header.prefilter,
            });
            records += summary.records;
            run_bytes += summary.run_bytes;
            let stored = chunk.records.iter().map(|block| block.found.stored_bytes);
            records_stored_bytes += stored.sum::<u64>();
            for block in &chunk.literals {
                blocks.push(block_info(blocks.len() as u64, block, store_bytes));
                store_bytes += block.found.raw_bytes;
            }
        };
        let (content_bytes, tail) = summarize_chunks(layout.clone(), options, each)?;
        Ok(LrzipArchive {
            header: layout.header().clone(),
            layout,
            options: options.clone(),
            chunks,
            blocks,
            records_stored_bytes,
            records,
            run_bytes,
            tail,
            member: member(&member_start(None), &member_end(content_bytes, tail.md5)),
            mapped: OnceValue::default(),
            unfilter: Lock::default(),
            unfilter_turns: Turns::default(),
        })
    }

    /// The maps of all content, built on first use.
    fn mapped(&self) -> Result<&MappedArchive> {
        self.mapped.get_or_try_init(|| {
            let share = ReaderMemory::for_ranges(&self.options);
            let streams_max = self.options.threads.max(1) + 1;
            let (mut epochs, literals) = EpochReader::new(self.layout.clone(), &share, streams_max);
            let store = store_reader(literals, &share, &self.options);
            let mut maps = Vec::new();
            loop {
                match epochs.next(&store)? {
                    ArchiveStep::Epoch { map, .. } => maps.push(map),
                    ArchiveStep::End(_) => return Ok(MappedArchive { maps, store }),
                    ArchiveStep::Chunk { .. }
                    | ArchiveStep::ChunkEnd { .. }
                    | ArchiveStep::Replayed { .. } => {}
                }
            }
        })
    }

    /// Fills `out` with content according to the maps, before filters are inverted.
    fn read_mapped(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let MappedArchive { maps, store } = self.mapped()?;
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let after = maps.partition_point(|map| map.content().end <= at);
            let map = maps.get(after).ok_or_else(|| {
                Error::new(ErrorKind::Internal, "content without a map").at_content(at)
            })?;
            let piece = (map.content().end - at).min((out.len() - done) as u64) as usize;
            let part = &mut out[done..done + piece];
            store.fill(map, at, part, Depth::Whole, None)?;
            done += piece;
        }
        Ok(())
    }

    /// The chunk with the content at `content_at`, and its filter.
    fn chunk_at(&self, content_at: u64) -> (Range<u64>, Option<Prefilter>) {
        let content_bytes = self.member.content_bytes;
        let after = self
            .chunks
            .partition_point(|chunk| chunk.content_start <= content_at);
        let end = self
            .chunks
            .get(after)
            .map_or(content_bytes, |next| next.content_start);
        let chunk = after
            .checked_sub(1)
            .and_then(|index| self.chunks.get(index));
        match chunk {
            Some(chunk) => (chunk.content_start..end, chunk.prefilter),
            None => (0..end, None),
        }
    }
}

impl Members for LrzipArchive {
    fn member_count(&self) -> usize {
        1
    }

    fn member(&self, member: usize) -> Result<Option<Member>> {
        Ok((member == 0).then(|| self.member.clone()))
    }

    /// Reads content at `offset` into `buffer`; returns the number of bytes.
    fn read(
        &self,
        member: usize,
        offset: u64,
        buffer: &mut [u8],
        control: &ReadControl,
    ) -> Result<usize> {
        control.before_waiting()?;
        if member > 0 {
            return Err(no_member(member, 1));
        }
        let content_bytes = self.member.content_bytes;
        let offset = offset.min(content_bytes);
        let count = usize::try_from(content_bytes - offset)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let mut done = 0;
        while done < count {
            let at = offset + done as u64;
            let (chunk, prefilter) = self.chunk_at(at);
            let end = (chunk.end - at).min((count - done) as u64) as usize + done;
            match prefilter {
                None => {
                    self.read_mapped(at, &mut buffer[done..end])?;
                    done = end;
                }
                Some(prefilter) => {
                    // One reader after the other, or each begins the chunk anew. The lock is free
                    // while blocks are decoded, which may have to wait.
                    let _turn = self.unfilter_turns.take();
                    let open = self.unfilter.lock().take();
                    let open = open.filter(|open| open.can_reach(chunk.start, at));
                    let mut open = open.unwrap_or_else(|| RangeUnfilter::new(chunk, prefilter));
                    let read = |at: u64, out: &mut [u8]| self.read_mapped(at, out);
                    let piece = open.read(at, &mut buffer[done..end], read)?;
                    *self.unfilter.lock() = Some(open);
                    if piece == 0 {
                        return Err(Error::new(ErrorKind::Internal, "a chunk without content"));
                    }
                    done += piece;
                }
            }
        }
        Ok(count)
    }

    fn content(
        &self,
        _member: usize,
        _control: &ReadControl,
    ) -> Result<Option<Box<dyn TreeContent + '_>>> {
        Ok(None)
    }

    /// Blocks are not compared with the digests, which cover all content.
    fn content_check(&self, member: usize) -> Option<ContentCheck> {
        let content_bytes = (member == 0).then_some(self.member.content_bytes)?;
        let starts = self.chunks.iter().map(|chunk| chunk.content_start);
        let ends = starts.skip(1).chain([content_bytes]);
        let counts = self.header.digest == DigestKind::Crc;
        let crcs = self.chunks.iter().map(|chunk| chunk.crc.filter(|_| counts));
        let digest = ContentDigest::new(self.header.digest);
        let check = WholeCheck::new(digest, self.tail.md5, ends.zip(crcs).collect());
        Some(ContentCheck(Box::new(check)))
    }
}

impl Serving for LrzipArchive {}

impl Layout for LrzipArchive {
    /// The properties of the archive.
    fn info(&self) -> Result<ArchiveInfo> {
        let content_bytes = self.member.content_bytes;
        let store_bytes: u64 = self.blocks.iter().map(|block| block.raw_bytes).sum();
        let mut codecs = CodecUses::default();
        for block in &self.blocks {
            let names = (block.codec.clone(), block.filters.clone());
            codecs.add(names.clone(), block.raw_bytes, block.stored_bytes, || names);
        }
        Ok(ArchiveInfo {
            format_version: (0, u16::from(self.header.version.minor())),
            level: 0,
            memory_bytes: 0,
            archive_bytes: self.tail.archive_bytes,
            content_bytes,
            store_bytes,
            extents: self.records,
            extents_frame_bytes: self.records_stored_bytes,
            entries_frame_bytes: 0,
            matched_bytes: content_bytes
                .saturating_sub(store_bytes)
                .saturating_sub(self.run_bytes),
            run_bytes: self.run_bytes,
            reach_bytes: self.tail.archive_bytes,
            members: 1,
            archives: 1,
            root_hash: None,
            codecs: codecs.finish(),
            fallbacks: 0,
            block_bytes_max: self
                .blocks
                .iter()
                .map(|block| block.raw_bytes)
                .max()
                .unwrap_or(0),
            given_back_bytes: 0,
            decoders: Vec::new(),
            lrzip: Some(LrzipInfo {
                version: self.header.version.name(),
                chunks: self.chunks.len() as u64,
                cipher: self.header.cipher.as_ref().map(Cipher::name),
            }),
        })
    }

    /// The blocks of literals.
    fn for_each_block(&self, each: &mut dyn FnMut(BlockInfo) -> Result<()>) -> Result<()> {
        self.blocks.iter().cloned().try_for_each(each)
    }
}

impl Provable for LrzipArchive {}

impl Remains for LrzipArchive {
    /// The number of bytes after the archive.
    fn skipped_bytes(&self) -> u64 {
        self.tail.trailing_bytes
    }
}
