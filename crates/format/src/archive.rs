//! The Archive frame: version, features and settings. Always the first frame.

use crate::bytes::Reader;
use crate::check::{check_limit, check_positive};
use crate::error::{FormatError, Result};
use crate::frame::complete_frame;
use crate::layout::{ARCHIVE_BYTES, FrameKind};
use crate::limits::{BLOCK_RAW_BYTES_MAX, EPOCH_BYTES_MAX};

/// Major version written and read. A reader refuses any other.
pub const FORMAT_MAJOR: u16 = 1;

/// Minor version written. A reader accepts a later one: what it may not ignore is announced by a feature bit.
pub const FORMAT_MINOR: u16 = 0;

/// Required-feature bits that this version knows: none yet.
pub const KNOWN_FEATURES: u64 = 0;

/// `reach_bytes` of an archive that promises nothing: a copy may refer to any earlier byte.
pub const REACH_UNLIMITED: u64 = u64::MAX;

/// Payload of the Archive frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveHeader {
    /// Version of the format, major and minor.
    pub version: (u16, u16),
    /// Feature bits that a reader must know.
    pub required_features: u64,
    /// The level that was asked for, for information; 0 if none of the table.
    pub level: u8,
    /// Content bytes of a segment of the match stage, for information.
    pub segment_bytes: u64,
    /// No epoch holds more content bytes than this.
    pub epoch_bytes: u64,
    /// No block holds more raw bytes than this.
    pub block_bytes_max: u64,
    /// The memory that the writer was allowed, for information: it may change the bytes of an archive.
    pub memory_budget_bytes: u64,
    /// A decoder that cannot seek must keep this many of the archive's latest bytes ([`REACH_UNLIMITED`]: all).
    pub reach_bytes: u64,
}

impl ArchiveHeader {
    /// Reads the payload of an Archive frame.
    ///
    /// # Errors
    /// Unsupported version or feature; impossible or too large settings.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("archive head", payload);
        let version = (reader.u16()?, reader.u16()?);
        let required_features = reader.u64()?;
        // Version and features come first: a later version may mean anything by the rest.
        check_version(version)?;
        check_features(required_features)?;
        let level = reader.u8()?;
        reader.reserved(3)?;
        let head = Self {
            version,
            required_features,
            level,
            segment_bytes: reader.u64()?,
            epoch_bytes: reader.u64()?,
            block_bytes_max: reader.u64()?,
            memory_budget_bytes: reader.u64()?,
            reach_bytes: reader.u64()?,
        };
        reader.finish()?;
        head.check_settings()?;
        Ok(head)
    }

    /// The sealed frame; its sequence number is always 0.
    ///
    /// # Errors
    /// What [`parse`](Self::parse) would refuse.
    pub fn to_frame(&self) -> Result<Vec<u8>> {
        let mut payload = Vec::with_capacity(ARCHIVE_BYTES);
        payload.extend(self.version.0.to_le_bytes());
        payload.extend(self.version.1.to_le_bytes());
        payload.extend(self.required_features.to_le_bytes());
        payload.push(self.level);
        payload.extend([0; 3]);
        payload.extend(self.segment_bytes.to_le_bytes());
        payload.extend(self.epoch_bytes.to_le_bytes());
        payload.extend(self.block_bytes_max.to_le_bytes());
        payload.extend(self.memory_budget_bytes.to_le_bytes());
        payload.extend(self.reach_bytes.to_le_bytes());
        Self::parse(&payload)?;
        Ok(complete_frame(FrameKind::Archive, false, &payload, 0))
    }

    fn check_settings(&self) -> Result<()> {
        check_positive("segment bytes", self.segment_bytes)?;
        check_positive("epoch bytes", self.epoch_bytes)?;
        check_positive("largest block bytes", self.block_bytes_max)?;
        check_limit("epoch bytes", self.epoch_bytes, EPOCH_BYTES_MAX)?;
        check_limit("segment bytes", self.segment_bytes, EPOCH_BYTES_MAX)?;
        check_limit(
            "largest block bytes",
            self.block_bytes_max,
            BLOCK_RAW_BYTES_MAX,
        )
    }
}

fn check_version((major, minor): (u16, u16)) -> Result<()> {
    match major == FORMAT_MAJOR {
        true => Ok(()),
        false => Err(FormatError::Version { major, minor }),
    }
}

fn check_features(required_features: u64) -> Result<()> {
    match required_features & !KNOWN_FEATURES {
        0 => Ok(()),
        unknown_bits => Err(FormatError::Features { unknown_bits }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{FrameHeader, UntrustedFrameHeader};
    use crate::layout::FRAME_HEADER_BYTES;
    use crate::limits::Limits;

    fn head() -> ArchiveHeader {
        ArchiveHeader {
            version: (FORMAT_MAJOR, FORMAT_MINOR),
            required_features: 0,
            level: 3,
            segment_bytes: 1 << 20,
            epoch_bytes: 1 << 28,
            block_bytes_max: 1 << 22,
            memory_budget_bytes: 1 << 30,
            reach_bytes: REACH_UNLIMITED,
        }
    }

    #[test]
    fn round_trip() {
        let frame = head().to_frame().unwrap();
        let header: FrameHeader = UntrustedFrameHeader::parse(&frame)
            .unwrap()
            .check(&Limits::default(), None)
            .unwrap();
        assert_eq!(header.sequence, 0);
        assert_eq!(
            ArchiveHeader::parse(&frame[FRAME_HEADER_BYTES..]),
            Ok(head())
        );
    }

    #[test]
    fn the_future_is_unsupported_not_damaged() {
        let bent = |change: fn(&mut ArchiveHeader)| {
            let mut head = head();
            change(&mut head);
            head.to_frame().unwrap_err()
        };
        assert!(matches!(
            bent(|head| head.version.0 = 2),
            FormatError::Version { major: 2, .. }
        ));
        assert!(matches!(
            bent(|head| head.required_features = 8),
            FormatError::Features { unknown_bits: 8 }
        ));
        assert!(matches!(
            bent(|head| head.block_bytes_max = 1 << 40),
            FormatError::OverLimit { .. }
        ));
        assert!(matches!(
            bent(|head| head.epoch_bytes = 0),
            FormatError::Value { .. }
        ));
    }

    #[test]
    fn a_later_minor_version_is_read() {
        let mut later = head();
        later.version.1 = 7;
        assert!(later.to_frame().is_ok());
    }
}
