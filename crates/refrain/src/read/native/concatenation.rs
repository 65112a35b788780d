//! Concatenated archives in a file, opened as one.
//!
//! `cat a.rfn b.rfn > both.rfn` is read as the members of both, in order. Only a few of the
//! archives are open at a time, because each has its own caches; reopening one reads only its end.

use std::ops::Range;
use std::sync::Arc;

use refrain_format::{MAGIC, check_magic};
use refrain_pool::Lock;
use refrain_storage::{MemorySource, Source};

use crate::archive_info::{ArchiveInfo, BlockInfo, CodecUse, Member};
use crate::damage::{CutOff, DamagedPlace, distinct};
use crate::decoder_choice::DecoderInfo;
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::read::archive_layout::{ContentExtent, EachMemberContent, LayoutBase, StoreBlock};
use crate::read::decode_memory::StoreMemory;
use crate::read::native::index_reading::{FoundArchive, find_archives};
use crate::read::native::indexed::IndexedArchive;
use crate::read::native::layered_content::tree_content;
use crate::read::native::scan::{Scan, ScannedPart, cut_off_at, scan};
use crate::read::opened_archive::{
    Layout, Members, OpenedArchive, Provable, Remains, Serving, no_member,
};
use crate::read::read_control::{ReadControl, Run};
use crate::read::read_statistics::ReadStatistics;
use crate::read::tree::content::TreeContent;
use crate::store::frames::limits_for;

/// Opens the archives of a file by the indexes at their ends.
///
/// # Errors
/// `Damaged` if it is not an archive, is truncated, or its first and last frames contradict each
/// other; `Unsupported` for a later version; `Limit` for too many archives, or if an index exceeds
/// the memory limit; `Io`.
pub(crate) fn open_archives(
    source: Arc<dyn Source>,
    options: &ReadOptions,
) -> Result<Box<dyn OpenedArchive>> {
    let mut magic = [0; MAGIC.len()];
    let count = source.read_at(0, &mut magic)?;
    check_magic(&magic[..count]).map_err(|error| Error::from(error).at_offset(0))?;
    let found = find_archives(&*source);
    if let Err(error) = &found
        && error.kind == ErrorKind::Damaged
        && let Some(at) = cut_off_at(&*source, &limits_for(options.memory_bytes))?
    {
        return Err(Error::new(ErrorKind::Damaged, CutOff { at }).at_offset(at));
    }
    let found = found?;
    Ok(match found.as_slice() {
        [only] => Box::new(IndexedArchive::open(source, only, options, 1)?),
        _ => Box::new(Concatenation::open(source, found, options)?),
    })
}

/// Opens the remains of a file's archives: reads all of it once and uses every intact frame.
///
/// # Errors
/// `Damaged` if no frame with content is found; `Io`.
pub(crate) fn open_scanned(
    source: Arc<dyn Source>,
    options: &ReadOptions,
) -> Result<Box<dyn OpenedArchive>> {
    let Scan {
        parts,
        skipped_bytes,
    } = scan(&*source, &limits_for(options.memory_bytes))?;
    let shares = parts.len();
    let mut opened = vec![];
    for part in parts {
        opened.push(Arc::new(match part {
            ScannedPart::Frames(scanned) => {
                if scanned.is_empty() {
                    continue;
                }
                IndexedArchive::from_scan(source.clone(), *scanned, options, shares)?
            }
            ScannedPart::Whole(archive, lost) => {
                let source: Arc<dyn Source> = Arc::new(MemorySource::new(archive));
                let found = find_archives(&*source)?;
                let found = found.first().ok_or_else(nothing_found)?;
                IndexedArchive::open(source.clone(), found, options, shares)?.with_lost(lost)
            }
        }));
    }
    if opened.is_empty() {
        Err(nothing_found())
    } else {
        Ok(Box::new(Concatenation::from_opened(
            source,
            opened,
            skipped_bytes,
            options,
        )))
    }
}

fn nothing_found() -> Error {
    Error::damaged("no frame with content was found")
}

/// How many archives are open at once. They share the memory evenly.
const OPEN_MAX: usize = 4;

