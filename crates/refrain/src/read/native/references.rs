//! References: extents that stand for extents of earlier content.
//!
//! A random read resolves the range it needs (`resolve.rs`). A forward pass resolves every epoch as
//! it arrives, with as many of the latest resolved maps as the archive's window demands.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use refrain_format::{EpochSums, Extent, REFERENCE_DEPTH_MAX};

use crate::error::{Error, Result, mebibytes};
use crate::read::epoch_map::{EpochMap, Origin};
use crate::read::native::far_references::FarReferences;
use crate::read::native::resolve::{too_deep, too_many};
use crate::read::native::stated_map::{Piece, StatedMap};

/// A resolved map that later epochs may refer to.
struct RetainedMap {
    map: Arc<EpochMap>,
    /// The number of references leading to each extent.
    depths: Vec<u8>,
}

/// The latest epochs of a forward pass.
#[derive(Default)]
pub(crate) struct ReferenceHistory {
    retained: VecDeque<RetainedMap>,
    extents: u64,
    memory_bytes: u64,
    /// How many of the latest extents may be referred to.
    window: u64,
    /// What generations may refer to besides.
    far: Option<FarReferences>,
    /// Whether maps within the window were evicted, because they can be read again.
    is_short: bool,
}

impl ReferenceHistory {
    /// For an archive with this window.
    pub(crate) fn new(window: u64, far: Option<FarReferences>) -> ReferenceHistory {
        ReferenceHistory {
            window,
            far,
            ..ReferenceHistory::default()
        }
    }

    /// What generations may refer to outside the window.
    pub(crate) fn far(&mut self) -> Option<&mut FarReferences> {
        self.far.as_mut()
    }

    /// Resolves the references of the next epoch, adds their extents to `sums`, and keeps the map.
    /// An epoch may have up to `extents_max` extents.
    ///
    /// # Errors
    /// `Damaged` for a reference past the window; `Limit` for one that is too deep, for too many
    /// extents, or if the maps kept take more than `memory_max` bytes and cannot be read again.
    pub(crate) fn resolve(
        &mut self,
        stated: StatedMap,
        sums: &mut EpochSums,
        extents_max: u64,
        memory_max: u64,
    ) -> Result<Arc<EpochMap>> {
        let (map, depths) = if !stated.has_references {
            let depths = vec![0; stated.map.starts.len()];
            (stated.map, depths)
        } else {
            self.resolved(&stated, sums, extents_max)?
        };
        let map = Arc::new(map);
        if self.window > 0 {
            self.retain(map.clone(), depths);
        }
        if self.far.as_ref().is_some_and(FarReferences::can_reread) {
            while self.memory_bytes > memory_max && self.evict_oldest() {
                self.is_short = true;
            }
        } else if self.memory_bytes > memory_max {
            return Err(Error::limit(format!(
                "extents that later ones refer to need {} of memory, the limit is {}: raise the memory limit",
                mebibytes(self.memory_bytes),
                mebibytes(memory_max)
            )));
        }
        Ok(map)
    }

    fn resolved(
        &mut self,
        stated: &StatedMap,
        sums: &mut EpochSums,
        extents_max: u64,
    ) -> Result<(EpochMap, Vec<u8>)> {
        let mut resolved = EpochMap::empty(stated.content().start);
        let mut depths = Vec::new();
        for (piece, length) in stated.pieces(stated.content()) {
            match piece {
                Piece::Store(offset) => {
                    resolved.append(offset, length);
                    depths.push(0);
                }
                Piece::Fill { pattern, phase } => {
                    resolved.append_fill(&pattern, phase, length);
                    depths.push(0);
                }
                Piece::Reference(offset) => {
                    self.reference(offset..offset + length, &mut resolved, &mut depths, sums)?
                }
            }
            if depths.len() as u64 > extents_max {
                return Err(too_many(extents_max));
            }
        }
        Ok((resolved, depths))
    }

