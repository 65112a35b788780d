//! The blocks of a chunk one behind the other.
//!
//! The head of a block names the place of the next head of its stream. That place is known once every block between the two is
//! encoded, so a block is written when the next one of its stream has its place, or when its stream has ended. Whoever adds
//! blocks sees to it that the two streams alternate often enough for what waits to fit in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_format::lrzip::{BackEnd, BlockHeader, Stream};
use refrain_protect::lrzip::ItemKind;

use crate::error::{Error, ErrorKind, Result};
use crate::write::lrzip::encryption::ItemEncryption;

/// A block as it will be written, without its head.
pub(crate) struct CodedBlock {
    pub back_end: BackEnd,
    pub raw_bytes: u64,
    pub coded: Arc<Vec<u8>>,
    /// Of literals: the number of the first page of the store.
    pub first_page: Option<u64>,
}

/// What was written.
pub(crate) enum Written {
    /// Nothing: the next place is not known yet.
    Nothing,
    /// Something that is no block.
    Other,
    /// A block; its coded bytes, encrypted if need be, end what was appended.
    Block(CodedBlock),
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
    sealer: ItemEncryption,
}

impl Layout {
    pub(crate) fn new(sealer: ItemEncryption) -> Layout {
        Layout {
            items: VecDeque::new(),
            first: 0,
            position: 0,
            head_width_bytes: 8,
            sealer,
        }
    }

    /// What encrypts.
    pub(crate) fn sealer(&mut self) -> &mut ItemEncryption {
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
        let plain = BlockHeader::length_bytes(self.sealer.head_width_bytes(self.head_width_bytes));
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

    /// Appends the bytes of the first item, if they are known.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) -> Result<Written> {
        let stream = match self.items.front() {
            None => return Ok(Written::Nothing),
            Some(Item::ChunkStart { bytes, width_bytes }) => {
                out.extend_from_slice(bytes);
                self.head_width_bytes = *width_bytes;
                self.position = 0;
                self.pop();
                return Ok(Written::Other);
            }
            Some(Item::ChunkEnd) => {
                self.pop();
                return Ok(Written::Other);
            }
            Some(Item::Root(stream) | Item::Block { stream, .. }) => *stream,
        };
        let Some(next) = self.next_place(stream) else {
            return Ok(Written::Nothing);
        };
        let bytes = self.items.front().and_then(|item| self.stored_bytes(item));
        self.position += bytes.unwrap_or(0);
        match self.pop() {
            Some(Item::Root(_)) => {
                self.seal_head(BlockHeader::root(next), out)?;
                Ok(Written::Other)
            }
            Some(Item::Block {
                block: Block::Coded(block),
                ..
            }) => {
                let coded_bytes = block.coded.len() as u64;
                let head = BlockHeader::new(block.back_end, coded_bytes, block.raw_bytes, next);
                self.seal_head(head, out)?;
                self.sealer.seal(ItemKind::Data, &block.coded, out)?;
                Ok(Written::Block(block))
            }
            _ => Err(Error::new(ErrorKind::Internal, "a block without bytes")),
        }
    }

    fn seal_head(&mut self, head: BlockHeader, out: &mut Vec<u8>) -> Result<()> {
        let head = head.to_bytes(self.sealer.head_width_bytes(self.head_width_bytes))?;
        self.sealer.seal(ItemKind::BlockHeader, &head, out)
    }

    fn pop(&mut self) -> Option<Item> {
        self.first += 1;
        self.items.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_format::lrzip::{BlockWalk, EncryptionOverhead, Version};
    use refrain_testkit::Rng;

    /// Writes what can be written.
    fn flush(layout: &mut Layout, out: &mut Vec<u8>) {
        while !matches!(layout.next(out).unwrap(), Written::Nothing) {}
    }

    /// The blocks of a chunk in the order of the archive.
    fn blocks(chunk: &[u8], width: u8) -> Vec<(Stream, Vec<u8>)> {
        let length = BlockHeader::length_bytes(width);
        let head = |at: usize| BlockHeader::parse(&chunk[at..], width).unwrap();
        let roots = [head(0), head(length)];
        let mut walk =
            BlockWalk::new(Version::V6, EncryptionOverhead::of(None), width, roots).unwrap();
        let mut found = Vec::new();
        while let Some(stream) = walk.next_stream().unwrap() {
            let at = walk.position() as usize;
            let block = walk.take(stream, &head(at)).unwrap().unwrap();
            let data = &chunk[at + length..][..block.coded_bytes as usize];
            found.push((stream, data.to_vec()));
        }
        assert_eq!(walk.position() as usize, chunk.len());
        found
    }

    #[test]
    fn blocks_are_found_whatever_order_they_are_encoded_in() {
        for seed in 0..50 {
            let mut numbers = Rng::new(seed);
            let mut layout = Layout::new(ItemEncryption::open());
            let mut out = Vec::new();
            layout.begin_chunk(vec![1, 2, 3], 3);
            let mut expected = Vec::new();
            let mut open = Vec::new();
            for number in 0..numbers.below(40) as usize {
                let stream = match number > 0 && numbers.below(4) > 0 {
                    true => Stream::Literals,
                    false => Stream::Records,
                };
                let data = vec![number as u8; 1 + numbers.below(500) as usize];
                expected.push((stream, data.clone()));
                let place = layout.reserve(stream);
                layout.start(place);
                open.push((place, data));
                if numbers.below(2) == 0 {
                    let index = numbers.below(open.len() as u64) as usize;
                    let (place, data) = open.swap_remove(index);
                    layout.fill(place, block(data));
                }
                flush(&mut layout, &mut out);
            }
            if expected.is_empty() {
                continue;
            }
            layout.end_chunk();
            assert_eq!(layout.blocks_in_flight() > 0, !open.is_empty());
            while let Some((place, data)) = open.pop() {
                layout.fill(place, block(data));
                flush(&mut layout, &mut out);
            }
            flush(&mut layout, &mut out);
            assert!(layout.is_empty() && layout.blocks_in_flight() == 0);
            assert_eq!(out[..3], [1, 2, 3]);
            assert!(blocks(&out[3..], 3) == expected, "seed {seed}");
        }
    }

    fn block(data: Vec<u8>) -> CodedBlock {
        CodedBlock {
            back_end: BackEnd::None,
            raw_bytes: data.len() as u64,
            coded: Arc::new(data),
            first_page: None,
        }
    }

    #[test]
    fn a_block_waits_for_the_place_of_the_next_one_of_its_stream() {
        let mut layout = Layout::new(ItemEncryption::open());
        let mut out = Vec::new();
        layout.begin_chunk(Vec::new(), 1);
        let records = layout.reserve(Stream::Records);
        let literals = layout.reserve(Stream::Literals);
        layout.fill(literals, block(vec![1; 10]));
        flush(&mut layout, &mut out);
        // The first root knows its next place; how long the records are is not known.
        assert_eq!(out, [3, 0, 0, 8]);
        layout.fill(records, block(vec![2; 20]));
        flush(&mut layout, &mut out);
        assert_eq!(out.len(), 8, "more records may come");
        layout.end_chunk();
        flush(&mut layout, &mut out);
        assert_eq!(out.len(), 8 + 24 + 14);
    }
}
