//! The fixed numbers of the format that several files use: the magic number, the sync word, the
//! kinds of frames, and the sizes of the frame header and of the tail.
//!
//! This file imports nothing from the crate, so error messages can name what it defines.

/// The first bytes of every archive of any version. Modeled on PNG: the first byte is not text in
/// any encoding, and the line ends and ^Z reveal a transfer that converted the file.
pub const MAGIC: [u8; 8] = [0xd2, b'R', b'F', b'N', b'\r', b'\n', 0x1a, b'\n'];

/// The first bytes of every frame. They never occur in UTF-8 text, so a scan rarely stops at a
/// false position.
pub const SYNC: [u8; 4] = [0xf5, b'F', b'R', 0xfe];

/// The size of a frame header in bytes.
pub const FRAME_HEADER_BYTES: usize = 32;

/// The size of the tail, which follows the last frame: how far back that frame begins (6 bytes),
/// and [`TAIL_MAGIC`]. A reader that can seek finds the End frame, which has no fixed size, through
/// it.
pub const TAIL_BYTES: usize = 8;

/// The last bytes of every archive.
pub const TAIL_MAGIC: [u8; 2] = [b'R', 0xfe];

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
    /// 8: sums, the root hash and the roots of the index; the last frame.
    End,
    /// 9: a whole small archive; the only frame.
    Whole,
    /// 16: the keys of an encrypted archive ([`envelope`](crate::envelope)), which is inside.
    Envelope,
    /// 17: recovery data over physical ranges; skipped by all who do not heal.
    Recovery,
    /// 18, reserved: a decoder carried in the archive.
    Decoder,
    /// 19: the start of an appended generation, after the tail of the one before it.
    Generation,
    /// 20: bytes without a meaning; always skippable.
    Padding,
    /// 21, reserved: the place of this file among the volumes of an archive.
    Volume,
    /// 22: a signature of the root hash; skipped by all who do not ask for one.
    Signature,
    /// 23: the generations that are kept.
    Catalog,
    /// 24: fingerprints of the store, by which later generations find repeats; readers skip it.
    Anchors,
    /// 25: digests of a member's pieces, by which the next generation sees what did not change;
    /// readers skip it.
    Pieces,
    /// 26: the beginning of what was appended to an encrypted archive
    /// ([`envelope::run`](crate::envelope::run)).
    Run,
    /// 27: the end of that, with a table of what was appended before.
    RunEnd,
    /// Any other id.
    Unknown(u8),
}

impl FrameKind {
    /// All kinds that have a name.
    pub const NAMED: [Self; 21] = [
        Self::Archive,
        Self::MemberStart,
        Self::Block,
        Self::Extents,
        Self::MemberEnd,
        Self::Entries,
        Self::Index,
        Self::End,
        Self::Whole,
        Self::Envelope,
        Self::Recovery,
        Self::Decoder,
        Self::Generation,
        Self::Padding,
        Self::Volume,
        Self::Signature,
        Self::Catalog,
        Self::Anchors,
        Self::Pieces,
        Self::Run,
        Self::RunEnd,
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
            Self::Whole => 9,
            Self::Envelope => 16,
            Self::Recovery => 17,
            Self::Decoder => 18,
            Self::Generation => 19,
            Self::Padding => 20,
            Self::Volume => 21,
            Self::Signature => 22,
            Self::Catalog => 23,
            Self::Anchors => 24,
            Self::Pieces => 25,
            Self::Run => 26,
            Self::RunEnd => 27,
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

    /// Returns whether frames of this kind have data after their heads.
    #[must_use]
    pub fn has_data(self) -> bool {
        !matches!(self, Self::Archive | Self::MemberStart | Self::MemberEnd)
    }

    /// Returns whether a Whole frame may hold frames of this kind.
    #[must_use]
    pub fn is_in_whole(self) -> bool {
        self.id() >= Self::Archive.id() && self.id() <= Self::Entries.id()
    }

    /// Returns whether this version reads the kind.
    #[must_use]
    pub fn is_known(self) -> bool {
        (self.id() >= 1 && self.id() <= Self::Whole.id())
            || matches!(self, Self::Generation | Self::Catalog)
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
        assert!(FrameKind::Whole.is_known() && !FrameKind::Envelope.is_known());
        assert!(!FrameKind::Unknown(0).is_known());
    }
}
