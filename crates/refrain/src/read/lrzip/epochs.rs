//! Reads an archive in order: the origin of all content, one map or piece after the other.

use std::sync::Arc;

use refrain_format::lrzip::{DigestKind, Header, Prefilter, Record, Version};
use refrain_pool::BufferPool;
use refrain_storage::Source;

use super::block_stream::Opener;
use super::chunk_layout::{Chunk, LayoutReader, Tail};
use super::coded_bytes::Block;
use super::flatten::Flattener;
use super::literals::Literals;
use super::reader_memory::ReaderMemory;
use super::record_summary::{LastUses, RecordSummary};
use super::records::ChunkRecords;
use super::replay::{Missing, Replay};
use super::replayed_piece::ReplayedPiece;
use crate::error::{Error, Result};
use crate::read::epoch_map::EpochMap;
use crate::read::store_reader::StoreReader;

/// The next part of an archive.
pub(super) enum ArchiveStep {
    /// A chunk begins.
    Chunk {
        prefilter: Option<Prefilter>,
        literals: Vec<Block>,
    },
    /// Content of the chunk.
    Epoch {
        map: Arc<EpochMap>,
        /// The new literals of all content so far are before this store offset.
        store_end: u64,
    },
    /// Content of the chunk, already decoded.
    Replayed {
        piece: ReplayedPiece,
        store_end: u64,
    },
    /// The chunk is complete.
    ChunkEnd {
        /// Its CRC-32, if the archive has a valid one.
        crc: Option<u32>,
        /// The archive offset of its end.
        archive_end: u64,
    },
    /// All content is complete.
    End(Tail),
}

/// Reads an archive's records in order.
pub(super) struct EpochReader {
    layout: LayoutReader,
    opener: Opener,
    literals: Arc<Literals>,
    content: Content,
    chunk: Option<CurrentChunk>,
    /// Starts at the first chunk.
    start: LayoutReader,
    share: ReaderMemory,
}

/// The chunk whose records are read.
struct CurrentChunk {
    chunk: Chunk,
    records: ChunkRecords,
    /// Its offsets in the content and in the store, and the end of its literals.
    content_start: u64,
    store_start: u64,
    store_end: u64,
    /// The rest of a record that did not fit into a map.
    rest: Option<Record>,
    crc: Option<Option<u32>>,
}

impl CurrentChunk {
    /// Starts after the content so far.
    fn new(version: Version, chunk: Chunk, content: &Content) -> CurrentChunk {
        let store_start = content.store_bytes();
        CurrentChunk {
            records: ChunkRecords::new(version, &chunk),
            content_start: content.content_bytes(),
            store_start,
            store_end: store_start + chunk.literals_bytes,
            chunk,
            rest: None,
            crc: None,
        }
    }
}

/// The result of applying records.
enum Content {
    /// Extents.
    Mapped(Flattener),
    /// Bytes.
    Replayed(Box<Replay>),
}

impl Content {
    fn content_bytes(&self) -> u64 {
        match self {
            Content::Mapped(flattener) => flattener.content_bytes(),
            Content::Replayed(replay) => replay.content_bytes(),
        }
    }

    fn store_bytes(&self) -> u64 {
        match self {
            Content::Mapped(flattener) => flattener.store_bytes(),
            Content::Replayed(replay) => replay.store_bytes(),
        }
    }

    fn room_bytes(&self) -> u64 {
        match self {
            Content::Mapped(flattener) => flattener.room_bytes(),
            Content::Replayed(replay) => replay.room_bytes(),
        }
    }

    fn literals(&mut self, length: u64, store: &StoreReader) -> Result<()> {
        match self {
            Content::Mapped(flattener) => {
                flattener.literals(length);
                Ok(())
            }
            Content::Replayed(replay) => replay.literals(length, store),
        }
    }

    fn copy(
        &mut self,
        length: u64,
        distance: u64,
        store: &StoreReader,
    ) -> Result<std::result::Result<(), Missing>> {
        match self {
            Content::Mapped(flattener) => flattener.copy(length, distance, store).map(Ok),
            Content::Replayed(replay) => replay.copy(length, distance),
        }
    }

