//! Recovery frames: parity over the bytes of a file, and the digests by which its slices are known
//! (`docs/recovery.md`).
//!
//! Every frame states all that is needed to use it, and has a fixed size, so that any frame that is
//! left is of use, wherever it is found. Readers that do not heal skip these frames.

use std::ops::Range;

use refrain_protect::recovery::{
    BadParameters, PIECE_GROUPS, RecoveryParameters, SHARE_MAX, SHARE_MIN,
};

use crate::bytes::ByteReader;
use crate::constants::{FRAME_HEADER_BYTES, FrameKind, TAIL_BYTES};
use crate::error::{FormatError, Result};
use crate::frame::{FLAG_SKIPPABLE, FrameHeader, finish_header, frame_prefix, piece_sums};
use crate::head::{SplitPayload, head_of, take_extensions};

const WHAT: &str = "Recovery frame";

/// Of frames that protect a file from its first byte on.
const METHOD_FROM_START: u8 = 1;

/// Of frames that protect a file from what earlier ones end on.
const METHOD_FROM_LATER: u8 = 2;

/// The size of the head, its own size included.
const HEAD_BYTES: usize = 42;

/// The size of what only frames of the second method state.
const LATER_BYTES: usize = 10;

/// The sizes of heads.
pub const RECOVERY_HEAD_BYTES: [usize; 2] = [HEAD_BYTES, HEAD_BYTES + LATER_BYTES];

/// The last byte of a file from which protected bytes may begin.
const START_MAX: u64 = 1 << 55;

/// What a Recovery frame has as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecoveryPart {
    /// A piece of the table of digests, or of its parity.
    Digests,
    /// A slice of parity.
    Parity,
}

/// What the Recovery frames of a file have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecoverySet {
    /// The id of the archive that the frames follow; 0 in a file of their own.
    pub archive_id: u32,
    /// Whether the frames are in a file of their own instead of behind the bytes they protect.
    pub is_apart: bool,
    /// The sequence number of the first frame.
    pub first_sequence: u32,
    /// A checksum of the parameters and all digests.
    pub set_id: u64,
    /// The layout.
    pub parameters: RecoveryParameters,
    /// What is protected; `None`: the file from its first byte on.
    pub later: Option<LaterBytes>,
}

/// Protected bytes that do not begin with the file, because other recovery data protects what is
/// before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaterBytes {
    /// Where they begin in the file: behind the tail after the earlier recovery data. At least 1.
    pub start: u64,
    /// How much parity was asked for, in hundredths of a percent. Few bytes have more, and what
    /// follows is to be protected as was asked for.
    pub share: u16,
}

/// The place of a frame in its set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecoveryPlace {
    /// What it has.
    pub part: RecoveryPart,
    /// Which of these.
    pub index: u64,
}

impl RecoverySet {
    /// The bytes of the file that are protected.
    #[must_use]
    pub fn protected(&self) -> Range<u64> {
        let start = self.later.map_or(0, |later| later.start);
        start..start.saturating_add(self.parameters.protected_bytes)
    }

    /// Where the frames and the tail after them end in the file, unless they are apart.
    #[must_use]
    pub fn appendix_end(&self) -> u64 {
        let end = self.protected().end.saturating_add(self.frames_bytes());
        end.saturating_add(TAIL_BYTES as u64)
    }

    fn head_bytes(&self) -> usize {
        HEAD_BYTES + self.later.map_or(0, |_| LATER_BYTES)
    }

    /// The slices of parity before each group of pieces of the table. A burst, or several, leave
    /// one of the groups.
    fn parity_before_groups(&self) -> [u64; PIECE_GROUPS] {
        let parity = self.parameters.parity_slices();
        [0, parity / 3, parity * 2 / 3, parity]
    }

    fn piece_count(&self) -> u64 {
        (self.parameters.table_pieces() + self.parameters.table_parity()) as u64
    }

    /// The number of frames.
    #[must_use]
    pub fn frame_count(&self) -> u64 {
        self.piece_count() + self.parameters.parity_slices()
    }