/// Several archives, opened for random access as one.
pub(crate) struct Concatenation {
    source: Arc<dyn Source>,
    options: ReadOptions,
    parts: Vec<Part>,
    member_count: usize,
    /// The most recently used archives, the latest at the end.
    open: Lock<Vec<(usize, Arc<IndexedArchive>)>>,
    /// What the archives share with those of other files.
    memory: Option<StoreMemory>,
    /// The limits of each archive's caches, unless default: [`Serving::set_cache_bytes`].
    cache_bytes: Lock<Option<(u64, u64)>>,
    /// After a scan, the number of bytes that belong to no frame.
    skipped_bytes: u64,
}

struct Part {
    archive: PartSource,
    /// The number of members before it.
    first_member: usize,
}

/// How one of the archives is opened.
enum PartSource {
    /// By its end, whenever it is needed.
    Found(FoundArchive),
    /// Found by a scan, and kept open.
    Opened(Arc<IndexedArchive>),
}

impl Concatenation {
    /// Opens concatenated archives.
    ///
    /// # Errors
    /// From opening any of them.
    pub(crate) fn open(
        source: Arc<dyn Source>,
        found: Vec<FoundArchive>,
        options: &ReadOptions,
    ) -> Result<Concatenation> {
        let mut opened = Concatenation {
            source,
            options: options.clone(),
            parts: Vec::with_capacity(found.len()),
            member_count: 0,
            open: Lock::default(),
            memory: None,
            cache_bytes: Lock::default(),
            skipped_bytes: 0,
        };
        for archive in found {
            opened.parts.push(Part {
                archive: PartSource::Found(archive),
                first_member: opened.member_count,
            });
            let part = opened.part(opened.parts.len() - 1)?;
            opened.member_count += part.member_count();
        }
        Ok(opened)
    }

    /// Archives found by a scan.
    fn from_opened(
        source: Arc<dyn Source>,
        archives: Vec<Arc<IndexedArchive>>,
        skipped_bytes: u64,
        options: &ReadOptions,
    ) -> Concatenation {
        let mut parts = Vec::with_capacity(archives.len());
        let mut member_count = 0;
        for archive in archives {
            let first_member = member_count;
            member_count += archive.member_count();
            parts.push(Part {
                archive: PartSource::Opened(archive),
                first_member,
            });
        }
        Concatenation {
            source,
            options: options.clone(),
            parts,
            member_count,
            open: Lock::default(),
            memory: None,
            cache_bytes: Lock::default(),
            skipped_bytes,
        }
    }

    fn shares(&self) -> usize {
        match self.parts.first().map(|part| &part.archive) {
            Some(PartSource::Opened(_)) => self.parts.len(),
            _ => self.parts.len().clamp(1, OPEN_MAX),
        }
    }

    fn open_parts(&self) -> Vec<Arc<IndexedArchive>> {
        let open = self.open.lock();
        let of_parts = self.parts.iter().filter_map(|part| match &part.archive {
            PartSource::Opened(archive) => Some(archive.clone()),
            PartSource::Found(_) => None,
        });
        of_parts
            .chain(open.iter().map(|(_, archive)| archive.clone()))
            .collect()
    }

    /// Opens the archive with this number if needed.
    fn part(&self, number: usize) -> Result<Arc<IndexedArchive>> {
        if let Some(Part {
            archive: PartSource::Opened(archive),
            ..
        }) = self.parts.get(number)
        {
            return Ok(archive.clone());
        }
        let mut open = self.open.lock();
        if let Some(at) = open.iter().position(|(kept, _)| *kept == number) {
            open[at..].rotate_left(1);
        } else {
            let part = self.parts.get(number).map(|part| &part.archive);
            let Some(PartSource::Found(found)) = part else {
                return Err(no_member(self.member_count, self.member_count));
            };
            let shares = self.shares();
            let source = self.source.clone();
            let mut archive = IndexedArchive::open(source, found, &self.options, shares)?;
            if let Some(memory) = &self.memory {
                archive.share_memory(memory);
            }
            if let Some((bytes, maps_bytes_max)) = *self.cache_bytes.lock() {
                archive.set_cache_bytes(bytes, maps_bytes_max);
            }
            if open.len() >= OPEN_MAX {
                open.remove(0);
            }
            open.push((number, Arc::new(archive)));
        }
        open.last()
            .map(|(_, archive)| archive.clone())
            .ok_or_else(|| no_member(self.member_count, self.member_count))
    }

