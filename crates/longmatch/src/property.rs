//! Properties that hold for any input, shared by the property test and the fuzz target.

use std::sync::Arc;

use crate::continuation::Continuations;
use crate::epoch::{Epoch, EpochSegment, find_in_epoch};
use crate::extent::Extent;
use crate::find::{History, HistoryChunk, match_segment};
use crate::flatten::flatten;
use crate::index::FingerprintIndex;
use crate::insert::{insert_continuations, insert_epoch};
use crate::params::Rules;
use crate::reference::{CONTINUATIONS_BYTES, ReferenceMatcher};
use crate::replay::replay;
use crate::scan::{KnownRange, SegmentScan, scan_beside};
use crate::trail::{Alignment, Trail, TrailPiece};

/// The store in memory. It returns small chunks so that matches cross their borders.
struct MemoryHistory {
    store: Vec<u8>,
    chunk_bytes: usize,
}

impl History for MemoryHistory {
    fn chunk(&self, offset_in_store: u64) -> Option<HistoryChunk> {
        let start = offset_in_store as usize / self.chunk_bytes * self.chunk_bytes;
        let bytes = self.store.get(start..)?;
        let bytes = bytes[..bytes.len().min(self.chunk_bytes)].to_vec();
        Some(HistoryChunk {
            offset_in_store: start as u64,
            bytes: Arc::new(bytes),
        })
    }
}

/// The production code over a whole content, epoch by epoch.
pub struct Matcher {
    index: FingerprintIndex<Vec<u64>>,
    continuations: Continuations,
    history: MemoryHistory,
    rules: Rules,
}

impl Matcher {
    /// Creates a matcher with an index of `index_words` words.
    pub fn new(rules: Rules, index_words: usize, chunk_bytes: usize) -> Matcher {
        let index = FingerprintIndex::new(vec![0; index_words]);
        Matcher {
            index,
            continuations: Continuations::new(CONTINUATIONS_BYTES),
            history: MemoryHistory {
                store: vec![],
                chunk_bytes,
            },
            rules,
        }
    }

    /// Returns the unique bytes so far.
    pub fn store(&self) -> &[u8] {
        &self.history.store
    }

    /// Matches one epoch, given as the contents of its segments.
    pub fn epoch(&mut self, segments: &[Vec<u8>]) -> Vec<Extent> {
        let unguided: Vec<_> = segments.iter().map(|_| Guide::default()).collect();
        self.guided_epoch(segments, &unguided)
    }

    /// Matches one epoch, with what its segments probably repeat.
    fn guided_epoch(&mut self, segments: &[Vec<u8>], guides: &[Guide]) -> Vec<Extent> {
        let mut scans = vec![SegmentScan::default(); segments.len()];
        for ((bytes, guide), scan) in segments.iter().zip(guides).zip(&mut scans) {
            scan_beside(bytes, &guide.known, &self.rules, scan);
        }
        let mut start = 0;
        let segments: Vec<_> = segments
            .iter()
            .zip(&scans)
            .map(|(bytes, scan)| {
                let segment = EpochSegment { start, bytes, scan };
                start += bytes.len() as u32;
                segment
            })
            .collect();
        let epoch = Epoch::new(&segments);
        let (mut table, mut candidates) = (vec![], vec![]);
        find_in_epoch(&epoch, &mut table, &mut candidates);
        let matches: Vec<_> = (0..segments.len())
            .map(|number| {
                match_segment(
                    &epoch,
                    number,
                    &candidates[number],
                    &self.index,
                    &self.continuations,
                    &self.history,
                    0,
                    &guides[number].trail,
                    &self.rules,
                )
            })
            .collect();
        let flat = flatten(
            &epoch,
            &matches,
            self.history.store.len() as u64,
            0,
            &self.rules,
            || (),
        );
        for range in &flat.fresh {
            for slice in epoch.slices(range.start, range.end) {
                self.history.store.extend_from_slice(slice);
            }
        }
        insert_epoch(
            &mut self.index,
            &epoch,
            &flat,
            self.history.store.len() as u64,
            || (),
        );
        insert_continuations(&mut self.continuations, &epoch, &flat, || ());
        flat.extents
    }
}

/// What is guessed, and known, of a segment.
#[derive(Default)]
struct Guide {
    trail: Trail,
    known: Vec<KnownRange>,
}