    /// The size of all frames in bytes.
    #[must_use]
    pub fn frames_bytes(&self) -> u64 {
        let bytes = |part, count| self.frame_bytes(part) * count;
        bytes(RecoveryPart::Digests, self.piece_count())
            + bytes(RecoveryPart::Parity, self.parameters.parity_slices())
    }

    /// The size of the data of a frame in bytes.
    #[must_use]
    pub fn data_bytes(&self, part: RecoveryPart) -> usize {
        match part {
            RecoveryPart::Digests => self.parameters.piece_bytes(),
            RecoveryPart::Parity => self.parameters.slice_bytes as usize,
        }
    }

    /// The size of a frame in bytes.
    #[must_use]
    pub fn frame_bytes(&self, part: RecoveryPart) -> u64 {
        (FRAME_HEADER_BYTES + self.head_bytes() + self.data_bytes(part)) as u64
    }

    /// The places of all frames, in their order.
    pub fn places(&self) -> impl Iterator<Item = RecoveryPlace> {
        let place = |part| move |index| RecoveryPlace { part, index };
        let before = self.parity_before_groups();
        let pieces = self.parameters.group_pieces() as u64;
        (0_u64..).zip(before).flat_map(move |(group, parity_end)| {
            let parity_start = before[(group as usize).saturating_sub(1)];
            let parity = (parity_start..parity_end).map(place(RecoveryPart::Parity));
            let group = group * pieces..(group + 1) * pieces;
            parity.chain(group.map(place(RecoveryPart::Digests)))
        })
    }

    /// The number of a frame among those of the set; `None` if the set has no such frame.
    #[must_use]
    pub fn number(&self, place: RecoveryPlace) -> Option<u64> {
        let before = self.parity_before_groups();
        let pieces = self.parameters.group_pieces() as u64;
        let index = place.index;
        match place.part {
            RecoveryPart::Digests => {
                let parity = before.get(usize::try_from(index / pieces).ok()?)?;
                index.checked_add(*parity)
            }
            RecoveryPart::Parity if index >= self.parameters.parity_slices() => None,
            RecoveryPart::Parity => {
                let groups = before.iter().filter(|&&before| before <= index).count() as u64;
                Some(index + groups * pieces)
            }
        }
    }

    /// Appends a frame to `out`.
    ///
    /// # Errors
    /// The set has no such frame, the data has another size, or the sequence numbers end.
    pub fn write(&self, place: RecoveryPlace, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let number = self.number(place);
        let number = number.filter(|_| data.len() == self.data_bytes(place.part));
        let number = number.ok_or(FormatError::Mismatch {
            what: "bytes of a recovery frame",
            found: data.len() as u64,
            expected: self.data_bytes(place.part) as u64,
        })?;
        let sequence = u64::from(self.first_sequence) + number;
        if sequence > u64::from(u32::MAX) {
            return Err(FormatError::OverLimit {
                what: "sequence number",
                value: sequence,
                limit: u64::from(u32::MAX),
            });
        }
        let head = head_of(&self.fields(place));
        let (flags, sums) = (FLAG_SKIPPABLE, piece_sums(data));
        let kind = FrameKind::Recovery;
        let mut prefix = frame_prefix(kind, flags, &head, data.len() as u64, &sums);
        finish_header(&mut prefix, self.archive_id, sequence);
        out.extend_from_slice(&prefix);
        out.extend_from_slice(data);
        Ok(())
    }

    fn fields(&self, place: RecoveryPlace) -> Vec<u8> {
        let RecoveryParameters {
            protected_bytes,
            slice_bytes,
            data_rows,
            parity_rows,
        } = self.parameters;
        let part = u8::from(place.part == RecoveryPart::Parity);
        let method = self.later.map_or(METHOD_FROM_START, |_| METHOD_FROM_LATER);
        let mut fields = vec![0, 0, method, u8::from(self.is_apart), part];
        fields.extend_from_slice(&self.set_id.to_le_bytes());
        fields.extend_from_slice(&protected_bytes.to_le_bytes());
        for number in [slice_bytes, data_rows, parity_rows] {
            fields.extend_from_slice(&number.to_le_bytes());
        }
        fields.extend_from_slice(&place.index.to_le_bytes());
        if let Some(later) = self.later {
            fields.extend_from_slice(&later.start.to_le_bytes());
            fields.extend_from_slice(&later.share.to_le_bytes());
        }
        fields
    }

