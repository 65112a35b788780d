//! Walks an archive once and collects what a picture of it needs, in bounded memory.

use std::ops::Range;
use std::sync::Arc;

use refrain::{Archive, ArchiveInfo, ContentExtent, Error, ErrorKind, ExtentOrigin, Member};

use super::curve::Curve;
use super::folders::{Claim, Claims, Cost, Folders, NODE_BYTES};
use super::nights::Nights;
use super::parts::Parts;
use super::passages::Passages;
use super::places::Places;
use crate::session::Session;

/// Columns of the picture along the content, and along the store.
pub const COLUMNS: usize = 1200;
/// How many members are listed individually.
pub const MEMBERS_MAX: usize = 1000;

/// Blocks in one column of the store.
#[derive(Debug, Clone, Default)]
pub struct StoreColumn {
    pub raw_bytes: u64,
    pub stored_bytes: u64,
    /// Raw bytes by codec, in the order of [`Survey::codecs`].
    pub by_codec: Vec<u64>,
}

/// A member on the axis of content.
#[derive(Debug)]
pub struct MemberPlace {
    pub member: Member,
    pub content: Range<u64>,
}

/// The result of a survey.
pub struct Survey {
    pub info: ArchiveInfo,
    /// Bytes of content; for directories the data of files, each distinct file once.
    pub content_bytes: u64,
    pub total: Parts,
    /// Zeros among the runs.
    pub zero_bytes: u64,
    pub columns: Vec<Parts>,
    pub passages: Passages,
    /// How much of the store is introduced by the content up to a place.
    pub introduced: Curve,
    /// What the store up to a place takes in the archive.
    pub costs: Curve,
    pub store_columns: Vec<StoreColumn>,
    /// Codec and filters, in the order of their first use.
    pub codecs: Vec<String>,
    /// The first [`MEMBERS_MAX`].
    pub members: Vec<MemberPlace>,
    pub folders: Folders,
    /// The files at both ends of the largest passages.
    pub places: Places,
    /// What each generation cost.
    pub nights: Nights,
    extents: u64,
}

impl Survey {
    /// Surveys an archive called `name`, within `memory_bytes` besides its reader's.
    ///
    /// # Errors
    /// From the engine; `Cancelled`.
    pub fn new(
        archive: &Arc<Archive>,
        name: &[u8],
        memory_bytes: u64,
        session: &Session,
    ) -> refrain::Result<Survey> {
        let info = archive.info()?;
        let mut content_bytes = 0;
        archive.layout().for_each_member(&mut |_, _, content| {
            content_bytes = content.end;
            Ok(())
        })?;
        archive.check_content_limit(content_bytes)?;
        let count_within =
            |bytes: u64, most: u64| (memory_bytes / 16 / bytes).clamp(64, most) as usize;
        let new_folders = || Folders::new(name, count_within(NODE_BYTES, 200_000));
        let mut survey = Survey {
            total: Parts::default(),
            zero_bytes: 0,
            columns: vec![Parts::default(); COLUMNS],
            passages: Passages::new(content_bytes, COLUMNS),
            introduced: Curve::new(count_within(16, 4 << 20)),
            costs: Curve::new(count_within(16, 1 << 20)),
            store_columns: vec![StoreColumn::default(); COLUMNS],
            codecs: vec![],
            members: vec![],
            folders: new_folders(),
            nights: Nights::new(archive),
            places: Places::default(),
            extents: 0,
            content_bytes,
            info,
        };
        survey.walk_blocks(archive)?;
        survey.walk_extents(archive, session)?;
        let claims_max = count_within(size_of::<Claim>() as u64, 4 << 20);
        survey.walk_members(archive, claims_max, session)?;
        survey.count_nights(archive, &new_folders, claims_max, session)?;
        Ok(survey)
    }

    /// What blocks take in the archive for a range of content, counting what occurs there for the
    /// first time.
    pub fn stored_bytes(&self, content: Range<u64>) -> u64 {
        let (from, to) = (
            self.introduced.at(content.start),
            self.introduced.at(content.end),
        );
        self.costs.between(from, to)
    }

    /// The content of a column.
    pub fn column_range(&self, column: usize) -> Range<u64> {
        part_of(self.content_bytes, column)..part_of(self.content_bytes, column + 1)
    }

    /// The number of extents, including those represented by references.
    pub fn extents(&self) -> u64 {
        self.extents
    }

    /// The listed member at a place in the content.
    pub fn member_at(&self, content_offset: u64) -> Option<usize> {
        let after = (self.members).partition_point(|place| place.content.start <= content_offset);
        // Members without content start at the same place as what follows.
        let found = self.members[..after]
            .iter()
            .rposition(|place| content_offset < place.content.end);
        found.filter(|&number| self.members[number].content.start <= content_offset)
    }