/// Matches `old`, then `new` with the extents of `old` as a trail that begins `shift` bytes late,
/// and with the pieces of `piece_bytes` that are the same at the same place as known ranges. Checks
/// that the extents stand for the bytes of `new`. Returns the number of bytes stored for it.
///
/// # Panics
/// If they do not.
pub fn trails_lead_to_the_same_bytes(
    (old, new): (&[u8], &[u8]),
    segment_bytes: usize,
    piece_bytes: usize,
    shift: u64,
    rules: Rules,
) -> usize {
    let segments = |content: &[u8]| -> Vec<Vec<u8>> {
        content
            .chunks(segment_bytes.max(1))
            .map(<[u8]>::to_vec)
            .collect()
    };
    let mut matcher = Matcher::new(rules, 1 << 16, 1000);
    let pieces = pieces_of(&matcher.epoch(&segments(old)));
    let new_segments = segments(new);
    let guide = |number: usize| {
        let start = number * segment_bytes;
        Guide {
            trail: Trail::new(
                pieces.clone(),
                vec![Alignment {
                    position: 0,
                    offset_in_content: start as u64 + shift,
                }],
            ),
            known: known_ranges(
                &new_segments[number],
                old.get(start..).unwrap_or_default(),
                piece_bytes,
            )
            .map(|(at, length)| KnownRange {
                start: at as u32,
                length: length as u32,
                offset_in_content: (start + at) as u64,
            })
            .collect(),
        }
    };
    let guides: Vec<_> = (0..new_segments.len()).map(guide).collect();
    let before = matcher.store().len();
    let extents = matcher.guided_epoch(&new_segments, &guides);
    let (mut replayed, mut fresh) = (vec![], before as u64);
    for extent in &extents {
        match extent {
            &Extent::Known {
                length,
                offset_in_content,
            } => {
                let start = offset_in_content as usize;
                replayed.extend_from_slice(&old[start..start + length as usize]);
            }
            other => {
                let end = replay(
                    std::slice::from_ref(other),
                    matcher.store(),
                    fresh,
                    &mut replayed,
                );
                assert!(end.is_some(), "an extent leads out of the store");
                fresh = end.unwrap_or(fresh);
            }
        }
    }
    assert!(replayed == new, "the extents stand for other bytes");
    matcher.store().len() - before
}

/// The extents of a content at 0 as the pieces of a trail.
fn pieces_of(extents: &[Extent]) -> Vec<TrailPiece> {
    let (mut offset_in_content, mut fresh) = (0, 0);
    let mut pieces = vec![];
    for extent in extents {
        let length = extent.length();
        let offset_in_store = match extent {
            Extent::Fresh { .. } => Some(fresh),
            Extent::Copy {
                offset_in_store, ..
            } => Some(*offset_in_store),
            _ => None,
        };
        fresh += if matches!(extent, Extent::Fresh { .. }) { length } else { 0 };
        pieces.extend(offset_in_store.map(|offset_in_store| TrailPiece {
            offset_in_content,
            length,
            offset_in_store,
            source_in_content: Some(offset_in_content),
        }));
        offset_in_content += length;
    }
    pieces
}

/// Where pieces are the same, and their lengths.
fn known_ranges<'a>(
    new: &'a [u8],
    old: &'a [u8],
    piece_bytes: usize,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let pieces = new
        .chunks(piece_bytes)
        .zip(old.chunks(piece_bytes))
        .enumerate();
    let same = pieces.filter(|(_, (new, old))| new == old);
    same.map(move |(number, (new, _))| (number * piece_bytes, new.len()))
}