    /// Appends the extents of an earlier content range.
    fn reference(
        &mut self,
        range: Range<u64>,
        resolved: &mut EpochMap,
        depths: &mut Vec<u8>,
        sums: &mut EpochSums,
    ) -> Result<()> {
        let is_far = |oldest: &RetainedMap| range.start < oldest.map.content().start;
        if self.retained.front().is_none_or(is_far)
            && let Some(far) = &mut self.far
            && let Some(map) = far.resolve(range.clone(), REFERENCE_DEPTH_MAX - 1, self.is_short)?
        {
            for (origin, length) in map.origins(range) {
                add(&map, origin, length, resolved, sums);
                // Its own depth is unknown here; whoever reads at an offset counts all.
                depths.push(1);
            }
            return Ok(());
        }
        let is_before = |retained: &RetainedMap| retained.map.content().end <= range.start;
        let mut epoch = self.retained.partition_point(is_before);
        let mut at = range.start;
        while at < range.end {
            let retained = self
                .retained
                .get(epoch)
                .filter(|retained| retained.map.content().start <= at)
                .ok_or_else(|| {
                    Error::damaged("a reference is outside the window that the archive states")
                })?;
            let stop = retained.map.content().end.min(range.end);
            let first = retained.map.extent_at(at);
            for (number, (origin, length)) in (first..).zip(retained.map.origins(at..stop)) {
                add(&retained.map, origin, length, resolved, sums);
                let depth = retained.depths.get(number).map_or(0, |depth| depth + 1);
                if depth > REFERENCE_DEPTH_MAX {
                    return Err(too_deep());
                }
                depths.push(depth);
            }
            at = stop;
            epoch += 1;
        }
        Ok(())
    }

    fn retain(&mut self, map: Arc<EpochMap>, depths: Vec<u8>) {
        self.extents += depths.len() as u64;
        self.memory_bytes += (map.memory_bytes() + depths.len()) as u64;
        self.retained.push_back(RetainedMap { map, depths });
        while self.extents > self.window && self.evict_oldest() {}
    }

    /// Returns false if there is none.
    fn evict_oldest(&mut self) -> bool {
        let Some(oldest) = self.retained.pop_front() else {
            return false;
        };
        self.extents -= oldest.depths.len() as u64;
        self.memory_bytes -= (oldest.map.memory_bytes() + oldest.depths.len()) as u64;
        true
    }
}

/// Appends an extent of an earlier map.
fn add(map: &EpochMap, origin: Origin, length: u64, resolved: &mut EpochMap, sums: &mut EpochSums) {
    match origin {
        Origin::Store(offset_in_store) => {
            resolved.append(offset_in_store, length);
            sums.add(&Extent::Copy {
                length,
                offset_in_store,
            });
        }
        Origin::Fill { pattern, phase } => {
            let pattern = *map.pattern(pattern);
            resolved.append_fill(&pattern, phase, length);
            sums.add(&Extent::Fill { length, pattern });
        }
    }
}

#[cfg(test)]
mod tests {
    use refrain_format::{Coding, pack_extents};
    use refrain_testkit::{ResolvedExtents, Rng, scaled};

    use super::*;
    use crate::error::ErrorKind;
    use crate::read::native::packed_map::PackedMap;
    use crate::read::native::resolve::resolve_range;
    use crate::store::decoders::Decoders;
    use refrain_codec::Workspace;
    use refrain_format::{ExtentsHeader, Pattern};

    /// Epochs with their reference resolution.
    #[derive(Default)]
    struct Epochs {
        content_bytes: u64,
        store_bytes: u64,
        maps: Vec<Arc<PackedMap>>,
        naive: ResolvedExtents,
    }

    impl Epochs {
        fn section(&self, extents: &[Extent]) -> (ExtentsHeader, Vec<u8>) {
            let packed = pack_extents(self.content_bytes, self.store_bytes, extents).unwrap();
            let header = packed.header(0, (self.content_bytes, self.store_bytes), Coding::none());
            (header, packed.raw)
        }

        fn stated(&self, extents: &[Extent]) -> (StatedMap, EpochSums) {
            let (header, raw) = self.section(extents);
            StatedMap::parse(&mut Workspace::new(), &Decoders::own(), &header, &raw).unwrap()
        }

