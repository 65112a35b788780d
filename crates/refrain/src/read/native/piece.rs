//! A piece of content: made by a worker, given away in order.

use std::ops::Range;

use refrain_pool::BufferPool;
use refrain_protect::{ContentHasher, SEGMENT_BYTES, SegmentError, SegmentHash, segment_hash};
use refrain_storage::in_zero_pieces;

use crate::error::{Error, Result};
use crate::read::epoch_map::{EpochMap, Origin};
use crate::read::store_reader::{Depth, StoreReader};

/// Content of a segment, or of a part of one.
pub(crate) struct MadePiece {
    pub bytes: Made,
    pub length_bytes: u64,
    /// `None` for a part of a segment: it is hashed with the others when it is given away.
    hash: Option<SegmentHash>,
}

/// What a piece holds.
pub(crate) enum Made {
    Bytes(Vec<u8>),
    Zeros,
}

impl MadePiece {
    /// The content `content`, which `map` describes. `segment_at` is where it begins in its member, if it is a whole segment of it.
    pub(crate) fn make(
        store: &StoreReader,
        buffers: &BufferPool,
        map: &EpochMap,
        content: Range<u64>,
        segment_at: Option<u64>,
    ) -> Result<MadePiece> {
        let length_bytes = content.end - content.start;
        // Only whole segments come out of the pool as they went in: filling up what a short piece left costs more than the piece.
        let bytes = if length_bytes == SEGMENT_BYTES as u64 {
            buffers.get_full()
        } else {
            buffers.get().map(|mut bytes| {
                bytes.resize(length_bytes as usize, 0);
                bytes
            })
        };
        let mut bytes = bytes?;
        store.fill(map, content.start, &mut bytes, Depth::Whole)?;
        let hash = segment_at.map(|offset| segment_hash(offset, &bytes));
        let hash = hash
            .transpose()
            .map_err(|error| Error::damaged(error.to_string()))?;
        let mut origins = map.origins(content);
        let is_zeros = match (origins.next(), origins.next()) {
            (Some((Origin::Fill { pattern, .. }, _)), None) => map.pattern(pattern).is_zero(),
            _ => false,
        };
        let made = if is_zeros {
            buffers.put(bytes);
            Made::Zeros
        } else {
            Made::Bytes(bytes)
        };
        Ok(MadePiece {
            bytes: made,
            length_bytes,
            hash,
        })
    }

    /// Appends the piece to what was hashed of its member.
    pub(crate) fn hash_into(
        &self,
        hasher: &mut ContentHasher,
    ) -> std::result::Result<(), SegmentError> {
        match (&self.hash, &self.bytes) {
            (Some(hash), _) => hasher.push(hash),
            (None, Made::Bytes(bytes)) => hasher.push_bytes(bytes),
            (None, Made::Zeros) => {
                in_zero_pieces(self.length_bytes, |zeros| hasher.push_bytes(zeros))
            }
        }
    }
}
