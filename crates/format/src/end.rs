//! The End frame: the last one, of a fixed size, so that a reader that can seek finds the index from the end of the file.

use crate::bytes::Reader;
use crate::check::check_range;
use crate::error::{FormatError, Result};
use crate::frame::{UntrustedFrameHeader, complete_frame};
use crate::layout::{END_FRAME_BYTES, FRAME_HEADER_BYTES, FrameKind};
use crate::limits::Limits;

/// Payload of the End frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveEnd {
    /// Where the Index frame begins in the archive.
    pub index_frame_offset: u64,
    /// Bytes of the Index frame, header included.
    pub index_frame_bytes: u64,
    /// Frames of the archive, this one included.
    pub frame_count: u64,
    /// Content bytes of all members.
    pub content_bytes: u64,
    /// Raw bytes of all blocks.
    pub store_bytes: u64,
    /// Bytes of the archive up to and including this frame.
    pub archive_bytes: u64,
    /// Number of this generation; the first and, so far, only one is 0.
    pub generation: u64,
}

impl ArchiveEnd {
    /// Reads the payload of an End frame.
    ///
    /// # Errors
    /// Offsets that point outside the archive; a generation that this version does not know.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("end", payload);
        let head = Self {
            index_frame_offset: reader.u64()?,
            index_frame_bytes: reader.u64()?,
            frame_count: reader.u64()?,
            content_bytes: reader.u64()?,
            store_bytes: reader.u64()?,
            archive_bytes: reader.u64()?,
            generation: reader.u64()?,
        };
        reader.finish()?;
        head.check()?;
        Ok(head)
    }

    /// The sealed frame.
    ///
    /// # Errors
    /// What [`parse`](Self::parse) would refuse.
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

    /// Reads the last [`END_FRAME_BYTES`] bytes of a file of `file_bytes` bytes.
    ///
    /// # Errors
    /// They are not an End frame (the file was cut off, or something was appended), or the archive is not as long as the file.
    pub fn from_end_of_file(last_bytes: &[u8], file_bytes: u64) -> Result<Self> {
        let header = UntrustedFrameHeader::parse(last_bytes)?.check(&Limits::default(), None)?;
        if header.kind != FrameKind::End {
            return Err(FormatError::Order {
                kind: header.kind,
                rule: "the last frame must be End",
            });
        }
        let payload = last_bytes.get(FRAME_HEADER_BYTES..).unwrap_or_default();
        header.check_payload(payload)?;
        let head = Self::parse(payload)?;
        if head.archive_bytes != file_bytes {
            return Err(FormatError::Mismatch {
                what: "archive length in bytes",
                found: file_bytes,
                expected: head.archive_bytes,
            });
        }
        if header.sequence.checked_add(1) != Some(head.frame_count) {
            return Err(FormatError::Mismatch {
                what: "frame count",
                found: head.frame_count,
                expected: header.sequence.saturating_add(1),
            });
        }
        Ok(head)
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

    fn head() -> ArchiveEnd {
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
    fn found_from_the_end_of_the_file() {
        let frame = head().to_frame(5).unwrap();
        assert_eq!(frame.len(), END_FRAME_BYTES);
        let file_bytes = head().archive_bytes;
        assert_eq!(ArchiveEnd::from_end_of_file(&frame, file_bytes), Ok(head()));
        assert!(ArchiveEnd::from_end_of_file(&frame, file_bytes + 1).is_err());
        assert!(ArchiveEnd::from_end_of_file(&frame[1..], file_bytes).is_err());
        let wrong_count = head().to_frame(4).unwrap();
        assert!(ArchiveEnd::from_end_of_file(&wrong_count, file_bytes).is_err());
    }

    #[test]
    fn impossible_ends_are_refused() {
        let bent = |change: fn(&mut ArchiveEnd)| {
            let mut head = head();
            change(&mut head);
            head.to_frame(5).unwrap_err().class()
        };
        assert_eq!(bent(|head| head.generation = 1), ErrorClass::Unsupported);
        assert_eq!(
            bent(|head| head.index_frame_offset = 101),
            ErrorClass::Damaged
        );
        assert_eq!(
            bent(|head| head.index_frame_offset = u64::MAX),
            ErrorClass::Limit
        );
        assert_eq!(bent(|head| head.store_bytes = 1001), ErrorClass::Damaged);
    }
}