    /// Calls `each` for every archive, the number of members before it, and what precedes it.
    fn for_each_part(
        &self,
        each: &mut dyn FnMut(&IndexedArchive, usize, LayoutBase) -> Result<()>,
    ) -> Result<()> {
        let mut base = LayoutBase::default();
        for (number, part) in self.parts.iter().enumerate() {
            let archive = self.part(number)?;
            each(&archive, part.first_member, base)?;
            base = archive.base_after(base);
        }
        Ok(())
    }

    /// The archive with a member, and the member's number in it.
    fn part_of(&self, member: usize) -> Result<(Arc<IndexedArchive>, usize)> {
        let after = self
            .parts
            .partition_point(|part| part.first_member <= member);
        let number = after.checked_sub(1).filter(|_| member < self.member_count);
        let part = number.and_then(|number| Some((number, self.parts.get(number)?)));
        let (number, part) = part.ok_or_else(|| no_member(member, self.member_count))?;
        Ok((self.part(number)?, member - part.first_member))
    }
}

impl Members for Concatenation {
    fn member_count(&self) -> usize {
        self.member_count
    }

    fn member(&self, member: usize) -> Result<Option<Member>> {
        if member >= self.member_count {
            return Ok(None);
        }
        let (part, member) = self.part_of(member)?;
        part.member(member)
    }

    fn member_named(&self, name: &[u8]) -> Result<Option<usize>> {
        for (number, part) in self.parts.iter().enumerate() {
            if let Some(member) = self.part(number)?.member_named(name)? {
                return Ok(Some(part.first_member + member));
            }
        }
        Ok(None)
    }

    fn for_each_member(&self, each: &mut dyn FnMut(usize, &Member) -> Result<()>) -> Result<()> {
        for (number, part) in self.parts.iter().enumerate() {
            let first = part.first_member;
            self.part(number)?
                .for_each_member(&mut |member, found| each(first + member, found))?;
        }
        Ok(())
    }

    fn read(
        &self,
        member: usize,
        offset: u64,
        buffer: &mut [u8],
        control: &ReadControl,
    ) -> Result<usize> {
        let (part, member) = self.part_of(member)?;
        part.read(member, offset, buffer, control)
    }

    fn content(
        &self,
        member: usize,
        control: &ReadControl,
    ) -> Result<Option<Box<dyn TreeContent + '_>>> {
        let (part, member) = self.part_of(member)?;
        let meter = part.meter().with_control(control);
        tree_content(part, member, meter)
    }

    fn has_entries(&self, member: usize) -> Result<bool> {
        let (part, member) = self.part_of(member)?;
        part.has_entries(member)
    }
}

impl Serving for Concatenation {
    fn for_each_run(
        &self,
        member: usize,
        range: Range<u64>,
        each: &mut dyn FnMut(Run) -> bool,
    ) -> Result<()> {
        let (part, member) = self.part_of(member)?;
        part.for_each_run(member, range, each)
    }

    fn prefetch(&self, member: usize, range: Range<u64>, control: &ReadControl) -> Result<u64> {
        let (part, member) = self.part_of(member)?;
        part.prefetch(member, range, control)
    }

    /// Of the open archives.
    fn read_statistics(&self) -> ReadStatistics {
        let open = self.open_parts();
        let of_parts = open.iter().map(|part| part.read_statistics());
        of_parts.fold(ReadStatistics::default(), ReadStatistics::plus)
    }

    fn share_memory(&mut self, memory: &StoreMemory) {
        self.memory = Some(memory.clone());
        for part in &mut self.parts {
            if let PartSource::Opened(archive) = &mut part.archive
                && let Some(archive) = Arc::get_mut(archive)
            {
                archive.share_memory(memory);
            }
        }
    }

    fn set_cache_bytes(&self, bytes: u64, maps_bytes_max: u64) {
        let shares = self.shares() as u64;
        let (bytes, maps_bytes_max) = (bytes / shares, maps_bytes_max / shares);
        *self.cache_bytes.lock() = Some((bytes, maps_bytes_max));
        for archive in self.open_parts() {
            archive.set_cache_bytes(bytes, maps_bytes_max);
        }
    }

    fn trim_cache(&self) {
        for archive in self.open_parts() {
            archive.trim_cache();
        }
    }
}

