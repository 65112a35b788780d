//! The layout of a chunk: its blocks in archive order.
//!
//! A block's header states the offset of the next header in its stream. That offset is known once
//! every block in between is encoded, so a block is written when the next block of its stream has
//! its offset, or its stream has ended. The caller must alternate the two streams often enough for
//! the waiting blocks to fit into memory.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_format::lrzip::{BackEnd, BlockHeader, Stream};
use refrain_protect::lrzip::ItemKind;

use crate::error::{Error, ErrorKind, Result};
use crate::write::lrzip::encryption::ItemEncryption;

/// A block to be written, without its header.
pub(crate) struct CodedBlock {
    pub back_end: BackEnd,
    pub raw_bytes: u64,
    pub coded: Arc<Vec<u8>>,
    /// The first page of the store, for literals.
    pub first_page: Option<u64>,
}

pub(crate) enum WrittenItem {
    /// Nothing: the next offset is not known yet.
    Nothing,
    /// An item other than a block.
    Other,
    /// A block; its coded bytes, perhaps encrypted, were appended last.
    Block(CodedBlock),
}

/// A part of the archive, in order.
enum LayoutItem {
    /// Begins a chunk.
    ChunkStart {
        /// The bytes before its first header.
        bytes: Vec<u8>,
        width_bytes: u8,
    },
    /// The header that begins a stream.
    Root(Stream),
    Block {
        stream: Stream,
        block: SlotState,
    },
    ChunkEnd,
}

enum SlotState {
    /// Its position in the order is fixed, but its content is not complete.
    Reserved,
    Encoding,
    Coded(CodedBlock),
}

/// The position of a block in archive order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockSlot(u64);

/// The items waiting to be written, in order.
pub(crate) struct Layout {
    items: VecDeque<LayoutItem>,
    /// The number of the first item.
    first: u64,
    /// The offset of the first item, relative to the first root of its chunk.
    position: u64,
    number_width_bytes: u8,
    encryption: ItemEncryption,
}

impl Layout {
    pub(crate) fn new(encryption: ItemEncryption) -> Layout {
        Layout {
            items: VecDeque::new(),
            first: 0,
            position: 0,
            number_width_bytes: 8,
            encryption,
        }
    }

    pub(crate) fn encryption(&mut self) -> &mut ItemEncryption {
        &mut self.encryption
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Begins a chunk with these bytes; its numbers have `width_bytes`.
    pub(crate) fn begin_chunk(&mut self, bytes: Vec<u8>, width_bytes: u8) {
        self.items
            .push_back(LayoutItem::ChunkStart { bytes, width_bytes });
        for stream in [Stream::Records, Stream::Literals] {
            self.items.push_back(LayoutItem::Root(stream));
        }
    }

    pub(crate) fn end_chunk(&mut self) {
        self.items.push_back(LayoutItem::ChunkEnd);
    }

    /// Reserves the next position for a block of a stream.
    pub(crate) fn reserve(&mut self, stream: Stream) -> BlockSlot {
        let slot = BlockSlot(self.first + self.items.len() as u64);
        self.items.push_back(LayoutItem::Block {
            stream,
            block: SlotState::Reserved,
        });
        slot
    }

    fn block(&mut self, slot: BlockSlot) -> Option<&mut SlotState> {
        let index = usize::try_from(slot.0.checked_sub(self.first)?).ok()?;
        match self.items.get_mut(index)? {
            LayoutItem::Block { block, .. } => Some(block),
            _ => None,
        }
    }

    /// The block is being encoded.
    pub(crate) fn start(&mut self, slot: BlockSlot) {
        if let Some(block) = self.block(slot) {
            *block = SlotState::Encoding;
        }
    }

    /// The block was encoded.
    pub(crate) fn fill(&mut self, slot: BlockSlot, coded: CodedBlock) {
        if let Some(block) = self.block(slot) {
            *block = SlotState::Coded(coded);
        }
    }

    /// The number of items starting with the first block still being encoded: all of them wait in
    /// memory.
    pub(crate) fn blocks_in_flight(&self) -> usize {
        let is_open = |item: &LayoutItem| {
            matches!(
                item,
                LayoutItem::Block {
                    block: SlotState::Encoding,
                    ..
                }
            )
        };
        let first = self.items.iter().position(is_open);
        first.map_or(0, |first| self.items.len() - first)
    }

    fn header_bytes(&self) -> u64 {
        let plain =
            BlockHeader::length_bytes(self.encryption.number_width_bytes(self.number_width_bytes));
        self.encryption.stored_bytes(plain as u64)
    }

    /// The bytes of an item from its first header on; `None` until known.
    fn stored_bytes(&self, item: &LayoutItem) -> Option<u64> {
        match item {
            LayoutItem::ChunkStart { .. } | LayoutItem::ChunkEnd => Some(0),
            LayoutItem::Root(_) => Some(self.header_bytes()),
            LayoutItem::Block {
                block: SlotState::Coded(block),
                ..
            } => {
                let coded_bytes = block.coded.len() as u64;
                Some(self.header_bytes() + self.encryption.stored_bytes(coded_bytes))
            }
            LayoutItem::Block { .. } => None,
        }
    }

    /// The offset of the next header in the first item's stream: 0 if there is none, `None` until
    /// known.
    fn next_offset(&self, of: Stream) -> Option<u64> {
        let mut offset = self.position + self.stored_bytes(self.items.front()?)?;
        for item in self.items.iter().skip(1) {
            match item {
                LayoutItem::ChunkEnd => return Some(0),
                LayoutItem::Block { stream, .. } if *stream == of => return Some(offset),
                _ => offset += self.stored_bytes(item)?,
            }
        }
        None
    }

    /// Appends the bytes of the first item to `out`, if known.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) -> Result<WrittenItem> {
        let stream = match self.items.front() {
            None => return Ok(WrittenItem::Nothing),
            Some(LayoutItem::ChunkStart { bytes, width_bytes }) => {
                out.extend_from_slice(bytes);
                self.number_width_bytes = *width_bytes;
                self.position = 0;
                self.pop();
                return Ok(WrittenItem::Other);
            }
            Some(LayoutItem::ChunkEnd) => {
                self.pop();
                return Ok(WrittenItem::Other);
            }
            Some(LayoutItem::Root(stream) | LayoutItem::Block { stream, .. }) => *stream,
        };
        let Some(next) = self.next_offset(stream) else {
            return Ok(WrittenItem::Nothing);
        };
        let bytes = self.items.front().and_then(|item| self.stored_bytes(item));
        self.position += bytes.unwrap_or(0);
        match self.pop() {
            Some(LayoutItem::Root(_)) => {
                self.write_header(BlockHeader::root(next), out)?;
                Ok(WrittenItem::Other)
            }
            Some(LayoutItem::Block {
                block: SlotState::Coded(block),
                ..
            }) => {
                let coded_bytes = block.coded.len() as u64;
                let head = BlockHeader::new(block.back_end, coded_bytes, block.raw_bytes, next);
                self.write_header(head, out)?;
                self.encryption.encrypt(ItemKind::Data, &block.coded, out)?;
                Ok(WrittenItem::Block(block))
            }
            _ => Err(Error::new(
                ErrorKind::Internal,
                "a block was written before it was encoded",
            )),
        }
    }