    /// Parses the payload of a Recovery frame whose checksums are right: the set, the place of the
    /// frame in it, and the data.
    ///
    /// # Errors
    /// Damaged: fields that no writer writes. Unsupported: a later method.
    pub fn parse<'p>(
        header: &FrameHeader,
        payload: &'p [u8],
    ) -> Result<(Self, RecoveryPlace, &'p [u8])> {
        let split = SplitPayload::new(payload)?;
        let mut fields = split.fields(WHAT);
        let place = parse_set(header, &mut fields)?;
        take_extensions(fields)?;
        let (set, place) = place;
        if split.data.len() == set.data_bytes(place.part) {
            Ok((set, place, split.data))
        } else {
            Err(FormatError::Mismatch {
                what: "bytes of a recovery frame",
                found: split.data.len() as u64,
                expected: set.data_bytes(place.part) as u64,
            })
        }
    }
}

fn parse_set(
    header: &FrameHeader,
    fields: &mut ByteReader<'_>,
) -> Result<(RecoverySet, RecoveryPlace)> {
    fields.varint()?;
    fields.varint()?;
    let method = fields.varint()?;
    let is_later = method == u64::from(METHOD_FROM_LATER);
    if !is_later && method != u64::from(METHOD_FROM_START) {
        return Err(FormatError::Reserved {
            what: "method of recovery",
            value: method,
        });
    }
    let is_apart = flag("place of recovery data", fields.varint()?)?;
    let is_parity = flag("part of recovery data", fields.varint()?)?;
    let set_id = fields.u64()?;
    let parameters = RecoveryParameters {
        protected_bytes: fields.u64()?,
        slice_bytes: fields.u32()?,
        data_rows: fields.u32()?,
        parity_rows: fields.u32()?,
    };
    parameters.check().map_err(bad_parameters)?;
    let place = RecoveryPlace {
        part: if is_parity { RecoveryPart::Parity } else { RecoveryPart::Digests },
        index: fields.u64()?,
    };
    let later = if is_later { Some(later_bytes(fields)?) } else { None };
    if is_later && is_apart {
        return Err(wrong_later("place of recovery data", 1));
    }
    let mut set = RecoverySet {
        archive_id: header.archive_id,
        is_apart,
        first_sequence: 0,
        set_id,
        parameters,
        later,
    };
    let number = set.number(place);
    let first = number.and_then(|number| header.sequence.checked_sub(number));
    let first = first.ok_or(FormatError::Value {
        what: "number of a recovery frame",
        value: place.index,
        rule: "below the number of such frames, and as its sequence number says",
    })?;
    set.first_sequence = u32::try_from(first).unwrap_or(u32::MAX);
    Ok((set, place))
}

fn later_bytes(fields: &mut ByteReader<'_>) -> Result<LaterBytes> {
    let start = fields.u64()?;
    if start == 0 || start > START_MAX {
        return Err(wrong_later("start of protected bytes", start));
    }
    let share = fields.u16()?;
    if !(SHARE_MIN..=SHARE_MAX).contains(&u32::from(share)) {
        return Err(wrong_later("share of recovery data", u64::from(share)));
    }
    Ok(LaterBytes { start, share })
}

fn wrong_later(what: &'static str, value: u64) -> FormatError {
    FormatError::Value {
        what,
        value,
        rule: "as for bytes behind earlier recovery data",
    }
}

fn flag(what: &'static str, value: u64) -> Result<bool> {
    match value {
        0 | 1 => Ok(value == 1),
        value => Err(FormatError::Value {
            what,
            value,
            rule: "0 or 1",
        }),
    }
}

fn bad_parameters(bad: BadParameters) -> FormatError {
    FormatError::Value {
        what: bad.what,
        value: bad.value,
        rule: "as for the size of the file",
    }
}

#[cfg(test)]
mod tests;
