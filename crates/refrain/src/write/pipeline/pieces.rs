//! Digests of the pieces of members: those of an earlier member, and those that a new one leaves.

use std::sync::Arc;

use refrain_format::{
    FRAME_HEADER_BYTES, FrameHeader, FrameKind, PIECE_BYTES, PIECES_DEPTH_MAX,
    PIECES_PER_FRAME_MAX, Piece, PiecesFrame,
};
use refrain_protect::{HASH_BYTES, MemberSegment, content_hash};
use refrain_storage::Source;

use crate::error::Result;
use crate::store::appendix::header_at;
use crate::store::memory::zeroed;

/// The digest of a piece.
pub(crate) type Digest = [u8; HASH_BYTES];

/// Stands for a digest that is not known. No bytes have it.
const UNKNOWN: Digest = [0; HASH_BYTES];

/// A member with fewer pieces is compared with the store as fast.
const PIECES_MIN: usize = 16;

/// A frame is based on an earlier one unless more than this share of its pieces changed.
const CHANGED_SHARE: usize = 4;

/// The share of the memory for the digests of earlier members, and as much for those of new ones.
const MEMORY_SHARE: u64 = 64;

/// The digests of a piece of a segment, by the number of the piece in its member.
pub(crate) fn digests_of(
    offset_in_member: u64,
    bytes: &[u8],
    hash: &MemberSegment,
) -> Vec<(u64, Digest)> {
    match hash {
        MemberSegment::Sparse(segment) => segment.pieces().to_vec(),
        MemberSegment::Plain(_) => (offset_in_member / PIECE_BYTES..)
            .zip(bytes.chunks(PIECE_BYTES as usize).map(content_hash))
            .collect(),
    }
}

/// For how many pieces there is memory.
pub(crate) fn pieces_max(memory_bytes: u64) -> usize {
    (memory_bytes / MEMORY_SHARE / HASH_BYTES as u64) as usize
}

/// The digests that an earlier member left.
#[derive(Default)]
pub(crate) struct EarlierPieces {
    digests: Vec<Digest>,
    /// Where its frames are, and how many others each needs.
    places: Vec<(u64, u8)>,
}

impl EarlierPieces {
    /// Reads the frames behind the end of a member, for at most `pieces_max` pieces. What is
    /// damaged is not known.
    ///
    /// # Errors
    /// `Io`; the system refuses memory.
    pub(crate) fn read(
        archive: &dyn Source,
        member_end_offset: u64,
        member_id: u64,
        pieces_max: usize,
    ) -> Result<EarlierPieces> {
        let mut earlier = EarlierPieces::default();
        let Some(end) = header_at(archive, member_end_offset)? else {
            return Ok(earlier);
        };
        let mut at = member_end_offset + end.frame_bytes();
        while let Some((header, frame)) = frame_at(archive, at)? {
            let first = earlier.digests.len();
            let is_next = frame.member_id == member_id && frame.first_piece == first as u64;
            if !is_next || first + frame.pieces.len() > pieces_max {
                break;
            }
            earlier.places.push((at, frame.depth));
            at += header.frame_bytes();
            earlier.digests.extend(resolved(archive, frame)?);
        }
        Ok(earlier)
    }

    pub(crate) fn digest(&self, piece: u64) -> Option<&Digest> {
        let digest = self.digests.get(usize::try_from(piece).ok()?);
        digest.filter(|&digest| *digest != UNKNOWN)
    }

    pub(crate) fn count(&self) -> usize {
        self.digests.len()
    }
}

/// The frame of pieces at an offset; `None` if something else is there, or it is damaged.
fn frame_at(archive: &dyn Source, offset: u64) -> Result<Option<(FrameHeader, PiecesFrame)>> {
    let header = header_at(archive, offset)?;
    let Some(header) = header.filter(|header| header.kind == FrameKind::Pieces) else {
        return Ok(None);
    };
    let mut payload = zeroed(header.payload_bytes as usize)?;
    let count = archive.read_at(offset + FRAME_HEADER_BYTES as u64, &mut payload)?;
    let is_intact = count == payload.len() && header.check_payload(&payload).is_ok();
    let frame = PiecesFrame::parse(&payload).ok().filter(|_| is_intact);
    Ok(frame.map(|frame| (header, frame)))
}

