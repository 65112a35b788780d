//! The archive from front to back: which content comes from where, one map after the other.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_format::lrzip::{DigestKind, Header, Prefilter, Record, RecordParser, Version};
use refrain_storage::Source;

use super::Share;
use super::coded::{Block, BlockStream, Dictionary, Opener};
use super::flatten::Flattener;
use super::input::ArchiveInput;
use super::items::Item;
use super::layout::{Chunk, LayoutReader};
use super::literals::Literals;
use super::replay::Replay;
use crate::error::{Error, Result};
use crate::options::ReadOptions;
use crate::reading::map::EpochMap;
use crate::reading::store::StoreReader;

/// What comes next in an archive.
pub(super) enum Step {
    /// A chunk begins.
    Chunk {
        prefilter: Option<Prefilter>,
        literals: Vec<Block>,
        /// Bytes of its records in the archive.
        records_stored_bytes: u64,
    },
    /// Content of the chunk.
    Epoch {
        map: Arc<EpochMap>,
        /// Literals before this are all that it and those before it need anew.
        store_end: u64,
    },
    /// Content of the chunk, made already.
    Made { bytes: Arc<Vec<u8>>, store_end: u64 },
    /// The chunk is complete.
    ChunkEnd {
        /// Its CRC-32, where the archive has one that counts.
        crc: Option<u32>,
        /// Where it ends in the archive.
        archive_end: u64,
    },
    /// All content is.
    End(Tail),
}

/// What follows the last chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tail {
    pub md5: Option<[u8; 16]>,
    pub archive_bytes: u64,
    /// Bytes behind the archive's end.
    pub trailing_bytes: u64,
}

/// Bytes of records that are opened at a time.
const RECORDS_BYTES: usize = 64 << 10;

/// Reads an archive's records in order.
pub(super) struct EpochReader {
    layout: LayoutReader,
    opener: Opener,
    literals: Arc<Literals>,
    content: Content,
    chunk: Option<OpenChunk>,
}

/// The chunk whose records are read.
struct OpenChunk {
    parser: RecordParser,
    blocks: VecDeque<Block>,
    stream: Option<(BlockStream, Dictionary, u64)>,
    buffer: Vec<u8>,
    taken: usize,
    /// What is left of a record that did not fit in a map.
    rest: Option<Record>,
    /// Where its literals end in the store.
    store_end: u64,
    crc: Option<Option<u32>>,
}

/// What becomes of records.
enum Content {
    /// Extents.
    Mapped(Flattener),
    /// Bytes.
    Made(Replay),
}

impl Content {
    fn content_bytes(&self) -> u64 {
        match self {
            Content::Mapped(flattener) => flattener.content_bytes(),
            Content::Made(replay) => replay.content_bytes(),
        }
    }

    fn store_bytes(&self) -> u64 {
        match self {
            Content::Mapped(flattener) => flattener.store_bytes(),
            Content::Made(replay) => replay.store_bytes(),
        }
    }

    fn room_bytes(&self) -> u64 {
        match self {
            Content::Mapped(flattener) => flattener.room_bytes(),
            Content::Made(replay) => replay.room_bytes(),
        }
    }

    fn literals(&mut self, length: u64, store: &StoreReader) -> Result<()> {
        match self {
            Content::Mapped(flattener) => {
                flattener.literals(length);
                Ok(())
            }
            Content::Made(replay) => replay.literals(length, store),
        }
    }

    fn copy(&mut self, length: u64, distance: u64, store: &StoreReader) -> Result<()> {
        match self {
            Content::Mapped(flattener) => flattener.copy(length, distance, store),
            Content::Made(replay) => replay.copy(length, distance),
        }
    }

    /// What there is, to be given away.
    fn take(&mut self, store_end: u64) -> Option<Step> {
        Some(match self {
            Content::Mapped(flattener) => Step::Epoch {
                map: flattener.take_map()?,
                store_end,
            },
            Content::Made(replay) => Step::Made {
                bytes: replay.take_piece()?,
                store_end,
            },
        })
    }
}

