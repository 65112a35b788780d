//! The fixed numbers of the format that more than one file uses: the magic, the sync word, the kinds of
//! frames, and the sizes of the frame header and of the fixed part of each payload.
//!
//! This file imports nothing of the crate, so error messages can name what is defined here.

/// The first bytes of every archive of any version. Modelled on PNG: the first byte is not text in any encoding, and the
/// line ends and ^Z show at once whether a transfer "converted" the file.
pub const MAGIC: [u8; 8] = [0xd2, b'R', b'F', b'N', b'\r', b'\n', 0x1a, b'\n'];

/// The first bytes of every frame: never part of UTF-8 text, so a scan rarely stops in vain.
pub const SYNC: [u8; 4] = [0xf5, b'F', b'R', 0xfe];

/// Bytes of a frame header.
pub const FRAME_HEADER_BYTES: usize = 40;

/// Bytes of the payload of an Archive frame.
pub(crate) const ARCHIVE_BYTES: usize = 56;

/// Bytes of the payload of a MemberStart frame without the name.
pub(crate) const MEMBER_START_FIXED_BYTES: usize = 48;

/// Bytes of the payload of a MemberEnd frame without the further digests.
pub(crate) const MEMBER_END_FIXED_BYTES: usize = 3 * 8 + 32 + 1;

/// Bytes of the head of a Block frame; the coded data follows.
pub const BLOCK_HEADER_BYTES: usize = 64;

/// Bytes of the head of an Extents frame; the coded section follows.
pub const EXTENTS_HEADER_BYTES: usize = 96;

/// Bytes of the head of an Entries frame; the coded section follows.
pub const ENTRIES_HEADER_BYTES: usize = 72;

/// Bytes of the payload of an End frame.
pub(crate) const END_BYTES: usize = 56;

/// Bytes of the whole End frame: a reader reads this many from the end of the file.
pub const END_FRAME_BYTES: usize = FRAME_HEADER_BYTES + END_BYTES;

/// What a frame holds. The numbers are the format's and never move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameKind {
    /// 1: version, features and settings of the archive; always first.
    Archive,
    /// 2: a member begins.
    MemberStart,
    /// 3: a range of the store, coded.
    Block,
    /// 4: the map from an epoch of content to the store.
    Extents,
    /// 5: a member is complete.
    MemberEnd,
    /// 6: a batch of a tree member's entries.
    Entries,
    /// 7: where everything is.
    Index,
    /// 8: where the index is; the last frame.
    End,
    /// 16, reserved: encrypted frames, with their headers.
    Envelope,
    /// 17, reserved: recovery data over physical ranges.
    Recovery,
    /// 18, reserved: a decoder carried in the archive.
    Decoder,
    /// 19, reserved: an appended generation begins (after an End frame).
    Generation,
    /// 20: bytes that mean nothing; always skippable.
    Padding,
    /// Any other number.
    Unknown(u8),
}

impl FrameKind {
    /// Every kind that has a name.
    pub const NAMED: [Self; 13] = [
        Self::Archive,
        Self::MemberStart,
        Self::Block,
        Self::Extents,
        Self::MemberEnd,
        Self::Entries,
        Self::Index,
        Self::End,
        Self::Envelope,
        Self::Recovery,
        Self::Decoder,
        Self::Generation,
        Self::Padding,
    ];

    /// The number on disk.
    #[must_use]
    pub fn id(self) -> u8 {
        match self {
            Self::Archive => 1,
            Self::MemberStart => 2,
            Self::Block => 3,
            Self::Extents => 4,
            Self::MemberEnd => 5,
            Self::Entries => 6,
            Self::Index => 7,
            Self::End => 8,
            Self::Envelope => 16,
            Self::Recovery => 17,
            Self::Decoder => 18,
            Self::Generation => 19,
            Self::Padding => 20,
            Self::Unknown(id) => id,
        }
    }

    /// The kind with this number.
    #[must_use]
    pub fn from_id(id: u8) -> Self {
        Self::NAMED
            .into_iter()
            .find(|kind| kind.id() == id)
            .unwrap_or(Self::Unknown(id))
    }

    /// True for the kinds that this version reads.
    #[must_use]
    pub fn is_known(self) -> bool {
        self.id() >= 1 && self.id() <= Self::End.id()
    }
}

impl std::fmt::Display for FrameKind {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(id) => write!(out, "kind-{id}"),
            named => write!(out, "{named:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_one_number_each() {
        for id in 0..=u8::MAX {
            assert_eq!(FrameKind::from_id(id).id(), id);
        }
        assert!(FrameKind::End.is_known() && !FrameKind::Envelope.is_known());
        assert!(!FrameKind::Unknown(0).is_known());
    }
}
