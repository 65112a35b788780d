//! The interface for recovery frames: redundancy over the bytes of an archive as they are stored.
//!
//! Nothing implements it yet. Frame kind 17 is reserved for its payloads (`docs/format.md`), which
//! will hold Reed-Solomon data. The protected ranges are physical: they include frame headers and
//! encrypted payloads, so an archive can be repaired without its key and without decoding any of
//! it.
//!
//! The writer of an archive pushes every byte that it has written, in order, and writes the
//! payloads that come back as recovery frames. Recovery frames themselves are not pushed: they
//! leave gaps between the pushed ranges.

use std::fmt;

/// The code of a recovery writer: groups of `data_shards` shards with `recovery_shards` shards of
/// redundancy. Any `recovery_shards` lost shards of a group can be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryParameters {
    /// The number of data shards of a group, at least 1.
    pub data_shards: u32,
    /// The number of recovery shards of a group, at least 1.
    pub recovery_shards: u32,
    /// The length of a shard in bytes, at least 1.
    pub shard_bytes: u32,
}

/// The largest number of shards of a group, which is that of codes over GF(2^16).
pub const GROUP_SHARDS_MAX: u32 = 1 << 16;

impl RecoveryParameters {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`RecoveryError::Parameter`] for a field that is zero, or too many shards.
    pub fn check(&self) -> Result<(), RecoveryError> {
        let fields = [
            ("data shards", self.data_shards),
            ("recovery shards", self.recovery_shards),
            ("shard bytes", self.shard_bytes),
        ];
        if let Some(&(field, value)) = fields.iter().find(|(_, value)| *value == 0) {
            return Err(RecoveryError::Parameter { field, value });
        }
        let shards = self.data_shards.saturating_add(self.recovery_shards);
        match shards > GROUP_SHARDS_MAX {
            true => Err(RecoveryError::Parameter {
                field: "shards of a group",
                value: shards,
            }),
            false => Ok(()),
        }
    }

    /// Returns the number of bytes that a full group protects.
    #[must_use]
    pub fn group_bytes(&self) -> u64 {
        u64::from(self.data_shards) * u64::from(self.shard_bytes)
    }
}

/// A range of physical bytes of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhysicalRange {
    /// The offset from the beginning of the archive.
    pub offset: u64,
    /// The length in bytes.
    pub length_bytes: u64,
}

/// The redundancy of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryPayload {
    /// The protected ranges in order. Gaps between them are recovery frames.
    pub ranges: Vec<PhysicalRange>,
    /// The payload of the recovery frame.
    pub bytes: Vec<u8>,
}

/// Why a recovery writer fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoveryError {
    /// A parameter is out of range.
    Parameter {
        /// The name of the parameter.
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// A range begins before the end of the previous one.
    OutOfOrder {
        /// The offset of the range.
        found_offset: u64,
        /// The end of the previous range.
        expected_offset_min: u64,
    },
    /// An allocation failed.
    OutOfMemory {
        /// The size of the allocation in bytes.
        wanted_bytes: u64,
    },
}

impl fmt::Display for RecoveryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter { field, value } => {
                write!(
                    formatter,
                    "recovery data: {value} {field} are not supported"
                )
            }
            Self::OutOfOrder {
                found_offset,
                expected_offset_min,
            } => write!(
                formatter,
                "recovery data: a range begins at {found_offset}, before the end of the previous \
                 one at {expected_offset_min}"
            ),
            Self::OutOfMemory { wanted_bytes } => {
                write!(
                    formatter,
                    "recovery data: cannot allocate {wanted_bytes} bytes"
                )
            }
        }
    }
}

impl std::error::Error for RecoveryError {}

/// Computes the payloads of recovery frames from the bytes of an archive.
///
/// The payloads depend only on the parameters and on the pushed bytes with their offsets, not on
/// how the bytes are divided among calls.
pub trait RecoveryWriter {
    /// Returns the parameters.
    fn parameters(&self) -> RecoveryParameters;

    /// Appends bytes that were written at `offset`. Returns the payloads of the groups that they
    /// complete, in order.
    ///
    /// # Errors
    /// [`RecoveryError::OutOfOrder`] if `offset` is before the end of the previous range;
    /// [`RecoveryError::OutOfMemory`]. After an error the writer must not be used.
    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<Vec<RecoveryPayload>, RecoveryError>;

    /// Returns the payload of the last, incomplete group, if bytes remain. It is encoded as if
    /// zeros filled the group.
    ///
    /// # Errors
    /// [`RecoveryError::OutOfMemory`].
    fn finish(&mut self) -> Result<Option<RecoveryPayload>, RecoveryError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::property::patterned_bytes;

    /// A code with one recovery shard: the XOR of the data shards.
    struct XorWriter {
        parameters: RecoveryParameters,
        group: Vec<u8>,
        ranges: Vec<PhysicalRange>,
        end_offset: u64,
    }

