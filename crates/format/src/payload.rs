//! A parsed payload of any kind.

use crate::archive::ArchiveHeader;
use crate::block::BlockHeader;
use crate::constants::{FRAME_HEADER_BYTES, FrameKind};
use crate::end::ArchiveEnd;
use crate::entries::EntriesHeader;
use crate::error::{FormatError, Result};
use crate::extents::ExtentsHeader;
use crate::frame::{FrameHeader, UntrustedFrameHeader};
use crate::generation::{Catalog, GenerationStart};
use crate::index::IndexNode;
use crate::limits::Limits;
use crate::member::{MemberEnd, MemberStart};

/// A payload that has passed the checks that need nothing but itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload<'a> {
    /// The archive's version and settings.
    Archive(ArchiveHeader),
    /// The start of a member.
    MemberStart(MemberStart),
    /// A range of the store.
    Block {
        /// Its header.
        header: BlockHeader,
        /// Its coded bytes.
        data: &'a [u8],
    },
    /// The map of an epoch.
    Extents {
        /// Its header.
        header: ExtentsHeader,
        /// Its coded section.
        data: &'a [u8],
    },
    /// The end of a member.
    MemberEnd(MemberEnd),
    /// A batch of entries.
    Entries {
        /// Its header.
        header: EntriesHeader,
        /// Its coded section.
        data: &'a [u8],
    },
    /// A node of the index.
    Index(IndexNode),
    /// The sums.
    End {
        /// The head.
        end: ArchiveEnd,
        /// The roots of the index.
        roots: Vec<IndexNode>,
    },
    /// The start of a generation.
    Generation(GenerationStart),
    /// The generations that are kept.
    Catalog(Catalog),
    /// A frame that this version skips.
    Skipped,
}

impl<'a> Payload<'a> {
    /// Parses the payload of a frame of `kind`, whose checksum was compared. Kinds that this
    /// version does not read give [`Payload::Skipped`]: [`UntrustedFrameHeader::check`] has already
    /// rejected those that must not be skipped.
    ///
    /// # Errors
    /// The errors of the kind's own `parse`.
    pub fn parse(kind: FrameKind, payload: &'a [u8], limits: &Limits) -> Result<Self> {
        Ok(match kind {
            FrameKind::Archive => Self::Archive(ArchiveHeader::parse(payload)?),
            FrameKind::MemberStart => Self::MemberStart(MemberStart::parse(payload)?),
            FrameKind::Block => {
                let (header, data) = BlockHeader::parse(payload, limits)?;
                Self::Block { header, data }
            }
            FrameKind::Extents => {
                let (header, data) = ExtentsHeader::parse(payload, limits)?;
                Self::Extents { header, data }
            }
            FrameKind::MemberEnd => Self::MemberEnd(MemberEnd::parse(payload)?),
            FrameKind::Entries => {
                let (header, data) = EntriesHeader::parse(payload, limits)?;
                Self::Entries { header, data }
            }
            FrameKind::Index => IndexNode::parse(payload)?.map_or(Self::Skipped, Self::Index),
            FrameKind::End => {
                let (end, roots) = ArchiveEnd::parse(payload)?;
                Self::End { end, roots }
            }
            FrameKind::Generation => Self::Generation(GenerationStart::parse(payload)?),
            FrameKind::Catalog => Self::Catalog(Catalog::parse(payload)?),
            FrameKind::Whole => {
                return Err(FormatError::Order {
                    kind,
                    rule: "a Whole frame is the only frame of its archive",
                });
            }
            _ => Self::Skipped,
        })
    }
}

/// Reads the frame at `offset` of `archive` and checks everything that does not need other frames.
///
/// # Errors
/// The header, the payload's checksum or the payload is wrong.
pub fn read_frame<'a>(
    archive: &'a [u8],
    offset: usize,
    limits: &Limits,
) -> Result<(FrameHeader, Payload<'a>)> {
    let frame = archive.get(offset..).unwrap_or_default();
    let untrusted = UntrustedFrameHeader::parse(frame)?;
    let rest = frame.get(FRAME_HEADER_BYTES..).unwrap_or_default();
    let header = untrusted.check(limits, Some(rest.len() as u64))?;
    // `check` has compared the size with the remaining bytes, so it fits a `usize`.
    let payload = rest
        .get(..header.payload_bytes as usize)
        .unwrap_or_default();
    header.check_payload(payload)?;
    Ok((header, Payload::parse(header.kind, payload, limits)?))
}