/// Cuts `content` into segments and epochs and matches it. Checks that replay restores it, that no
/// extent is empty, and that the reference implementation finds the same extents.
///
/// # Panics
/// If one of these does not hold.
pub fn matches_reference_and_replays(
    content: &[u8],
    segment_bytes: usize,
    epoch_segments: usize,
    rules: Rules,
) {
    let segments: Vec<Vec<u8>> = content
        .chunks(segment_bytes.max(1))
        .map(<[u8]>::to_vec)
        .collect();
    let mut matcher = Matcher::new(rules, 1 << 16, 1000);
    let mut reference = ReferenceMatcher::default();
    let mut replayed = vec![];
    for epoch in segments.chunks(epoch_segments.max(1)) {
        let store_before = matcher.store().len() as u64;
        let extents = matcher.epoch(epoch);
        assert_eq!(
            extents,
            reference.epoch(epoch, &rules),
            "the extents differ from the reference implementation's"
        );
        assert!(
            extents.iter().all(|extent| extent.length() > 0),
            "an extent is empty"
        );
        let fresh_end = replay(&extents, matcher.store(), store_before, &mut replayed);
        assert_eq!(
            fresh_end,
            Some(matcher.store().len() as u64),
            "the fresh bytes do not end at the end of the store"
        );
    }
    assert!(replayed == content, "replay does not restore the content");
    assert!(matcher.store() == reference.store, "the stores differ");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use refrain_testkit::scaled;

    /// Builds content with every kind of repeat from a list of (kind, length, seed).
    fn content(parts: &[(u8, u16, u64)]) -> Vec<u8> {
        let mut content: Vec<u8> = vec![];
        for &(kind, length, seed) in parts {
            let length = usize::from(length) % 6000;
            match kind % 7 {
                0 => content.extend(random_bytes(length, seed % 5)),
                // Letters.
                5 => content.extend(
                    random_bytes(length, seed % 3)
                        .iter()
                        .map(|byte| 97 + byte % 16),
                ),
                // An earlier passage in which short stretches of equal length are changed.
                6 if !content.is_empty() => {
                    let from = (seed >> 32) as usize % content.len();
                    let mut copy = content[from..content.len().min(from + length)].to_vec();
                    let (step, changed) =
                        (1 + seed as usize % 300, 1 + (seed >> 16) as usize % 130);
                    for part in copy.chunks_mut(step + changed) {
                        part.iter_mut().take(changed).for_each(|byte| *byte ^= 1);
                    }
                    content.extend(copy);
                }
                1 => content.extend(std::iter::repeat_n(seed as u8, length)),
                2 => content.extend((0..length).map(|i| (i % (1 + seed as usize % 90)) as u8)),
                3 if !content.is_empty() => {
                    let from = seed as usize % content.len();
                    let copy = content[from..content.len().min(from + length)].to_vec();
                    content.extend(copy);
                }
                _ => content.extend(random_bytes(length % 100, seed)),
            }
        }
        content
    }

    use refrain_testkit::data::random as random_bytes;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(scaled(96)))]
        #[test]
        fn any_content_matches_the_reference(
            parts in prop::collection::vec((any::<u8>(), any::<u16>(), any::<u64>()), 0..24),
            segment_bytes in 100usize..9000,
            epoch_segments in 1usize..6,
            far_min in 64u32..400,
            anchor_bits in 4u32..7,
            resume_spacing in 16u32..1000,
        ) {
            let rules = Rules {
                anchor_bits, far_min, near_min: 1000, near_window: 3000, block_bytes: 8192, run_min: 300, resume_spacing,
            };
            matches_reference_and_replays(&content(&parts), segment_bytes, epoch_segments, rules);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(scaled(96)))]
        #[test]
        fn any_trail_leads_to_the_same_bytes(
            parts in prop::collection::vec((any::<u8>(), any::<u16>(), any::<u64>()), 1..24),
            edits in prop::collection::vec((any::<u16>(), 0u8..4, any::<u8>()), 0..9),
            segment_bytes in 100usize..9000,
            piece_bytes in 64usize..5000,
            shift in 0u64..300,
        ) {
            let old = content(&parts);
            let mut new = old.clone();
            for (at, kind, length) in edits {
                let at = usize::from(at) % new.len().max(1);
                let end = new.len().min(at + usize::from(length));
                match kind {
                    0 => drop(new.drain(at..end)),
                    1 => drop(new.splice(at..at, random_bytes(usize::from(length), 8))),
                    2 => new[at..end].fill(0),
                    _ => new[at..end].iter_mut().for_each(|byte| *byte ^= 1),
                }
            }
            let shift = if shift < 200 { 0 } else { shift };
            let rules = Rules { anchor_bits: 5, near_window: 0, ..Rules::default() };
            trails_lead_to_the_same_bytes((&old, &new), segment_bytes, piece_bytes, shift, rules);
        }
    }

    /// Passages without anchors are found where they were, around one that changed.
    #[test]
    fn only_what_changed_is_stored() {
        let old: Vec<u8> = (0..300)
            .flat_map(|number| random_bytes(70, number % 150))
            .collect();
        let mut new = old.clone();
        new[9000..9020].iter_mut().for_each(|byte| *byte ^= 1);
        let rules = Rules {
            anchor_bits: 12,
            near_window: 0,
            ..Rules::default()
        };
        for piece_bytes in [512, 1 << 20] {
            let stored = trails_lead_to_the_same_bytes((&old, &new), 5000, piece_bytes, 0, rules);
            assert!(
                (20..60).contains(&stored),
                "{stored} bytes, pieces of {piece_bytes}"
            );
        }
    }

    #[test]
    fn a_repeat_resumes_after_single_differing_words() {
        let rules = Rules {
            anchor_bits: 5,
            near_window: 0,
            ..Rules::default()
        };
        let passage = random_bytes(5000, 42);
        let mut version = passage.clone();
        for at in [3000, 3100, 3120, 3140] {
            version[at..at + 4].fill(0);
        }
        let mut matcher = Matcher::new(rules, 1 << 12, 1 << 20);
        matcher.epoch(&[passage]);
        let extents = matcher.epoch(&[version]);
        let copy = |from: u64, to: u64| Extent::Copy {
            length: to - from,
            offset_in_store: from,
        };
        let fresh = || Extent::Fresh { length: 4 };
        assert_eq!(
            extents,
            [
                copy(0, 3000),
                fresh(),
                copy(3004, 3100),
                fresh(),
                copy(3104, 3120),
                fresh(),
                copy(3124, 3140),
                fresh(),
                copy(3144, 5000),
            ]
        );
    }

    #[test]
    fn in_text_only_long_parts_resume() {
        let rules = Rules {
            anchor_bits: 5,
            near_window: 0,
            ..Rules::default()
        };
        let letters = |byte: u8| b'a' + byte % 26;
        let passage: Vec<u8> = random_bytes(5000, 42).into_iter().map(letters).collect();
        // Between these single bytes are 48 that are the same.
        let mut version = passage.clone();
        for at in [3000, 3049, 3098] {
            version[at] = b'.';
        }
        let extents_of = |version: &[u8]| {
            let mut matcher = Matcher::new(rules, 1 << 12, 1 << 20);
            matcher.epoch(std::slice::from_ref(&passage));
            matcher.epoch(&[version.to_vec()])
        };
        let lengths = |extents: Vec<Extent>| extents.iter().map(Extent::length).collect::<Vec<_>>();
        assert_eq!(
            lengths(extents_of(&version)),
            [3000, 1, 48, 1, 48, 1, 5000 - 3099]
        );
        version[3097] = b'.';
        assert_eq!(
            lengths(extents_of(&version)),
            [3000, 1, 48, 50, 5000 - 3099],
            "a part of 47 bytes remains fresh"
        );
    }

    /// The passages that a second version puts between copies of the first are too short to have
    /// anchors of their own.
    #[test]
    fn a_version_that_equals_the_one_before_has_its_extents_and_nothing_fresh() {
        let rules = Rules {
            anchor_bits: 5,
            near_window: 0,
            ..Rules::default()
        };
        let first = random_bytes(40_000, 42);
        let second: Vec<u8> = first
            .chunks(2000)
            .zip(0..)
            .flat_map(|(piece, number)| [random_bytes(30, 100 + number), piece.to_vec()].concat())
            .collect();
        // The third one's segments begin elsewhere in the second one's extents.
        let third = [&random_bytes(710, 7)[..], &second[..]].concat();
        let segments = |content: &[u8]| -> Vec<Vec<u8>> {
            content.chunks(15_000).map(<[u8]>::to_vec).collect()
        };
        let mut matcher = Matcher::new(rules, 1 << 16, 1 << 20);
        let mut reference = ReferenceMatcher::default();
        let mut versions = vec![];
        for content in [first, second, third] {
            let extents = matcher.epoch(&segments(&content));
            assert_eq!(extents, reference.epoch(&segments(&content), &rules));
            versions.push((extents, matcher.store().len()));
        }
        assert!(versions[1].1 >= versions[0].1 + 20 * 30);
        assert_eq!(versions[2].1, versions[1].1 + 710);
        assert_eq!(versions[2].0[0], Extent::Fresh { length: 710 });
        let lengths = |extents: &[Extent]| extents.iter().map(Extent::length).collect::<Vec<_>>();
        assert_eq!(lengths(&versions[2].0[1..]), lengths(&versions[1].0));
    }

    #[test]
    fn a_far_repeat_becomes_one_copy_with_exact_ends() {
        let rules = Rules {
            anchor_bits: 5,
            far_min: 128,
            ..Rules::default()
        };
        let passage = random_bytes(5000, 42);
        let mut matcher = Matcher::new(rules, 1 << 12, 1 << 20);
        matcher.epoch(&[random_bytes(10_000, 1), passage.clone()]);
        let extents =
            matcher
                .epoch(&[[random_bytes(700, 2), passage.clone(), random_bytes(300, 3)].concat()]);
        assert_eq!(
            extents,
            [
                Extent::Fresh { length: 700 },
                Extent::Copy {
                    length: 5000,
                    offset_in_store: 10_000
                },
                Extent::Fresh { length: 300 },
            ]
        );
        assert_eq!(matcher.store().len(), 10_000 + 5000 + 700 + 300);
    }
}
