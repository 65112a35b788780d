//! A source behind all tiers.

use std::io;
use std::sync::Arc;

use refrain_protect::ContentHash;
use refrain_storage::{CachedRanges, NamedRange, Source};
use refrain_sync::clock::RealClock;

use super::counts::{TierCounts, TierRow};
use super::disk::{DiskTier, Mirror, Place};
use super::flights::Flights;
use super::shared::{Found, SharedTier};
use crate::key::Key;

/// The context of the hash of a range's place.
const CONTEXT: &str = "refrain 1.0 cached range";

/// The context of the hash of a value's name.
const NAME_CONTEXT: &str = "refrain 1.0 cached value";

/// By how much the ranges of a value differ in length at most: by what they say of their places.
const PLACE_BYTES_MAX: u64 = 64;

/// The tiers of a process, in front of all its sources.
pub struct Tiers {
    disk: Option<DiskTier>,
    shared: Option<Arc<SharedTier>>,
    flights: Flights,
    clock: RealClock,
    disk_counts: TierCounts,
    origin_counts: TierCounts,
}

impl Tiers {
    /// These tiers; without any, readers of a process still wait for each other.
    #[must_use]
    pub fn new(disk: Option<DiskTier>, shared: Option<SharedTier>) -> Tiers {
        Tiers {
            disk,
            shared: shared.map(Arc::new),
            flights: Flights::default(),
            clock: RealClock::new(),
            disk_counts: TierCounts::default(),
            origin_counts: TierCounts::default(),
        }
    }

    /// What each tier was asked: the disk, the nodes in the order of their list, the origin.
    #[must_use]
    pub fn rows(&self) -> Vec<TierRow> {
        let disk = self.disk.iter().map(|_| self.disk_counts.row("disk"));
        let nodes = self.shared.iter().flat_map(|shared| shared.rows());
        let origin = self.origin_counts.row("origin");
        disk.chain(nodes).chain([origin]).collect()
    }

    /// Sets what each tier was asked to zero.
    pub fn reset(&self) {
        self.disk_counts.reset();
        self.origin_counts.reset();
        self.shared.iter().for_each(|shared| shared.reset());
    }

    /// The nodes of the shared tier, if there is one.
    #[must_use]
    pub fn shared(&self) -> Option<&SharedTier> {
        self.shared.as_deref()
    }
}

/// A source with tiers in front of it.
pub struct TieredSource {
    origin: Arc<dyn Source>,
    identity: [u8; 32],
    mirror: Option<Mirror>,
    tiers: Arc<Tiers>,
}

impl TieredSource {
    /// A source whose bytes `identity` tells from all others'. What the disk refuses is not kept
    /// there.
    #[must_use]
    pub fn new(origin: Arc<dyn Source>, identity: [u8; 32], tiers: Arc<Tiers>) -> TieredSource {
        let mirror = tiers.disk.as_ref().map(|disk| disk.mirror(&identity));
        let mirror =
            mirror.and_then(|mirror| mirror.inspect_err(|_| tiers.disk_counts.failed()).ok());
        TieredSource {
            origin,
            identity,
            mirror,
            tiers,
        }
    }

    /// What a range is known by.
    fn key(&self, offset: u64, length_bytes: usize) -> Key {
        key_of_place(&self.place(offset, length_bytes))
    }

    fn place(&self, offset: u64, length_bytes: usize) -> Place {
        Place {
            identity: self.identity,
            offset,
            length_bytes: length_bytes as u64,
        }
    }

    fn read(
        &self,
        key: &Key,
        (offset, length_bytes): (u64, usize),
        named: Option<&dyn NamedRange>,
    ) -> io::Result<Vec<u8>> {
        if let Some(found) = self.read_disk(key, (offset, length_bytes), named) {
            return Ok(found);
        }
        // Other processes of this machine wait, too.
        let flight_key = named.map_or(*key, key_of_name);
        let flight = (self.tiers.disk.as_ref()).and_then(|disk| disk.flight(&flight_key));
        if flight.as_ref().is_some_and(|flight| flight.has_waited)
            && let Some(found) = self.read_disk(key, (offset, length_bytes), named)
        {
            return Ok(found);
        }
        if let Some(shared) = &self.tiers.shared
            && let Some(found) = self.read_shared(shared, key, length_bytes, named)
        {
            self.keep_on_disk(key, offset, &found, named);
            return Ok(found);
        }
        let mut bytes = vec![0; length_bytes];
        let count = self.read_origin(offset, &mut bytes)?;
        bytes.truncate(count);
        if count == length_bytes {
            self.keep(key, offset, &bytes, named);
        }
        Ok(bytes)
    }

    fn read_disk(
        &self,
        key: &Key,
        (offset, length_bytes): (u64, usize),
        named: Option<&dyn NamedRange>,
    ) -> Option<Vec<u8>> {
        let mirror = self.mirror.as_ref()?;
        let (counts, clock) = (&self.tiers.disk_counts, &self.tiers.clock);
        let start_ns = clock.now_ns();
        let found = match (mirror.get(key, offset, length_bytes), named) {
            (Ok(None), Some(named)) => self.read_named(named, length_bytes),
            (found, _) => found,
        };
        let bytes = found.as_ref().ok().and_then(Option::as_ref).map(Vec::len);
        counts.called(clock.now_ns().saturating_sub(start_ns), bytes);
        match found {
            Ok(found) => found,
            Err(error) => {
                match error.kind() {
                    io::ErrorKind::InvalidData => counts.corrupt(),
                    _ => counts.failed(),
                }
                None
            }
        }
    }