    fn write_header(&mut self, head: BlockHeader, out: &mut Vec<u8>) -> Result<()> {
        let head = head.to_bytes(self.encryption.number_width_bytes(self.number_width_bytes))?;
        self.encryption.encrypt(ItemKind::BlockHeader, &head, out)
    }

    fn pop(&mut self) -> Option<LayoutItem> {
        self.first += 1;
        self.items.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_format::lrzip::{BlockWalk, EncryptionOverhead, Version};
    use refrain_testkit::Rng;

    /// Writes all items that are ready.
    fn flush(layout: &mut Layout, out: &mut Vec<u8>) {
        while !matches!(layout.next(out).unwrap(), WrittenItem::Nothing) {}
    }

    /// The blocks of a chunk in archive order.
    fn blocks(chunk: &[u8], width: u8) -> Vec<(Stream, Vec<u8>)> {
        let length = BlockHeader::length_bytes(width);
        let head = |at: usize| BlockHeader::parse(&chunk[at..], width).unwrap();
        let roots = [head(0), head(length)];
        let mut walk = BlockWalk::new(
            Version::V6,
            EncryptionOverhead::for_cipher(None),
            width,
            roots,
        )
        .unwrap();
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
            let mut layout = Layout::new(ItemEncryption::none());
            let mut out = Vec::new();
            layout.begin_chunk(vec![1, 2, 3], 3);
            let mut expected = Vec::new();
            let mut open = Vec::new();
            for number in 0..numbers.below(40) as usize {
                let stream = if number > 0 && numbers.below(4) > 0 {
                    Stream::Literals
                } else {
                    Stream::Records
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
        let mut layout = Layout::new(ItemEncryption::none());
        let mut out = Vec::new();
        layout.begin_chunk(Vec::new(), 1);
        let records = layout.reserve(Stream::Records);
        let literals = layout.reserve(Stream::Literals);
        layout.fill(literals, block(vec![1; 10]));
        flush(&mut layout, &mut out);
        // The next offset of the first root is known; the length of the records is not.
        assert_eq!(out, [3, 0, 0, 8]);
        layout.fill(records, block(vec![2; 20]));
        flush(&mut layout, &mut out);
        assert_eq!(out.len(), 8, "more records may come");
        layout.end_chunk();
        flush(&mut layout, &mut out);
        assert_eq!(out.len(), 8 + 24 + 14);
    }
}
