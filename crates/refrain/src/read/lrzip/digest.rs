//! The digests of lrzip archives, computed concurrently with the delivery: MD5 is sequential and
//! takes as long as all other sequential work, so it gets a separate thread if there is one.

use std::sync::Arc;

use refrain_format::lrzip::DigestKind;
use refrain_pool::PooledBuffer;
use refrain_protect::md5::Md5;
use refrain_storage::in_zero_pieces;

use crate::error::{Error, Result};

/// The CRC-32 of one chunk: gzip's polynomial, initial value 0, not inverted at the end.
struct ChunkCrc(crc32fast::Hasher);

impl ChunkCrc {
    fn new() -> ChunkCrc {
        // The library inverts the value before and after.
        ChunkCrc(crc32fast::Hasher::new_with_initial(u32::MAX))
    }

    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn value(self) -> u32 {
        !self.0.finalize()
    }
}

pub(super) enum DigestInput {
    Bytes(Arc<PooledBuffer>),
    Zeros(u64),
    /// The end of a chunk, with its CRC-32 if the archive has a valid one.
    ChunkEnd(Option<u32>),
}

/// The digest of an archive's content so far.
pub(super) struct ContentDigest {
    sum: Sum,
    content_bytes: u64,
}

enum Sum {
    Md5(Box<Md5>),
    Crc(ChunkCrc),
}

impl ContentDigest {
    pub(super) fn new(kind: DigestKind) -> ContentDigest {
        ContentDigest {
            sum: match kind {
                DigestKind::Md5 => Sum::Md5(Box::default()),
                DigestKind::Crc => Sum::Crc(ChunkCrc::new()),
            },
            content_bytes: 0,
        }
    }

    /// Adds input.
    ///
    /// # Errors
    /// `Damaged` for a chunk whose CRC-32 differs.
    pub(super) fn update_with(&mut self, input: &DigestInput) -> Result<()> {
        match input {
            DigestInput::Bytes(bytes) => self.update(bytes),
            DigestInput::Zeros(length_bytes) => in_zero_pieces(*length_bytes, |zeros| {
                self.update(zeros);
                Ok::<_, Error>(())
            })?,
            DigestInput::ChunkEnd(stated) => return self.end_chunk(*stated),
        }
        Ok(())
    }

    /// Adds content.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.content_bytes += bytes.len() as u64;
        match &mut self.sum {
            Sum::Md5(md5) => md5.update(bytes),
            Sum::Crc(crc) => crc.update(bytes),
        }
    }

    fn end_chunk(&mut self, stated: Option<u32>) -> Result<()> {
        let Sum::Crc(crc) = &mut self.sum else {
            return Ok(());
        };
        let found = std::mem::replace(crc, ChunkCrc::new()).value();
        match stated {
            Some(stated) if stated != found => Err(Error::damaged(format!(
                "the chunk that ends here has the CRC-32 {found:08x}, the archive states {stated:08x}"
            ))
            .at_content(self.content_bytes)),
            _ => Ok(()),
        }
    }

    /// Compares the MD5 of all content with what the archive states.
    ///
    /// # Errors
    /// `Damaged` if they differ.
    pub(super) fn finish(self, stated: Option<[u8; 16]>) -> Result<()> {
        match (self.sum, stated) {
            (Sum::Md5(md5), Some(stated)) if md5.clone().finish() != stated => {
                Err(Error::damaged("the content does not match its MD5"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use refrain_pool::BufferPool;

    use super::*;

    /// Computes the CRC bit by bit, by definition.
    fn reference_crc(bytes: &[u8]) -> u32 {
        bytes.iter().fold(0, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc: u32, _| {
                (crc >> 1) ^ (0xEDB8_8320 * (crc & 1))
            })
        })
    }

    #[test]
    fn the_crc_starts_at_zero_and_is_not_inverted() {
        for bytes in [&b""[..], b"\0\0\0", b"123456789"] {
            let mut crc = ChunkCrc::new();
            crc.update(bytes);
            assert_eq!(crc.value(), reference_crc(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn each_chunk_has_a_crc_of_its_own_and_all_content_one_md5() {
        let pool = Arc::new(BufferPool::new(1, 1));
        let bytes =
            |bytes: &[u8]| DigestInput::Bytes(Arc::new(PooledBuffer::new(&pool, bytes.to_vec())));
        let inputs = [
            bytes(b"ab"),
            DigestInput::Zeros(3),
            DigestInput::ChunkEnd(Some(reference_crc(b"ab\0\0\0"))),
            bytes(b"c"),
        ];
        let digest = |kind| {
            let mut digest = ContentDigest::new(kind);
            inputs
                .iter()
                .for_each(|input| digest.update_with(input).unwrap());
            digest
        };
        let mut crc = digest(DigestKind::Crc);
        assert!(crc.update_with(&DigestInput::ChunkEnd(Some(7))).is_err());
        let mut crc = digest(DigestKind::Crc);
        assert!(
            crc.update_with(&DigestInput::ChunkEnd(Some(reference_crc(b"c"))))
                .is_ok()
        );
        let mut md5 = Md5::default();
        md5.update(b"ab\0\0\0c");
        let stated = md5.finish();
        assert!(digest(DigestKind::Md5).finish(Some(stated)).is_ok());
        assert!(digest(DigestKind::Md5).finish(Some([0; 16])).is_err());
    }
}
