//! The frames of an opened archive, unchanged, for copying or caching them.

use refrain_format::{FRAME_HEADER_BYTES, Limits, MAGIC, TAIL_BYTES, UntrustedFrameHeader};
use refrain_storage::Source;

use crate::archive_layout::Layout;
use crate::error::{Error, ErrorKind, Result};
use crate::store::frames::limits_for;

/// The maximum payload of a skippable frame that is read: nothing else bounds it.
const SKIPPABLE_BYTES_MAX: u64 = 64 << 20;

/// A frame as in the file. Its header and payload match their checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFrame {
    /// Where it starts in the file.
    pub archive_offset: u64,
    /// 0, 1, 2 … in its archive.
    pub sequence: u64,
    /// Its kind, for display.
    pub kind: String,
    /// Header and payload.
    pub bytes: Vec<u8>,
}

impl RawFrame {
    /// Where the frame ends in the file.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.archive_offset + self.bytes.len() as u64
    }
}

impl Layout<'_> {
    /// The frame of any kind at this offset in the file.
    ///
    /// # Errors
    /// `Damaged` if no intact frame starts there, or its data was given back; `Limit` for one that
    /// takes more memory than allowed; `Io`.
    pub fn frame_at(self, archive_offset: u64) -> Result<RawFrame> {
        let (source, limits) = self.source_of_frames()?;
        if self.archive.opened.is_frame_given_back(archive_offset) {
            return Err(Error::given_back().at_offset(archive_offset));
        }
        read_raw(source, archive_offset, &limits).map_err(|error| error.at_offset(archive_offset))
    }

    /// The offset at which the frame at this offset ends, by its header: its payload is not read.
    ///
    /// # Errors
    /// As [`Layout::frame_at`].
    pub fn frame_end(self, archive_offset: u64) -> Result<u64> {
        let (source, limits) = self.source_of_frames()?;
        let frame_bytes = header_at(source, archive_offset, &limits);
        let frame_bytes = frame_bytes.map_err(|error| error.at_offset(archive_offset))?;
        Ok(archive_offset + frame_bytes)
    }

    /// The offset of the first frame at or after `archive_offset`, which must be 0 or the end of a
    /// frame; `None` at the end of the file. Skips tails and magic bytes between concatenated
    /// archives.
    ///
    /// # Errors
    /// `Damaged` if something else is there; `Io`.
    pub fn frame_after(self, archive_offset: u64) -> Result<Option<u64>> {
        let (source, limits) = self.source_of_frames()?;
        next_frame(source, archive_offset, &limits).map_err(|error| error.at_offset(archive_offset))
    }

    fn source_of_frames(&self) -> Result<(&dyn Source, Limits)> {
        let source = &*self.archive.source;
        let mut magic = [0; MAGIC.len()];
        let count = source.read_at(0, &mut magic)?;
        if magic[..count] != MAGIC {
            let message = "the archive has no frames: it is not in Refrain's own format";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok((source, limits_for(self.archive.memory_bytes)))
    }
}

/// The length of a frame whose header is valid.
fn header_at(source: &dyn Source, offset: u64, limits: &Limits) -> Result<u64> {
    let size_bytes = source.size_bytes()?;
    if offset >= size_bytes {
        let message = format!("the archive has {size_bytes} bytes, no frame begins after them");
        return Err(Error::damaged(message));
    }
    let mut bytes = [0; FRAME_HEADER_BYTES];
    let count = source.read_at(offset, &mut bytes)?;
    let after = offset.saturating_add(FRAME_HEADER_BYTES as u64);
    let bytes_left = size_bytes.saturating_sub(after);
    let header = UntrustedFrameHeader::parse(&bytes[..count])?.check(limits, Some(bytes_left))?;
    if header.skippable && header.payload_bytes > SKIPPABLE_BYTES_MAX {
        let bytes = header.payload_bytes;
        let message = format!("a frame of {bytes} bytes exceeds the {SKIPPABLE_BYTES_MAX} allowed");
        return Err(Error::limit(message));
    }
    Ok(header.frame_bytes())
}

