//! Decodes the blocks of bzip2 files in parallel.

use std::collections::{BTreeMap, VecDeque};

use refrain_foreign::{BlockPart, BlockSplitter, StreamCheck};
use refrain_pool::{Crew, Lane, crew};

use crate::error::{Error, Result};
use crate::progress::{Progress, Watch, is_cancelled, next_event};
use crate::read::content_limit::{ContentLimit, ContentMeter};
use crate::read::foreign::content::Again;

/// The memory of a block being decoded, in bytes: its coded and decoded bytes, and the decoder's
/// tables.
const BLOCK_MEMORY_BYTES: u64 = 8 << 20;

/// Why decoding of blocks stopped.
pub(crate) enum Stop {
    /// The file: perhaps a number inside a block was taken for the start of one.
    File,
    /// Everything else.
    Other(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Other(error)
    }
}

/// A part of the file.
enum Slot {
    Block { number: u64, crc: u32 },
    StreamEnd { offset: u64, crc: u32 },
}

type Decoded = (u64, std::result::Result<Vec<u8>, refrain_foreign::Error>);

/// The parts being decoded, in file order.
struct Blocks<'a, 'crew, 'env> {
    crew: &'a Crew<'crew, 'env, Decoded>,
    splitter: BlockSplitter,
    slots: VecDeque<Slot>,
    slots_max: usize,
    next_number: u64,
    has_ended: bool,
    decoded: BTreeMap<u64, Vec<u8>>,
    check: StreamCheck,
}

impl Blocks<'_, '_, '_> {
    /// Submits the next blocks.
    fn fill(&mut self) -> std::result::Result<(), Stop> {
        while !self.has_ended && self.slots.len() < self.slots_max {
            match self.splitter.next_part().map_err(|_| Stop::File)? {
                None => self.has_ended = true,
                Some(BlockPart::StreamEnd { offset, crc }) => {
                    self.slots.push_back(Slot::StreamEnd { offset, crc });
                }
                Some(BlockPart::Block(block)) => {
                    let number = self.next_number;
                    self.next_number += 1;
                    let crc = block.crc();
                    self.slots.push_back(Slot::Block { number, crc });
                    self.crew
                        .submit(Lane::Normal, move || (number, block.decode()));
                }
            }
        }
        Ok(())
    }

    /// The next content in file order; `None` at its end.
    fn next(&mut self, watch: &dyn Watch) -> std::result::Result<Option<Vec<u8>>, Stop> {
        loop {
            self.fill()?;
            match self.slots.front() {
                None => return Ok(None),
                Some(Slot::StreamEnd { offset, crc }) => {
                    self.check.end(*offset, *crc).map_err(|_| Stop::File)?;
                    self.slots.pop_front();
                }
                Some(Slot::Block { number, crc }) => {
                    if let Some(content) = self.decoded.remove(number) {
                        self.check.add(*crc);
                        self.slots.pop_front();
                        return Ok(Some(content));
                    }
                    let Some(event) = next_event(self.crew, watch)? else {
                        return Err(Stop::File);
                    };
                    let (number, content) = event.map_err(Error::from)?;
                    let content = content.map_err(|_| Stop::File)?;
                    self.decoded.insert(number, content);
                }
            }
        }
    }
}

/// Calls `each` for the content of all blocks, in order. `delivered_bytes` counts what it was
/// called with. Returns the size of the file.
///
/// # Errors
/// `Stop::File` if a forward pass has to say what is wrong, if anything is.
pub(crate) fn for_each_block(
    again: &Again<'_>,
    delivered_bytes: &mut u64,
    watch: &dyn Watch,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> std::result::Result<u64, Stop> {
    let options = again.options;
    let file_bytes = again.source.size_bytes().map_err(Error::from)?;
    let meter = ContentMeter::new(ContentLimit::new(options, file_bytes));
    let of_memory = options.memory_bytes / 2 / BLOCK_MEMORY_BYTES;
    let of_memory = usize::try_from(of_memory).unwrap_or(usize::MAX);
    crew(options.threads, |crew| {
        let mut blocks = Blocks {
            crew,
            splitter: BlockSplitter::new(again.stream()),
            slots: VecDeque::new(),
            slots_max: (2 * options.threads + 1).min(of_memory).max(1),
            next_number: 0,
            has_ended: false,
            decoded: BTreeMap::new(),
            check: StreamCheck::default(),
        };
        while let Some(content) = blocks.next(watch)? {
            meter.add(content.len() as u64)?;
            each(&content)?;
            *delivered_bytes = delivered_bytes.saturating_add(content.len() as u64);
            watch.progress(&Progress {
                content_bytes_done: *delivered_bytes,
                content_bytes_total: None,
                archive_bytes: blocks.splitter.offset(),
            });
            if is_cancelled(watch) {
                return Err(Error::cancelled().into());
            }
        }
        Ok(blocks.splitter.offset())
    })
}
