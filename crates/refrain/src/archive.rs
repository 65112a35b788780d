//! An archive opened for random access: any range of any member, from many threads.

use std::ops::Range;
use std::sync::Arc;

use refrain_entries::{Entry, EntryKind, Selection};
use refrain_filesystem::restore::TreeRestore;
use refrain_protect::SPARSE_PIECE_BYTES;
use refrain_storage::{Sink, Source};

use refrain_filesystem::Problem;

use crate::archive_info::{ArchiveInfo, BlockInfo, Member, MemberKind};
use crate::damage::{DamagedPlace, push_range};
use crate::dialect::{DialectReader, NATIVE, reader_of};
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::place::Place;
use crate::progress::{Progress, Watch, is_cancelled};
use crate::read::content_check::{ContentCheck, HashCheck};
use crate::read::content_limit::{ContentLimit, ContentMeter};
use crate::read::native::concatenation::open_scanned;
use crate::read::opened_archive::{OpenedArchive, no_member};
use crate::read::range_read::{RangeRead, within};
use crate::read::read_control::ReadControl;
use crate::read::serving_memory::ServingMemory;
use crate::read::shared_memory::SharedMemory;
use crate::read::tree::content::TreeContent;
use crate::read::tree::part::{PartOutput, write_part};
use crate::read::tree::raw_parts::TarCheck;
use crate::read::tree::read_hash::ReadEntries;
use crate::read::tree::recovery::Recovery;
use crate::read::tree::restore::{RestorePlan, restore_entries};
use crate::read::tree::view::{ViewOutput, write_view};
use crate::read::tree::view_frames::ViewFrames;
use crate::store::complete_end::complete_part;
use crate::store::envelope::open::{Unlocked, unlocked};

/// How much is read at once when a whole member is written.
const READ_BYTES: usize = 8 << 20;

/// How many zeros of a sparse member are written at once, in bytes: the sink may be a pipe.
const ZEROS_BYTES_MAX: u64 = 1 << 30;

fn has_entries(member: &Member) -> bool {
    matches!(member.kind, MemberKind::Tree | MemberKind::Tar)
}

/// An archive opened for random access, shared by any number of threads.
///
/// Opening reads only the first and last frames of the archive. A read decodes the blocks of its
/// range, as far as needed, and keeps them within the options' memory. Frames are verified by their
/// checksums; the hash of a whole member is compared only by [`verify`](crate::verify) and
/// [`extract`](crate::extract()).
///
/// An lrzip archive has no index: opening it reads the records of all its chunks, and a range is
/// decoded from the beginning of its blocks. A file of another format has one member without a
/// name, whose kind tells whether it has entries. Its entries and ranges are decoded from its
/// beginning, or for a zip file from theirs; what needs random access is `Unsupported`.
pub struct Archive {
    pub(crate) opened: Box<dyn OpenedArchive>,
    /// How archives of its dialect are read.
    pub(crate) reader: &'static DialectReader,
    /// The bytes of the archive.
    pub(crate) source: Arc<dyn Source>,
    /// The bytes of its file, with what is appended, and what opens that.
    pub(crate) unlocked: Option<Unlocked>,
    pub(crate) threads: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) memory: Arc<ServingMemory>,
    /// For tar views.
    pub(crate) views: ViewFrames,
    pub(crate) content_limit: ContentLimit,
    /// Whether a scan found its frames.
    pub(crate) is_scanned: bool,
}

impl Archive {
    /// Opens an archive by the index at its end.
    ///
    /// # Errors
    /// `Damaged` if it is not an archive, is truncated, or its first and last frames contradict
    /// each other; `Unsupported` for a later version; `Limit` if its index takes more memory than
    /// allowed; `Io`.
    pub fn open(source: Arc<dyn Source>, options: &ReadOptions) -> Result<Archive> {
        let unlocked = unlocked(source, options)?;
        let archive = Archive::open_unlocked(unlocked.source.clone(), options)?;
        Ok(archive.in_file(unlocked))
    }

    fn in_file(self, unlocked: Unlocked) -> Archive {
        Archive {
            unlocked: Some(unlocked),
            ..self
        }
    }

    /// Opens an archive that is not encrypted, or whose envelope was opened.
    fn open_unlocked(source: Arc<dyn Source>, options: &ReadOptions) -> Result<Archive> {
        let source = complete_part(source)?;
        Archive::open_as(reader_of(&*source)?, source, options)
    }

