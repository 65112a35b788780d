//! Counts the names of a member's files.

use std::hash::{DefaultHasher, Hasher};

use refrain::{Archive, EntryKind, Error, ErrorKind};

use super::frames::with_intact_entries;
use super::paths::is_safe;
use super::spelling::normal_form;
use crate::error::Result;

/// The number of hard links of each file that has any. Files are identified by a hash of their
/// path: if two collide in 64 bits, only their link counts are wrong.
#[derive(Debug, Default)]
pub(super) struct LinkCounts {
    /// Hash and number, ascending.
    rows: Vec<(u64, u32)>,
    /// Whether any entry of the member has extended attributes.
    pub has_attributes: bool,
}

impl LinkCounts {
    /// Counts the hard links of a member.
    ///
    /// # Errors
    /// If the archive cannot be read; `Limit` if the counts exceed their memory.
    pub(super) fn count(
        archive: &Archive,
        member: usize,
        memory_bytes_max: usize,
    ) -> Result<LinkCounts> {
        let mut targets = vec![];
        let mut has_attributes = false;
        let rows_max = memory_bytes_max / size_of::<(u64, u32)>();
        let list = archive.entry_list(member)?;
        for frame in 0..list.frame_count()? {
            with_intact_entries(&list, frame, |entries| {
                for entry in entries {
                    has_attributes |= !entry.attributes.is_empty();
                    if let (EntryKind::Hardlink, Some(target)) = (entry.kind, &entry.link_target)
                        && normal_form(&entry.path).is_some_and(|path| is_safe(&path))
                    {
                        targets.push((hash(&normal_form(target).unwrap_or_default()), 1));
                    }
                }
                Ok(())
            })?;
            if targets.len() > rows_max {
                targets = add_up(targets);
            }
            if targets.len() > rows_max {
                let message = format!("there is no memory to count {} hard links", targets.len());
                return Err(Error::new(ErrorKind::Limit, message).into());
            }
        }
        Ok(LinkCounts {
            rows: add_up(targets),
            has_attributes,
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<(u64, u32)>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn names_of(&self, path: &[u8]) -> u64 {
        let hash = hash(path);
        let found = self.rows.binary_search_by_key(&hash, |row| row.0);
        let links = found.ok().and_then(|found| self.rows.get(found));
        1 + links.map_or(0, |row| u64::from(row.1))
    }
}

fn add_up(mut rows: Vec<(u64, u32)>) -> Vec<(u64, u32)> {
    rows.sort_unstable();
    rows.dedup_by(|later, kept| {
        let is_same = later.0 == kept.0;
        if is_same {
            kept.1 = kept.1.saturating_add(later.1);
        }
        is_same
    });
    rows.shrink_to_fit();
    rows
}

fn hash(path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(path);
    hasher.finish()
}
