//! The checksum of a payload that is read in parts, for a skipped frame that may be larger than
//! memory.

use crate::bytes::{ByteReader, VARINT_BYTES_MAX};
use crate::limits::HEAD_BYTES_MAX;
use refrain_protect::{CHECKSUM_CHUNK_BYTES, Checksum64, checksum64};

/// Computes [`payload_checksum`](crate::frame::payload_checksum) of a payload in parts. Memory: a
/// 64 KiB piece of the data.
#[derive(Debug)]
pub struct PayloadHasher {
    payload_bytes: u64,
    checksum: Checksum64,
    /// The first bytes, until the head's size is known.
    start: Vec<u8>,
    /// The remaining bytes of the head; `None` if not known yet.
    head_left: Option<u64>,
    piece: Vec<u8>,
}

impl PayloadHasher {
    /// Creates a hasher of a payload of this many bytes.
    #[must_use]
    pub fn new(payload_bytes: u64) -> Self {
        Self {
            payload_bytes,
            checksum: Checksum64::new(),
            start: Vec::new(),
            head_left: None,
            piece: Vec::new(),
        }
    }

    /// Appends bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self.head_left {
            Some(_) => self.update_known(bytes),
            None => {
                let missing = VARINT_BYTES_MAX - self.start.len();
                let (first, rest) = bytes.split_at(missing.min(bytes.len()));
                self.start.extend_from_slice(first);
                let needed = self.payload_bytes.min(VARINT_BYTES_MAX as u64);
                if self.start.len() as u64 >= needed {
                    self.head_left = Some(self.head_bytes());
                    let start = std::mem::take(&mut self.start);
                    self.update_known(&start);
                }
                if !rest.is_empty() {
                    self.update_known(rest);
                }
            }
        }
    }

    /// The size of the head, including its size field. If the head is damaged, the whole payload
    /// counts as head.
    fn head_bytes(&self) -> u64 {
        let mut reader = ByteReader::new("head of a frame", &self.start);
        let field_bytes = reader.varint().ok();
        let size_bytes = (self.start.len() - reader.remaining()) as u64;
        field_bytes
            .filter(|&bytes| bytes <= HEAD_BYTES_MAX as u64)
            .map(|bytes| bytes + size_bytes)
            .filter(|&bytes| bytes <= self.payload_bytes)
            .unwrap_or(self.payload_bytes)
    }

    fn update_known(&mut self, bytes: &[u8]) {
        let head_left = self.head_left.unwrap_or_default();
        let in_head = head_left.min(bytes.len() as u64);
        let (head, mut data) = bytes.split_at(in_head as usize);
        self.checksum.update(head);
        self.head_left = Some(head_left - in_head);
        while !data.is_empty() {
            let missing = CHECKSUM_CHUNK_BYTES - self.piece.len();
            let (now, later) = data.split_at(missing.min(data.len()));
            self.piece.extend_from_slice(now);
            data = later;
            if self.piece.len() == CHECKSUM_CHUNK_BYTES {
                self.end_piece();
            }
        }
    }

    fn end_piece(&mut self) {
        let sum = checksum64(&self.piece);
        self.checksum.update(&sum.to_le_bytes());
        self.piece.clear();
    }

    /// Returns the checksum of the payload.
    #[must_use]
    pub fn value(mut self) -> u64 {
        if !self.piece.is_empty() {
            self.end_piece();
        }
        // A payload that ended early.
        self.checksum.update(&self.start);
        self.checksum.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::payload_checksum;
    use crate::head::head_of;
    use proptest::prelude::*;

    fn in_parts(payload: &[u8], part_bytes: usize) -> u64 {
        let mut hasher = PayloadHasher::new(payload.len() as u64);
        payload
            .chunks(part_bytes)
            .for_each(|part| hasher.update(part));
        hasher.value()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(refrain_testkit::scaled(64)))]
        #[test]
        fn parts_have_the_checksum_of_the_whole(
            head_bytes in 0_usize..300,
            data_bytes in 0_usize..200_000,
            part_bytes in 1_usize..100_000,
            seed: u8,
        ) {
            let mut payload = head_of(&vec![seed; head_bytes]);
            payload.extend((0..data_bytes).map(|at| (at / 7) as u8 ^ seed));
            prop_assert_eq!(in_parts(&payload, part_bytes), payload_checksum(&payload));
        }

        #[test]
        fn damaged_heads_count_as_head(
            payload in proptest::collection::vec(any::<u8>(), 0..40),
            part_bytes in 1_usize..40,
        ) {
            prop_assert_eq!(in_parts(&payload, part_bytes), payload_checksum(&payload));
        }
    }
}