    /// Takes the complete content.
    fn take(&mut self, store_end: u64) -> Result<Option<ArchiveStep>> {
        Ok(match self {
            Content::Mapped(flattener) => flattener
                .take_map()
                .map(|map| ArchiveStep::Epoch { map, store_end }),
            Content::Replayed(replay) => replay
                .take_piece()?
                .map(|piece| ArchiveStep::Replayed { piece, store_end }),
        })
    }
}

impl EpochReader {
    /// At the first chunk. `streams_max` is the number of literal blocks whose decoders are kept.
    pub(super) fn new(
        layout: LayoutReader,
        share: &ReaderMemory,
        streams_max: usize,
    ) -> (EpochReader, Arc<Literals>) {
        let opener = layout.opener(share.decoders_bytes);
        let literals = Arc::new(Literals::new(opener.clone(), streams_max));
        let epochs = EpochReader {
            start: layout.clone(),
            layout,
            opener,
            literals: literals.clone(),
            content: Content::Mapped(Flattener::new(0, 0, share.maps_bytes)),
            chunk: None,
            share: *share,
        };
        (epochs, literals)
    }

    /// Decodes content instead of making maps, while memory permits. Earlier content is read back
    /// from `output`, after at most `pieces_max` further pieces; without an output it is kept in
    /// memory.
    pub(super) fn replay(
        &mut self,
        output: Option<Arc<dyn Source>>,
        pieces_max: usize,
        pool: Arc<BufferPool>,
    ) {
        self.content = Content::Replayed(Box::new(Replay::new(output, pieces_max, pool)));
        self.literals.set_forward(true);
    }

    /// The archive offset up to which chunks were read.
    pub(super) fn offset(&self) -> u64 {
        self.layout.offset()
    }

    /// The archive's header.
    pub(super) fn header(&self) -> &Header {
        self.layout.header()
    }

    /// Reads the next part. `store` holds the literals of all parts so far.
    pub(super) fn next(&mut self, store: &StoreReader) -> Result<ArchiveStep> {
        let Some(mut chunk) = self.chunk.take() else {
            return self.next_chunk();
        };
        let content_at = self.content.content_bytes();
        let step = self.next_in(&mut chunk, store);
        let step = step.map_err(|error| error.at_content(content_at))?;
        if !matches!(step, ArchiveStep::ChunkEnd { .. }) {
            self.chunk = Some(chunk);
        }
        Ok(step)
    }

    fn next_chunk(&mut self) -> Result<ArchiveStep> {
        let content_bytes = self.content.content_bytes();
        let Some(chunk) = self.layout.next(content_bytes)? else {
            return self.layout.tail(content_bytes).map(ArchiveStep::End);
        };
        match &mut self.content {
            Content::Mapped(flattener) => flattener.set_floor(content_bytes),
            Content::Replayed(replay) => {
                let version = self.layout.header().version;
                let spooled_bytes = self.opener.input.spooled_bytes();
                let kept_bytes_max = self.share.maps_and_spool_bytes(spooled_bytes);
                prepare_replay(replay, version, &chunk, &self.opener, kept_bytes_max)?;
            }
        }
        let literals = chunk.literals.clone();
        literals.iter().for_each(|&block| self.literals.add(block));
        let step = ArchiveStep::Chunk {
            prefilter: chunk.header.prefilter,
            literals,
        };
        let version = self.layout.header().version;
        self.chunk = Some(CurrentChunk::new(version, chunk, &self.content));
        Ok(step)
    }

    fn next_in(&mut self, chunk: &mut CurrentChunk, store: &StoreReader) -> Result<ArchiveStep> {
        while chunk.crc.is_none() && self.content.room_bytes() > 0 {
            let record = match chunk.rest.take() {
                Some(record) => record,
                None => chunk.records.next(&self.opener)?,
            };
            if let Err(missing) = self.apply(chunk, record, store)? {
                self.map_instead(chunk, missing, store)?;
            }
        }
        let store_end = self.content.store_bytes();
        if let Some(step) = self.content.take(store_end)? {
            self.check_content_length()?;
            return Ok(step);
        }
        if store_end < chunk.store_end {
            let left = chunk.store_end - store_end;
            return Err(Error::damaged(format!(
                "a chunk ends with {left} literals that no record uses"
            )));
        }
        let counts = self.header().digest == DigestKind::Crc;
        Ok(ArchiveStep::ChunkEnd {
            crc: chunk.crc.flatten().filter(|_| counts),
            archive_end: self.layout.offset(),
        })
    }

