//! Decoded content of a segment, or of a part of it.

use std::ops::Range;

use refrain_pool::BufferPool;
use refrain_protect::{HashKind, MemberHasher, MemberSegment, SEGMENT_BYTES, SegmentError};

use crate::error::{Error, ErrorKind, Result};
use crate::read::epoch_map::EpochMap;
use crate::read::store_reader::{Depth, StoreReader};
use crate::read::work_meter::WorkMeter;

/// The decoded content of a segment of a member, or of a part of it.
pub(crate) struct SegmentPart {
    pub bytes: PartContent,
    pub length_bytes: u64,
    /// The hash of a whole segment. A part of a segment is hashed when delivered.
    hash: Option<MemberSegment>,
}

/// A part that could not be decoded completely.
pub(crate) struct BrokenPart {
    pub error: Error,
    /// The content before the damage.
    pub prefix: Vec<u8>,
}

pub(crate) enum PartContent {
    Bytes(Vec<u8>),
    Zeros,
    /// It needs what was given back to the file system, and was not decoded.
    GivenBack,
}

impl SegmentPart {
    /// Zeros, which are hashed when delivered.
    pub(crate) fn zeros(length_bytes: u64) -> SegmentPart {
        SegmentPart {
            bytes: PartContent::Zeros,
            length_bytes,
            hash: None,
        }
    }

    /// Decodes the content range `content`, which `map` covers. `segment_at` is its offset in its
    /// member, and how that is hashed, if it is a whole segment. Decoding counts on `meter`.
    pub(crate) fn decode(
        (store, meter): (&StoreReader, &WorkMeter),
        buffers: &BufferPool,
        map: &EpochMap,
        content: Range<u64>,
        segment_at: Option<(HashKind, u64)>,
    ) -> std::result::Result<SegmentPart, Box<BrokenPart>> {
        let range = content.clone();
        let decoded = SegmentPart::decode_all((store, meter), buffers, map, content, segment_at);
        if decoded.as_ref().err().is_some_and(Error::is_given_back) {
            return Ok(SegmentPart {
                bytes: PartContent::GivenBack,
                length_bytes: range.end - range.start,
                hash: None,
            });
        }
        decoded.map_err(|error| {
            let prefix = match error.kind {
                ErrorKind::Damaged => prefix((store, meter), map, range),
                _ => Vec::new(),
            };
            Box::new(BrokenPart { error, prefix })
        })
    }

    fn decode_all(
        (store, meter): (&StoreReader, &WorkMeter),
        buffers: &BufferPool,
        map: &EpochMap,
        content: Range<u64>,
        segment_at: Option<(HashKind, u64)>,
    ) -> Result<SegmentPart> {
        let length_bytes = content.end - content.start;
        // Only buffers of whole segments keep their length in the pool: extending the buffer of a
        // short part to a segment costs more than decoding the part.
        let bytes = if length_bytes == SEGMENT_BYTES as u64 {
            buffers.get_full()
        } else {
            buffers.get().map(|mut bytes| {
                bytes.resize(length_bytes as usize, 0);
                bytes
            })
        };
        let mut bytes = bytes?;
        store.fill(map, content.start, &mut bytes, Depth::Whole, Some(meter))?;
        let hash = segment_at.map(|(kind, offset)| kind.segment(offset, &bytes));
        let hash = hash
            .transpose()
            .map_err(|error| Error::damaged(error.to_string()))?;
        let is_zeros = map.zeros_from(content.clone()) == length_bytes;
        let decoded = if is_zeros {
            buffers.put(bytes);
            PartContent::Zeros
        } else {
            PartContent::Bytes(bytes)
        };
        Ok(SegmentPart {
            bytes: decoded,
            length_bytes,
            hash,
        })
    }

    /// Adds the content to its member's hash.
    pub(crate) fn hash_into(
        &self,
        hasher: &mut MemberHasher,
    ) -> std::result::Result<(), SegmentError> {
        match (&self.hash, &self.bytes) {
            (Some(hash), _) => hasher.push(hash),
            (None, PartContent::Bytes(bytes)) => hasher.push_bytes(bytes),
            (None, PartContent::Zeros) => hasher.push_zeros(self.length_bytes),
            // The hash of the member is not compared.
            (None, PartContent::GivenBack) => Ok(()),
        }
    }
}

/// The part of a content range before damage.
fn prefix(
    (store, meter): (&StoreReader, &WorkMeter),
    map: &EpochMap,
    content: Range<u64>,
) -> Vec<u8> {
    let length = (content.end - content.start).min(SEGMENT_BYTES as u64);
    let mut bytes = vec![0; length as usize];
    let mut end = length;
    let mut lost = |range: Range<u64>| end = end.min(range.start - content.start);
    let filled = store.fill_remains(map, content.start, &mut bytes, meter, &mut lost);
    bytes.truncate(filled.map_or(0, |()| end as usize));
    bytes
}