fn read_raw(source: &dyn Source, offset: u64, limits: &Limits) -> Result<RawFrame> {
    let frame_bytes = header_at(source, offset, limits)?;
    // The header was checked against the rest of the file.
    let mut bytes = vec![0; frame_bytes as usize];
    let count = source.read_at(offset, &mut bytes)?;
    bytes.truncate(count);
    // Read again with the payload, so that both are from one moment.
    let (head, payload) = bytes.split_at(FRAME_HEADER_BYTES.min(count));
    let header = UntrustedFrameHeader::parse(head)?.check(limits, Some(payload.len() as u64))?;
    header.check_payload(payload)?;
    Ok(RawFrame {
        archive_offset: offset,
        sequence: header.sequence,
        kind: header.kind.to_string(),
        bytes,
    })
}

fn next_frame(source: &dyn Source, offset: u64, limits: &Limits) -> Result<Option<u64>> {
    let size_bytes = source.size_bytes()?;
    let mut at = offset;
    // A tail, then the magic of another archive.
    for _ in 0..=2 {
        if at >= size_bytes {
            return Ok(None);
        }
        let mut start = [0; MAGIC.len()];
        let count = source.read_at(at, &mut start)?;
        if start[..count] == MAGIC {
            return Ok(Some(at + MAGIC.len() as u64));
        }
        match header_at(source, at, limits) {
            Ok(_) => return Ok(Some(at)),
            Err(error) if error.kind != ErrorKind::Damaged => return Err(error),
            Err(_) => at += TAIL_BYTES as u64,
        }
    }
    Err(Error::damaged(
        "there is neither a frame nor the end of the archive",
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use refrain_storage::{MemorySink, MemorySource};

    use super::*;
    use crate::archive::Archive;
    use crate::{CompressOptions, Content, MemberInput, ReadOptions, Unwatched, compress};

    fn archive_of(content: &[u8]) -> Vec<u8> {
        let member = MemberInput {
            name: "a".into(),
            mode: None,
            modified: None,
            content: Content::Source(Arc::new(MemorySource::new(content.to_vec()))),
        };
        let mut sink = MemorySink::new();
        let output = sink.output();
        let options = CompressOptions::default();
        compress(vec![member], &mut sink, &options, &Unwatched).unwrap();
        output.published().unwrap()
    }

    fn open(bytes: Vec<u8>) -> Archive {
        Archive::open(Arc::new(MemorySource::new(bytes)), &ReadOptions::default()).unwrap()
    }

    #[test]
    fn frames_follow_each_other_through_archives_that_stand_one_behind_the_other() {
        // A small one is a single frame, a larger one has several.
        let large: Vec<u8> = (0..300_000_u32)
            .flat_map(|i| i.wrapping_mul(i).to_le_bytes())
            .collect();
        let (small, large) = (archive_of(b"abc"), archive_of(&large));
        let bytes = [&small[..], &large, &small].concat();
        let archive = open(bytes.clone());
        let mut at = archive.layout().frame_after(0).unwrap();
        let (mut count, mut covered) = (0, 0);
        while let Some(offset) = at {
            let frame = archive.layout().frame_at(offset).unwrap();
            assert_eq!(frame.bytes, bytes[offset as usize..frame.end() as usize]);
            assert_eq!(archive.layout().frame_end(offset).unwrap(), frame.end());
            count += 1;
            covered += frame.bytes.len();
            at = archive.layout().frame_after(frame.end()).unwrap();
        }
        assert!(count > 5, "{count}");
        let around = 3 * (MAGIC.len() + TAIL_BYTES);
        assert_eq!(covered + around, bytes.len());
    }

    #[test]
    fn only_intact_frames_are_frames() {
        let mut bytes = archive_of(&[7; 100_000]);
        let archive = open(bytes.clone());
        let first = archive.layout().frame_after(0).unwrap().unwrap();
        for offset in [
            first + 1,
            bytes.len() as u64 - 3,
            bytes.len() as u64,
            u64::MAX,
        ] {
            let error = archive.layout().frame_at(offset).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Damaged, "{offset}: {error}");
        }
        let at = first as usize + FRAME_HEADER_BYTES;
        bytes[at] ^= 1;
        let archive = open_by_any_means(bytes);
        if let Some(archive) = archive {
            assert!(archive.layout().frame_at(first).is_err());
        }
    }

    fn open_by_any_means(bytes: Vec<u8>) -> Option<Archive> {
        let source = Arc::new(MemorySource::new(bytes));
        let options = ReadOptions::default();
        let opened = Archive::open(source.clone(), &options);
        opened
            .or_else(|_| Archive::open_by_scan(source, &options))
            .ok()
    }
}
