//! Digests of content, as lrzip's archives carry them. They are made behind the walk's back: MD5 is a chain that takes as long as all
//! else that has to be done in order, so it has a thread for itself whenever there is one.

use std::sync::Arc;

use refrain_format::lrzip::DigestKind;
use refrain_pool::PooledBuffer;
use refrain_protect::md5::Md5;
use refrain_storage::in_zero_pieces;

use crate::error::{Error, Result};

/// CRC-32 with the polynomial of gzip's, from 0 and not inverted at the end: that of one chunk.
struct ChunkCrc(crc32fast::Hasher);

impl ChunkCrc {
    fn new() -> ChunkCrc {
        // The library inverts before and after.
        ChunkCrc(crc32fast::Hasher::new_with_initial(u32::MAX))
    }

    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn value(self) -> u32 {
        !self.0.finalize()
    }
}

/// What is digested, in order.
pub(super) enum Given {
    Bytes(Arc<PooledBuffer>),
    Zeros(u64),
    /// A chunk ends, with this CRC-32 if the archive has one that counts.
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
    /// Of no content.
    pub(super) fn new(kind: DigestKind) -> ContentDigest {
        ContentDigest {
            sum: match kind {
                DigestKind::Md5 => Sum::Md5(Box::default()),
                DigestKind::Crc => Sum::Crc(ChunkCrc::new()),
            },
            content_bytes: 0,
        }
    }

    /// Adds what was given.
    ///
    /// # Errors
    /// `Damaged` for a chunk with another CRC-32.
    pub(super) fn take(&mut self, given: &Given) -> Result<()> {
        match given {
            Given::Bytes(bytes) => self.update(bytes),
            Given::Zeros(length_bytes) => in_zero_pieces(*length_bytes, |zeros| {
                self.update(zeros);
                Ok::<_, Error>(())
            })?,
            Given::ChunkEnd(stated) => return self.end_chunk(*stated),
        }
        Ok(())
    }

    fn update(&mut self, bytes: &[u8]) {
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
            (Sum::Md5(md5), Some(stated)) if md5.clone().finish() != stated => Err(Error::damaged(
                "the content has not the MD5 that the archive states",
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use refrain_pool::BufferPool;

    use super::*;

    /// Bit by bit, as the definition has it.
    fn slow_crc(bytes: &[u8]) -> u32 {
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
            assert_eq!(crc.value(), slow_crc(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn each_chunk_has_a_crc_of_its_own_and_all_content_one_md5() {
        let pool = Arc::new(BufferPool::new(1, 1));
        let bytes = |bytes: &[u8]| Given::Bytes(Arc::new(PooledBuffer::new(&pool, bytes.to_vec())));
        let given = [
            bytes(b"ab"),
            Given::Zeros(3),
            Given::ChunkEnd(Some(slow_crc(b"ab\0\0\0"))),
            bytes(b"c"),
        ];
        let digest = |kind| {
            let mut digest = ContentDigest::new(kind);
            given.iter().for_each(|given| digest.take(given).unwrap());
            digest
        };
        let mut crc = digest(DigestKind::Crc);
        assert!(crc.take(&Given::ChunkEnd(Some(7))).is_err());
        let mut crc = digest(DigestKind::Crc);
        assert!(crc.take(&Given::ChunkEnd(Some(slow_crc(b"c")))).is_ok());
        let mut md5 = Md5::default();
        md5.update(b"ab\0\0\0c");
        let stated = md5.finish();
        assert!(digest(DigestKind::Md5).finish(Some(stated)).is_ok());
        assert!(digest(DigestKind::Md5).finish(Some([0; 16])).is_err());
    }
}
