//! A cache of epochs' maps.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use crate::read::native::packed_map::PackedMap;

/// How many maps are cached regardless of size, so that a read of a few epochs decodes each once.
const CACHED_MAPS_MIN: usize = 4;

/// Expanding the latest maps may take 1/8 of the memory for maps, and this many are expanded
/// regardless of size.
const EXPANDED_SHARE: u64 = 8;
const EXPANDED_MAPS_MIN: usize = 4;

/// The most recently used maps of epochs. Blocks use the memory that maps do not.
pub(super) struct MapCache {
    maps: HashMap<u64, CachedMap>,
    /// By the time of their last use.
    by_use: BTreeMap<u64, u64>,
    /// The epochs of the latest maps, which are also expanded.
    latest: VecDeque<u64>,
    expanded_bytes: u64,
    clock: u64,
    bytes: u64,
    bytes_max: u64,
    /// The memory of maps and blocks together, in bytes.
    shared_bytes: u64,
}

struct CachedMap {
    used: u64,
    map: Arc<PackedMap>,
}

impl MapCache {
    /// A cache of up to `bytes_max` bytes, which shares `shared_bytes` with the blocks.
    pub(super) fn new(bytes_max: u64, shared_bytes: u64) -> MapCache {
        MapCache {
            maps: HashMap::new(),
            by_use: BTreeMap::new(),
            latest: VecDeque::new(),
            expanded_bytes: 0,
            clock: 0,
            bytes: 0,
            bytes_max,
            shared_bytes,
        }
    }

    /// Sets the limits. Returns the bytes left for blocks.
    pub(super) fn set_limits(&mut self, bytes_max: u64, shared_bytes: u64) -> u64 {
        self.bytes_max = bytes_max;
        self.shared_bytes = shared_bytes;
        self.shrink();
        self.bytes_for_blocks()
    }

    pub(super) fn get(&mut self, epoch: u64) -> Option<Arc<PackedMap>> {
        let found = self.maps.get_mut(&epoch)?;
        if found.used != self.clock {
            self.clock += 1;
            self.by_use.remove(&found.used);
            self.by_use.insert(self.clock, epoch);
            found.used = self.clock;
        }
        Some(found.map.clone())
    }

    /// Adds the map of an epoch, and evicts the least recently used ones. Returns the bytes left
    /// for blocks.
    pub(super) fn add(&mut self, epoch: u64, map: Arc<PackedMap>) -> u64 {
        if !self.maps.contains_key(&epoch) {
            self.clock += 1;
            self.bytes += map.memory_bytes() as u64;
            self.by_use.insert(self.clock, epoch);
            let used = self.clock;
            self.expanded_bytes += map.expanded_bytes();
            self.latest.push_back(epoch);
            self.maps.insert(epoch, CachedMap { used, map });
            self.shrink();
        }
        self.bytes_for_blocks()
    }

    fn shrink(&mut self) {
        while self.latest.len() > EXPANDED_MAPS_MIN
            && self.expanded_bytes > self.bytes_max / EXPANDED_SHARE
            && let Some(earlier) = self.latest.pop_front()
        {
            if let Some(cached) = self.maps.get(&earlier) {
                self.expanded_bytes -= cached.map.expanded_bytes();
                cached.map.forget_expanded();
            }
        }
        while self.maps.len() > CACHED_MAPS_MIN
            && self.bytes + self.expanded_bytes > self.bytes_max
            && let Some((_, oldest)) = self.by_use.pop_first()
            && let Some(evicted) = self.maps.remove(&oldest)
        {
            self.latest.retain(|epoch| *epoch != oldest);
            self.expanded_bytes -= evicted.map.expanded_bytes();
            self.bytes -= evicted.map.memory_bytes() as u64;
        }
    }

    fn bytes_for_blocks(&self) -> u64 {
        let maps_bytes = self.bytes + self.expanded_bytes;
        self.shared_bytes.saturating_sub(maps_bytes)
    }
}

#[cfg(test)]
mod tests {
    use refrain_codec::Workspace;
    use refrain_format::{Coding, Extent, pack_extents};

    use super::*;
    use crate::store::decoders::Decoders;

    fn map() -> Arc<PackedMap> {
        map_of(0)
    }

    /// A map of a fresh extent and this many pairs of non-adjacent extents.
    fn map_of(pairs: usize) -> Arc<PackedMap> {
        let fresh = Extent::Fresh { length: 1 };
        let copy = Extent::Copy {
            length: 1,
            offset_in_store: 0,
        };
        let mut extents = vec![fresh];
        (0..pairs).for_each(|_| extents.extend([copy, fresh]));
        let packed = pack_extents(0, 0, &extents).unwrap();
        let header = packed.header(0, (0, 0), Coding::none());
        let parsed = PackedMap::parse(
            &mut Workspace::new(),
            &Decoders::own(),
            &header,
            &packed.raw,
        );
        Arc::new(parsed.unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn the_latest_maps_are_expanded() {
        let expanded_after = |bytes_max| {
            let mut cache = MapCache::new(bytes_max, 1 << 20);
            for epoch in 0..8 {
                cache.add(epoch, map_of(1000));
            }
            let mut is_expanded = |epoch: &u64| {
                cache
                    .get(*epoch)
                    .is_some_and(|map| map.expanded().is_some())
            };
            (0..8).filter(|epoch| is_expanded(epoch)).collect()
        };
        let expanded = map_of(1000).expanded_bytes();
        assert!(expanded >= 12 * 2000, "{expanded}");
        let six: Vec<u64> = expanded_after(EXPANDED_SHARE * 6 * expanded);
        assert_eq!(six, [2, 3, 4, 5, 6, 7]);
        assert_eq!(expanded_after(EXPANDED_SHARE * 8 * expanded).len(), 8);
        assert_eq!(expanded_after(0), [4, 5, 6, 7], "four in any case");
    }

    #[test]
    fn maps_that_were_not_used_for_longest_make_room() {
        let each = map().memory_bytes() as u64;
        let expanded = map().expanded_bytes();
        let mut cache = MapCache::new(6 * (each + expanded), 100 * each);
        for epoch in 0..6 {
            let taken = (epoch + 1) * (each + expanded);
            assert_eq!(cache.add(epoch, map()), 100 * each - taken);
        }
        let taken = 6 * (each + expanded);
        assert_eq!(cache.add(5, map()), 100 * each - taken, "it is there");
        assert!(cache.get(0).is_some());
        assert_eq!(cache.add(6, map()), 100 * each - taken);
        assert!(cache.get(1).is_none());
        assert!(cache.get(0).is_some() && cache.get(6).is_some());
        // Four maps always stay. The four latest stay expanded, one of which is evicted.
        assert_eq!(cache.set_limits(0, 10 * each), 6 * each - 3 * expanded);
        let left: Vec<u64> = (0..7).filter(|epoch| cache.get(*epoch).is_some()).collect();
        assert_eq!(left, [0, 4, 5, 6]);
        assert_eq!(cache.set_limits(0, each), 0);
    }
}
