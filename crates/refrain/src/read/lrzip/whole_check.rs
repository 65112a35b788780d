//! Checks content read completely by ranges, from the first byte to the last.

use std::collections::VecDeque;

use super::digest::{ContentDigest, DigestInput};
use crate::error::Result;
use crate::read::content_check::CheckContent;

/// The digests of an archive, as far as its content was read.
pub(super) struct WholeCheck {
    digest: ContentDigest,
    md5: Option<[u8; 16]>,
    /// The content offset of the end of each chunk, and its CRC-32 if the archive has a valid one.
    chunk_ends: VecDeque<(u64, Option<u32>)>,
    content_at: u64,
}

impl WholeCheck {
    /// Starts before the content of an archive with these chunks.
    pub(super) fn new(
        digest: ContentDigest,
        md5: Option<[u8; 16]>,
        chunk_ends: VecDeque<(u64, Option<u32>)>,
    ) -> WholeCheck {
        WholeCheck {
            digest,
            md5,
            chunk_ends,
            content_at: 0,
        }
    }

    fn end_chunks(&mut self) -> Result<()> {
        let content_at = self.content_at;
        while let Some((_, crc)) = self.chunk_ends.pop_front_if(|(end, _)| *end <= content_at) {
            self.digest.update_with(&DigestInput::ChunkEnd(crc))?;
        }
        Ok(())
    }
}

impl CheckContent for WholeCheck {
    fn update(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            self.end_chunks()?;
            let chunk_end = self.chunk_ends.front().map_or(u64::MAX, |(end, _)| *end);
            let left = usize::try_from(chunk_end - self.content_at).unwrap_or(usize::MAX);
            let (part, rest) = bytes.split_at(left.min(bytes.len()));
            self.digest.update(part);
            self.content_at += part.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.end_chunks()?;
        self.digest.finish(self.md5)
    }
}