        /// Adds an epoch. Returns its extents as resolved by the reference implementation.
        fn push(
            &mut self,
            extents: &[Extent],
            window: u64,
        ) -> std::result::Result<Vec<Extent>, String> {
            let resolved = self.naive.epoch(self.content_bytes, extents, window);
            let (header, raw) = self.section(extents);
            let map =
                PackedMap::parse(&mut Workspace::new(), &Decoders::own(), &header, &raw).unwrap();
            self.maps.push(Arc::new(map));
            self.content_bytes += extents.iter().map(Extent::length).sum::<u64>();
            let is_fresh = |extent: &&Extent| matches!(extent, Extent::Fresh { .. });
            self.store_bytes += extents
                .iter()
                .filter(is_fresh)
                .map(Extent::length)
                .sum::<u64>();
            resolved
        }

        fn map_of(&self, at: u64) -> Arc<PackedMap> {
            let holds = |map: &&Arc<PackedMap>| map.content().contains(&at);
            self.maps.iter().find(holds).unwrap().clone()
        }
    }

    /// The store offset or pattern of every byte of a range.
    fn bytes_of(map: &EpochMap, range: Range<u64>) -> Vec<(u64, Option<u8>)> {
        let mut bytes = vec![];
        for (origin, length) in map.origins(range) {
            for inside in 0..length {
                bytes.push(match origin {
                    Origin::Store(offset) => (offset + inside, None),
                    Origin::Fill { pattern, phase } => {
                        let mut byte = [0];
                        map.pattern(pattern).fill(phase + inside, &mut byte);
                        (0, Some(byte[0]))
                    }
                });
            }
        }
        bytes
    }

    fn bytes_of_extents(extents: &[Extent], mut fresh: u64) -> Vec<(u64, Option<u8>)> {
        let mut bytes = vec![];
        for extent in extents {
            for inside in 0..extent.length() {
                bytes.push(match extent {
                    Extent::Fresh { .. } => (fresh + inside, None),
                    Extent::Copy {
                        offset_in_store, ..
                    } => (offset_in_store + inside, None),
                    Extent::Fill { pattern, .. } => {
                        let mut byte = [0];
                        pattern.fill(inside, &mut byte);
                        (0, Some(byte[0]))
                    }
                    Extent::Reference { .. } => panic!("not resolved"),
                });
            }
            fresh += match extent {
                Extent::Fresh { length } => *length,
                _ => 0,
            };
        }
        bytes
    }

