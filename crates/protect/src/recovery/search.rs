//! Finds intact slices in damaged bytes.
//!
//! Slices are expected one after the other. Where two in a row are not what the table says, bytes
//! may have been inserted or lost: then every byte is tried as the start of any slice, by the
//! digest of a prefix, until one is found. From there, slices are expected with the new shift, and
//! those before it are compared backwards. So an insertion costs the slices that it divides.
//!
//! Content that repeats itself misleads this: what is found may be equal to a slice elsewhere,
//! which another one follows, and slices begin inside of others. Then a second search tries every
//! byte.

use super::digest::{PREFIX_BITS, PREFIX_BYTES, prefix_digest, prefix_of, slice_digest};
use super::table::DigestTable;

/// What a search reads at a time.
const WINDOW_BYTES: usize = 1 << 20;

/// How many bytes a search at every byte may compute digests of: some for each byte of the input,
/// which a core does within seconds for each gigabyte, and enough for small inputs at any rate.
const DIGESTED_PER_BYTE: u64 = 32;
const DIGESTED_MIN: u64 = 1 << 30;

/// Fills a buffer from an offset of an input. Returns the number of bytes, fewer only at the end.
pub type ReadAt<'r, E> = dyn FnMut(u64, &mut [u8]) -> Result<usize, E> + 'r;

/// The slices of a file, to be found by their bytes.
pub struct SliceIndex<'a> {
    table: &'a DigestTable,
    /// The numbers of all slices, by prefix, then by digest, then by number.
    order: Vec<u32>,
    prefixes: Prefixes,
}

/// A bit for each prefix that occurs.
struct Prefixes(Vec<u64>);

impl Prefixes {
    fn of(digests: impl Iterator<Item = u64>) -> Self {
        let mut bits = vec![0; 1 << (PREFIX_BITS - 6)];
        for prefix in digests.map(prefix_of) {
            bits[prefix >> 6] |= 1 << (prefix & 63);
        }
        Self(bits)
    }

    fn has(&self, prefix: u64) -> bool {
        let prefix = prefix as usize;
        self.0[prefix >> 6] & (1 << (prefix & 63)) != 0
    }

    fn remove(&mut self, prefix: u64) {
        let prefix = prefix as usize;
        self.0[prefix >> 6] &= !(1 << (prefix & 63));
    }
}

/// What a search at every byte looks for.
struct Wanted {
    /// The prefixes of slices that were not found.
    prefixes: Prefixes,
    /// Whether the search met a slice, for the first of those that are equal.
    known: Vec<bool>,
}

/// Where slices were found: in which of several inputs, at which offset.
#[derive(Debug, Clone)]
pub struct SlicePlaces {
    places: Vec<u64>,
    found_count: u64,
}

const OFFSET_BITS: u32 = 56;
const NOWHERE: u64 = u64::MAX;

impl SlicePlaces {
    /// Nothing found yet.
    #[must_use]
    pub fn new(slice_count: u64) -> Self {
        Self {
            places: vec![NOWHERE; slice_count as usize],
            found_count: 0,
        }
    }

    /// The input and the offset at which a slice was found.
    #[must_use]
    pub fn place(&self, slice: u64) -> Option<(usize, u64)> {
        let place = *self.places.get(slice as usize)?;
        let offset = place & ((1 << OFFSET_BITS) - 1);
        (place != NOWHERE).then_some(((place >> OFFSET_BITS) as usize, offset))
    }

    /// How many slices were found.
    #[must_use]
    pub fn found_count(&self) -> u64 {
        self.found_count
    }

    /// Whether all slices were found.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.found_count == self.places.len() as u64
    }

    /// Notes where a slice is, unless a place of it is known.
    pub fn note(&mut self, slice: u64, input: u8, offset: u64) {
        if let Some(place) = self.places.get_mut(slice as usize)
            && *place == NOWHERE
        {
            *place = (u64::from(input) << OFFSET_BITS) | offset;
            self.found_count += 1;
        }
    }
}

impl<'a> SliceIndex<'a> {
    /// Sorts the slices of a table.
    #[must_use]
    pub fn new(table: &'a DigestTable) -> Self {
        let digests = table.digests();
        let mut order: Vec<u32> = (0..digests.len() as u32).collect();
        let key = |slice: &u32| sort_key(digests[*slice as usize]);
        order.sort_unstable_by_key(|slice| (key(slice), *slice));
        let prefixes = Prefixes::of(digests.iter().copied());
        Self {
            table,
            order,
            prefixes,
        }
    }

