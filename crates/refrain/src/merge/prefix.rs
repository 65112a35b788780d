//! The beginning of an archive that the new one takes as it is.

use std::sync::Arc;

use refrain_format::{GenerationInfo, TreeLayer, member_hash};
use refrain_longmatch::Extent;
use refrain_protect::HASH_BYTES;
use refrain_storage::{Sink, Source};

use crate::add::Earlier;
use crate::error::{Error, Result};
use crate::merge::members::Copied;
use crate::merge::source::Opened;
use crate::progress::{Watch, is_cancelled};
use crate::read::native::indexed::IndexedArchive;
use crate::read::opened_archive::Provable;
use crate::store::complete_end::beginning;
use crate::store::memory::zeroed;
use crate::store::recovery_chain::set_before;

/// How much is copied at once.
const COPIED_BYTES: usize = 1 << 20;

/// The first of these generations of an archive, from its beginning on, of which none is missing.
fn unbroken<'a>(rows: impl Iterator<Item = &'a GenerationInfo>) -> Vec<&'a GenerationInfo> {
    let mut found: Vec<&GenerationInfo> = Vec::new();
    for row in rows {
        let (follows, first_member) = match found.last() {
            None => (row.number <= 1, 0),
            Some(last) => (
                row.number == last.number + 1,
                last.first_member + last.member_count,
            ),
        };
        if !follows || row.first_member != first_member {
            break;
        }
        found.push(row);
    }
    found
}

/// The generations of one archive that come before all others. Cut off behind them, it is a
/// complete archive: the new one begins with these bytes.
pub(super) struct Prefix {
    /// The number of the archive.
    pub archive: usize,
    /// How many generations it has.
    pub generations: usize,
    bytes: Arc<dyn Source>,
    length_bytes: u64,
    cut_off: Arc<IndexedArchive>,
}

impl Prefix {
    /// Whether an archive of so many generations that carries decoders can begin with it: what
    /// follows also carries those that it lacks.
    ///
    /// # Errors
    /// `Damaged`, `Io`.
    pub(super) fn can_carry(&self, generations: usize) -> Result<bool> {
        Ok(self.generations < generations || !self.cut_off.carried_decoders()?.is_empty())
    }

    /// What of the first archive of this order comes first; `None` if that has something else, too:
    /// generations that were forgotten, or a form that cannot grow.
    ///
    /// # Errors
    /// From opening it.
    pub(super) fn of(
        archives: &[Opened],
        order: &[(usize, GenerationInfo)],
        memory_bytes: u64,
    ) -> Result<Option<Prefix>> {
        let Some(&(first, _)) = order.first() else {
            return Ok(None);
        };
        let Some(opened) = archives.get(first).filter(|opened| !opened.is_whole) else {
            return Ok(None);
        };
        let rows = order.iter().take_while(|(archive, _)| *archive == first);
        let rows = unbroken(rows.map(|(_, row)| row));
        let Some(last) = rows.last() else {
            return Ok(None);
        };
        let end = last.end.unwrap_or(opened.archive_bytes);
        let bytes = beginning(opened.archive.bytes().clone(), end);
        // The new archive is not to have recovery data for a part of it.
        if set_before(&*bytes, end)?.is_some() {
            return Ok(None);
        }
        let earlier = Earlier::of(bytes.clone())?;
        let cut_off = Arc::new(earlier.open(memory_bytes, 1)?);
        let numbers = cut_off.kept_generations();
        let numbers = numbers.iter().map(|row| row.number);
        if !numbers.eq(rows.iter().map(|row| row.number)) {
            return Ok(None);
        }
        Ok(Some(Prefix {
            archive: first,
            generations: rows.len(),
            bytes,
            length_bytes: end,
            cut_off,
        }))
    }

    /// The sums of the content and of the store.
    pub(super) fn sums(&self) -> (u64, u64) {
        self.cut_off.sums()
    }

    pub(super) fn root_hash(&self) -> [u8; HASH_BYTES] {
        self.cut_off.root_hash().unwrap_or_default()
    }

    /// Writes it. Returns its length.
    ///
    /// # Errors
    /// `Io`; `Cancelled`.
    pub(super) fn write(&self, sink: &mut dyn Sink, watch: &dyn Watch) -> Result<u64> {
        let mut buffer = zeroed(COPIED_BYTES)?;
        let mut at = 0;
        while at < self.length_bytes {
            if is_cancelled(watch) {
                return Err(Error::cancelled());
            }
            let count = self.bytes.read_at(at, &mut buffer)?;
            if count == 0 {
                return Err(Error::damaged("the archive ends too early").at_offset(at));
            }
            sink.write_all(&buffer[..count])?;
            at += count as u64;
        }
        Ok(at)
    }

    /// What the new archive has of the archive: everything is at the same place.
    ///
    /// # Errors
    /// From the index.
    pub(super) fn copied(&self, opened: &Opened) -> Result<Copied> {
        let mut copied = Copied::default();
        let (content_bytes, store_bytes) = self.sums();
        if store_bytes > 0 {
            copied.store.add(
                0,
                &Extent::Copy {
                    length: store_bytes,
                    offset_in_store: 0,
                },
            );
        }
        copied.content.add(0..content_bytes, 0);
        for row in self.cut_off.kept_generations() {
            for id in row.first_member..row.first_member.saturating_add(row.member_count) {
                let member = opened.archive.copied_member(id)?;
                if member.start.kind.is_tree() {
                    let hash = member_hash(&member.start, &member.end);
                    copied.trees.add_same(
                        &member,
                        TreeLayer {
                            member_id: id,
                            hash,
                        },
                    );
                }
            }
        }
        Ok(copied)
    }
}
