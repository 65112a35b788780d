//! Step C, first: the bytes of a segment that are where its [`Trail`](crate::Trail) has them.
#![forbid(unsafe_code)]

use crate::find::{Match, MatchSource, SegmentMatcher};
use crate::params::RESUME_MIN;
use crate::trail::{AlignedPiece, PROBE_BYTES};

impl SegmentMatcher<'_> {
    /// Finds the bytes that are where the trail has them.
    pub(crate) fn match_aligned(&mut self) -> Vec<Match> {
        let mut aligned = vec![];
        let scan = self.scan;
        for (start, end) in scan.gaps(self.bytes.len()) {
            let mut at = start;
            while let Some(piece) = self.trail.aligned(at, end) {
                at = self.match_piece(piece, &mut aligned);
            }
        }
        in_content(&aligned)
    }

    /// Finds the next bytes that equal those of a piece. Returns where the rest of the trail is to
    /// be looked at.
    fn match_piece(&mut self, piece: AlignedPiece, aligned: &mut Vec<AlignedMatch>) -> usize {
        let source_of =
            |at: usize| MatchSource::Store(piece.offset_in_store + (at - piece.start) as u64);
        let Some(start) = self.agreement_in(piece) else {
            return piece.end;
        };
        let length = self.agree_forward(start, piece.end, source_of(start));
        let inside = (start - piece.start) as u64;
        aligned.push(AlignedMatch {
            found: Match {
                start: self.start + start as u32,
                length: length as u32,
                source: source_of(start),
                is_continuation: true,
            },
            source_in_content: piece.source_in_content.map(|offset| offset + inside),
        });
        start + length
    }

    /// Where in the segment bytes of a piece begin that are as in the store; `None` if there are
    /// too few.
    fn agreement_in(&mut self, piece: AlignedPiece) -> Option<usize> {
        let mut at = piece.start;
        loop {
            let least = RESUME_MIN.min(piece.end - at);
            let offset = piece.offset_in_store + (at - piece.start) as u64;
            let agreed = self.agree_forward(at, at + least, MatchSource::Store(offset));
            if agreed == least && (at == piece.start || least == RESUME_MIN) {
                let before = self.agree_backward(at, piece.start, offset);
                return Some(at - before);
            }
            at = (at + 1).next_multiple_of(PROBE_BYTES);
            if at >= piece.end {
                let end = piece.offset_in_store + (piece.end - piece.start) as u64;
                let before = self.agree_backward(piece.end, piece.start, end);
                return (before >= RESUME_MIN).then(|| piece.end - before);
            }
        }
    }

    /// The ranges between the runs and these matches.
    pub(crate) fn gaps_beside(&self, aligned: &[Match]) -> Vec<(usize, usize)> {
        let mut gaps = vec![];
        let mut aligned = aligned.iter().peekable();
        for (mut start, end) in self.scan.gaps(self.bytes.len()) {
            let position = |found: &&Match| ((found.start - self.start) as usize) < end;
            while let Some(found) = aligned.next_if(position) {
                let at = (found.start - self.start) as usize;
                if at > start {
                    gaps.push((start, at));
                }
                start = at + found.length as usize;
            }
            if start < end {
                gaps.push((start, end));
            }
        }
        gaps
    }
}

/// A match with a piece of the trail, and where earlier content has the same bytes.
struct AlignedMatch {
    found: Match,
    source_in_content: Option<u64>,
}

impl AlignedMatch {
    fn is_continued_by(&self, next: &AlignedMatch) -> bool {
        let end = self
            .source_in_content
            .map(|offset| offset + u64::from(self.found.length));
        self.found.start + self.found.length == next.found.start
            && end.is_some()
            && end == next.source_in_content
    }
}

/// Matches of which several that continue each other are one match with earlier content.
fn in_content(aligned: &[AlignedMatch]) -> Vec<Match> {
    let parts = aligned.chunk_by(AlignedMatch::is_continued_by);
    let one = |part: &[AlignedMatch]| match part {
        [first, .., last] => first.source_in_content.map(|offset| Match {
            length: last.found.start + last.found.length - first.found.start,
            source: MatchSource::Content(offset),
            ..first.found
        }),
        _ => part.first().map(|single| single.found),
    };
    parts.filter_map(one).collect()
}
