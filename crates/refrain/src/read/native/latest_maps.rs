//! The maps that one read has used, found again without the shared cache.

use std::ops::Range;
use std::sync::{Arc, Weak};

use refrain_format::REFERENCE_DEPTH_MAX;

use crate::error::Result;
use crate::read::native::packed_map::PackedMap;

/// One map for each step of the longest chain of references, and the one where it begins.
const MAPS: usize = REFERENCE_DEPTH_MAX as usize + 1;

/// The latest maps of one read.
///
/// Each of many thousand references leads to a map, and mostly to one of few. The shared cache
/// remains their owner, so its limits hold.
#[derive(Default)]
pub(super) struct LatestMaps {
    /// The latest is first.
    maps: Vec<(Range<u64>, Weak<PackedMap>)>,
}

impl LatestMaps {
    /// The map with the content at `content_at`: one of the latest, or from `open`.
    ///
    /// # Errors
    /// From `open`.
    pub(super) fn get(
        &mut self,
        content_at: u64,
        open: impl FnOnce() -> Result<Arc<PackedMap>>,
    ) -> Result<Arc<PackedMap>> {
        let known = (self.maps.iter()).position(|(content, _)| content.contains(&content_at));
        if let Some(number) = known {
            let map = self.maps[number].1.upgrade();
            if let Some(map) = map {
                self.maps[..=number].rotate_right(1);
                return Ok(map);
            }
            self.maps.remove(number);
        }
        let map = open()?;
        self.maps.truncate(MAPS - 1);
        self.maps.insert(0, (map.content(), Arc::downgrade(&map)));
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use refrain_codec::Workspace;
    use refrain_format::{Coding, Extent, pack_extents};

    use super::*;
    use crate::error::Error;
    use crate::store::decoders::Decoders;

    const EPOCH_BYTES: u64 = 10;

    fn map_at(content_start: u64) -> Arc<PackedMap> {
        let fresh = Extent::Fresh {
            length: EPOCH_BYTES,
        };
        let packed = pack_extents(content_start, 0, &[fresh]).unwrap();
        let header = packed.header(0, (content_start, 0), Coding::none());
        Arc::new(
            PackedMap::parse(
                &mut Workspace::new(),
                &Decoders::own(),
                &header,
                &packed.raw,
            )
            .unwrap(),
        )
    }

    #[test]
    fn the_latest_maps_are_found_without_opening() {
        let cache: Vec<_> = (0..MAPS as u64 + 1)
            .map(|epoch| map_at(epoch * EPOCH_BYTES))
            .collect();
        let mut latest = LatestMaps::default();
        let mut is_opened = |at: u64, cached: &[Arc<PackedMap>]| {
            let mut opened = false;
            let found = latest.get(at, || {
                opened = true;
                Ok(cached[(at / EPOCH_BYTES) as usize].clone())
            });
            assert!(found.unwrap().content().contains(&at));
            opened
        };
        let epochs = |count: usize| (0..count as u64).map(|epoch| epoch * EPOCH_BYTES + 3);
        assert!(epochs(MAPS).all(|at| is_opened(at, &cache)));
        assert!(!epochs(MAPS).any(|at| is_opened(at, &cache)));
        // One more displaces the one that was not used for longest.
        assert!(is_opened(MAPS as u64 * EPOCH_BYTES, &cache));
        assert!(!is_opened(EPOCH_BYTES, &cache));
        assert!(is_opened(0, &cache));
    }

    #[test]
    fn an_evicted_map_is_opened_again() {
        let mut latest = LatestMaps::default();
        drop(latest.get(0, || Ok(map_at(0))).unwrap());
        let failure = latest.get(0, || Err(Error::damaged("opened")));
        assert!(failure.is_err());
        latest.get(0, || Ok(map_at(0))).unwrap();
    }
}
