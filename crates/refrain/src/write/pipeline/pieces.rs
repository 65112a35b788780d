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

/// Unless this share of the known digests of the earlier member were those of the same places, the
/// content moves, as that of a dump does. Then only some digests are kept, which show when that
/// ends.
const SAME_SHARE: usize = 8;
const SAMPLED_SHARE: usize = 16;

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
        let mut digests = std::mem::take(&mut self.digests);
        if self.moves(&digests) {
            for (number, digest) in digests.iter_mut().enumerate() {
                if !number.is_multiple_of(SAMPLED_SHARE) {
                    *digest = UNKNOWN;
                }
            }
        }
        if digests.len() < PIECES_MIN {
            return Vec::new();
        }
        let numbered = digests.chunks(PIECES_PER_FRAME_MAX).enumerate();
        let frame = |(number, digests)| self.frame(member_id, number, digests);
        numbered.map(frame).collect()
    }

    /// Whether hardly a piece is where it was.
    fn moves(&self, digests: &[Digest]) -> bool {
        let Some(earlier) = &self.earlier else {
            return false;
        };
        let pairs = digests.iter().zip(&earlier.digests);
        let known = pairs.filter(|(_, earlier)| **earlier != UNKNOWN);
        let (mut count, mut same) = (0, 0);
        for (digest, earlier) in known {
            count += 1;
            same += usize::from(digest == earlier);
        }
        same * SAME_SHARE < count
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

#[cfg(test)]
mod tests {
    use refrain_format::complete_frame;

    use super::*;

    /// The digests of other pieces for each seed.
    fn digests(count: u64, seed: u64) -> Vec<(u64, Digest)> {
        let digest =
            |number: u64| content_hash(&[number.to_le_bytes(), seed.to_le_bytes()].concat());
        (0..count).map(|number| (number, digest(number))).collect()
    }

    fn frames(earlier: Option<EarlierPieces>, pieces: &[(u64, Digest)]) -> Vec<PiecesFrame> {
        let mut writer = PiecesWriter::new(1000, earlier.map(Arc::new));
        writer.add(pieces);
        writer.finish(7)
    }

    fn earlier(pieces: &[(u64, Digest)], depth: u8) -> EarlierPieces {
        EarlierPieces {
            digests: pieces.iter().map(|&(_, digest)| digest).collect(),
            places: vec![(100, depth)],
        }
    }

    fn stated(frames: &[PiecesFrame]) -> usize {
        let is_stated = |piece: &&Piece| matches!(piece, Piece::Digest(_));
        frames
            .iter()
            .flat_map(|frame| &frame.pieces)
            .filter(is_stated)
            .count()
    }

    #[test]
    fn a_frame_states_what_differs_from_the_earlier_one() {
        let before = digests(100, 0);
        let mut now = before.clone();
        now[50].1 = [1; HASH_BYTES];
        let based = frames(Some(earlier(&before, 3)), &now);
        assert_eq!(
            (based[0].base_offset, based[0].depth, stated(&based)),
            (100, 4, 1)
        );
        let deep = frames(Some(earlier(&before, PIECES_DEPTH_MAX)), &now);
        assert_eq!(
            (deep[0].base_offset, deep[0].depth, stated(&deep)),
            (0, 0, 100)
        );
        now[..40]
            .iter_mut()
            .for_each(|(_, digest)| *digest = [2; HASH_BYTES]);
        let changed = frames(Some(earlier(&before, 0)), &now);
        assert_eq!((changed[0].base_offset, stated(&changed)), (0, 100));
        assert!(frames(None, &digests(PIECES_MIN as u64 - 1, 0)).is_empty());
        assert_eq!(
            stated(&frames(None, &digests(2000, 0))),
            1000,
            "as many as fit"
        );
    }

    #[test]
    fn content_that_moves_leaves_a_sample() {
        let moved = frames(Some(earlier(&digests(100, 0), 0)), &digests(100, 1));
        assert_eq!(stated(&moved), 7);
        // The sample shows that it does not move any longer.
        let sampled = moved[0].pieces.iter().map(|piece| match piece {
            Piece::Digest(digest) => (0, *digest),
            _ => (0, UNKNOWN),
        });
        let sampled: Vec<_> = sampled.collect();
        assert_eq!(
            stated(&frames(Some(earlier(&sampled, 0)), &digests(100, 1))),
            100
        );
    }

    #[test]
    fn chains_of_frames_are_followed() {
        let frame = |base_offset: u64, depth, pieces: Vec<Piece>| PiecesFrame {
            member_id: 7,
            first_piece: 0,
            base_offset,
            depth,
            pieces,
        };
        let written = |frame: &PiecesFrame, sequence| {
            let payload = frame.to_payload().unwrap();
            complete_frame(FrameKind::Pieces, 1, &payload, 5, sequence)
        };
        let digest = |value| Piece::Digest([value; HASH_BYTES]);
        let mut archive = written(&frame(0, 0, vec![digest(1), digest(2), digest(3)]), 0);
        let second = archive.len() as u64;
        // No frame begins at 0 in an archive: there is the magic.
        archive.splice(0..0, [0; 8]);
        let base = frame(8, 1, vec![Piece::Same, digest(4), Piece::Unknown]);
        archive.extend(written(&base, 1));
        let member_end = archive.len() as u64;
        archive.extend(written(&frame(0, 0, vec![]), 2));
        let last = frame(
            second + 8,
            2,
            vec![Piece::Same, Piece::Same, Piece::Same, digest(9)],
        );
        archive.extend(written(&last, 3));
        let read = |archive: &[u8], pieces_max| {
            let source = refrain_storage::MemorySource::new(archive.to_vec());
            EarlierPieces::read(&source, member_end, 7, pieces_max).unwrap()
        };
        let found = read(&archive, 100);
        let of = |value: u8| Some([value; HASH_BYTES]);
        let digests: Vec<_> = (0..5).map(|number| found.digest(number).copied()).collect();
        assert_eq!(digests, [of(1), of(4), None, of(9), None]);
        assert_eq!(read(&archive, 3).count(), 0, "no memory");
        // Without its base, what it does not say itself is unknown.
        archive[second as usize + 60] ^= 1;
        let found = read(&archive, 100);
        let digests: Vec<_> = (0..4).map(|number| found.digest(number).copied()).collect();
        assert_eq!(digests, [None, None, None, of(9)]);
    }
}
