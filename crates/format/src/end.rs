//! The End frame: the last frame, of a fixed size, so that a reader that can seek finds the index
//! from the end of the file.

use crate::bytes::ByteReader;
use crate::check::check_range;
use crate::error::{FormatError, Result};
use crate::frame::{UntrustedFrameHeader, complete_frame};
use crate::layout::{END_FRAME_BYTES, FRAME_HEADER_BYTES, FrameKind};
use crate::limits::Limits;

/// The payload of an End frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveEnd {
    /// The offset of the Index frame in the archive.
    pub index_frame_offset: u64,
    /// The size of the Index frame in bytes, header included.
    pub index_frame_bytes: u64,
    /// The number of frames of the archive, this one included.
    pub frame_count: u64,
    /// The number of content bytes of all members.
    pub content_bytes: u64,
    /// The number of raw bytes of all blocks.
    pub store_bytes: u64,
    /// The number of bytes of the archive up to and including this frame.
    pub archive_bytes: u64,
    /// The number of this generation. Version 1 reads and writes only generation 0; see
    /// [`generation`](crate::generation).
    pub generation: u64,
}

impl ArchiveEnd {
    /// Parses the payload of an End frame.
    ///
    /// # Errors
    /// Offsets outside the archive; a generation that this version does not know.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new("end", payload);
        let end = Self {
            index_frame_offset: reader.u64()?,
            index_frame_bytes: reader.u64()?,
            frame_count: reader.u64()?,
            content_bytes: reader.u64()?,
            store_bytes: reader.u64()?,
            archive_bytes: reader.u64()?,
            generation: reader.u64()?,
        };
        reader.finish()?;
        end.check()?;
        Ok(end)
    }

    /// Returns the complete frame.
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects.
    pub fn to_frame(&self, sequence: u64) -> Result<Vec<u8>> {
        let fields = [
            self.index_frame_offset,
            self.index_frame_bytes,
            self.frame_count,
            self.content_bytes,
            self.store_bytes,
            self.archive_bytes,
            self.generation,
        ];
        let payload: Vec<u8> = fields.into_iter().flat_map(u64::to_le_bytes).collect();
        Self::parse(&payload)?;
        Ok(complete_frame(FrameKind::End, false, &payload, sequence))
    }

    /// Parses the last [`END_FRAME_BYTES`] bytes of a file of `file_bytes` bytes.
    ///
    /// # Errors
    /// They are not an End frame (the file was truncated, or something was appended), or the
    /// archive's length is not the file's.
    pub fn from_end_of_file(last_bytes: &[u8], file_bytes: u64) -> Result<Self> {
        let end = Self::from_last_bytes(last_bytes)?;
        if end.archive_bytes != file_bytes {
            return Err(FormatError::Mismatch {
                what: "archive length in bytes",
                found: file_bytes,
                expected: end.archive_bytes,
            });
        }
        Ok(end)
    }

    /// Parses the last [`END_FRAME_BYTES`] bytes of an archive.
    ///
    /// # Errors
    /// They are not an End frame: the archive was truncated, or something was appended.
    pub fn from_last_bytes(last_bytes: &[u8]) -> Result<Self> {
        let header = UntrustedFrameHeader::parse(last_bytes)?.check(&Limits::default(), None)?;
        if header.kind != FrameKind::End {
            return Err(FormatError::Order {
                kind: header.kind,
                rule: "the last frame must be End",
            });
        }
        let payload = last_bytes.get(FRAME_HEADER_BYTES..).unwrap_or_default();
        header.check_payload(payload)?;
        let end = Self::parse(payload)?;
        if header.sequence.checked_add(1) != Some(end.frame_count) {
            return Err(FormatError::Mismatch {
                what: "frame count",
                found: end.frame_count,
                expected: header.sequence.saturating_add(1),
            });
        }
        Ok(end)
    }

    fn check(&self) -> Result<()> {
        if self.generation != 0 {
            return Err(FormatError::Reserved {
                what: "generation",
                value: self.generation,
            });
        }
        check_range("content bytes", self.content_bytes, 0)?;
        check_range("store bytes", self.store_bytes, 0)?;
        check_range("archive bytes", self.archive_bytes, 0)?;
        if self.store_bytes > self.content_bytes {
            return Err(FormatError::Value {
                what: "store bytes",
                value: self.store_bytes,
                rule: "at most the content bytes",
            });
        }
        let index_end = check_range(
            "end of the index frame",
            self.index_frame_offset,
            self.index_frame_bytes,
        )?;
        let needed_bytes = index_end.saturating_add(END_FRAME_BYTES as u64);
        match needed_bytes <= self.archive_bytes {
            true => Ok(()),
            false => Err(FormatError::Truncated {
                what: "archive with index and end frame",
                needed_bytes,
                available_bytes: self.archive_bytes,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorClass;

    fn sample() -> ArchiveEnd {
        ArchiveEnd {
            index_frame_offset: 100,
            index_frame_bytes: 50,
            frame_count: 6,
            content_bytes: 1000,
            store_bytes: 900,
            archive_bytes: 150 + END_FRAME_BYTES as u64,
            generation: 0,
        }
    }

    #[test]
    fn parses_from_the_end_of_the_file() {
        let frame = sample().to_frame(5).unwrap();
        assert_eq!(frame.len(), END_FRAME_BYTES);
        let file_bytes = sample().archive_bytes;
        assert_eq!(
            ArchiveEnd::from_end_of_file(&frame, file_bytes),
            Ok(sample())
        );
        assert!(ArchiveEnd::from_end_of_file(&frame, file_bytes + 1).is_err());
        assert!(ArchiveEnd::from_end_of_file(&frame[1..], file_bytes).is_err());
        let wrong_count = sample().to_frame(4).unwrap();
        assert!(ArchiveEnd::from_end_of_file(&wrong_count, file_bytes).is_err());
    }

    #[test]
    fn rejects_impossible_values() {
        let changed = |change: fn(&mut ArchiveEnd)| {
            let mut end = sample();
            change(&mut end);
            end.to_frame(5).unwrap_err().class()
        };
        assert_eq!(changed(|end| end.generation = 1), ErrorClass::Unsupported);
        assert_eq!(
            changed(|end| end.index_frame_offset = 101),
            ErrorClass::Damaged
        );
        assert_eq!(
            changed(|end| end.index_frame_offset = u64::MAX),
            ErrorClass::Limit
        );
        assert_eq!(changed(|end| end.store_bytes = 1001), ErrorClass::Damaged);
    }
}