    fn random_extent(epochs: &Epochs, rng: &mut Rng) -> Extent {
        let length = 1 + rng.below(30);
        match rng.below(4) {
            0 if epochs.store_bytes > 30 => Extent::Copy {
                length,
                offset_in_store: rng.below(epochs.store_bytes - length),
            },
            1 => Extent::Fill {
                length,
                pattern: Pattern::new(&b"abc"[..1 + rng.below(3) as usize]).unwrap(),
            },
            2 if epochs.content_bytes > 300 => Extent::Reference {
                length: length * 10,
                offset_in_content: rng.below(epochs.content_bytes - length * 10),
            },
            _ => Extent::Fresh { length },
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(scaled(200)))]
        #[test]
        fn both_ways_resolve_as_the_reference_does(seed: u64, window in 0_u64..400) {
            let mut rng = Rng::new(seed);
            let mut epochs = Epochs::default();
            let mut history = ReferenceHistory::new(window, None);
            for _ in 0..30 {
                let extents: Vec<_> = (0..1 + rng.below(6)).map(|_| random_extent(&epochs, &mut rng)).collect();
                let (content_start, store_start) = (epochs.content_bytes, epochs.store_bytes);
                let (stated, mut sums) = epochs.stated(&extents);
                let resolved = history.resolve(stated, &mut sums, 1 << 20, 1 << 20);
                let expected = match epochs.push(&extents, window) {
                    Ok(expected) => expected,
                    Err(message) => {
                        let kind = if message.contains("too deep") { ErrorKind::Limit } else { ErrorKind::Damaged };
                        assert_eq!(resolved.map(|_| ()).unwrap_err().kind, kind);
                        return Ok(());
                    }
                };
                let resolved = resolved.unwrap();
                assert_eq!(sums, EpochSums::from_extents(&expected));
                assert_eq!(resolved.starts.len(), expected.len());
                let all = bytes_of_extents(&expected, store_start);
                assert!(bytes_of(&resolved, resolved.content()) == all);
                let from = rng.below(all.len() as u64);
                let to = from + 1 + rng.below(all.len() as u64 - from);
                let range = content_start + from..content_start + to;
                let map = resolve_range(range.clone(), REFERENCE_DEPTH_MAX, 1 << 20, &mut |at| Ok(epochs.map_of(at))).unwrap();
                assert!(bytes_of(&map, range) == all[from as usize..to as usize]);
            }
        }
    }

    fn reference(length: u64, offset_in_content: u64) -> Extent {
        Extent::Reference {
            length,
            offset_in_content,
        }
    }

    #[test]
    fn references_of_references_have_a_limit() {
        let mut epochs = Epochs::default();
        let mut history = ReferenceHistory::new(1000, None);
        let mut add = |epochs: &mut Epochs, extent| {
            let (stated, mut sums) = epochs.stated(&[extent]);
            let _ = epochs.push(&[extent], 1000);
            history
                .resolve(stated, &mut sums, 1000, 1 << 20)
                .map(|_| ())
        };
        add(&mut epochs, Extent::Fresh { length: 10 }).unwrap();
        for depth in 0..u64::from(REFERENCE_DEPTH_MAX) {
            add(&mut epochs, reference(10, depth * 10)).unwrap();
        }
        let range = |start| start..start + 10;
        let deepest = u64::from(REFERENCE_DEPTH_MAX) * 10;
        let resolve = |epochs: &Epochs, range| {
            resolve_range(range, REFERENCE_DEPTH_MAX, 100, &mut |at| {
                Ok(epochs.map_of(at))
            })
            .map(|_| ())
        };
        resolve(&epochs, range(deepest)).unwrap();
        let error = add(&mut epochs, reference(10, deepest)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Limit);
        let error = resolve(&epochs, range(deepest + 10)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Limit);
    }

    #[test]
    fn an_epoch_of_too_many_extents_is_refused_before_it_is_resolved() {
        let mut epochs = Epochs::default();
        let mut history = ReferenceHistory::new(1 << 20, None);
        // Each epoch refers to the previous one ten times.
        let pair = [Extent::Fresh { length: 1 }, reference(1, 0)];
        let first = [pair[0]; 10];
        let (stated, mut sums) = epochs.stated(&first);
        epochs.push(&first, 1 << 20).unwrap();
        history.resolve(stated, &mut sums, 5000, 1 << 20).unwrap();
        let mut length = 10;
        let error = loop {
            let from = epochs.content_bytes - length;
            let extents = [reference(length, from); 10];
            let (stated, mut sums) = epochs.stated(&extents);
            epochs.push(&extents, 1 << 20).unwrap();
            length *= 10;
            if let Err(error) = history.resolve(stated, &mut sums, 5000, 1 << 20) {
                break error;
            }
        };
        assert_eq!((error.kind, length), (ErrorKind::Limit, 10_000));
        let range = epochs.content_bytes - length..epochs.content_bytes;
        let error = resolve_range(range, REFERENCE_DEPTH_MAX, 5000, &mut |at| {
            Ok(epochs.map_of(at))
        })
        .map(|_| ());
        assert_eq!(error.unwrap_err().kind, ErrorKind::Limit);
    }

    #[test]
    fn the_window_needs_memory() {
        let epochs = Epochs::default();
        let extents = vec![Extent::Fresh { length: 1 }; 1000];
        let (stated, mut sums) = epochs.stated(&extents);
        let mut history = ReferenceHistory::new(1000, None);
        let error = history.resolve(stated, &mut sums, 5000, 12_000).map(|_| ());
        assert_eq!(error.unwrap_err().kind, ErrorKind::Limit);
        let (stated, mut sums) = epochs.stated(&extents);
        let mut history = ReferenceHistory::new(999, None);
        assert!(history.resolve(stated, &mut sums, 5000, 12_000).is_ok());
    }
}