    fn walk_blocks(&mut self, archive: &Archive) -> refrain::Result<()> {
        let store_bytes = self.info.store_bytes;
        let mut stored_bytes = 0;
        archive.layout().for_each_block(&mut |block| {
            let name = if block.filters.is_empty() {
                block.codec
            } else {
                format!("{} + {}", block.codec, block.filters)
            };
            let known = self.codecs.iter().position(|codec| *codec == name);
            let codec = known.unwrap_or_else(|| {
                self.codecs.push(name);
                self.codecs.len() - 1
            });
            let end = block.offset_in_store.saturating_add(block.raw_bytes);
            let before = stored_bytes;
            stored_bytes += block.stored_bytes;
            self.costs.add(block.offset_in_store, before);
            self.costs.add(end, stored_bytes);
            for_each_column(
                store_bytes,
                block.offset_in_store..end,
                |column, raw_bytes| {
                    let column = &mut self.store_columns[column];
                    column.raw_bytes += raw_bytes;
                    column
                        .by_codec
                        .resize(column.by_codec.len().max(codec + 1), 0);
                    column.by_codec[codec] += raw_bytes;
                },
            );
            Ok(())
        })?;
        for (number, column) in self.store_columns.iter_mut().enumerate() {
            let (from, to) = (
                part_of(store_bytes, number),
                part_of(store_bytes, number + 1),
            );
            column.stored_bytes = self.costs.between(from, to);
        }
        Ok(())
    }

    fn walk_extents(&mut self, archive: &Archive, session: &Session) -> refrain::Result<()> {
        archive.layout().for_each_extent(&mut |extent| {
            check(session)?;
            self.add_extent(&extent);
            Ok(())
        })?;
        self.introduced
            .add(self.content_bytes, self.total.first_bytes);
        self.passages.finish();
        let largest = self.passages.largest();
        let ends = largest.iter();
        let ends = ends.flat_map(|passage| [passage.content_offset, passage.source_offset]);
        self.places = Places::new(ends.collect());
        Ok(())
    }

    fn add_extent(&mut self, extent: &ContentExtent) {
        self.extents += 1;
        let (start, length_bytes) = (extent.content_offset, extent.length_bytes);
        let count: fn(&mut Parts) -> &mut u64 = match extent.origin {
            ExtentOrigin::First { offset_in_store } => {
                self.introduced.rise(start, offset_in_store, length_bytes);
                |parts| &mut parts.first_bytes
            }
            ExtentOrigin::Repeat { offset_in_store } => {
                let source = self.introduced.place_of(offset_in_store);
                self.passages.add(start, length_bytes, source);
                |parts| &mut parts.repeated_bytes
            }
            ExtentOrigin::Fill { is_zero } => {
                self.zero_bytes += if is_zero { length_bytes } else { 0 };
                |parts| &mut parts.run_bytes
            }
        };
        *count(&mut self.total) += length_bytes;
        if let Some(night) = self.nights.at(start) {
            *count(&mut night.parts) += length_bytes;
        }
        let range = start..start.saturating_add(length_bytes);
        for_each_column(self.content_bytes, range, |column, bytes| {
            *count(&mut self.columns[column]) += bytes;
        });
    }

    fn walk_members(
        &mut self,
        archive: &Archive,
        claims_max: usize,
        session: &Session,
    ) -> refrain::Result<()> {
        let mut trees = vec![];
        let is_only = archive.member_count() == 1;
        archive
            .layout()
            .for_each_member(&mut |number, member, content| {
                check(session)?;
                if member.entries == 0 {
                    self.places.offer(content.clone(), || member.name.clone());
                }
                let node = if is_only && member.entries > 0 {
                    0
                } else {
                    self.folders.inside(0, &member.name)
                };
                if member.entries > 0 {
                    let above = if is_only { vec![] } else { [&member.name[..], b"/"].concat() };
                    // Its entries may refer to what is before its own content.
                    let start = if member.has_layers { 0 } else { content.start };
                    trees.push((number, node, above, start, content.clone()));
                } else {
                    let cost = self.cost_of(content.clone(), content.end - content.start);
                    self.folders.add(node, &cost);
                }
                if self.members.len() < MEMBERS_MAX {
                    let member = member.clone();
                    self.members.push(MemberPlace { member, content });
                }
                Ok(())
            })?;
        for (number, node, above, start, content) in trees {
            let member = (number, above.as_slice());
            self.walk_entries(archive, member, node, (start, content), claims_max, session)?;
        }
        Ok(())
    }

