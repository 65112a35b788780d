//! What another archive needs to know of this one to take over its members.

use std::ops::Range;
use std::sync::Arc;

use refrain_format::{ArchiveHeader, DecoderRole, GenerationInfo, IndexMember, Pattern, TreeLayer};
use refrain_storage::Source;

use crate::error::{Error, Result};
use crate::read::epoch_map::Origin;
use crate::read::native::growth::first_generation;
use crate::read::native::indexed::{IndexedArchive, RESOLVED_BYTES_MAX};
use crate::read::native::layered_content::{EntryOfTree, LayeredContent};
use crate::read::native::member_content::MemberContent;
use crate::read::native::stated_map::Piece;
use crate::read::store_reader::Depth;
use crate::read::tree::content::TreeContent;

/// How many pieces are taken at once.
const PIECES_MAX: usize = 1 << 16;

/// Where a piece of content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentPiece {
    /// It is the same as the content at this offset.
    Reference(u64),
    /// In the store.
    Store(u64),
    /// It is this pattern, from its first byte on.
    Fill(Pattern),
}

/// Pieces of content, with their lengths.
pub(crate) type ContentPieces = Vec<(ContentPiece, u64)>;

impl IndexedArchive {
    /// The bytes of the archive.
    pub(crate) fn bytes(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// The generations that are kept, in order. To an archive without any, its members are one; it
    /// has none if it has no members.
    pub(crate) fn kept_generations(&self) -> Vec<GenerationInfo> {
        match &self.generations {
            Some(generations) => generations.catalog.generations.clone(),
            None => first_generation(&self.end).into_iter().collect(),
        }
    }

    /// Whether the archive carries decoders, or names plug-ins.
    pub(crate) fn has_decoder_frames(&self) -> bool {
        self.end.last_decoder.is_some()
    }

    /// For what the archive carries decoders.
    ///
    /// # Errors
    /// `Damaged`, `Io`.
    pub(crate) fn carried_decoders(&self) -> Result<Vec<DecoderRole>> {
        let list = self.store.decoders().list()?;
        let modules = list.iter().filter(|decoder| decoder.module_bytes.is_some());
        Ok(modules.map(|decoder| decoder.role).collect())
    }

    /// Calls `each` for the codec and the filters of each block.
    ///
    /// # Errors
    /// From the index.
    pub(crate) fn for_each_coding(&self, each: &mut dyn FnMut(u16, [u8; 2])) -> Result<()> {
        self.index.for_each_block(&mut |row| {
            each(row.codec, row.filter_ids);
            Ok(())
        })
    }

    /// Its first frame.
    pub(crate) fn head(&self) -> &ArchiveHeader {
        &self.head
    }

    /// The lengths of all content and of the store.
    pub(crate) fn sums(&self) -> (u64, u64) {
        (self.end.content_bytes, self.end.store_bytes)
    }

    /// The member with this id.
    ///
    /// # Errors
    /// `Damaged` if the index has none; otherwise from the index.
    pub(crate) fn copied_member(&self, member_id: u64) -> Result<IndexMember> {
        let lost = || Error::damaged(format!("the index has no member {member_id}"));
        self.member_with_id(member_id)?.ok_or_else(lost)
    }

    /// The first pieces of a range of content, as its epoch states them, and where they end.
    ///
    /// # Errors
    /// From reading its extents.
    pub(crate) fn pieces_from(&self, range: Range<u64>) -> Result<(ContentPieces, u64)> {
        let stated = self.map_of(range.start, &self.meter())?;
        let stop = stated.content().end.min(range.end);
        let (mut pieces, mut at) = (Vec::new(), range.start);
        for found in stated.pieces(range.start..stop)?.take(PIECES_MAX) {
            let (piece, length) = found?;
            let piece = match piece {
                Piece::Reference(offset) => ContentPiece::Reference(offset),
                Piece::Store(offset) => ContentPiece::Store(offset),
                Piece::Fill { pattern, phase } => ContentPiece::Fill(pattern.rotated(phase)),
            };
            pieces.push((piece, length));
            at += length;
        }
        if at == range.start {
            return Err(Error::damaged("no extent describes this content").at_content(at));
        }
        Ok((pieces, at))
    }

    /// The pieces of a range of content, none of which is a reference.
    ///
    /// # Errors
    /// From reading its extents.
    pub(crate) fn resolved_pieces(&self, range: Range<u64>) -> Result<ContentPieces> {
        let (mut pieces, mut at) = (Vec::new(), range.start);
        while at < range.end {
            let stop = range.end.min(at + RESOLVED_BYTES_MAX);
            let map = self.resolved(at..stop, &self.meter())?;
            pieces.extend(map.origins(at..stop).map(|(origin, length)| match origin {
                Origin::Store(offset) => (ContentPiece::Store(offset), length),
                Origin::Fill { pattern, phase } => {
                    let pattern = map.pattern(pattern).rotated(phase);
                    (ContentPiece::Fill(pattern), length)
                }
            }));
            at = stop;
        }
        Ok(pieces)
    }

    /// Fills `buffer` with the content at an offset.
    ///
    /// # Errors
    /// From reading the archive.
    pub(crate) fn read_content_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let range = offset..offset.saturating_add(buffer.len() as u64);
        self.read_content(range, buffer, Depth::Whole, &self.meter())
    }
}

/// The entries of trees on top of each other, part by part, in path order. Their content is in the
/// content space; those that say what is removed are among them.
pub(crate) struct TreeParts {
    tree: LayeredContent<Arc<IndexedArchive>>,
    next: usize,
}

impl TreeParts {
    /// Of these trees, by descending id.
    ///
    /// # Errors
    /// `Damaged` if one is lost or another.
    pub(crate) fn of(archive: &Arc<IndexedArchive>, layers: &[TreeLayer]) -> Result<TreeParts> {
        let tree = LayeredContent::of_layers(archive, layers)?;
        Ok(TreeParts { tree, next: 0 })
    }

    /// The next ones; `None` at the end.
    ///
    /// # Errors
    /// From reading the entries.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<EntryOfTree>>> {
        if self.next >= self.tree.entry_frames()? {
            return Ok(None);
        }
        self.next += 1;
        self.tree.part(self.next - 1).map(Some)
    }
}

/// The entries of a tar stream, frame by frame, in its order.
pub(crate) struct RecordedFrames {
    member: MemberContent<Arc<IndexedArchive>>,
    rest: Range<u64>,
}

impl RecordedFrames {
    /// Of the member with this id.
    ///
    /// # Errors
    /// From the index.
    pub(crate) fn of(archive: &Arc<IndexedArchive>, member_id: u64) -> Result<RecordedFrames> {
        let lost = || Error::damaged(format!("the index has no member {member_id}"));
        let outline = archive.index.outline_of(member_id)?.ok_or_else(lost)?;
        let meter = Arc::new(archive.meter());
        let member = MemberContent::of(archive.clone(), outline, meter)?;
        let rest = member.frames();
        Ok(RecordedFrames { member, rest })
    }

    /// The entries of the next frame; `None` at the end.
    ///
    /// # Errors
    /// From reading them.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<refrain_entries::Entry>>> {
        let frame = self.rest.next();
        frame.map(|frame| self.member.frame(frame)).transpose()
    }
}