    /// As [`search`](Self::search), but looks for each slice only at its own offset, which takes
    /// much less time where there is much damage.
    ///
    /// # Errors
    /// From `read`.
    pub fn compare<E>(
        &self,
        input: (u8, u64),
        read: &mut ReadAt<'_, E>,
        places: &mut SlicePlaces,
    ) -> Result<(), E> {
        let mut search = self.prepared(input, read, places);
        for slice in 0..self.table.parameters().slice_count() {
            let offset = slice * self.slice_bytes();
            if search.places.place(slice).is_none() && search.is_slice(slice, offset)? {
                search.note(slice, offset);
            }
        }
        Ok(())
    }

    /// Searches the first `length` bytes of one of several inputs, which `read` reads. Adds what is
    /// found to `places`, and does not look further once everything is found.
    ///
    /// # Errors
    /// From `read`.
    pub fn search<E>(
        &self,
        input: (u8, u64),
        read: &mut ReadAt<'_, E>,
        places: &mut SlicePlaces,
    ) -> Result<(), E> {
        self.prepared(input, read, places).run()
    }

    /// As [`search`](Self::search), but looks for what was not found yet at every byte, also inside
    /// of other slices, and takes what is found for all slices that are equal to it. Takes some
    /// seconds for each gigabyte.
    ///
    /// # Errors
    /// From `read`.
    pub fn search_everywhere<E>(
        &self,
        input: (u8, u64),
        read: &mut ReadAt<'_, E>,
        places: &mut SlicePlaces,
    ) -> Result<(), E> {
        let slices = (0_u64..).zip(self.table.digests());
        let missing = slices.filter(|(slice, _)| places.place(*slice).is_none());
        let wanted = Wanted {
            prefixes: Prefixes::of(missing.map(|(_, digest)| *digest)),
            known: vec![false; places.places.len()],
        };
        self.prepared(input, read, places).run_everywhere(wanted)
    }

    fn prepared<'s, 'r, E>(
        &'s self,
        (input, length): (u8, u64),
        read: &'r mut ReadAt<'r, E>,
        places: &'s mut SlicePlaces,
    ) -> Search<'s, 'r, E> {
        let window = Window {
            length: length.min(1 << (OFFSET_BITS - 1)),
            start: 0,
            bytes: Vec::new(),
            read,
        };
        Search {
            index: self,
            input,
            window,
            places,
            found_end: 0,
            searched_to: 0,
        }
    }

    fn slice_bytes(&self) -> u64 {
        u64::from(self.table.parameters().slice_bytes)
    }

    /// The slices whose digests begin with a prefix, or are equal to a digest.
    fn range(&self, low: u64, high: u64) -> &[u32] {
        let digests = self.table.digests();
        let key = |slice: &u32| sort_key(digests[*slice as usize]);
        let start = self.order.partition_point(|slice| key(slice) < low);
        let count = self.order[start..].partition_point(|slice| key(slice) <= high);
        &self.order[start..start + count]
    }

    fn with_digest(&self, digest: u64) -> &[u32] {
        self.range(sort_key(digest), sort_key(digest))
    }

    fn with_prefix(&self, prefix: u64) -> &[u32] {
        let low = sort_key(prefix);
        self.range(low, low | (u64::MAX >> PREFIX_BITS))
    }

    /// Of the slices with this digest, the one nearest to `expected`.
    fn nearest(&self, digest: u64, expected: u64) -> Option<u64> {
        let same = self.with_digest(digest);
        let after = same.partition_point(|&slice| u64::from(slice) < expected);
        let around = [after.checked_sub(1), Some(after)];
        let around = around.into_iter().flatten();
        let around = around.filter_map(|at| same.get(at).map(|&slice| u64::from(slice)));
        around.min_by_key(|slice| slice.abs_diff(expected))
    }
}

/// Orders digests by their prefixes.
fn sort_key(digest: u64) -> u64 {
    digest.rotate_right(PREFIX_BITS)
}

/// A part of an input.
struct Window<'r, E> {
    length: u64,
    start: u64,
    bytes: Vec<u8>,
    read: &'r mut ReadAt<'r, E>,
}

