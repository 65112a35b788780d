//! Continues a pass over a tree after damage: delivers what is intact, and records the rest.

use std::ops::Range;
use std::slice;

use refrain_entries::Entry;
use refrain_pool::Lock;

use crate::damage::{Damage, DamagedFile, push_range};
use crate::error::{Error, ErrorKind};
use crate::read::lost_entries::LostEntries;

/// A pass over a member that continues after damage.
pub(crate) struct Recovery<'a> {
    /// Whether to deliver files with missing parts, as zeros.
    pub keep_broken: bool,
    pub damage: &'a Lock<Damage>,
    /// The member, and its name.
    pub member: usize,
    pub member_name: &'a [u8],
}

impl Recovery<'_> {
    /// Records that ranges of a file's content are missing. Returns whether the file is still
    /// delivered. `missing` are ranges of the member's content, all inside the file's.
    pub(crate) fn is_kept(&self, entry: &Entry, missing: &[Range<u64>]) -> bool {
        self.damage.lock().add_file(DamagedFile {
            member: self.member,
            member_name: self.member_name.to_vec(),
            path: Some(entry.path.clone()),
            size_bytes: entry.size_bytes,
            missing: in_file(entry, missing),
            is_kept: self.keep_broken,
            delivered_bytes: 0,
        });
        self.keep_broken
    }

    /// Records missing ranges of the member's content, or of its tar view, of which
    /// `delivered_bytes` were delivered.
    pub(crate) fn view(&self, size_bytes: u64, delivered_bytes: u64, missing: Vec<Range<u64>>) {
        self.damage.lock().add_file(DamagedFile {
            member: self.member,
            member_name: self.member_name.to_vec(),
            path: None,
            size_bytes,
            missing,
            is_kept: self.keep_broken,
            delivered_bytes,
        });
    }

    /// Records that entries are lost with their names.
    pub(crate) fn lost_entries(&self, lost: LostEntries) {
        if !lost.is_none() {
            let mut damage = self.damage.lock();
            damage.lost_entries = damage.lost_entries.saturating_add(lost.count);
            damage.incomplete_lists += 1;
        }
    }
}

/// Whether a pass with this recovery continues after the error.
pub(crate) fn goes_on(recovery: Option<&Recovery<'_>>, error: &Error) -> bool {
    recovery.is_some() && error.kind == ErrorKind::Damaged
}

/// The parts of `ranges` inside another range.
pub(crate) fn inside(ranges: &[Range<u64>], of: &Range<u64>) -> Vec<Range<u64>> {
    let cut = |range: &Range<u64>| range.start.max(of.start)..range.end.min(of.end);
    let after = ranges.partition_point(|range| range.end <= of.start);
    let found = ranges.get(after..).unwrap_or_default().iter();
    found
        .take_while(|range| range.start < of.end)
        .map(cut)
        .filter(|range| !range.is_empty())
        .collect()
}

/// Converts ranges of a member's content to ranges of the file of an entry.
pub(crate) fn in_file(entry: &Entry, missing: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut found = vec![];
    let mut stored_at = entry.content_offset;
    let all = 0..entry.size_bytes;
    let data = (entry.data_ranges.as_deref()).unwrap_or(slice::from_ref(&all));
    for range in data {
        let stored = stored_at..stored_at.saturating_add(range.end.saturating_sub(range.start));
        for lost in inside(missing, &stored) {
            let start = range.start.saturating_add(lost.start - stored.start);
            push_range(
                &mut found,
                start..start.saturating_add(lost.end - lost.start),
            );
        }
        stored_at = stored.end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_content_becomes_ranges_of_the_file() {
        let mut entry = Entry {
            content_offset: 1000,
            size_bytes: 100,
            ..Entry::default()
        };
        let missing = [0..900, 990..1010, 1090..1095, 1099..2000, 3000..3001];
        assert_eq!(in_file(&entry, &missing), [0..10, 90..95, 99..100]);
        entry.size_bytes = 1000;
        entry.data_ranges = Some(vec![100..150, 300..350]);
        assert_eq!(
            in_file(&entry, &[1040..1060, 9000..9001]),
            [140..150, 300..310]
        );
        assert_eq!(in_file(&entry, &[0..1000, 1100..1200]), []);
        assert_eq!(
            inside(&[0..5, 7..9, 20..30], &(4..21)),
            [4..5, 7..9, 20..21]
        );
    }
}