    /// Maps a chunk from its first record, because the content that a match needs does not fit into
    /// memory. No known writer makes matches into earlier chunks; if one occurs, those chunks are
    /// mapped too, unless they came through a pipe.
    fn map_instead(
        &mut self,
        chunk: &mut CurrentChunk,
        missing: Missing,
        store: &StoreReader,
    ) -> Result<()> {
        let input = &self.opener.input;
        let is_earlier = missing.content_at < chunk.content_start && input.is_file();
        let (content_start, store_start) =
            if is_earlier { (0, 0) } else { (chunk.content_start, chunk.store_start) };
        let memory_bytes = self.share.maps_and_spool_bytes(input.spooled_bytes());
        let flattener = Flattener::new(content_start, store_start, memory_bytes);
        self.content = Content::Mapped(flattener);
        self.literals.set_forward(false);
        let version = self.layout.header().version;
        let mut layout = self.start.clone();
        while self.content.content_bytes() < chunk.content_start
            && let Some(earlier) = layout.next(self.content.content_bytes())?
        {
            let mut earlier = CurrentChunk::new(version, earlier, &self.content);
            while !matches!(
                self.next_in(&mut earlier, store)?,
                ArchiveStep::ChunkEnd { .. }
            ) {}
        }
        chunk.records = ChunkRecords::new(version, &chunk.chunk);
        (chunk.rest, chunk.crc) = (None, None);
        Ok(())
    }

    /// Applies as much of a record as fits.
    fn apply(
        &mut self,
        chunk: &mut CurrentChunk,
        record: Record,
        store: &StoreReader,
    ) -> Result<std::result::Result<(), Missing>> {
        let room = self.content.room_bytes();
        match record {
            Record::End { crc } => chunk.crc = Some(crc),
            Record::Literals { length_bytes } => {
                let count = length_bytes.min(room);
                if count > chunk.store_end - self.content.store_bytes() {
                    let message = "the records use more literals than the chunk has";
                    return Err(Error::damaged(message).at_content(self.content.content_bytes()));
                }
                self.content.literals(count, store)?;
                let left = Record::Literals {
                    length_bytes: length_bytes - count,
                };
                chunk.rest = (count < length_bytes).then_some(left);
            }
            Record::Match {
                length_bytes,
                distance_bytes,
            } => {
                let count = length_bytes.min(room);
                if let Err(missing) = self.content.copy(count, distance_bytes, store)? {
                    return Ok(Err(missing));
                }
                let left = Record::Match {
                    length_bytes: length_bytes - count,
                    distance_bytes,
                };
                chunk.rest = (count < length_bytes).then_some(left);
            }
        }
        Ok(Ok(()))
    }

    fn check_content_length(&self) -> Result<()> {
        let found = self.content.content_bytes();
        match self.header().content_bytes {
            Some(stated) if found > stated => Err(Error::damaged(format!(
                "the content is longer than the {stated} bytes that the archive states"
            ))
            .at_content(stated)),
            _ => Ok(()),
        }
    }
}

/// Prepares a replay for a chunk: which pieces to retain, if any.
fn prepare_replay(
    replay: &mut Replay,
    version: Version,
    chunk: &Chunk,
    opener: &Opener,
    kept_bytes_max: u64,
) -> Result<()> {
    if chunk.header.prefilter.is_some() {
        // The output has other bytes than those that matches copy.
        replay.leave_output();
    }
    let mut last_uses = LastUses::default();
    if replay.needs_last_uses() {
        last_uses = RecordSummary::read(version, chunk, opener, kept_bytes_max / 16)?.last_uses;
    }
    replay.begin_chunk(last_uses, kept_bytes_max);
    Ok(())
}