impl<E> Window<'_, E> {
    /// The bytes at `offset`, at most `count`, fewer at the end.
    fn at(&mut self, offset: u64, count: usize) -> Result<&[u8], E> {
        let end = offset.saturating_add(count as u64).min(self.length);
        let count = end.saturating_sub(offset) as usize;
        let is_inside = offset >= self.start && end <= self.start + self.bytes.len() as u64;
        if !is_inside {
            // A search that goes backwards is to find the bytes before these, too.
            let is_backwards = offset < self.start;
            let window_bytes = WINDOW_BYTES.max(count) as u64;
            self.start = if is_backwards { end.saturating_sub(window_bytes) } else { offset };
            let wanted = window_bytes.min(self.length.saturating_sub(self.start));
            self.bytes.resize(wanted as usize, 0);
            let read_bytes = (self.read)(self.start, &mut self.bytes)?;
            self.bytes.truncate(read_bytes);
        }
        let from = (offset - self.start) as usize;
        let to = self.bytes.len().min(from + count);
        Ok(self.bytes.get(from..to).unwrap_or_default())
    }
}

struct Search<'s, 'r, E> {
    index: &'s SliceIndex<'s>,
    input: u8,
    window: Window<'r, E>,
    places: &'s mut SlicePlaces,
    /// The end of the latest bytes that are a known slice.
    found_end: u64,
    /// Before this no slice begins that was not found.
    searched_to: u64,
}

impl<E> Search<'_, '_, E> {
    fn run(mut self) -> Result<(), E> {
        let slice_bytes = self.index.slice_bytes();
        let (mut slice, mut offset, mut misses) = (0, 0, 0_u32);
        while offset < self.window.length && !self.places.is_complete() {
            if self.is_slice(slice, offset)? {
                self.note(slice, offset);
                (slice, offset, misses) = (slice + 1, self.found_end, 0);
                continue;
            }
            misses += 1;
            if misses >= 2
                && let Some(found) = self.find(offset + slice_bytes, slice)?
            {
                (slice, offset, misses) = (found.0 + 1, self.found_end, 0);
                continue;
            }
            (slice, offset) = (slice + 1, offset + slice_bytes);
        }
        // After a single miss at the end nothing was searched yet.
        while !self.places.is_complete()
            && let Some((found, _)) = self.find(self.window.length, slice)?
        {
            slice = found + 1;
        }
        Ok(())
    }

    /// Tries every byte as the start of a slice that was not found yet.
    fn run_everywhere(mut self, mut wanted: Wanted) -> Result<(), E> {
        let digested_max = self.window.length.saturating_mul(DIGESTED_PER_BYTE);
        let mut tries = digested_max.max(DIGESTED_MIN) / self.index.slice_bytes();
        let mut offset = 0;
        while offset < self.window.length && tries > 0 && !self.places.is_complete() {
            let count = (self.window.length - offset).min(WINDOW_BYTES as u64 / 2) as usize;
            let Some(at) = self.candidate(offset, count, &wanted.prefixes)? else {
                offset += count as u64;
                continue;
            };
            self.note_last(at)?;
            self.note_equal(at, &mut wanted)?;
            tries -= 1;
            offset = at + 1;
        }
        // The last slice may be too short to be found by its prefix.
        let parameters = self.index.table.parameters();
        let last = parameters.slice_count() - 1;
        let before = last
            .checked_sub(1)
            .and_then(|slice| self.places.place(slice));
        if let Some((_, offset)) = before.filter(|(input, _)| *input == usize::from(self.input)) {
            self.note_last(offset + self.index.slice_bytes())?;
        }
        let last_bytes = parameters.bytes_of_slice(last) as u64;
        self.note_last(self.window.length.saturating_sub(last_bytes))
    }

    fn note_last(&mut self, offset: u64) -> Result<(), E> {
        let last = self.index.table.parameters().slice_count() - 1;
        if self.places.place(last).is_none() && self.is_slice(last, offset)? {
            self.note(last, offset);
        }
        Ok(())
    }

    /// Notes all slices that are equal to the bytes at an offset.
    fn note_equal(&mut self, offset: u64, wanted: &mut Wanted) -> Result<(), E> {
        let (index, slice_bytes) = (self.index, self.index.slice_bytes() as usize);
        let bytes = self.window.at(offset, slice_bytes)?;
        if bytes.len() < slice_bytes {
            return Ok(());
        }
        let digest = slice_digest(bytes);
        let same = index.with_digest(digest);
        let known = same
            .first()
            .and_then(|first| wanted.known.get_mut(*first as usize));
        if known.is_none_or(|known| std::mem::replace(known, true)) {
            return Ok(());
        }
        for &slice in same {
            self.note(u64::from(slice), offset);
        }
        let prefix = prefix_of(digest) as u64;
        let mut others = index.with_prefix(prefix).iter();
        if others.all(|&slice| self.places.place(u64::from(slice)).is_some()) {
            wanted.prefixes.remove(prefix);
        }
        Ok(())
    }

