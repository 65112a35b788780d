//! The blocks of a chunk one behind the other.
//!
//! The head of a block names the place of the next head of its stream. That place is known once every block between the two is
//! encoded, so a block is written when the next one of its stream has its place, or when its stream has ended. Whoever adds
//! blocks sees to it that the two streams alternate often enough for what waits to fit in memory.

use std::collections::VecDeque;

use refrain_format::lrzip::{BackEnd, BlockHead, Stream};
use refrain_protect::lrzip::Item as Sealed;

use crate::error::{Error, ErrorKind, Result};
use crate::pipeline::lrzip::seal::Sealer;

/// A block as it will be written, without its head.
pub(crate) struct CodedBlock {
    pub back_end: BackEnd,
    pub raw_bytes: u64,
    pub coded: Vec<u8>,
}

/// Something with a place in the archive.
enum Item {
    /// A new chunk begins.
    ChunkStart {
        /// What stands before its first head.
        bytes: Vec<u8>,
        width_bytes: u8,
    },
    /// The head that begins a stream.
    Root(Stream),
    Block {
        stream: Stream,
        block: Block,
    },
    ChunkEnd,
}

/// How far a block is.
enum Block {
    /// Its place is known, its content is not complete.
    Reserved,
    Encoding,
    Coded(CodedBlock),
}

/// A block that was given a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u64);

/// What waits to be written, in its order.
pub(crate) struct Layout {
    items: VecDeque<Item>,
    /// Number of the first item.
    first: u64,
    /// Where the first item is, counted from the first root of its chunk.
    position: u64,
    head_width_bytes: u8,
    sealer: Sealer,
}

impl Layout {
    pub(crate) fn new(sealer: Sealer) -> Layout {
        Layout {
            items: VecDeque::new(),
            first: 0,
            position: 0,
            head_width_bytes: 8,
            sealer,
        }
    }

    /// What encrypts.
    pub(crate) fn sealer(&mut self) -> &mut Sealer {
        &mut self.sealer
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// A chunk begins, behind these bytes; its numbers have `width_bytes`.
    pub(crate) fn begin_chunk(&mut self, bytes: Vec<u8>, width_bytes: u8) {
        self.items
            .push_back(Item::ChunkStart { bytes, width_bytes });
        for stream in [Stream::Records, Stream::Literals] {
            self.items.push_back(Item::Root(stream));
        }
    }

    pub(crate) fn end_chunk(&mut self) {
        self.items.push_back(Item::ChunkEnd);
    }

    /// Gives the next block of a stream a place.
    pub(crate) fn reserve(&mut self, stream: Stream) -> Place {
        let place = Place(self.first + self.items.len() as u64);
        self.items.push_back(Item::Block {
            stream,
            block: Block::Reserved,
        });
        place
    }

    fn block(&mut self, place: Place) -> Option<&mut Block> {
        let index = usize::try_from(place.0.checked_sub(self.first)?).ok()?;
        match self.items.get_mut(index)? {
            Item::Block { block, .. } => Some(block),
            _ => None,
        }
    }

    /// The block is being encoded.
    pub(crate) fn start(&mut self, place: Place) {
        if let Some(block) = self.block(place) {
            *block = Block::Encoding;
        }
    }

    /// The block was encoded.
    pub(crate) fn fill(&mut self, place: Place, coded: CodedBlock) {
        if let Some(block) = self.block(place) {
            *block = Block::Coded(coded);
        }
    }

    /// How many blocks there are from the first one on that is being encoded: those behind it have to wait in memory.
    pub(crate) fn blocks_in_flight(&self) -> usize {
        let is_open = |item: &Item| {
            matches!(
                item,
                Item::Block {
                    block: Block::Encoding,
                    ..
                }
            )
        };
        let first = self.items.iter().position(is_open);
        first.map_or(0, |first| self.items.len() - first)
    }

    fn head_bytes(&self) -> u64 {
        let plain = BlockHead::length_bytes(self.sealer.head_width_bytes(self.head_width_bytes));
        self.sealer.stored_bytes(plain as u64)
    }

    /// Bytes of an item from its first head on; `None` while that is not known.
    fn stored_bytes(&self, item: &Item) -> Option<u64> {
        match item {
            Item::ChunkStart { .. } | Item::ChunkEnd => Some(0),
            Item::Root(_) => Some(self.head_bytes()),
            Item::Block {
                block: Block::Coded(block),
                ..
            } => {
                let coded_bytes = block.coded.len() as u64;
                Some(self.head_bytes() + self.sealer.stored_bytes(coded_bytes))
            }
            Item::Block { .. } => None,
        }
    }

    /// Where the next head of the first item's stream is: 0 if there is none, `None` while that is not known.
    fn next_place(&self, of: Stream) -> Option<u64> {
        let mut place = self.position + self.stored_bytes(self.items.front()?)?;
        for item in self.items.iter().skip(1) {
            match item {
                Item::ChunkEnd => return Some(0),
                Item::Block { stream, .. } if *stream == of => return Some(place),
                _ => place += self.stored_bytes(item)?,
            }
        }
        None
    }

    /// The bytes of the first item, if they are known.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let stream = match self.items.front() {
            None => return Ok(false),
            Some(Item::ChunkStart { bytes, width_bytes }) => {
                out.extend_from_slice(bytes);
                self.head_width_bytes = *width_bytes;
                self.position = 0;
                self.pop();
                return Ok(true);
            }
            Some(Item::ChunkEnd) => {
                self.pop();
                return Ok(true);
            }
            Some(Item::Root(stream) | Item::Block { stream, .. }) => *stream,
        };
        let Some(next) = self.next_place(stream) else {
            return Ok(false);
        };
        let bytes = self.items.front().and_then(|item| self.stored_bytes(item));
        self.position += bytes.unwrap_or(0);
        let (head, coded) = match self.pop() {
            Some(Item::Block {
                block: Block::Coded(block),
                ..
            }) => {
                let coded_bytes = block.coded.len() as u64;
                let head = BlockHead::new(block.back_end, coded_bytes, block.raw_bytes, next);
                (head, Some(block.coded))
            }
            Some(Item::Root(_)) => (BlockHead::root(next), None),
            _ => return Err(Error::new(ErrorKind::Internal, "a block without bytes")),
        };
        let head = head.to_bytes(self.sealer.head_width_bytes(self.head_width_bytes))?;
        self.sealer.seal(Sealed::Head, &head, out)?;
        if let Some(coded) = coded {
            self.sealer.seal(Sealed::Data, &coded, out)?;
        }
        Ok(true)
    }

    fn pop(&mut self) -> Option<Item> {
        self.first += 1;
        self.items.pop_front()
    }
}
