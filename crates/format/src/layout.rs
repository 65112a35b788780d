//! The fixed numbers of the format that several files use: the magic number, the sync word, the
//! kinds of frames, and the sizes of the frame header and of the fixed part of each payload.
//!
//! This file imports nothing of the crate, so error messages can name what it defines.

/// The first bytes of every archive of any version. Modelled on PNG: the first byte is not text in
/// any encoding, and the line ends and ^Z reveal a transfer that converted the file.
pub const MAGIC: [u8; 8] = [0xd2, b'R', b'F', b'N', b'\r', b'\n', 0x1a, b'\n'];

/// The first bytes of every frame. They never occur in UTF-8 text, so a scan rarely stops at a
/// false position.
pub const SYNC: [u8; 4] = [0xf5, b'F', b'R', 0xfe];

/// The size of a frame header in bytes.
pub const FRAME_HEADER_BYTES: usize = 40;

/// The size of the payload of an Archive frame in bytes.
pub(crate) const ARCHIVE_BYTES: usize = 64;

/// The size of the payload of a MemberStart frame in bytes, without the name.
pub(crate) const MEMBER_START_FIXED_BYTES: usize = 48;

/// The size of the payload of a MemberEnd frame in bytes, without the further digests.
pub(crate) const MEMBER_END_FIXED_BYTES: usize = 4 * 8 + 32 + 2;

/// The size of the header of a Block frame's payload in bytes; the coded data follows.
pub const BLOCK_HEADER_BYTES: usize = 64;

/// The size of the header of an Extents frame's payload in bytes; the coded section follows.
pub const EXTENTS_HEADER_BYTES: usize = 96;

/// The size of the fixed part of the header of an Entries frame's payload in bytes; the first path
/// and the coded section follow.
pub const ENTRIES_HEADER_BYTES: usize = 80;

/// The size of the payload of an End frame in bytes.
pub(crate) const END_BYTES: usize = 56;

/// The size of a whole End frame in bytes: a reader reads this many from the end of the file.
pub const END_FRAME_BYTES: usize = FRAME_HEADER_BYTES + END_BYTES;

/// The kind of a frame. The ids are part of the format and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameKind {
    /// 1: version, features and settings of the archive; always the first frame.
    Archive,
    /// 2: the start of a member.
    MemberStart,
    /// 3: a coded range of the store.
    Block,
    /// 4: the map from an epoch of content to the store.
    Extents,
    /// 5: the end of a member.
    MemberEnd,
    /// 6: a batch of the entries of a tree member.
    Entries,
    /// 7: the locations of all frames.
    Index,
    /// 8: the location of the index; always the last frame.
    End,
    /// 16, reserved: an encrypted frame, header included.
    Envelope,
    /// 17, reserved: recovery data over physical ranges.
    Recovery,
    /// 18, reserved: a decoder carried in the archive.
    Decoder,
    /// 19, reserved: the start of an appended generation (after an End frame).
    Generation,
    /// 20: bytes without a meaning; always skippable.
    Padding,
    /// Any other id.
    Unknown(u8),
}

impl FrameKind {
    /// All kinds that have a name.
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

    /// Returns the id in the archive.
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

    /// Returns the kind with this id.
    #[must_use]
    pub fn from_id(id: u8) -> Self {
        Self::NAMED
            .into_iter()
            .find(|kind| kind.id() == id)
            .unwrap_or(Self::Unknown(id))
    }

    /// Returns whether this version reads the kind.
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
    fn ids_and_kinds_match_one_to_one() {
        for id in 0..=u8::MAX {
            assert_eq!(FrameKind::from_id(id).id(), id);
        }
        assert!(FrameKind::End.is_known() && !FrameKind::Envelope.is_known());
        assert!(!FrameKind::Unknown(0).is_known());
    }
}