    /// Opens an archive of a known dialect.
    pub(crate) fn open_as(
        reader: &'static DialectReader,
        source: Arc<dyn Source>,
        options: &ReadOptions,
    ) -> Result<Archive> {
        reader.check_decoders(options)?;
        let content_limit = ContentLimit::new(options, source.size_bytes()?);
        let opened = (reader.open)(source.clone(), options)?;
        Ok(Archive::new(opened, reader, source, options, content_limit))
    }

    fn new(
        opened: Box<dyn OpenedArchive>,
        reader: &'static DialectReader,
        source: Arc<dyn Source>,
        options: &ReadOptions,
        content_limit: ContentLimit,
    ) -> Archive {
        let memory = ServingMemory::new(SharedMemory::new(options.memory_bytes));
        Archive {
            views: memory.new_views(),
            opened,
            reader,
            source,
            unlocked: None,
            threads: options.threads.max(1),
            memory_bytes: options.memory_bytes,
            memory: Arc::new(memory),
            content_limit,
            is_scanned: false,
        }
    }

    /// Checks that the options' content limit allows reading this many bytes. For callers that read
    /// much by [`Archive::read_at`], which does not count what it delivers.
    ///
    /// # Errors
    /// `Limit`.
    pub fn check_content_limit(&self, content_bytes: u64) -> Result<()> {
        self.content_limit.check(content_bytes)
    }

    /// Gives decoded blocks most of the memory, for a caller that reads much of the archive at
    /// once.
    pub fn use_memory_for_blocks(&self) {
        self.opened.set_cache_bytes(self.memory_bytes / 8 * 5, 0);
    }

    /// Takes a part of a budget that several archives share, in place of a budget of its own.
    /// Called before anything is read.
    pub fn share_memory(&mut self, shared: &Arc<SharedMemory>) {
        self.memory = Arc::new(ServingMemory::new(Arc::clone(shared)));
        self.views = self.memory.new_views();
        self.opened.share_memory(self.memory.store());
    }

    /// Gives decoded blocks and maps of extents most of the memory, for a caller that serves the
    /// archive to many: they read anywhere, and a map is as expensive to decode as a block. With
    /// shared memory, this archive's part of it; called again when another was opened or closed.
    pub fn use_memory_for_serving(&self) {
        self.memory.serve(&*self.opened);
    }

    /// Takes memory that the caller uses for itself from that for decoded blocks: it was `before`
    /// bytes, and is `now`. Callers begin with 0.
    pub fn reserve_memory(&self, before: u64, now: u64) {
        self.memory.reserve(&*self.opened, before, now);
    }

    /// Opens the remains of a damaged archive without its index: reads all of it once and uses
    /// every intact frame. Ranges with intact blocks and extents can be read; others fail as
    /// `Damaged`. A member with a lost end has a hash of zeros. Content of a lost member belongs to
    /// a member without a name.
    ///
    /// # Errors
    /// `Damaged` if no frame with content is found; `Io`.
    pub fn open_by_scan(source: Arc<dyn Source>, options: &ReadOptions) -> Result<Archive> {
        Archive::scan_unlocked(unlocked(source, options)?.source, options)
    }

    fn scan_unlocked(source: Arc<dyn Source>, options: &ReadOptions) -> Result<Archive> {
        let content_limit = ContentLimit::new(options, source.size_bytes()?);
        let opened = open_scanned(source.clone(), options)?;
        let archive = Archive::new(opened, &NATIVE, source, options, content_limit);
        Ok(Archive {
            is_scanned: true,
            ..archive
        })
    }

    /// Whether the archive's frames were found by a scan instead of its index.
    pub fn is_scanned(&self) -> bool {
        self.is_scanned
    }

    /// Opens an archive by its index or, if its first or last frames or its index are damaged, its
    /// remains by a scan. [`Archive::damaged_places`] then tells what is damaged or missing.
    ///
    /// # Errors
    /// As [`Archive::open`], if a scan finds nothing either.
    pub fn open_or_scan(source: Arc<dyn Source>, options: &ReadOptions) -> Result<Archive> {
        let unlocked = unlocked(source, options)?;
        let source = unlocked.source.clone();
        match Archive::open_checked(source.clone(), options) {
            Err(error) if error.kind == ErrorKind::Damaged => {
                match Archive::scan_unlocked(source, options) {
                    Err(other) if other.kind == ErrorKind::Damaged => Err(error),
                    scanned => scanned,
                }
            }
            checked => Ok(checked?.in_file(unlocked)),
        }
    }

