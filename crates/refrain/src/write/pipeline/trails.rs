//! What the members of a generation probably repeat: the content of those with the same names in an
//! earlier one.
//!
//! Pieces with the digest that the earlier member has at the same place are known to be the same:
//! they are neither searched nor compared, and the archive refers to the earlier content. The
//! others have a [`Trail`], which is compared byte by byte.

use std::ops::Range;
use std::sync::Arc;

use refrain_format::{EpochSums, PIECE_BYTES};
use refrain_longmatch::{Alignment, KnownRange, Trail, TrailPiece};
use refrain_protect::MemberSegment;

use crate::error::Result;
use crate::write::pipeline::pieces::{Digest, EarlierPieces, PiecesWriter, digests_of};
use crate::write::pipeline::segments::{ReadSegment, SegmentPlan};

/// How much earlier content before and behind a segment's place belongs to its trail, in bytes:
/// what was inserted or removed before it has moved it.
const AROUND_BYTES: u64 = 1 << 20;

/// The content of earlier generations.
pub(crate) trait EarlierContent: Send + Sync {
    /// Where the store has this range of the content. Fills are left out.
    ///
    /// # Errors
    /// From reading the archive.
    fn pieces(&self, range: Range<u64>) -> Result<Vec<TrailPiece>>;

    /// Content to refer to instead of this range, which has the same bytes: offsets and lengths, in
    /// order. It is reached through fewer references than a range that is one itself.
    ///
    /// # Errors
    /// `Limit` if a reference to it would be too deep; from reading the archive.
    fn sources(&self, range: Range<u64>) -> Result<Vec<(u64, u64)>>;

    /// The sums of the extents of a range.
    ///
    /// # Errors
    /// From reading the archive.
    fn sums(&self, range: Range<u64>) -> Result<EpochSums>;
}

/// The member to which a new one corresponds.
pub(crate) struct Predecessor {
    pub content: Range<u64>,
    pub pieces: Arc<EarlierPieces>,
}

/// What is known of a member before it is read.
pub(crate) struct MemberTrail {
    /// Whether it has pieces: the content of a tree is in another order each time.
    pub has_pieces: bool,
    pub earlier: Option<Predecessor>,
}

/// The earlier content that corresponds to members.
pub(crate) struct Trails {
    content: Arc<dyn EarlierContent>,
    members: Vec<MemberTrail>,
    pieces_max: usize,
}

impl Trails {
    pub(crate) fn new(
        content: Arc<dyn EarlierContent>,
        members: Vec<MemberTrail>,
        pieces_max: usize,
    ) -> Trails {
        Trails {
            content,
            members,
            pieces_max,
        }
    }

    /// The content of earlier generations.
    pub(crate) fn content(&self) -> &dyn EarlierContent {
        &*self.content
    }

    /// Collects the digests of a member; `None` if it has no pieces.
    pub(crate) fn pieces_writer(&self, member: usize) -> Option<PiecesWriter> {
        let member = self
            .members
            .get(member)
            .filter(|member| member.has_pieces)?;
        let earlier = member
            .earlier
            .as_ref()
            .map(|earlier| earlier.pieces.clone());
        Some(PiecesWriter::new(self.pieces_max, earlier))
    }

    fn earlier(&self, member: usize) -> Option<&Predecessor> {
        self.members.get(member)?.earlier.as_ref()
    }

    /// The digests of a segment's pieces, and which of its bytes are those of the predecessor.
    pub(crate) fn known(
        &self,
        plan: &SegmentPlan,
        bytes: &[u8],
        hash: &MemberSegment,
    ) -> (Vec<(u64, Digest)>, Vec<KnownRange>) {
        if !self
            .members
            .get(plan.member)
            .is_some_and(|member| member.has_pieces)
        {
            return (Vec::new(), Vec::new());
        }
        let digests = digests_of(plan.offset_in_member, bytes, hash);
        let mut known: Vec<Range<u64>> = Vec::new();
        let end = plan.offset_in_member + bytes.len() as u64;
        for (number, digest) in &digests {
            let earlier = self.earlier(plan.member);
            if earlier.and_then(|earlier| earlier.pieces.digest(*number)) == Some(digest) {
                let range = number * PIECE_BYTES..((number + 1) * PIECE_BYTES).min(end);
                match known.last_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    _ => known.push(range),
                }
            }
        }
        let ranges = known
            .into_iter()
            .filter_map(|range| self.known_range(plan, range));
        let ranges = ranges.flatten().collect();
        (digests, ranges)
    }

    /// What to refer to for a range of a member; `None` if nothing can be.
    fn known_range(&self, plan: &SegmentPlan, range: Range<u64>) -> Option<Vec<KnownRange>> {
        let earlier = &self.earlier(plan.member)?.content;
        let source = earlier.start + range.start..earlier.start + range.end;
        if source.end > earlier.end {
            return None;
        }
        let mut start = (range.start - plan.offset_in_member) as u32;
        let known = |(offset_in_content, length)| {
            let known = KnownRange {
                start,
                length: length as u32,
                offset_in_content,
            };
            start += known.length;
            known
        };
        let sources = self.content.sources(source).ok()?;
        Some(sources.into_iter().map(known).collect())
    }

    /// What a segment probably repeats: nothing if that cannot be read.
    pub(crate) fn of(&self, segment: &ReadSegment) -> Trail {
        match self.earlier(segment.member) {
            Some(earlier) => self.of_member(&earlier.content, segment),
            None => self.of_parts(segment),
        }
    }

    /// The files of a directory.
    fn of_parts(&self, segment: &ReadSegment) -> Trail {
        let mut pieces = Vec::new();
        let mut alignments = Vec::with_capacity(segment.earlier.len());
        for part in &segment.earlier {
            let end = part
                .content
                .start
                .saturating_add(segment.bytes.len() as u64);
            let range = part.content.start..part.content.end.min(end);
            pieces.extend(self.content.pieces(range).unwrap_or_default());
            alignments.push(Alignment {
                position: part.position,
                offset_in_content: part.content.start,
            });
        }
        Trail::new(pieces, alignments)
    }

    fn of_member(&self, content: &Range<u64>, segment: &ReadSegment) -> Trail {
        let start = content.start.saturating_add(segment.offset_in_member);
        let end = start.saturating_add(segment.bytes.len() as u64);
        let around = start.saturating_sub(AROUND_BYTES).max(content.start)
            ..end.saturating_add(AROUND_BYTES).min(content.end);
        let known_bytes: u32 = segment.scan.known.iter().map(|known| known.length).sum();
        if around.is_empty() || known_bytes as usize == segment.bytes.len() {
            return Trail::default();
        }
        let alignment = Alignment {
            position: 0,
            offset_in_content: start,
        };
        let pieces = self.content.pieces(around);
        Trail::new(pieces.unwrap_or_default(), vec![alignment])
    }
}
