//! One parsed payload of any kind.

use crate::archive::ArchiveHeader;
use crate::block::BlockHeader;
use crate::end::ArchiveEnd;
use crate::entries::EntriesHeader;
use crate::error::Result;
use crate::extents::ExtentsHeader;
use crate::frame::{FrameHeader, UntrustedFrameHeader};
use crate::index::Index;
use crate::layout::{FRAME_HEADER_BYTES, FrameKind};
use crate::limits::Limits;
use crate::member::{MemberEnd, MemberStart};

/// A payload that has passed the checks that need nothing but itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload<'a> {
    /// The archive's version and settings.
    Archive(ArchiveHeader),
    /// A member begins.
    MemberStart(MemberStart),
    /// A range of the store.
    Block {
        /// Its head.
        head: BlockHeader,
        /// Its coded bytes.
        data: &'a [u8],
    },
    /// The map of an epoch.
    Extents {
        /// Its head.
        head: ExtentsHeader,
        /// Its coded section.
        data: &'a [u8],
    },
    /// A member is complete.
    MemberEnd(MemberEnd),
    /// A batch of entries.
    Entries {
        /// Its head.
        head: EntriesHeader,
        /// Its coded section.
        data: &'a [u8],
    },
    /// Where everything is.
    Index(Box<Index>),
    /// Where the index is.
    End(ArchiveEnd),
    /// A frame that this version passes over.
    Skipped,
}

impl<'a> Payload<'a> {
    /// Reads the payload of a frame of `kind`, whose checksum was compared. Kinds that this version does not read are
    /// [`Payload::Skipped`]: whether they may be, [`UntrustedFrameHeader::check`] has decided.
    ///
    /// # Errors
    /// Those of the kind's own `parse`.
    pub fn parse(kind: FrameKind, payload: &'a [u8], limits: &Limits) -> Result<Self> {
        Ok(match kind {
            FrameKind::Archive => Self::Archive(ArchiveHeader::parse(payload)?),
            FrameKind::MemberStart => Self::MemberStart(MemberStart::parse(payload)?),
            FrameKind::Block => {
                let (head, data) = BlockHeader::parse(payload, limits)?;
                Self::Block { head, data }
            }
            FrameKind::Extents => {
                let (head, data) = ExtentsHeader::parse(payload, limits)?;
                Self::Extents { head, data }
            }
            FrameKind::MemberEnd => Self::MemberEnd(MemberEnd::parse(payload)?),
            FrameKind::Entries => {
                let (head, data) = EntriesHeader::parse(payload, limits)?;
                Self::Entries { head, data }
            }
            FrameKind::Index => Self::Index(Box::new(Index::parse(payload, limits)?)),
            FrameKind::End => Self::End(ArchiveEnd::parse(payload)?),
            _ => Self::Skipped,
        })
    }
}

/// Reads the frame that begins at `offset` of `archive` and checks it as far as one frame can be checked alone.
///
/// # Errors
/// Those of the header, the payload checksum and the payload.
pub fn read_frame<'a>(
    archive: &'a [u8],
    offset: usize,
    limits: &Limits,
) -> Result<(FrameHeader, Payload<'a>)> {
    let frame = archive.get(offset..).unwrap_or_default();
    let untrusted = UntrustedFrameHeader::parse(frame)?;
    let rest = frame.get(FRAME_HEADER_BYTES..).unwrap_or_default();
    let header = untrusted.check(limits, Some(rest.len() as u64))?;
    // `check` has compared the size with what is left, so it fits a `usize`.
    let payload = rest
        .get(..header.payload_bytes as usize)
        .unwrap_or_default();
    header.check_payload(payload)?;
    Ok((header, Payload::parse(header.kind, payload, limits)?))
}
