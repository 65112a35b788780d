//! What tells a block from all others, whatever archive it is in.

use std::fmt;

use crate::bytes::{ByteReader, put_varint};
use crate::constants::{FRAME_HEADER_BYTES, FrameKind};
use crate::error::Result;
use crate::frame::complete_frame;
use crate::head::{HEAD_SIZE_BYTES_MAX, SplitPayload};
use refrain_protect::ContentHash;

/// The context of the hash.
const CONTEXT: &str = "refrain 1.0 block";

/// The size of the hash in bytes.
const BYTES: usize = 16;

/// The hash of a block without its place: of its payload as it would be without the fields Block_Id
/// and Store_Start. So a block that occurs in several archives, or in several generations of one,
/// has one hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockHash([u8; BYTES]);

impl BlockHash {
    /// The hash of the block in a frame, whose data goes on with `detached`.
    ///
    /// # Errors
    /// It is not the frame of a block.
    pub fn of_frame<'a>(
        frame: &[u8],
        detached: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<BlockHash> {
        let payload = frame.get(FRAME_HEADER_BYTES..).unwrap_or_default();
        let (head, data) = without_place(payload)?;
        let mut hash = ContentHash::with_context(CONTEXT);
        hash.update(&head);
        hash.update(data);
        detached.into_iter().for_each(|part| hash.update(part));
        Ok(BlockHash::ended(&hash))
    }

    /// The hash of a block without its place.
    #[must_use]
    pub fn of(block: &[u8]) -> BlockHash {
        let mut hash = ContentHash::with_context(CONTEXT);
        hash.update(block);
        BlockHash::ended(&hash)
    }

    fn ended(hash: &ContentHash) -> BlockHash {
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(hash.value().split_at(BYTES).0);
        BlockHash(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; BYTES] {
        self.0
    }

    pub(crate) fn take(reader: &mut ByteReader<'_>) -> Result<BlockHash> {
        reader.array().map(BlockHash)
    }

    /// The block in a frame without its place; `None` if it does not have this hash.
    #[must_use]
    pub fn block_of(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let (head, data) = without_place(frame.get(FRAME_HEADER_BYTES..)?).ok()?;
        let block = [&head, data].concat();
        (BlockHash::of(&block) == *self).then_some(block)
    }

    /// A frame of this block at a place, numbered 0 in an archive whose id is 0; `None` if the
    /// block does not have this hash.
    #[must_use]
    pub fn frame_of(&self, block: &[u8], block_id: u64, store_start: u64) -> Option<Vec<u8>> {
        let split = SplitPayload::new(block).ok()?;
        if BlockHash::of(block) != *self {
            return None;
        }
        let mut fields = Vec::new();
        put_varint(&mut fields, block_id);
        put_varint(&mut fields, store_start);
        fields.extend_from_slice(split.fields("block header").rest());
        let payload = [&with_size(&fields), split.data].concat();
        Some(complete_frame(FrameKind::Block, 0, &payload, 0, 0))
    }
}

impl fmt::Display for BlockHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The head of a block without its place, and its data.
fn without_place(payload: &[u8]) -> Result<(Vec<u8>, &[u8])> {
    let split = SplitPayload::new(payload)?;
    let mut reader = split.fields("block header");
    let (_block_id, _store_start) = (reader.varint()?, reader.varint()?);
    Ok((with_size(reader.rest()), split.data))
}

/// Fields behind their size.
fn with_size(fields: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(fields.len() + HEAD_SIZE_BYTES_MAX);
    put_varint(&mut head, fields.len() as u64);
    head.extend_from_slice(fields);
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockHeader;
    use crate::coding::Coding;

    fn frame(block_id: u64, store_start: u64, data: &[u8]) -> Vec<u8> {
        let header = BlockHeader {
            block_id,
            store_start,
            raw_bytes: data.len() as u64,
            raw_checksum: None,
            coding: Coding::none(),
        };
        let sums: Vec<_> = (data.chunks(refrain_protect::CHECKSUM_CHUNK_BYTES))
            .map(refrain_protect::checksum64)
            .collect();
        let mut builder = BlockHeader::builder(Vec::new(), header.raw_bytes);
        builder.payload().extend_from_slice(data);
        let mut frame = header.finish(builder, &sums).unwrap();
        crate::frame::finish_header(&mut frame, 7, 9);
        frame
    }

    #[test]
    fn a_block_has_one_hash_at_all_places_and_comes_back_at_each() {
        // Heads of 6 bytes, and of more than 127.
        for data_bytes in [1, 100, 40 << 16] {
            let data = vec![b'x'; data_bytes];
            let frames = [frame(0, 0, &data), frame(300, 1 << 40, &data)];
            let hash = BlockHash::of_frame(&frames[0], []).unwrap();
            let block = hash.block_of(&frames[1]).unwrap();
            let placed = hash.frame_of(&block, 300, 1 << 40).unwrap();
            assert_eq!(placed.len(), frames[1].len());
            assert!(placed[FRAME_HEADER_BYTES..] == frames[1][FRAME_HEADER_BYTES..]);
            let (head, rest) = frames[0].split_at(frames[0].len() - data_bytes / 2);
            assert_eq!(BlockHash::of_frame(head, [rest]), Ok(hash));
        }
    }

    #[test]
    fn other_bytes_are_not_the_block() {
        let hash = BlockHash::of_frame(&frame(1, 2, b"hello"), []).unwrap();
        assert_eq!(hash.block_of(&frame(1, 2, b"hellp")), None);
        let mut block = hash.block_of(&frame(1, 2, b"hello")).unwrap();
        for bit in 0..block.len() * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(hash.frame_of(&block, 1, 2), None, "{bit}");
            block[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(hash.frame_of(&block, 1, 2).is_some());
        assert_eq!(hash.block_of(b""), None);
        assert_eq!(hash.frame_of(b"", 1, 2), None);
    }
}