    /// Opens an archive that is not encrypted, or whose envelope was opened, by its index, which is
    /// read completely.
    pub(crate) fn open_checked(source: Arc<dyn Source>, options: &ReadOptions) -> Result<Archive> {
        let archive = Archive::open_unlocked(source, options)?;
        archive.opened.check_index()?;
        Ok(archive)
    }

    /// What is damaged or missing, as far as known: after a scan, everything that it found,
    /// otherwise what reads of this archive have met so far.
    pub fn damaged_places(&self) -> Vec<DamagedPlace> {
        self.opened.damaged_places()
    }

    /// The content and the entries of a member that has entries.
    pub(crate) fn tree(&self, member: usize) -> Result<Option<Box<dyn TreeContent + '_>>> {
        self.opened.content(member, &ReadControl::default())
    }

    /// The content and the entries of a member that must have entries.
    ///
    /// # Errors
    /// `Usage` for a member without entries.
    pub(crate) fn tree_with_entries(
        &self,
        member: usize,
        control: &ReadControl,
    ) -> Result<Box<dyn TreeContent + '_>> {
        let tree = self.opened.content(member, control)?;
        tree.ok_or_else(|| Error::new(ErrorKind::Usage, "the member has no entries"))
    }

    /// The number of bytes that belong to no intact frame. Always 0 except after
    /// [`Archive::open_by_scan`]. For an lrzip archive: the number of bytes after its end.
    pub fn skipped_bytes(&self) -> u64 {
        self.opened.skipped_bytes()
    }

    /// The size of its file in bytes.
    ///
    /// # Errors
    /// `Io`.
    pub fn size_bytes(&self) -> Result<u64> {
        Ok(self.source.size_bytes()?)
    }

    /// The number of members.
    pub fn member_count(&self) -> usize {
        self.opened.member_count()
    }

    /// The member with this number: 0, 1, 2 … in archive order. An lrzip archive's has no name.
    ///
    /// # Errors
    /// `Usage` if there is no such member; `Damaged`, `Limit` and `Io` for the index.
    pub fn member(&self, member: usize) -> Result<Member> {
        let found = self.opened.member(member)?;
        found.ok_or_else(|| no_member(member, self.member_count()))
    }

    /// The number of the first member with this name, byte for byte.
    ///
    /// # Errors
    /// `Damaged`, `Limit` and `Io` for the index.
    pub fn find_member(&self, name: &[u8]) -> Result<Option<usize>> {
        self.opened.member_named(name)
    }

    /// Calls `each` for every member and its number, in archive order.
    ///
    /// # Errors
    /// `Damaged`, `Limit` and `Io` for the index; errors of `each`.
    pub fn for_each_member(
        &self,
        each: &mut dyn FnMut(usize, &Member) -> Result<()>,
    ) -> Result<()> {
        self.opened.for_each_member(each)
    }

    /// All members, in archive order. There may be millions: see [`Archive::for_each_member`].
    ///
    /// # Errors
    /// `Damaged`, `Limit` and `Io` for the index.
    pub fn members(&self) -> Result<Vec<Member>> {
        let mut members = vec![];
        self.for_each_member(&mut |_, member| {
            members.push(member.clone());
            Ok(())
        })?;
        Ok(members)
    }

    /// Reads a member or an entry at `offset` into `buffer`: a member's content, a directory's tar
    /// stream, an entry's data with its holes as zeros. Returns the number of bytes read, less than
    /// the length of `buffer` only at the end.
    ///
    /// The first read of a directory's tar stream at a high offset goes through all entries before
    /// it. Later ones know where they are.
    ///
    /// # Errors
    /// `Usage` if there is no such member, or the entry is another member's; `Damaged`,
    /// `Unsupported`, `Limit` and `Io` for the frames that the range needs.
    pub fn read_at<'a>(
        &self,
        place: impl Into<Place<'a>>,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize> {
        let place = place.into();
        let count = self.read_controlled(place, offset, buffer, &ReadControl::default())?;
        if count < buffer.len() {
            self.check_end(place, offset.saturating_add(count as u64))?;
        }
        Ok(count)
    }

    /// Checks that the content ends at `end`, or before: the end of what a scan found may be before
    /// the one that the archive states.
    fn check_end(&self, Place { member, entry }: Place<'_>, end: u64) -> Result<()> {
        let stated_bytes = match entry {
            Some(entry) => entry.size_bytes,
            None => self.member(member)?.content_bytes,
        };
        if end >= stated_bytes || !self.is_scanned() {
            return Ok(());
        }
        Err(Error::damaged("the rest of the content is missing").at_content(end))
    }

    /// A check of a member for which [`Archive::read_at`] cannot verify parts, because the archive
    /// only has digests of the complete content (lrzip's). Pass it all content to find out whether
    /// it is right. `None` if everything that is read was verified.
    pub fn content_check(&self, member: usize) -> Option<ContentCheck> {
        self.opened.content_check(member)
    }

    /// Writes a range of a member or an entry, as read by [`Archive::read_at`], to `sink`, with
    /// many threads: everything before damage. An end of `u64::MAX` is the end of the content. Does
    /// not publish the sink. Complete content is compared with its hash, unless the archive has no
    /// hash of exactly these bytes: a directory's tar stream, an entry beside others, a member with
    /// a lost end. Returns the number of bytes written.
    ///
    /// # Errors
    /// As [`Archive::read_at`]; `Limit` if the range exceeds the options' content limit; `Usage` if
    /// it goes past the end; errors of the sink; `Cancelled`.
    pub fn write_range<'a>(
        &self,
        place: impl Into<Place<'a>>,
        range: Range<u64>,
        sink: &mut dyn Sink,
        watch: &dyn Watch,
    ) -> Result<u64> {
        let place = place.into();
        let Place { member, entry } = place;
        if let Some(passes) = self.passes(member)? {
            return passes.write_range(entry, range, sink, watch);
        }
        let stated = self.member(member)?;
        let length_bytes = entry.map_or(stated.content_bytes, |entry| entry.size_bytes);
        let range = within(range, length_bytes, entry)?;
        let written_bytes = range.end - range.start;
        // A whole tar stream is compared with its hashes.
        if entry.is_none() && has_entries(&stated) && written_bytes == length_bytes {
            self.write_member(member, sink, watch)?;
            return Ok(written_bytes);
        }
        self.check_content_limit(written_bytes)?;
        let read = |offset: u64, buffer: &mut [u8]| self.read_at(place, offset, buffer);
        let read = RangeRead {
            read: &read,
            // An archive without hashes of its blocks is one stream.
            threads: match self.content_check(place.member) {
                Some(_) => 0,
                None => self.threads,
            },
            memory_bytes: self.memory_bytes,
            check: if written_bytes == length_bytes {
                self.whole_check(place, &stated)?
            } else {
                None
            },
            range,
        };
        read.run(watch, &mut |bytes| Ok(sink.write_all(bytes)?))?;
        Ok(written_bytes)
    }

    /// The check of complete content: a member's, or an entry's if it is all of its member.
    fn whole_check(
        &self,
        Place { member, entry }: Place<'_>,
        stated: &Member,
    ) -> Result<Option<ContentCheck>> {
        let is_all = match (entry, self.tree(member)?) {
            (None, _) => !has_entries(stated),
            (Some(entry), Some(tree)) => {
                let content = entry.content_range();
                tree.has_all_content()
                    && entry.data_ranges.is_none()
                    && !entry.is_rebased
                    && content == (0..tree.content_bytes())
            }
            (Some(_), None) => false,
        };
        if let (None, Some(check)) = (entry, self.content_check(member)) {
            return Ok(Some(check));
        }
        let is_known = is_all && stated.blake3 != [0; 32];
        Ok(is_known.then(|| ContentCheck(Box::new(HashCheck::for_member(stated)))))
    }

    /// Writes a whole member to `sink`, decoded by many threads: its content, or a directory's tar
    /// stream. Does not publish the sink. Entries are compared with their hash. Returns whether all
    /// content was compared with its hash: it is for lists of entries of ordinary size and for
    /// lrzip archives; otherwise this is left to the caller.
    ///
    /// # Errors
    /// As [`Archive::read_at`]; errors of the sink; `Cancelled`.
    pub fn write_member(
        &self,
        member: usize,
        sink: &mut dyn Sink,
        watch: &dyn Watch,
    ) -> Result<bool> {
        let meter = ContentMeter::new(self.content_limit.clone());
        self.write_counted(member, sink, &meter, None, watch)
    }

    /// Writes a part of a directory or tar member to a sink, without publishing it: the selected
    /// entries, as a tar stream. A hard link to an unselected file becomes a file. Returns the
    /// number of entries.
    ///
    /// # Errors
    /// As [`Archive::read_at`]; `Usage` for other members; errors of the sink; `Cancelled`.
    pub fn write_part(
        &self,
        member: usize,
        selection: &Selection,
        sink: &mut dyn Sink,
        watch: &dyn Watch,
    ) -> Result<u64> {
        let tree = self.tree_with_entries(member, &ReadControl::default())?;
        let meter = ContentMeter::new(self.content_limit.clone());
        let find = |path: &[u8]| self.find_entry(member, path);
        let output = PartOutput {
            sink,
            meter: &meter,
            watch,
        };
        write_part(&*tree, selection, &find, output)
    }

    /// As [`Archive::write_member`], counting what it writes.
    pub(crate) fn write_counted(
        &self,
        member: usize,
        sink: &mut dyn Sink,
        meter: &ContentMeter,
        recovery: Option<&Recovery<'_>>,
        watch: &dyn Watch,
    ) -> Result<bool> {
        let stated = self.member(member)?;
        let total_bytes = stated.content_bytes;
        if let Some(tree) = self.tree(member)? {
            let output = ViewOutput {
                sink,
                threads: self.threads,
                total_bytes,
                memory_bytes: self.memory_bytes,
                blake3: Some(&stated.blake3),
                meter,
                recovery,
            };
            return write_view(&*tree, output, watch);
        }
        meter.add(total_bytes)?;
        let mut check = self.content_check(member);
        let mut buffer =
            vec![0; READ_BYTES.min(usize::try_from(total_bytes).unwrap_or(READ_BYTES))];
        let mut offset = 0;
        let mut missing = vec![];
        let lost_end = self.opened.lost_end(member)?;
        let report = |offset| {
            watch.progress(&Progress {
                content_bytes_done: offset,
                content_bytes_total: Some(total_bytes),
                archive_bytes: 0,
            });
            if is_cancelled(watch) { Err(Error::cancelled()) } else { Ok(()) }
        };
        while offset < total_bytes {
            let mut wanted = buffer.len();
            if stated.is_sparse {
                let (is_zeros, length_bytes) = self.run_of_sparse(member, offset..total_bytes)?;
                if is_zeros {
                    sink.write_zeros(length_bytes)?;
                    offset += length_bytes;
                    report(offset)?;
                    continue;
                }
                wanted = wanted.min(usize::try_from(length_bytes).unwrap_or(wanted));
            }
            let (count, lost, error) = self.read_piece(member, offset, &mut buffer[..wanted])?;
            let is_kept = recovery.is_some_and(|recovery| recovery.keep_broken);
            let first = lost.first().map_or(u64::MAX, |first| first.start - offset);
            let written = if is_kept {
                count
            } else {
                count.min(usize::try_from(first).unwrap_or(usize::MAX))
            };
            let bytes = &buffer[..written];
            if let Some(check) = check.as_mut().filter(|_| error.is_none()) {
                check.update(bytes)?;
            }
            sink.write_all(bytes)?;
            offset += written as u64;
            if let Some(error) = error {
                check = None;
                lost.into_iter()
                    .for_each(|range| push_range(&mut missing, range));
                match recovery {
                    None => return Err(error),
                    Some(_) if is_kept => {}
                    Some(recovery) => {
                        let end = lost_end.map_or(total_bytes, |lost| lost.end);
                        let lost = offset..end;
                        recovery.view(total_bytes, offset, vec![lost]);
                        return Ok(false);
                    }
                }
            }
            report(offset)?;
        }
        if let Some(lost) = lost_end {
            push_range(&mut missing, lost);
        }
        match (missing.is_empty(), recovery) {
            (true, _) => {}
            (false, Some(recovery)) => {
                recovery.view(total_bytes, offset, missing);
                return Ok(false);
            }
            (false, None) => return Err(Error::damaged("the end of the member is missing")),
        }
        let is_checked = check.is_some();
        check.map_or(Ok(()), ContentCheck::finish)?;
        Ok(is_checked)
    }

    /// Whether a range of a sparse member starts with long zeros, and their length, or the length
    /// of what precedes the next ones. At most what is delivered before the user may stop it.
    fn run_of_sparse(&self, member: usize, range: Range<u64>) -> Result<(bool, u64)> {
        let (mut first, mut length_bytes) = (None, 0);
        let found = self.opened.for_each_run(member, range, &mut |run| {
            let is_zeros = run.is_zero && run.length_bytes >= SPARSE_PIECE_BYTES as u64;
            if *first.get_or_insert(is_zeros) != is_zeros {
                return false;
            }
            length_bytes += run.length_bytes;
            length_bytes < if is_zeros { ZEROS_BYTES_MAX } else { READ_BYTES as u64 }
        });
        match found {
            Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled) => Err(error),
            // Reading tells what of it is damaged or missing.
            _ if length_bytes == 0 => Ok((false, READ_BYTES as u64)),
            _ => Ok((first.unwrap_or(false), length_bytes.min(ZEROS_BYTES_MAX))),
        }
    }

    /// Reads the next piece of a member, as far as possible. Returns its length, the member's
    /// missing ranges, and why.
    fn read_piece(
        &self,
        member: usize,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<(usize, Vec<Range<u64>>, Option<Error>)> {
        match (self.opened).read(member, offset, buffer, &ReadControl::default()) {
            Ok(0) => Err(Error::damaged("the member ends before its length")),
            Ok(count) => Ok((count, Vec::new(), None)),
            Err(error) if error.kind == ErrorKind::Damaged => {
                let left = self.member(member)?.content_bytes.saturating_sub(offset);
                let count = usize::try_from(left)
                    .unwrap_or(usize::MAX)
                    .min(buffer.len());
                let missing = (self.opened).read_remains(member, offset, &mut buffer[..count])?;
                // Another read may have found the block in memory in the meantime.
                let error = (!missing.is_empty()).then_some(error);
                Ok((count, missing, error))
            }
            Err(error) => Err(error),
        }
    }

    /// The list of entries of a directory or tar member; empty for others. All of it is in memory:
    /// see [`Archive::for_each_entry`].
    ///
    /// # Errors
    /// As [`Archive::read_at`].
    pub fn entries(&self, member: usize) -> Result<Vec<Entry>> {
        let mut entries = vec![];
        self.for_each_entry(member, &mut |entry| {
            entries.push(entry.clone());
            Ok(())
        })?;
        Ok(entries)
    }

    /// Calls `each` for every entry of a directory or tar member, in list order: by path in a
    /// directory, as in the stream in a tar. One frame of the list is in memory at a time. At the
    /// end the hash of all entries is compared. Damaged frames are left out; the error about them
    /// comes last.
    ///
    /// # Errors
    /// As [`Archive::read_at`]; errors of `each`.
    pub fn for_each_entry(
        &self,
        member: usize,
        each: &mut dyn FnMut(&Entry) -> Result<()>,
    ) -> Result<()> {
        if let Some(passes) = self.passes(member)? {
            return passes.for_each_entry(each);
        }
        let Some(tree) = self.tree(member)? else {
            return Ok(());
        };
        let mut read = ReadEntries::new();
        let mut lost = tree.lost_entries();
        let mut is_incomplete = !lost.is_none();
        for frame in 0..tree.entry_frames()? {
            let entries = match tree.entries_of(frame) {
                Err(error) if error.kind == ErrorKind::Damaged => {
                    is_incomplete = true;
                    lost.count += tree.stated_count(frame)?;
                    continue;
                }
                entries => entries?,
            };
            read.add(&entries);
            let mut named = entries.iter().filter(|entry| entry.kind != EntryKind::Raw);
            named.try_for_each(&mut *each)?;
        }
        let compared = if is_incomplete {
            Err(Error::damaged(lost.to_string()))
        } else {
            read.compare(&*tree)
        };
        compared.map_err(|error| {
            let found = self.member(member).map(|found| found.name);
            error.in_file(String::from_utf8_lossy(&found.unwrap_or_default()))
        })
    }

    /// The parts of a tar member that are not complete entries: what follows a damaged header, or
    /// the file in which the stream was truncated. Reads all entries, unless a file of another
    /// format was read before. Of a zip file: what belongs to no entry. Empty for other members.
    ///
    /// # Errors
    /// As [`Archive::read_at`].
    pub fn tar_problems(&self, member: usize) -> Result<Vec<Problem>> {
        if let Some(passes) = self.passes(member)? {
            return passes.problems();
        }
        let Some(tree) = self.tree(member)?.filter(|tree| tree.is_recorded()) else {
            return Ok(Vec::new());
        };
        let mut check = TarCheck::new(&*tree);
        let mut problems = Vec::new();
        for frame in 0..tree.entry_frames()? {
            for entry in tree.entries_of(frame)?.iter() {
                problems.extend(check.look(entry)?);
            }
        }
        problems.extend(check.problems());
        Ok(problems)
    }

    /// The entry with this path, byte for byte; the last one, if a tar has several. Reads one frame
    /// of a directory's list.
    ///
    /// # Errors
    /// As [`Archive::read_at`].
    pub fn find_entry(&self, member: usize, path: &[u8]) -> Result<Option<Entry>> {
        if let Some(passes) = self.passes(member)? {
            let mut found = None;
            let read = passes.for_each_entry(&mut |entry| {
                if entry.path == path {
                    found = Some(entry.clone());
                }
                Ok(())
            });
            return if found.is_some() { Ok(found) } else { read.map(|()| None) };
        }
        let Some(tree) = self.tree(member)? else {
            return Ok(None);
        };
        let mut damaged = None;
        for frame in tree.frames_for_path(path)?.rev() {
            let entries = match tree.entries_of(frame) {
                // It may be in another frame.
                Err(error) if error.kind == ErrorKind::Damaged => {
                    damaged.get_or_insert(error);
                    continue;
                }
                entries => entries?,
            };
            let is_wanted = |entry: &&Entry| entry.kind != EntryKind::Raw && entry.path == path;
            if let Some(found) = entries.iter().rev().find(is_wanted) {
                return Ok(Some(found.clone()));
            }
        }
        damaged.map_or(Ok(None), Err)
    }

    /// Restores a directory or tar member, or a part of it, below a target. The target is neither
    /// finished nor dropped: [`TreeRestore::finish`] does the rest. It records problems of single
    /// entries.
    ///
    /// The entries are compared with their hash. If everything is restored, the content is also
    /// compared with its BLAKE3 hash, unless that takes too much memory. Returns whether it was.
    ///
    /// # Errors
    /// As [`Archive::read_at`]; `Usage` for other members; `Cancelled`.
    pub fn restore_tree(
        &self,
        member: usize,
        target: &TreeRestore,
        selection: Option<&Selection>,
        watch: &dyn Watch,
    ) -> Result<bool> {
        let meter = ContentMeter::new(self.content_limit.clone());
        self.restore_counted(member, (target, selection), &meter, None, watch)
    }

    /// As [`Archive::restore_tree`], counting what it writes.
    pub(crate) fn restore_counted(
        &self,
        member: usize,
        (target, selection): (&TreeRestore, Option<&Selection>),
        meter: &ContentMeter,
        recovery: Option<&Recovery<'_>>,
        watch: &dyn Watch,
    ) -> Result<bool> {
        let blake3 = self.member(member)?.blake3;
        let tree = self.tree_with_entries(member, &ReadControl::default())?;
        let plan = RestorePlan {
            content: &*tree,
            target,
            selection,
            threads: self.threads,
            memory_bytes: self.memory_bytes,
            blake3: Some(blake3),
            meter,
            recovery,
        };
        restore_entries(&plan, watch)
    }

    /// Describes the archive without decoding its blocks. Reads the whole index.
    ///
    /// # Errors
    /// `Damaged`, `Limit` and `Io` for the index; `Unsupported` for a file of another format, which
    /// has an [`Archive::description`].
    pub fn info(&self) -> Result<ArchiveInfo> {
        self.opened.info()
    }

    /// Every block of the store, from their headers.
    ///
    /// # Errors
    /// As [`Archive::read_at`].
    pub fn blocks(&self) -> Result<Vec<BlockInfo>> {
        let mut blocks = vec![];
        self.opened.for_each_block(&mut |block| {
            blocks.push(block);
            Ok(())
        })?;
        Ok(blocks)
    }
}