impl EpochReader {
    /// Reads the header of an archive. `streams_max`: how many blocks of literals stay open.
    pub(super) fn open(
        input: Arc<ArchiveInput>,
        share: &Share,
        streams_max: usize,
        options: &ReadOptions,
    ) -> Result<(EpochReader, Arc<Literals>)> {
        let layout = LayoutReader::open(input.clone(), options.password.as_ref())?;
        let opener = Opener {
            input,
            items: layout.items().clone(),
            lzma: layout.header().lzma,
            decoder_bytes_max: share.decoders_bytes,
        };
        let literals = Arc::new(Literals::new(opener.clone(), streams_max));
        let epochs = EpochReader {
            layout,
            opener,
            literals: literals.clone(),
            content: Content::Mapped(Flattener::new(share.maps_bytes)),
            chunk: None,
        };
        Ok((epochs, literals))
    }

    /// Makes content instead of maps, if that is possible: what was made before can be read back from `output`, at the latest when
    /// `pieces_max` further pieces were made.
    pub(super) fn replay(&mut self, output: Arc<dyn Source>, pieces_max: usize) {
        // What is written may be other bytes than those that matches copy, where chunks can have filters.
        if self.header().version != Version::V7 {
            self.content = Content::Made(Replay::new(output, pieces_max));
            self.literals.read_forward();
        }
    }

    /// How far the archive's chunks were read.
    pub(super) fn offset(&self) -> u64 {
        self.layout.offset()
    }

    /// The archive's header.
    pub(super) fn header(&self) -> &Header {
        self.layout.header()
    }

    /// What comes next. `store` holds the literals that this reader has named.
    pub(super) fn next(&mut self, store: &StoreReader) -> Result<Step> {
        let Some(mut chunk) = self.chunk.take() else {
            return self.next_chunk();
        };
        let content_at = self.content.content_bytes();
        let step = self.next_in(&mut chunk, store);
        let step = step.map_err(|error| error.at_content(content_at))?;
        if !matches!(step, Step::ChunkEnd { .. }) {
            self.chunk = Some(chunk);
        }
        Ok(step)
    }

    fn next_chunk(&mut self) -> Result<Step> {
        let content_bytes = self.content.content_bytes();
        let Some(chunk) = self.layout.next(content_bytes)? else {
            return self.end().map(Step::End);
        };
        let Chunk {
            header,
            records,
            literals,
            literals_bytes,
            ..
        } = chunk;
        if let Content::Mapped(flattener) = &mut self.content {
            flattener.set_floor(content_bytes);
        }
        literals.iter().for_each(|&block| self.literals.add(block));
        let records_stored_bytes = records.iter().map(|block| block.found.stored_bytes).sum();
        self.chunk = Some(OpenChunk {
            parser: RecordParser::new(self.layout.header().version, header.width_bytes),
            blocks: records.into(),
            stream: None,
            buffer: Vec::new(),
            taken: 0,
            rest: None,
            store_end: self.content.store_bytes() + literals_bytes,
            crc: None,
        });
        Ok(Step::Chunk {
            prefilter: header.prefilter,
            literals,
            records_stored_bytes,
        })
    }