/// The digests of a frame, with those of the frames on which it is based.
fn resolved(archive: &dyn Source, frame: PiecesFrame) -> Result<Vec<Digest>> {
    let mut digests = vec![UNKNOWN; frame.pieces.len()];
    let mut missing: Vec<usize> = (0..digests.len()).collect();
    let mut next = frame;
    for _ in 0..=PIECES_DEPTH_MAX {
        missing.retain(|&number| match next.pieces.get(number) {
            Some(&Piece::Digest(digest)) => {
                digests[number] = digest;
                false
            }
            piece => piece == Some(&Piece::Same),
        });
        if missing.is_empty() {
            break;
        }
        match frame_at(archive, next.base_offset)? {
            Some((_, base)) if base.first_piece == next.first_piece => next = base,
            _ => break,
        }
    }
    Ok(digests)
}

/// Collects the digests of a member that is written.
pub(crate) struct PiecesWriter {
    digests: Vec<Digest>,
    pieces_max: usize,
    earlier: Option<Arc<EarlierPieces>>,
}

impl PiecesWriter {
    pub(crate) fn new(pieces_max: usize, earlier: Option<Arc<EarlierPieces>>) -> PiecesWriter {
        PiecesWriter {
            digests: Vec::new(),
            pieces_max,
            earlier,
        }
    }

    /// Adds pieces, by ascending number. Those beyond the memory are left out.
    pub(crate) fn add(&mut self, pieces: &[(u64, Digest)]) {
        for &(number, digest) in pieces {
            let Some(number) = usize::try_from(number)
                .ok()
                .filter(|&at| at < self.pieces_max)
            else {
                return;
            };
            if number >= self.digests.len() {
                self.digests.resize(number, UNKNOWN);
                self.digests.push(digest);
            }
        }
    }

    /// The frames behind the end of the member.
    pub(crate) fn finish(&mut self, member_id: u64) -> Vec<PiecesFrame> {
        let digests = std::mem::take(&mut self.digests);
        if digests.len() < PIECES_MIN {
            return Vec::new();
        }
        let numbered = digests.chunks(PIECES_PER_FRAME_MAX).enumerate();
        let frame = |(number, digests)| self.frame(member_id, number, digests);
        numbered.map(frame).collect()
    }

    fn frame(&self, member_id: u64, number: usize, digests: &[Digest]) -> PiecesFrame {
        let first_piece = (number * PIECES_PER_FRAME_MAX) as u64;
        let earlier = self.earlier.as_deref();
        let piece = |digest: &Digest| match *digest {
            UNKNOWN => Piece::Unknown,
            digest => Piece::Digest(digest),
        };
        let is_same = |(number, digest): (u64, &Digest)| {
            let earlier = earlier.and_then(|earlier| earlier.digests.get(number as usize));
            earlier == Some(digest)
        };
        let numbered = || (first_piece..).zip(digests);
        let changed = numbered().filter(|&numbered| !is_same(numbered)).count();
        let base = earlier.and_then(|earlier| earlier.places.get(number));
        let base = base.filter(|&&(_, depth)| {
            depth < PIECES_DEPTH_MAX && changed <= digests.len() / CHANGED_SHARE
        });
        let pieces = numbered().map(|numbered| {
            if base.is_some() && is_same(numbered) {
                Piece::Same
            } else {
                piece(numbered.1)
            }
        });
        PiecesFrame {
            member_id,
            first_piece,
            base_offset: base.map_or(0, |&(offset, _)| offset),
            depth: base.map_or(0, |&(_, depth)| depth + 1),
            pieces: pieces.collect(),
        }
    }
}
