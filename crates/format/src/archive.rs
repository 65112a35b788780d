//! The Archive frame: version, features and settings. It is always the first frame.

use crate::bytes::{ByteReader, put_varints};
use crate::check::{check_limit, check_positive};
use crate::constants::FrameKind;
use crate::error::{FormatError, Result};
use crate::frame::complete_frame;
use crate::head::{head_of, head_only, take_extensions};
use crate::limits::{BLOCK_RAW_BYTES_MAX, EPOCH_BYTES_MAX, REFERENCE_WINDOW_MAX};

/// The major version that is written and read. A reader rejects any other.
pub const FORMAT_MAJOR: u16 = 1;

/// The minor version that is written. A reader accepts later ones: what it must not ignore is
/// announced by a feature bit.
pub const FORMAT_MINOR: u16 = 0;

/// The required-feature bits that this version knows: none yet.
pub const KNOWN_FEATURES: u64 = 0;

/// The `reach_bytes` of an archive that promises no reach: a copy may refer to any earlier byte.
pub const REACH_UNLIMITED: u64 = u64::MAX;

/// The payload of an Archive frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveHeader {
    /// The version of the format, major and minor.
    pub version: (u16, u16),
    /// The features that a reader must know, as bits.
    pub required_features: u64,
    /// The requested level, for information; 0 for custom settings.
    pub level: u8,
    /// The size of a segment of the match stage in content bytes, for information.
    pub segment_bytes: u64,
    /// The largest number of content bytes in an epoch.
    pub epoch_bytes: u64,
    /// The largest number of raw bytes in a block.
    pub block_bytes_max: u64,
    /// The writer's memory budget, for information: it may change the bytes of an archive.
    pub memory_budget_bytes: u64,
    /// How many of the archive's latest bytes a decoder that cannot seek must retain
    /// ([`REACH_UNLIMITED`]: all of them).
    pub reach_bytes: u64,
    /// How many of the latest extents such a decoder must retain for references; 0 if there are
    /// none.
    pub reference_window: u64,
}

impl ArchiveHeader {
    /// Parses the payload of an Archive frame.
    ///
    /// # Errors
    /// An unsupported version or feature; settings that are impossible or above the limits.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = head_only("archive header", payload)?;
        let version = (take_version(&mut reader)?, take_version(&mut reader)?);
        let required_features = reader.varint()?;
        // Version and features are checked first: a later version may use the rest differently.
        check_version(version)?;
        check_features(required_features)?;
        let header = Self {
            version,
            required_features,
            level: reader.varint_as("level")?,
            block_bytes_max: reader.varint()?,
            epoch_bytes: reader.varint()?,
            reference_window: reader.varint()?,
            reach_bytes: match reader.varint()? {
                0 => REACH_UNLIMITED,
                reach_bytes => reach_bytes,
            },
            segment_bytes: reader.varint()?,
            memory_budget_bytes: reader.varint()?,
        };
        take_extensions(reader)?;
        header.check_settings()?;
        Ok(header)
    }

    /// Returns the payload.
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects.
    pub fn to_payload(&self) -> Result<Vec<u8>> {
        check_positive("reach bytes", self.reach_bytes)?;
        let reach_bytes = match self.reach_bytes {
            REACH_UNLIMITED => 0,
            reach_bytes => reach_bytes,
        };
        let numbers = [
            u64::from(self.version.0),
            u64::from(self.version.1),
            self.required_features,
            u64::from(self.level),
            self.block_bytes_max,
            self.epoch_bytes,
            self.reference_window,
            reach_bytes,
            self.segment_bytes,
            self.memory_budget_bytes,
        ];
        let mut fields = Vec::new();
        put_varints(&mut fields, &numbers);
        let payload = head_of(&fields);
        Self::parse(&payload)?;
        Ok(payload)
    }

    /// Returns the complete frame; its sequence number is always 0.
    ///
    /// # Errors
    /// Values that [`parse`](Self::parse) rejects.
    pub fn to_frame(&self, archive_id: u32) -> Result<Vec<u8>> {
        let payload = self.to_payload()?;
        Ok(complete_frame(
            FrameKind::Archive,
            0,
            &payload,
            archive_id,
            0,
        ))
    }

    fn check_settings(&self) -> Result<()> {
        check_positive("segment bytes", self.segment_bytes)?;
        check_positive("epoch bytes", self.epoch_bytes)?;
        check_positive("largest block bytes", self.block_bytes_max)?;
        check_limit("epoch bytes", self.epoch_bytes, EPOCH_BYTES_MAX)?;
        check_limit("segment bytes", self.segment_bytes, EPOCH_BYTES_MAX)?;
        check_limit(
            "window of references",
            self.reference_window,
            REFERENCE_WINDOW_MAX,
        )?;
        check_limit(
            "largest block bytes",
            self.block_bytes_max,
            BLOCK_RAW_BYTES_MAX,
        )
    }
}

