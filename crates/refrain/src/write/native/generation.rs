//! What a generation has besides members: anchors of its store, and the catalog.

use refrain_format::{
    Anchor, AnchorsFrame, AnchorsPlace, ArchiveAssembler, Catalog, GenerationBase, GenerationInfo,
};

use crate::error::Result;

/// The frames of anchors have at least this many zero bits in their fingerprints: a writer with
/// little memory for a large store reads only the last ones.
const ZERO_BITS: [u8; 5] = [0, 2, 5, 8, 12];

/// The first two kinds, one anchor in 170 bytes and one in half a KiB, are kept of generations with
/// at most so many, 350 KB or 38 MB of new bytes: what changed between two nights consists of short
/// pieces, and most of them are the same in the next night.
const FINE_ANCHORS_MAX: [usize; 2] = [1 << 11, ANCHORS_PER_FRAME - 1];

/// Anchors in a frame, some 600 KB.
const ANCHORS_PER_FRAME: usize = 1 << 16;

/// Frames with fewer anchors than this are written again with those of a later generation, when
/// there are [`SMALL_FRAMES_MAX`] of a kind.
const SMALL_ANCHORS: u64 = 1 << 13;
const SMALL_FRAMES_MAX: usize = 16;

/// Collects the anchors of the store into frames.
pub(crate) struct AnchorsWriter {
    pending: [Vec<Anchor>; ZERO_BITS.len()],
    /// Whether anchors of the first kinds are dropped.
    is_large: [bool; FINE_ANCHORS_MAX.len()],
}

impl AnchorsWriter {
    pub(crate) fn new() -> AnchorsWriter {
        AnchorsWriter {
            pending: Default::default(),
            is_large: Default::default(),
        }
    }

    /// Adds anchors, by ascending address. Returns the frames that are full.
    pub(crate) fn add(&mut self, anchors: impl IntoIterator<Item = Anchor>) -> Vec<AnchorsFrame> {
        let mut full = Vec::new();
        for anchor in anchors {
            let zero_bits = anchor.fingerprint.trailing_zeros();
            let fits = |least: &u8| u32::from(*least) <= zero_bits;
            let Some(kind) = ZERO_BITS.iter().rposition(fits) else {
                continue;
            };
            let (pending, zero_bits) = (&mut self.pending[kind], ZERO_BITS[kind]);
            if let Some(is_large) = self.is_large.get_mut(kind) {
                *is_large |= pending.len() >= FINE_ANCHORS_MAX[kind];
                if *is_large {
                    pending.clear();
                    continue;
                }
            }
            pending.push(anchor);
            if pending.len() >= ANCHORS_PER_FRAME {
                let anchors = std::mem::take(pending);
                full.push(AnchorsFrame { zero_bits, anchors });
            }
        }
        full
    }

    /// The rest.
    pub(crate) fn finish(&mut self) -> Vec<AnchorsFrame> {
        let pending = std::mem::take(&mut self.pending);
        let frames = ZERO_BITS.into_iter().zip(pending);
        let frames = frames.map(|(zero_bits, anchors)| AnchorsFrame { zero_bits, anchors });
        frames.filter(|frame| !frame.anchors.is_empty()).collect()
    }
}

/// The small frames of a kind of which there are many: their anchors are to be written again.
pub(crate) fn frames_to_join(places: &[AnchorsPlace]) -> Vec<AnchorsPlace> {
    let mut joined = Vec::new();
    for zero_bits in ZERO_BITS {
        let is_small = |place: &&AnchorsPlace| {
            place.zero_bits == zero_bits && place.anchor_count < SMALL_ANCHORS
        };
        let small: Vec<_> = places.iter().filter(is_small).copied().collect();
        if small.len() >= SMALL_FRAMES_MAX {
            joined.extend(small);
        }
    }
    joined
}

/// A generation to be written.
pub(crate) struct GenerationPlan {
    /// What it follows.
    pub base: GenerationBase,
    /// The generations that are kept, and the frames of anchors.
    pub catalog: Catalog,
    /// What is said of the new one; `None` if it only replaces the catalog. Its places and sums
    /// are filled in.
    pub own: Option<GenerationInfo>,
}

impl GenerationPlan {
    /// A frame of anchors was written at this place.
    pub(crate) fn anchors_written(&mut self, place: AnchorsPlace) {
        self.catalog.anchors.push(place);
    }

    /// The frame of the catalog, after all members.
    pub(crate) fn catalog_frame(mut self, archive: &mut ArchiveAssembler) -> Result<Vec<u8>> {
        let end = &self.base.end;
        if let Some(own) = self.own {
            self.catalog.generations.push(GenerationInfo {
                number: self.base.generation.saturating_add(1),
                start: end.archive_bytes,
                end: None,
                first_member: end.member_count,
                member_count: archive.member_count() - end.member_count,
                content_start: end.content_bytes,
                content_bytes: archive.content_bytes() - end.content_bytes,
                store_bytes: archive.store_bytes() - end.store_bytes,
                ..own
            });
        }
        self.catalog.anchors.sort_by_key(|place| place.frame_offset);
        Ok(archive.catalog(&self.catalog)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(fingerprint: u64, offset_in_store: u64) -> Anchor {
        Anchor {
            fingerprint,
            offset_in_store,
        }
    }

    #[test]
    fn anchors_are_divided_by_their_zero_bits() {
        let mut writer = AnchorsWriter::new();
        let anchors = [
            anchor(1 << 5, 1),
            anchor(1 << 12, 2),
            anchor(1 << 4, 3),
            anchor(1 << 1, 3),
            anchor(1 << 3, 3),
            anchor(1 << 11, 4),
            anchor(1 << 40, 5),
        ];
        assert!(writer.add(anchors).is_empty());
        let frames = writer.finish();
        let kinds = frames
            .iter()
            .map(|frame| (frame.zero_bits, frame.anchors.len()));
        assert_eq!(
            kinds.collect::<Vec<_>>(),
            [(0, 1), (2, 2), (5, 1), (8, 1), (12, 2)]
        );
        let fine = |count| (0..count as u64).map(|at| anchor(1 << 3, at));
        writer.add(fine(FINE_ANCHORS_MAX[1] - 1));
        assert_eq!(writer.finish().len(), 1);
        writer.add(fine(FINE_ANCHORS_MAX[1] + 1));
        assert!(writer.finish().is_empty(), "too many");
        let many = (0..ANCHORS_PER_FRAME as u64 + 3).map(|at| anchor(1 << 5, at));
        let full = writer.add(many);
        assert_eq!(full.len(), 1);
        assert_eq!(writer.finish()[0].anchors.len(), 3);
        assert!(writer.finish().is_empty());
    }

    #[test]
    fn many_small_frames_are_joined() {
        let place = |number: u64, anchor_count| AnchorsPlace {
            frame_offset: number * 100,
            frame_bytes: 50,
            zero_bits: 5,
            anchor_count,
        };
        let mut places: Vec<_> = (0..15).map(|number| place(number, 10)).collect();
        places.push(place(20, SMALL_ANCHORS));
        assert!(frames_to_join(&places).is_empty());
        places.push(place(21, 1));
        assert_eq!(frames_to_join(&places).len(), 16);
    }
}