    /// The value of a name from the copy of any archive that has it, made a range of this one.
    fn read_named(
        &self,
        named: &dyn NamedRange,
        length_bytes: usize,
    ) -> io::Result<Option<Vec<u8>>> {
        let Some(disk) = &self.tiers.disk else { return Ok(None) };
        let Some(place) = disk.find(&named.name())? else { return Ok(None) };
        // The value is longer in no archive but for a few bytes of its place.
        let is_alike = place.length_bytes.abs_diff(length_bytes as u64) <= PLACE_BYTES_MAX;
        if !is_alike {
            return Ok(None);
        }
        let mirror = disk.mirror(&place.identity)?;
        let found = mirror.get(
            &key_of_place(&place),
            place.offset,
            place.length_bytes as usize,
        )?;
        let Some(range) = found else { return Ok(None) };
        let value = named.value_of(&range);
        let range = value.and_then(|value| named.range_of(&value));
        let range = range.filter(|range| range.len() == length_bytes);
        range.map(Some).ok_or(io::ErrorKind::InvalidData.into())
    }

    fn read_shared(
        &self,
        shared: &Arc<SharedTier>,
        key: &Key,
        length_bytes: usize,
        named: Option<&dyn NamedRange>,
    ) -> Option<Vec<u8>> {
        let Some(named) = named else {
            return match shared.get(key, length_bytes) {
                Found::Value(found) => Some(found).filter(|found| found.len() == length_bytes),
                Found::Nothing => None,
            };
        };
        // The value is no longer than the range, which says where it is besides.
        let Found::Value(value) = shared.get(&key_of_name(named), length_bytes) else {
            return None;
        };
        let found = named.range_of(&value);
        let found = found.filter(|found| found.len() == length_bytes);
        if found.is_none() {
            // It passed the check of the node, so somebody made it.
            self.tiers.origin_counts.corrupt();
        }
        found
    }

    fn read_origin(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (counts, clock) = (&self.tiers.origin_counts, &self.tiers.clock);
        let start_ns = clock.now_ns();
        let read = self.origin.read_at(offset, buffer);
        counts.called(
            clock.now_ns().saturating_sub(start_ns),
            read.as_ref().ok().copied(),
        );
        read.inspect_err(|_| counts.failed())
    }

    /// Puts a range into all tiers. What is not what it is named is not shared.
    fn keep(&self, key: &Key, offset: u64, bytes: &[u8], named: Option<&dyn NamedRange>) {
        self.keep_on_disk(key, offset, bytes, named);
        let Some(shared) = &self.tiers.shared else { return };
        match named {
            None => shared.store(key, bytes),
            Some(named) => {
                if let Some(value) = named.value_of(bytes) {
                    shared.store(&key_of_name(named), &value);
                }
            }
        }
    }

    fn keep_on_disk(&self, key: &Key, offset: u64, bytes: &[u8], named: Option<&dyn NamedRange>) {
        let (Some(mirror), Some(disk)) = (&self.mirror, &self.tiers.disk) else {
            return;
        };
        let kept = disk.store(mirror, key, offset, bytes);
        let noted = kept.and_then(|is_kept| match named.filter(|_| is_kept) {
            Some(named) => disk.note(&named.name(), &self.place(offset, bytes.len())),
            None => Ok(()),
        });
        if noted.is_err() {
            self.tiers.disk_counts.failed();
        }
    }
}

/// What a range is known by.
fn key_of_place(place: &Place) -> Key {
    let mut hash = ContentHash::with_context(CONTEXT);
    hash.update(&place.identity);
    hash.update(&place.offset.to_le_bytes());
    hash.update(&place.length_bytes.to_le_bytes());
    Key::new(hash.value())
}

/// What a named value is known by, in whatever archive.
fn key_of_name(named: &dyn NamedRange) -> Key {
    let mut hash = ContentHash::with_context(NAME_CONTEXT);
    hash.update(&named.name());
    Key::new(hash.value())
}

impl Source for TieredSource {
    fn size_bytes(&self) -> io::Result<u64> {
        self.origin.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.origin.read_at(offset, buffer)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
        self.origin.next_data(offset)
    }

    fn can_reread(&self, offset: u64) -> bool {
        self.origin.can_reread(offset)
    }

    fn has_changed(&self) -> io::Result<bool> {
        self.origin.has_changed()
    }

    fn cache(&self) -> Option<&dyn CachedRanges> {
        Some(self)
    }
}

impl CachedRanges for TieredSource {
    fn read_cached(
        &self,
        offset: u64,
        buffer: &mut [u8],
        named: Option<&dyn NamedRange>,
    ) -> io::Result<usize> {
        let (key, length_bytes) = (self.key(offset, buffer.len()), buffer.len());
        let read = || self.read(&key, (offset, length_bytes), named);
        let found = self.tiers.flights.get(key, read)?;
        let (part, _) = buffer.split_at_mut(found.len().min(length_bytes));
        part.copy_from_slice(found.get(..part.len()).unwrap_or_default());
        Ok(part.len())
    }

    fn read_anew(
        &self,
        offset: u64,
        buffer: &mut [u8],
        named: Option<&dyn NamedRange>,
    ) -> io::Result<bool> {
        let mut bytes = vec![0; buffer.len()];
        let count = self.read_origin(offset, &mut bytes)?;
        if count < bytes.len() || bytes == buffer {
            return Ok(false);
        }
        buffer.copy_from_slice(&bytes);
        // Both tiers may have it: which of them was wrong is not known here.
        self.tiers.origin_counts.corrupt();
        self.keep(&self.key(offset, bytes.len()), offset, &bytes, named);
        Ok(true)
    }
}
