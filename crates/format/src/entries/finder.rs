//! Finds a reference for each entry: mostly the entry with the same path in an earlier version of
//! the same tree. Any earlier entry is valid, so this affects only the size.

use refrain_entries::Entry;
use refrain_protect::checksum64;

use super::model::{Model, is_joined, shared_prefix, shared_suffix};

/// How many entries with similar paths are tried for one entry.
const TRIES_MAX: usize = 16;

/// The entries so far, by the parts of their paths that sibling trees share.
#[derive(Debug)]
pub(super) struct Finder {
    /// By the path with each run of digits replaced by `#`.
    by_numbered_path: Latest,
    /// For each entry, the previous one with the same numbered path, plus 1; 0 for none.
    before: Vec<u32>,
    /// By the last two names of the path.
    by_last_names: Latest,
    numbered_path: Vec<u8>,
}

impl Finder {
    pub(super) fn new(count: usize) -> Self {
        Self {
            by_numbered_path: Latest::new(count),
            before: Vec::with_capacity(count),
            by_last_names: Latest::new(count),
            numbered_path: Vec::new(),
        }
    }

    /// Chooses the reference of entry `at` and adds the entry. Call it for each entry in order.
    pub(super) fn reference(
        &mut self,
        model: &Model,
        entries: &[Entry],
        at: usize,
    ) -> Option<usize> {
        let entry = entries.get(at)?;
        put_numbered_path(&mut self.numbered_path, &entry.path);
        let newest = self
            .by_numbered_path
            .replace(checksum64(&self.numbered_path), at);
        self.before
            .push(newest.map_or(0, |newest| newest as u32 + 1));
        let names = last_names(&entry.path);
        let namesake = self.by_last_names.replace(checksum64(names), at);
        match self.choose(model, entries, at, newest) {
            Some(choice) => Some(choice),
            None => namesake
                .filter(|&namesake| {
                    let other = model.reference(entries, Some(namesake));
                    entry.stored_bytes() > 0 && model.foresees_content(entry, &other)
                })
                .or(at.checked_sub(1)),
        }
    }

    fn choose(
        &self,
        model: &Model,
        entries: &[Entry],
        at: usize,
        newest: Option<usize>,
    ) -> Option<usize> {
        let entry = entries.get(at)?;
        let expected = model.expected_reference()?;
        let expected_path = &entries.get(expected)?.path;
        let is_parallel = model
            .replaced(entries, expected_path)
            .is_some_and(|(first, rest)| is_joined(&entry.path, first, rest));
        let foresees = |candidate: usize| {
            model.foresees_content(entry, &model.reference(entries, Some(candidate)))
        };
        if is_parallel {
            if foresees(expected) {
                return Some(expected);
            }
            let Some(difference) = different_name(&entry.path, expected_path) else {
                return Some(expected);
            };
            let another = self.candidates(newest).find(|&candidate| {
                foresees(candidate)
                    && entries.get(candidate).is_some_and(|other| {
                        different_name(&entry.path, &other.path) == Some(difference)
                    })
            });
            return another.or(Some(expected));
        }
        if let Some((first, rest)) = model.replaced_back(entries, &entry.path) {
            let same = self.candidates(newest).find(|&candidate| {
                let path = entries.get(candidate).map_or(&[][..], |entry| &entry.path);
                is_joined(path, first, rest)
            });
            if same.is_some() {
                return same;
            }
        }
        newest
    }

    fn candidates(&self, newest: Option<usize>) -> impl Iterator<Item = usize> {
        let before = |&at: &usize| (*self.before.get(at)? as usize).checked_sub(1);
        std::iter::successors(newest, before).take(TRIES_MAX)
    }
}

/// Replaces each run of digits by `#`.
fn put_numbered_path(to: &mut Vec<u8>, path: &[u8]) {
    to.clear();
    for &byte in path {
        match byte.is_ascii_digit() {
            true if to.last() == Some(&b'#') => {}
            true => to.push(b'#'),
            false => to.push(byte),
        }
    }
}

fn last_names(path: &[u8]) -> &[u8] {
    let mut separators = path
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, byte)| **byte == b'/');
    let start = separators.nth(1).map_or(0, |(at, _)| at + 1);
    path.get(start..).unwrap_or_default()
}

/// The one name in which two paths differ, as the number of separators before it. `None` if they
/// differ in several.
fn different_name(left: &[u8], right: &[u8]) -> Option<usize> {
    let prefix = shared_prefix(left, right);
    let (left_rest, right_rest) = (left.get(prefix..)?, right.get(prefix..)?);
    let suffix = shared_suffix(left_rest, right_rest);
    let is_in_name = |rest: &[u8]| !rest.iter().rev().skip(suffix).any(|&byte| byte == b'/');
    let separators = left
        .iter()
        .take(prefix)
        .filter(|byte| **byte == b'/')
        .count();
    (is_in_name(left_rest) && is_in_name(right_rest)).then_some(separators)
}

/// The latest entry for each hash: a hash table with linear probing. Where too many hashes collide,
/// entries are not found, which costs only size.
#[derive(Debug)]
struct Latest {
    /// (hash, entry + 1); entry 0 means free.
    places: Vec<(u32, u32)>,
}

const PROBES_MAX: usize = 16;

impl Latest {
    fn new(count: usize) -> Self {
        let places = (2 * count).next_power_of_two();
        Self {
            places: vec![(0, 0); places],
        }
    }

    /// Puts entry `at` for `hash` and returns its predecessor.
    fn replace(&mut self, hash: u64, at: usize) -> Option<usize> {
        let (tag, start) = ((hash >> 32) as u32, hash as usize);
        let mask = self.places.len() - 1;
        for probe in 0..PROBES_MAX {
            let place = self.places.get_mut(start.wrapping_add(probe) & mask)?;
            let is_free = place.1 == 0;
            if is_free || place.0 == tag {
                let found = (place.1 as usize).checked_sub(1);
                *place = (tag, at as u32 + 1);
                return found;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_by_names() {
        assert_eq!(different_name(b"v1/a/x", b"v22/a/x"), Some(0));
        assert_eq!(different_name(b"a/v1/x", b"a/v2/x"), Some(1));
        assert_eq!(different_name(b"a/v1/x", b"a/v2/y"), None);
        assert_eq!(different_name(b"a/b/x", b"a/x"), None);
        assert_eq!(last_names(b"a/b/c"), b"b/c");
        assert_eq!(last_names(b"b/c"), b"b/c");
        assert_eq!(last_names(b"c"), b"c");
        let mut numbered = Vec::new();
        put_numbered_path(&mut numbered, b"v1.20/x3y");
        assert_eq!(numbered, b"v#.#/x#y");
    }

    #[test]
    fn the_latest_entry_of_a_hash_is_found() {
        let hash = |at: usize| checksum64(&at.to_le_bytes());
        let mut latest = Latest::new(100);
        for at in 0..100 {
            assert_eq!(latest.replace(hash(at), at), None);
        }
        for at in 0..100 {
            assert_eq!(latest.replace(hash(at), at + 100), Some(at));
        }
    }
}
