//! The records of one chunk, one after the other, from its blocks.

use std::collections::VecDeque;

use refrain_format::lrzip::{Record, RecordParser, Version};

use super::block_stream::{BlockKnowledge, BlockStream, Opener};
use super::chunk_layout::Chunk;
use super::coded_bytes::Block;
use crate::error::{Error, Result};

/// How many record bytes are decoded at a time.
const RECORDS_BYTES: usize = 64 << 10;

pub(super) struct ChunkRecords {
    parser: RecordParser,
    blocks: VecDeque<Block>,
    open: Option<RecordBlock>,
    buffer: Vec<u8>,
    taken: usize,
}

struct RecordBlock {
    stream: BlockStream,
    knowledge: BlockKnowledge,
    left_bytes: u64,
}

impl ChunkRecords {
    /// Starts at the first record.
    pub(super) fn new(version: Version, chunk: &Chunk) -> ChunkRecords {
        ChunkRecords {
            parser: RecordParser::new(version, chunk.header.width_bytes),
            blocks: chunk.records.iter().copied().collect(),
            open: None,
            buffer: Vec::new(),
            taken: 0,
        }
    }

    /// Reads the next record. Fails if anything follows the last one.
    pub(super) fn next(&mut self, opener: &Opener) -> Result<Record> {
        loop {
            if let Some(record) = self.parse()? {
                if matches!(record, Record::End { .. }) {
                    self.finish(opener)?;
                }
                return Ok(record);
            }
            if !self.fill(opener)? {
                return Err(Error::damaged(
                    "the records of a chunk end without an end record",
                ));
            }
        }
    }

    fn parse(&mut self) -> Result<Option<Record>> {
        let mut input = &self.buffer[self.taken..];
        let before = input.len();
        let record = self.parser.next(&mut input)?;
        self.taken += before - input.len();
        Ok(record)
    }

    /// Decodes more records. Returns false if there are none.
    fn fill(&mut self, opener: &Opener) -> Result<bool> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                let Some(block) = self.blocks.pop_front() else {
                    return Ok(false);
                };
                let mut knowledge = BlockKnowledge::NOTHING;
                RecordBlock {
                    stream: opener.open(&block, &mut knowledge)?,
                    knowledge,
                    left_bytes: block.found.raw_bytes,
                }
            }
        };
        let count = open.left_bytes.min(RECORDS_BYTES as u64);
        self.buffer.resize(count as usize, 0);
        self.taken = 0;
        if let Err(error) = open.stream.read(&opener.input, &mut self.buffer) {
            let again =
                open.stream
                    .again_with_larger_dictionary(opener, &mut open.knowledge, error);
            let (larger, passed_bytes) = again?;
            open.stream = larger;
            open.stream.skip(&opener.input, passed_bytes)?;
            open.stream.read(&opener.input, &mut self.buffer)?;
        }
        open.left_bytes -= count;
        self.open = (open.left_bytes > 0).then_some(open);
        Ok(true)
    }

    /// Refuses data after the last record.
    fn finish(&mut self, opener: &Opener) -> Result<()> {
        loop {
            self.parse()?;
            if !self.fill(opener)? {
                return Ok(());
            }
        }
    }
}
