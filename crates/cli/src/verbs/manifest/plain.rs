//! Which parts of the content an archive stores as they are, and where.

use std::ops::Range;

use refrain::{Archive, BlockInfo, Error, ErrorKind, ExtentOrigin, Result};

/// How many parts are kept at most: some hundred megabytes.
const PARTS_MAX: usize = 8 << 20;

/// A part of the content that is in the archive's file as it is.
#[derive(Debug, Clone, Copy)]
struct Part {
    content_offset: u64,
    length_bytes: u64,
    archive_offset: u64,
}

/// The parts, in the order of the content.
#[derive(Debug, Default)]
pub struct PlainParts(Vec<Part>);

/// The blocks that no codec, filter or mask changed, in the order of the store.
fn plain_blocks(archive: &Archive) -> Result<Vec<BlockInfo>> {
    let mut blocks = archive.blocks()?;
    blocks.retain(|block| block.codec == "none" && block.filters.is_empty());
    blocks.sort_unstable_by_key(|block| block.offset_in_store);
    let mut plain = Vec::with_capacity(blocks.len());
    for block in blocks {
        if !is_masked(archive, &block)? {
            plain.push(block);
        }
    }
    Ok(plain)
}

/// Whether the bytes in the file are not those of the store: a mask changes every byte.
fn is_masked(archive: &Archive, block: &BlockInfo) -> Result<bool> {
    let frame = archive.layout().frame_at(block.archive_offset)?.bytes;
    let data = frame.len().checked_sub(block.raw_bytes as usize);
    let stored = data.and_then(|at| frame.get(at)).copied();
    let mut first = [0];
    archive
        .layout()
        .read_store(block.offset_in_store, &mut first)?;
    Ok(stored != Some(first[0]))
}

/// The pieces of a range of the store that are in plain blocks, each with its place in the file.
fn in_file(
    blocks: &[BlockInfo],
    store: Range<u64>,
) -> impl Iterator<Item = (Range<u64>, u64)> + '_ {
    let first =
        blocks.partition_point(|block| block.offset_in_store + block.raw_bytes <= store.start);
    let end = store.end;
    let overlapping = blocks.iter().skip(first);
    let overlapping = overlapping.take_while(move |block| block.offset_in_store < end);
    overlapping.map(move |block| {
        let block_end = block.offset_in_store + block.raw_bytes;
        let piece = store.start.max(block.offset_in_store)..store.end.min(block_end);
        // The data is at the end of the frame.
        let data = block.archive_offset + block.stored_bytes - block.raw_bytes;
        let archive_offset = data + (piece.start - block.offset_in_store);
        (piece, archive_offset)
    })
}

impl PlainParts {
    /// Finds the parts of an archive's content.
    ///
    /// # Errors
    /// `Unsupported` for an archive of another format; `Limit` for too many parts; as the
    /// archive's layout.
    pub fn find(archive: &Archive) -> Result<PlainParts> {
        let blocks = plain_blocks(archive)?;
        let mut parts = PlainParts::default();
        if blocks.is_empty() {
            return Ok(parts);
        }
        archive.layout().for_each_extent(&mut |extent| {
            let (ExtentOrigin::First { offset_in_store }
            | ExtentOrigin::Repeat { offset_in_store }) = extent.origin
            else {
                return Ok(());
            };
            let store = offset_in_store..offset_in_store + extent.length_bytes;
            for (piece, archive_offset) in in_file(&blocks, store) {
                parts.add(Part {
                    content_offset: extent.content_offset + (piece.start - offset_in_store),
                    length_bytes: piece.end - piece.start,
                    archive_offset,
                })?;
            }
            Ok(())
        })?;
        Ok(parts)
    }

    fn add(&mut self, part: Part) -> Result<()> {
        if let Some(last) = self.0.last_mut()
            && last.content_offset + last.length_bytes == part.content_offset
            && last.archive_offset + last.length_bytes == part.archive_offset
        {
            last.length_bytes += part.length_bytes;
            return Ok(());
        }
        if self.0.len() == PARTS_MAX {
            let text = "too many parts of the content are stored as they are";
            return Err(Error::new(ErrorKind::Limit, text));
        }
        self.0.push(part);
        Ok(())
    }

    /// Where in the file a range of the content is, if it is there in one piece.
    pub fn archive_offset(&self, content: Range<u64>) -> Option<u64> {
        let behind = (self.0).partition_point(|part| part.content_offset <= content.start);
        let part = self.0.get(behind.checked_sub(1)?)?;
        let is_inside = content.end <= part.content_offset + part.length_bytes;
        is_inside.then(|| part.archive_offset + (content.start - part.content_offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_join_and_gaps_do_not() {
        let mut parts = PlainParts::default();
        for (content_offset, length_bytes, archive_offset) in
            [(10, 5, 100), (15, 5, 105), (20, 5, 200)]
        {
            let part = Part {
                content_offset,
                length_bytes,
                archive_offset,
            };
            parts.add(part).unwrap();
        }
        assert_eq!(parts.archive_offset(12..20), Some(102));
        assert_eq!(parts.archive_offset(20..25), Some(200));
        for outside in [9..11, 19..21, 24..26, 30..31] {
            assert_eq!(parts.archive_offset(outside.clone()), None, "{outside:?}");
        }
    }
}