    fn next_in(&mut self, chunk: &mut OpenChunk, store: &StoreReader) -> Result<Step> {
        while chunk.crc.is_none() && self.content.room_bytes() > 0 {
            let record = match chunk.rest.take() {
                Some(record) => record,
                None => chunk.record(&self.opener)?,
            };
            self.apply(chunk, record, store)?;
        }
        let store_end = self.content.store_bytes();
        if let Some(step) = self.content.take(store_end) {
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
        Ok(Step::ChunkEnd {
            crc: chunk.crc.flatten().filter(|_| counts),
            archive_end: self.layout.offset(),
        })
    }

    /// Maps as much of a record as fits.
    fn apply(&mut self, chunk: &mut OpenChunk, record: Record, store: &StoreReader) -> Result<()> {
        let room = self.content.room_bytes();
        match record {
            Record::End { crc } => {
                chunk.finish(&self.opener)?;
                chunk.crc = Some(crc);
            }
            Record::Literals { length_bytes } => {
                let count = length_bytes.min(room);
                if count > chunk.store_end - self.content.store_bytes() {
                    let message = "the records name more literals than there are";
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
                self.content.copy(count, distance_bytes, store)?;
                let left = Record::Match {
                    length_bytes: length_bytes - count,
                    distance_bytes,
                };
                chunk.rest = (count < length_bytes).then_some(left);
            }
        }
        Ok(())
    }

    fn check_content_length(&self) -> Result<()> {
        let found = self.content.content_bytes();
        match self.header().content_bytes {
            Some(stated) if found > stated => Err(Error::damaged(format!(
                "there is more content than the {stated} bytes that the archive states"
            ))
            .at_content(stated)),
            _ => Ok(()),
        }
    }

    fn end(&mut self) -> Result<Tail> {
        let found = self.content.content_bytes();
        if let Some(stated) = self.header().content_bytes
            && stated != found
        {
            let message =
                format!("the archive states {stated} bytes of content, {found} are there");
            return Err(Error::damaged(message));
        }
        let at = self.layout.offset();
        let input = &self.opener.input;
        let (md5, end) = match self.header().digest {
            DigestKind::Crc => (None, at),
            DigestKind::Md5 => {
                let stored = self.opener.items.digest_bytes();
                let bytes = input.exact("the MD5 of its content", at, stored)?;
                let md5 = self.opener.items.open(Item::Digest, bytes)?;
                (md5.try_into().ok(), at + stored as u64)
            }
        };
        Ok(Tail {
            md5,
            archive_bytes: end,
            trailing_bytes: input.bytes_behind(end)?,
        })
    }
}

impl OpenChunk {
    /// The next record.
    fn record(&mut self, opener: &Opener) -> Result<Record> {
        loop {
            let mut input = &self.buffer[self.taken..];
            let before = input.len();
            let record = self.parser.next(&mut input)?;
            self.taken += before - input.len();
            if let Some(record) = record {
                return Ok(record);
            }
            if !self.fill(opener)? {
                return Err(Error::damaged("the records of a chunk end without its end"));
            }
        }
    }

    /// Opens more records. False when there are no more.
    fn fill(&mut self, opener: &Opener) -> Result<bool> {
        let (mut stream, dictionary, left) = match self.stream.take() {
            Some(open) => open,
            None => {
                let Some(block) = self.blocks.pop_front() else {
                    return Ok(false);
                };
                let dictionary = Dictionary::Stated;
                (
                    opener.open(&block, dictionary)?,
                    dictionary,
                    block.found.raw_bytes,
                )
            }
        };
        let count = usize::try_from(left)
            .unwrap_or(RECORDS_BYTES)
            .min(RECORDS_BYTES);
        self.buffer.resize(count, 0);
        self.taken = 0;
        if let Err(error) = stream.read(&opener.input, &mut self.buffer) {
            let (larger, passed) =
                stream.again_with_larger_dictionary(opener, dictionary, error)?;
            stream = larger;
            stream.skip(&opener.input, passed)?;
            stream.read(&opener.input, &mut self.buffer)?;
            self.stream = Some((stream, Dictionary::Whole, left - count as u64));
        } else {
            self.stream = Some((stream, dictionary, left - count as u64));
        }
        if left == count as u64 {
            self.stream = None;
        }
        Ok(true)
    }

    /// Refuses what stands behind the last record.
    fn finish(&mut self, opener: &Opener) -> Result<()> {
        loop {
            let mut input = &self.buffer[self.taken..];
            self.parser.next(&mut input)?;
            if !self.fill(opener)? {
                return Ok(());
            }
        }
    }
}