/// Reads a version number. Anything above 65,535 is unknown and counts as 65,535.
fn take_version(reader: &mut ByteReader<'_>) -> Result<u16> {
    Ok(u16::try_from(reader.varint()?).unwrap_or(u16::MAX))
}

fn check_version((major, minor): (u16, u16)) -> Result<()> {
    if major == FORMAT_MAJOR {
        Ok(())
    } else {
        Err(FormatError::Version { major, minor })
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
    use crate::constants::FRAME_HEADER_BYTES;
    use crate::error::ErrorClass;
    use crate::frame::{FrameHeader, UntrustedFrameHeader};
    use crate::limits::Limits;

    fn sample() -> ArchiveHeader {
        ArchiveHeader {
            version: (FORMAT_MAJOR, FORMAT_MINOR),
            required_features: 0,
            level: 3,
            segment_bytes: 1 << 20,
            epoch_bytes: 1 << 28,
            block_bytes_max: 1 << 22,
            memory_budget_bytes: 1 << 30,
            reach_bytes: REACH_UNLIMITED,
            reference_window: 1000,
        }
    }

    #[test]
    fn a_frame_parses_as_written() {
        let frame = sample().to_frame(7).unwrap();
        let header: FrameHeader = UntrustedFrameHeader::parse(&frame)
            .unwrap()
            .check(&Limits::default(), None)
            .unwrap();
        assert_eq!(header.sequence, 0);
        assert_eq!(
            ArchiveHeader::parse(&frame[FRAME_HEADER_BYTES..]),
            Ok(sample())
        );
    }

    #[test]
    fn later_versions_and_features_are_unsupported_not_damaged() {
        let changed = |change: fn(&mut ArchiveHeader)| {
            let mut header = sample();
            change(&mut header);
            header.to_frame(7).unwrap_err()
        };
        assert!(matches!(
            changed(|header| header.version.0 = 2),
            FormatError::Version { major: 2, .. }
        ));
        assert!(matches!(
            changed(|header| header.required_features = 8),
            FormatError::Features { unknown_bits: 8 }
        ));
        assert!(matches!(
            changed(|header| header.block_bytes_max = 1 << 40),
            FormatError::OverLimit { .. }
        ));
        assert!(matches!(
            changed(|header| header.epoch_bytes = 0),
            FormatError::Value { .. }
        ));
    }

    fn parse_fields(fields: &[u64]) -> Result<ArchiveHeader> {
        let mut bytes = Vec::new();
        put_varints(&mut bytes, fields);
        ArchiveHeader::parse(&head_of(&bytes))
    }

    #[test]
    fn huge_versions_are_later_ones() {
        let class = |fields: &[u64]| parse_fields(fields).map_err(|error| error.class());
        let settings = [0, 3, 1, 1, 0, 0, 1, 0];
        let major = class(&[&[u64::MAX, 0], &settings[..]].concat());
        assert_eq!(major, Err(ErrorClass::Unsupported));
        let minor = class(&[&[1, u64::MAX], &settings[..]].concat());
        assert!(minor.is_ok());
        let level = class(&[1, 0, 0, 256, 1, 1, 0, 0, 1, 0]);
        assert_eq!(level, Err(ErrorClass::Damaged));
    }

    #[test]
    fn accepts_a_later_minor_version() {
        let mut later = sample();
        later.version.1 = 7;
        assert!(later.to_frame(7).is_ok());
    }
}