    fn note(&mut self, slice: u64, offset: u64) {
        let bytes = self.index.table.parameters().bytes_of_slice(slice);
        self.places.note(slice, self.input, offset);
        self.found_end = self.found_end.max(offset + bytes as u64);
        self.searched_to = self.searched_to.max(self.found_end);
    }

    /// Whether the bytes at an offset are this slice.
    fn is_slice(&mut self, slice: u64, offset: u64) -> Result<bool, E> {
        match self.index.table.digests().get(slice as usize) {
            None => Ok(false),
            Some(&expected) => Ok(self.digest_at(slice, offset)? == Some(expected)),
        }
    }

    /// The digest of the bytes that this slice would have at an offset.
    fn digest_at(&mut self, slice: u64, offset: u64) -> Result<Option<u64>, E> {
        let wanted = self.index.table.parameters().bytes_of_slice(slice);
        let slice_bytes = self.index.slice_bytes() as usize;
        let bytes = self.window.at(offset, wanted)?;
        if bytes.len() < wanted {
            return Ok(None);
        }
        if wanted == slice_bytes {
            return Ok(Some(slice_digest(bytes)));
        }
        let mut extended = bytes.to_vec();
        extended.resize(slice_bytes, 0);
        Ok(Some(slice_digest(&extended)))
    }

    /// Tries every byte that was not tried yet, up to `end`, as the start of a slice. Notes the
    /// first that is one, and those before it.
    fn find(&mut self, end: u64, expected: u64) -> Result<Option<(u64, u64)>, E> {
        let end = end.min(self.window.length);
        while self.searched_to < end {
            let offset = self.searched_to;
            let count = (end - offset).min(WINDOW_BYTES as u64 / 2) as usize;
            let prefixes = &self.index.prefixes;
            let Some(at) = self.candidate(offset, count, prefixes)? else {
                self.searched_to = offset + count as u64;
                continue;
            };
            self.searched_to = at + 1;
            if let Some(slice) = self.slice_at(at, expected)? {
                let floor = self.found_end;
                self.note(slice, at);
                self.note_backwards(slice, at, floor)?;
                return Ok(Some((slice, at)));
            }
        }
        Ok(None)
    }

    /// The first offset at which one of these prefixes begins.
    fn candidate(
        &mut self,
        offset: u64,
        count: usize,
        prefixes: &Prefixes,
    ) -> Result<Option<u64>, E> {
        let bytes = self.window.at(offset, count + PREFIX_BYTES - 1)?;
        let found = bytes
            .windows(PREFIX_BYTES)
            .position(|prefix| prefixes.has(prefix_digest(prefix)));
        Ok(found.map(|at| offset + at as u64))
    }

    /// The slice that begins at an offset where there is a known prefix.
    fn slice_at(&mut self, offset: u64, expected: u64) -> Result<Option<u64>, E> {
        let last = self.index.table.parameters().slice_count() - 1;
        let prefix = prefix_digest(self.window.at(offset, PREFIX_BYTES)?);
        let candidates = self.index.with_prefix(prefix);
        if candidates.contains(&(last as u32)) && self.is_slice(last, offset)? {
            return Ok(Some(last));
        }
        let is_one = last > 0 && self.is_followed(candidates, offset)?;
        let digest = if is_one { self.digest_at(0, offset)? } else { None };
        Ok(digest.and_then(|digest| self.index.nearest(digest, expected)))
    }

    /// Whether the next prefix is right, too, which is computed much sooner than a digest. In large
    /// files many bytes look like the start of some slice.
    fn is_followed(&mut self, candidates: &[u32], offset: u64) -> Result<bool, E> {
        let digests = self.index.table.digests();
        let next = self
            .window
            .at(offset + self.index.slice_bytes(), PREFIX_BYTES)?;
        if candidates.len() > 4 || digests.len() < 1 << 12 || next.len() < PREFIX_BYTES {
            return Ok(true);
        }
        let prefix = prefix_digest(next) as usize;
        Ok(candidates.iter().any(|&slice| {
            let next = digests.get(slice as usize + 1);
            next.is_none_or(|&next| prefix_of(next) == prefix)
        }))
    }

    /// Notes the slices before one, down to an offset.
    fn note_backwards(&mut self, slice: u64, offset: u64, floor: u64) -> Result<(), E> {
        let slice_bytes = self.index.slice_bytes();
        let (mut slice, mut offset) = (slice, offset);
        while slice > 0 && offset >= floor + slice_bytes {
            (slice, offset) = (slice - 1, offset - slice_bytes);
            if !self.is_slice(slice, offset)? {
                break;
            }
            self.places.note(slice, self.input, offset);
        }
        Ok(())
    }
}