impl Layout for Concatenation {
    /// The sums over all archives; version and level of the first.
    fn info(&self) -> Result<ArchiveInfo> {
        let mut sum: Option<ArchiveInfo> = None;
        for number in 0..self.parts.len() {
            let info = self.part(number)?.info()?;
            match &mut sum {
                None => sum = Some(info),
                Some(sum) => add_info(sum, info),
            }
        }
        sum.ok_or_else(|| no_member(0, 0))
    }

    fn for_each_block(&self, each: &mut dyn FnMut(BlockInfo) -> Result<()>) -> Result<()> {
        (0..self.parts.len()).try_for_each(|number| self.part(number)?.for_each_block(each))
    }

    fn for_each_extent(&self, each: &mut dyn FnMut(ContentExtent) -> Result<()>) -> Result<()> {
        self.for_each_part(&mut |archive, _, base| archive.extents_from(base, each))
    }

    fn for_each_store_block(&self, each: &mut dyn FnMut(StoreBlock) -> Result<()>) -> Result<()> {
        self.for_each_part(&mut |archive, _, base| archive.blocks_from(base, each))
    }

    fn for_each_member_content(&self, each: &mut EachMemberContent<'_>) -> Result<()> {
        self.for_each_part(&mut |archive, first, base| {
            archive.contents_from(base, &mut |member, found, range| {
                each(first + member, found, range)
            })
        })
    }

    fn read_store(&self, offset_in_store: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut count = 0;
        self.for_each_part(&mut |archive, _, base| {
            let inside = offset_in_store.checked_sub(base.store_bytes);
            if let (0, Some(inside)) = (count, inside) {
                count = archive.read_store(inside, buffer)?;
            }
            Ok(())
        })?;
        Ok(count)
    }
}

impl Provable for Concatenation {}

impl Remains for Concatenation {
    fn check_index(&self) -> Result<()> {
        (0..self.parts.len()).try_for_each(|number| self.part(number)?.check_index())
    }

    /// Of the open archives.
    fn damaged_places(&self) -> Vec<DamagedPlace> {
        let open = self.open_parts();
        let places = open.iter().flat_map(|part| part.damaged_places());
        distinct(places.collect())
    }

    fn lost_end(&self, member: usize) -> Result<Option<Range<u64>>> {
        let (part, member) = self.part_of(member)?;
        part.lost_end(member)
    }

    fn read_remains(
        &self,
        member: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Vec<Range<u64>>> {
        let (part, member) = self.part_of(member)?;
        part.read_remains(member, offset, buffer)
    }

    fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }
}

/// Adds the numbers of another archive. They are unchecked, so sums saturate.
fn add_info(sum: &mut ArchiveInfo, info: ArchiveInfo) {
    let sums = [
        (&mut sum.archive_bytes, info.archive_bytes),
        (&mut sum.content_bytes, info.content_bytes),
        (&mut sum.store_bytes, info.store_bytes),
        (&mut sum.extents, info.extents),
        (&mut sum.extents_frame_bytes, info.extents_frame_bytes),
        (&mut sum.entries_frame_bytes, info.entries_frame_bytes),
        (&mut sum.matched_bytes, info.matched_bytes),
        (&mut sum.run_bytes, info.run_bytes),
        (&mut sum.fallbacks, info.fallbacks),
        (&mut sum.given_back_bytes, info.given_back_bytes),
    ];
    for (sum, number) in sums {
        *sum = sum.saturating_add(number);
    }
    sum.memory_bytes = sum.memory_bytes.max(info.memory_bytes);
    sum.reach_bytes = sum.reach_bytes.max(info.reach_bytes);
    sum.block_bytes_max = sum.block_bytes_max.max(info.block_bytes_max);
    sum.members += info.members;
    sum.archives += info.archives;
    sum.root_hash = None;
    let is_new = |decoder: &DecoderInfo| !sum.decoders.contains(decoder);
    let new: Vec<_> = info.decoders.into_iter().filter(is_new).collect();
    sum.decoders.extend(new);
    for codec in info.codecs {
        let is_same = |known: &&mut CodecUse| {
            (&known.codec, &known.filters) == (&codec.codec, &codec.filters)
        };
        match sum.codecs.iter_mut().find(is_same) {
            None => sum.codecs.push(codec),
            Some(known) => {
                known.blocks += codec.blocks;
                known.raw_bytes = known.raw_bytes.saturating_add(codec.raw_bytes);
                known.stored_bytes = known.stored_bytes.saturating_add(codec.stored_bytes);
            }
        }
    }
}