    impl XorWriter {
        fn new(parameters: RecoveryParameters) -> Self {
            parameters.check().unwrap();
            assert_eq!(parameters.recovery_shards, 1);
            XorWriter {
                parameters,
                group: Vec::new(),
                ranges: Vec::new(),
                end_offset: 0,
            }
        }

        fn append(&mut self, offset: u64, bytes: &[u8]) {
            let length_bytes = bytes.len() as u64;
            match self.ranges.last_mut() {
                Some(last) if last.offset + last.length_bytes == offset => {
                    last.length_bytes += length_bytes;
                }
                _ => self.ranges.push(PhysicalRange {
                    offset,
                    length_bytes,
                }),
            }
            self.group.extend_from_slice(bytes);
            self.end_offset = offset + length_bytes;
        }

        fn take_payload(&mut self) -> RecoveryPayload {
            let mut parity = vec![0; self.parameters.shard_bytes as usize];
            for shard in self.group.chunks(parity.len()) {
                parity.iter_mut().zip(shard).for_each(|(a, b)| *a ^= b);
            }
            self.group.clear();
            RecoveryPayload {
                ranges: std::mem::take(&mut self.ranges),
                bytes: parity,
            }
        }
    }

    impl RecoveryWriter for XorWriter {
        fn parameters(&self) -> RecoveryParameters {
            self.parameters
        }

        fn push(
            &mut self,
            mut offset: u64,
            mut bytes: &[u8],
        ) -> Result<Vec<RecoveryPayload>, RecoveryError> {
            if offset < self.end_offset {
                return Err(RecoveryError::OutOfOrder {
                    found_offset: offset,
                    expected_offset_min: self.end_offset,
                });
            }
            let group_bytes = self.parameters.group_bytes() as usize;
            let mut payloads = Vec::new();
            while !bytes.is_empty() {
                let (part, rest) = bytes.split_at(bytes.len().min(group_bytes - self.group.len()));
                self.append(offset, part);
                if self.group.len() == group_bytes {
                    payloads.push(self.take_payload());
                }
                offset += part.len() as u64;
                bytes = rest;
            }
            Ok(payloads)
        }

        fn finish(&mut self) -> Result<Option<RecoveryPayload>, RecoveryError> {
            Ok((!self.group.is_empty()).then(|| self.take_payload()))
        }
    }

    #[test]
    fn a_lost_shard_is_restored_from_the_payload_of_its_group() {
        let parameters = RecoveryParameters {
            data_shards: 4,
            recovery_shards: 1,
            shard_bytes: 100,
        };
        let archive = patterned_bytes(1050, 1);
        // Bytes 500..550 are a recovery frame: they are not pushed.
        let pushed = [(0, 130), (130, 370), (550, 500)];
        let mut writer = XorWriter::new(parameters);
        let mut payloads = Vec::new();
        for (offset, length) in pushed {
            let bytes = &archive[offset..offset + length];
            payloads.extend(writer.push(offset as u64, bytes).unwrap());
        }
        let early = writer.push(0, b"x");
        assert!(matches!(early, Err(RecoveryError::OutOfOrder { .. })));
        payloads.extend(writer.finish().unwrap());
        assert_eq!(payloads.len(), 3);
        let range = |offset, length_bytes| PhysicalRange {
            offset,
            length_bytes,
        };
        assert_eq!(payloads[1].ranges, [range(400, 100), range(550, 300)]);
        for payload in payloads {
            let group: Vec<u8> = payload
                .ranges
                .iter()
                .flat_map(|range| &archive[range.offset as usize..][..range.length_bytes as usize])
                .copied()
                .collect();
            let shards: Vec<&[u8]> = group.chunks(100).collect();
            for lost in 0..shards.len() {
                let mut restored = payload.bytes.clone();
                for (index, shard) in shards.iter().enumerate().filter(|(i, _)| *i != lost) {
                    assert_eq!(shard.len(), 100, "shard {index}");
                    restored.iter_mut().zip(*shard).for_each(|(a, b)| *a ^= b);
                }
                assert_eq!(restored, shards[lost]);
            }
        }
    }

    #[test]
    fn rejects_parameters_out_of_range() {
        let valid = RecoveryParameters {
            data_shards: GROUP_SHARDS_MAX - 1,
            recovery_shards: 1,
            shard_bytes: 1,
        };
        assert_eq!(valid.check(), Ok(()));
        for invalid in [
            RecoveryParameters {
                recovery_shards: 2,
                ..valid
            },
            RecoveryParameters {
                recovery_shards: 0,
                ..valid
            },
            RecoveryParameters {
                shard_bytes: 0,
                ..valid
            },
        ] {
            assert!(invalid.check().is_err(), "{invalid:?}");
        }
    }
}