    fn walk_entries(
        &mut self,
        archive: &Archive,
        (member, above): (usize, &[u8]),
        root: usize,
        (entries_start, content): (u64, Range<u64>),
        claims_max: usize,
        session: &Session,
    ) -> refrain::Result<()> {
        let mut claims = Claims::new(claims_max);
        // What belongs to no file, such as a tar stream's headers, is the member's own.
        let mut rest = self.cost_of(content.clone(), 0);
        rest.files = 0;
        loop {
            let mut number = 0;
            archive.for_each_entry(member, &mut |entry| {
                check(session)?;
                let range = entry.content_range();
                let start = entries_start.saturating_add(range.start);
                // What is before was stored by an earlier generation, which it cost.
                if entry.kind.has_data() && start >= content.start {
                    let end = entries_start.saturating_add(range.end).min(content.end);
                    let path = || [above, &entry.path[..]].concat();
                    self.places.offer(start..end, path);
                    claims.offer(Claim {
                        start,
                        number,
                        end,
                        node: self.folders.node_for_file(root, &entry.path),
                        file_bytes: entry.size_bytes,
                    });
                    number += 1;
                }
                Ok(())
            })?;
            let mut costs = vec![];
            let is_again = claims.settle(|claim, range| costs.push((*claim, range)));
            for (claim, range) in costs {
                let cost = self.cost_of(range, claim.file_bytes);
                rest.first_bytes = rest.first_bytes.saturating_sub(cost.first_bytes);
                rest.stored_bytes = rest.stored_bytes.saturating_sub(cost.stored_bytes);
                self.folders.add(claim.node, &cost);
            }
            if !is_again {
                self.folders.add(root, &rest);
                return Ok(());
            }
        }
    }

    /// Counts what each generation cost, once the extents were counted.
    fn count_nights(
        &mut self,
        archive: &Arc<Archive>,
        new_folders: &dyn Fn() -> Folders,
        claims_max: usize,
        session: &Session,
    ) -> refrain::Result<()> {
        let mut nights = std::mem::take(&mut self.nights);
        for night in nights.all() {
            night.stored_bytes = self.stored_bytes(night.content());
        }
        for night in nights.detailed() {
            let archive = archive.at_generation(night.number())?;
            let folders = self.folders_of(&archive, new_folders(), claims_max, session)?;
            night.set_folders(&folders);
        }
        self.nights = nights;
        Ok(())
    }

    /// What of another generation is new, by folder.
    fn folders_of(
        &mut self,
        archive: &Archive,
        folders: Folders,
        claims_max: usize,
        session: &Session,
    ) -> refrain::Result<Folders> {
        let own = std::mem::replace(&mut self.folders, folders);
        let members = std::mem::take(&mut self.members);
        let walked = self.walk_members(archive, claims_max, session);
        self.members = members;
        let folders = std::mem::replace(&mut self.folders, own);
        walked.map(|()| folders)
    }

    fn cost_of(&self, content: Range<u64>, file_bytes: u64) -> Cost {
        Cost {
            file_bytes,
            first_bytes: self.introduced.between(content.start, content.end),
            stored_bytes: self.stored_bytes(content),
            files: 1,
        }
    }
}

fn check(session: &Session) -> refrain::Result<()> {
    if session.is_cancelled() {
        Err(Error::new(ErrorKind::Cancelled, "interrupted"))
    } else {
        Ok(())
    }
}

/// Where a column starts, among `bytes`.
pub fn part_of(bytes: u64, column: usize) -> u64 {
    (u128::from(bytes) * column as u128 / COLUMNS as u128) as u64
}

/// Calls `each` for the columns that overlap a range, with the length of the overlap.
pub fn for_each_column(bytes: u64, range: Range<u64>, mut each: impl FnMut(usize, u64)) {
    let first = u128::from(range.start) * COLUMNS as u128 / u128::from(bytes.max(1));
    let mut column = (first as usize).min(COLUMNS - 1);
    let mut at = range.start;
    while at < range.end {
        let end = if column + 1 < COLUMNS {
            part_of(bytes, column + 1).min(range.end)
        } else {
            range.end
        };
        if end > at {
            each(column, end - at);
            at = end;
        }
        column += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_in_the_column_of_its_place() {
        for bytes in [1, 7, COLUMNS as u64 - 1, COLUMNS as u64 * 3 + 5] {
            for (start, end) in [(0, bytes), (bytes / 3, bytes / 2), (bytes - 1, bytes)] {
                let mut found = vec![];
                for_each_column(bytes, start..end, |column, count| {
                    found.push((column, count))
                });
                let mut naive: Vec<(usize, u64)> = vec![];
                for byte in start..end {
                    let columns = 0..COLUMNS;
                    let inside = |column: &usize| {
                        (part_of(bytes, *column)..part_of(bytes, column + 1)).contains(&byte)
                    };
                    let column = columns.clone().find(inside).unwrap();
                    match naive.last_mut() {
                        Some((last, count)) if *last == column => *count += 1,
                        _ => naive.push((column, 1)),
                    }
                }
                assert_eq!(found, naive, "{start} to {end} of {bytes}");
            }
        }
    }
}
