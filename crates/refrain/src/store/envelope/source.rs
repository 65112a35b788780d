//! The archive inside an envelope, readable at any offset.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use refrain_format::envelope::run::{
    RunCipher, RunEnd, RunRow, RunSecret, RunStart, RunTable, run_frame_bytes,
};
use refrain_format::envelope::{INNER_BYTES_BYTES, StoredEnvelope, may_be_padded, record_count};
use refrain_format::{ArchiveEnd, FrameKind, GoneFrames, Limits, Payload, TAIL_BYTES};
use refrain_pool::Lock;
use refrain_protect::envelope::{
    AppendixCipher, FileKey, LINK_BYTES, NotAuthentic, RECORD_BYTES, RecordCipher, RunKey,
    SALT_BYTES, SEALED_RECORD_BYTES, run_link,
};
use refrain_storage::{CachedRanges, NamedRange, Source};

use super::end::{EnvelopeEnd, FoundEnd, envelope_end, run_end_at, run_start_at};
use super::run_ending::{RunOrigin, RunWriter, WriterKeys};
use super::run_keys::RunKeys;
use crate::error::{Error, ErrorKind, Result};
use crate::store::appendix::tail_before;
use crate::store::frames::read_frame_at;

/// How many records are read at once.
const BATCH_RECORDS: u64 = 64;

/// How many buffers are kept for later reads.
const BUFFERS_MAX: usize = 8;

/// Records in a file.
pub(super) struct SealedRecords {
    file: Arc<dyn Source>,
    buffers: Lock<Vec<Vec<u8>>>,
}

/// Which records a read is of: those of an archive, or of a run behind it.
pub(super) struct RecordsAt<'a> {
    pub cipher: &'a RecordCipher,
    /// Where the first begins in the file.
    pub offset: u64,
    /// Their number, if it is known: the last is marked.
    pub count: Option<u64>,
}

impl RecordsAt<'_> {
    fn offset_of(&self, record: u64) -> u64 {
        self.offset + record * SEALED_RECORD_BYTES as u64
    }

    fn damaged(&self, record: u64) -> Error {
        Error::damaged(NotAuthentic.to_string()).at_offset(self.offset_of(record))
    }
}

impl SealedRecords {
    pub(super) fn new(file: Arc<dyn Source>) -> SealedRecords {
        SealedRecords {
            file,
            buffers: Lock::default(),
        }
    }

    /// Fills `buffer` with decrypted bytes from `offset` of these records on, which are all there.
    pub(super) fn read_at(
        &self,
        records: &RecordsAt<'_>,
        offset: u64,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        self.read_but(records, offset, buffer, &|_| false, Reading::Source)
    }

    /// As [`read_at`](Self::read_at), with zeros for records that are not authentic and
    /// `is_gone` says have nothing.
    pub(super) fn read_but(
        &self,
        records: &RecordsAt<'_>,
        offset: u64,
        buffer: &mut [u8],
        is_gone: &dyn Fn(u64) -> bool,
        reading: Reading,
    ) -> io::Result<()> {
        let Some(last_byte) = (offset + buffer.len() as u64).checked_sub(1) else {
            return Ok(());
        };
        let last = last_byte / RECORD_BYTES as u64;
        let mut sealed = self.buffers.lock().pop().unwrap_or_default();
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let first = at / RECORD_BYTES as u64;
            let count = (last - first + 1).min(BATCH_RECORDS) as usize;
            sealed.resize(count * SEALED_RECORD_BYTES, 0);
            self.decrypt_read(records, first, &mut sealed, is_gone, reading)?;
            let mut skipped = (at % RECORD_BYTES as u64) as usize;
            for record in sealed.chunks(SEALED_RECORD_BYTES) {
                let content = record.get(skipped..RECORD_BYTES).unwrap_or_default();
                skipped = 0;
                let target = buffer.get_mut(done..).unwrap_or_default();
                let length = content.len().min(target.len());
                target
                    .split_at_mut(length)
                    .0
                    .copy_from_slice(content.split_at(length).0);
                done += length;
            }
        }
        let mut buffers = self.buffers.lock();
        if buffers.len() < BUFFERS_MAX {
            buffers.push(sealed);
        }
        Ok(())
    }

    /// Reads and decrypts as many records as fit into `sealed`.
    fn decrypt_read(
        &self,
        of: &RecordsAt<'_>,
        first: u64,
        sealed: &mut [u8],
        is_gone: &dyn Fn(u64) -> bool,
        reading: Reading,
    ) -> io::Result<()> {
        let offset = of.offset_of(first);
        let cache = self.file.cache().filter(|_| reading == Reading::Cached);
        let Some(cache) = cache else {
            let read = self.file.read_at(offset, sealed)?;
            return decrypt(of, first, (sealed, read), is_gone);
        };
        let read = cache.read_cached(offset, sealed, None)?;
        if decrypt(of, first, (sealed, read), is_gone).is_ok() {
            return Ok(());
        }
        // Decrypting has changed some of it.
        let read = cache.read_cached(offset, sealed, None)?;
        cache.read_anew(offset, sealed, None)?;
        decrypt(of, first, (sealed, read), is_gone)
    }
}

/// From where records are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Source,
    /// From the cache in front of the source, if there is one.
    Cached,
}

/// Decrypts the records of which `read` bytes are there.
fn decrypt(
    of: &RecordsAt<'_>,
    first: u64,
    (sealed, read): (&mut [u8], usize),
    is_gone: &dyn Fn(u64) -> bool,
) -> io::Result<()> {
    let (records, _) = sealed.as_chunks_mut::<SEALED_RECORD_BYTES>();
    let complete = read / SEALED_RECORD_BYTES;
    for (at, record) in records.iter_mut().enumerate() {
        let number = first + at as u64;
        let is_last = of.count == Some(number + 1);
        if at < complete && of.cipher.open(number, is_last, record).is_ok() {
            continue;
        }
        if at >= complete || !is_gone(number) {
            return Err(io::Error::other(of.damaged(number)));
        }
        record.fill(0);
    }
    Ok(())
}

/// The archive inside an envelope, with all runs behind it. Every byte that it returns is
/// authentic, or a zero in what the archive says is gone; errors for others are `Damaged`. One that
/// is truncated ends with a record that cannot be read, so that no reader takes it for complete.
pub(crate) struct EnvelopeSource {
    sealed: SealedRecords,
    key: FileKey,
    run_keys: RunKeys,
    salt: [u8; SALT_BYTES],
    archive_id: u32,
    records_offset: u64,
    base_cipher: RecordCipher,
    /// Of the newest run, or of an archive without runs.
    table: RunTable,
    /// The runs of earlier groups that were needed.
    groups: Lock<HashMap<usize, Arc<Vec<RunRow>>>>,
    inner_bytes: u64,
    /// The frames of the archive inside that are gone, once a record could not be read.
    gone: Lock<Option<Arc<GoneFrames>>>,
    /// Where what is complete ends in the file, with its tail, and with what is appended to it;
    /// `None` if it is damaged.
    complete_end: Option<(u64, u64)>,
    /// How many bytes of a run that is not complete follow.
    incomplete_bytes: u64,
}

impl EnvelopeSource {
    pub(crate) fn open(
        file: Arc<dyn Source>,
        stored: &StoredEnvelope,
        key: &FileKey,
    ) -> Result<EnvelopeSource> {
        let salt = stored.envelope.salt;
        let mut source = EnvelopeSource {
            sealed: SealedRecords::new(file),
            key: key.clone(),
            run_keys: RunKeys::new(key, &salt),
            salt,
            archive_id: stored.envelope.archive_id(),
            records_offset: stored.records_offset(),
            base_cipher: key.records(&salt),
            table: RunTable::of_base(0, 0, false),
            groups: Lock::default(),
            inner_bytes: 0,
            gone: Lock::default(),
            complete_end: None,
            incomplete_bytes: 0,
        };
        let place = (source.records_offset, source.archive_id);
        match envelope_end(&*source.sealed.file, place)? {
            EnvelopeEnd::Complete(end) => source.open_at(&end)?,
            EnvelopeEnd::Incomplete(end) => {
                source.open_at(&end)?;
                let size_bytes = source.sealed.file.size_bytes()?;
                source.incomplete_bytes = size_bytes.saturating_sub(end.append_at);
            }
            EnvelopeEnd::DamagedRun {
                before,
                offset,
                start,
            } => {
                source.open_at(&before)?;
                source.take_damaged_run(offset, &start)?;
            }
            EnvelopeEnd::Nowhere => {
                let size_bytes = source.sealed.file.size_bytes()?;
                let left = size_bytes.saturating_sub(source.records_offset);
                source.take_base(left / SEALED_RECORD_BYTES as u64 + 1)?;
                source.complete_end = None;
            }
        }
        Ok(source)
    }

    /// Takes what is complete up to an end.
    fn open_at(&mut self, end: &FoundEnd) -> Result<()> {
        let Some((at, run_end)) = &end.run_end else {
            let records_bytes = end.end - TAIL_BYTES as u64 - self.records_offset;
            self.take_base(records_bytes / SEALED_RECORD_BYTES as u64)?;
            self.complete_end = Some((end.end, end.append_at));
            return Ok(());
        };
        self.table = self.table_of(*at, run_end)?;
        self.inner_bytes = self.table.end();
        self.complete_end = Some((end.end, end.append_at));
        Ok(())
    }

    /// Takes an archive without runs, of so many records.
    fn take_base(&mut self, records: u64) -> Result<()> {
        let mut bytes = records * RECORD_BYTES as u64;
        let mut stated = [0; INNER_BYTES_BYTES];
        let base = self.records(&self.base_cipher, 0, records);
        let read = (self.sealed).read_at(&base, bytes - stated.len() as u64, &mut stated);
        match read.map_err(Error::from) {
            Ok(()) => bytes = inner_bytes(stated, records)?,
            Err(error) if error.kind == ErrorKind::Damaged => {}
            Err(error) => return Err(error),
        }
        self.table = RunTable::of_base(records, bytes, may_be_padded(records, bytes));
        self.inner_bytes = bytes;
        Ok(())
    }

    /// Adds a run whose end is damaged: what is in its records can be read, but not the last.
    fn take_damaged_run(&mut self, offset: u64, start: &RunStart) -> Result<()> {
        let position = offset + start.frame_bytes() - self.records_offset;
        let left = self.sealed.file.size_bytes()?;
        let left = left.saturating_sub(offset + start.frame_bytes());
        let records = left / SEALED_RECORD_BYTES as u64 + 1;
        if start.number != self.table.number() + 1 {
            let text = "an appended run does not continue the one before";
            return Err(Error::damaged(text).at_offset(offset));
        }
        self.table.push(RunRow {
            position,
            records,
            start: self.table.end(),
            bytes: records * RECORD_BYTES as u64 - INNER_BYTES_BYTES as u64,
            link: run_link(&self.last_link(), &start.salt, position),
            cipher: start.secret.cipher(),
        })?;
        self.inner_bytes = self.table.end();
        self.complete_end = None;
        Ok(())
    }

    fn records<'a>(&self, cipher: &'a RecordCipher, position: u64, count: u64) -> RecordsAt<'a> {
        RecordsAt {
            cipher,
            offset: self.records_offset + position,
            count: Some(count),
        }
    }

    /// The table of the run with this RunEnd frame.
    fn table_of(&self, offset: u64, end: &RunEnd) -> Result<RunTable> {
        let key = self.run_keys.of(&end.secret)?;
        let sealed = key.table(&self.salt, &end.link).open(&end.sealed);
        let forged = |text: &str| Error::damaged(text.to_owned()).at_offset(offset);
        let bytes =
            sealed.map_err(|_| forged("the end of an appended run is damaged or forged"))?;
        let table = RunTable::parse(end.number, &bytes)?;
        let is_here = table.last().is_some_and(|last| {
            let is_at = self.records_offset + last.records_end() == offset;
            let is_same = last.records == end.records && last.link == end.link;
            is_at && is_same && last.cipher == end.secret.cipher()
        });
        if !is_here {
            return Err(forged("an appended run is not where it was written"));
        }
        Ok(table)
    }

    /// The run with a byte of the archive inside that is not in the base.
    fn run_of(&self, offset: u64) -> Result<RunRow> {
        let of = |runs: &[RunRow]| {
            let at = runs.partition_point(|row| row.end() <= offset);
            runs.get(at).copied()
        };
        let lost = || Error::new(ErrorKind::Internal, "no run has the byte");
        if self
            .table
            .runs
            .first()
            .is_some_and(|first| first.start <= offset)
        {
            return of(&self.table.runs).ok_or_else(lost);
        }
        let group = self.table.groups.partition_point(|row| row.end() <= offset);
        let last = self.table.groups.get(group).ok_or_else(lost)?;
        if last.start <= offset {
            return Ok(*last);
        }
        of(&self.group(group, last)?).ok_or_else(lost)
    }

    /// The key of a run.
    fn run_key(&self, run: &RunRow) -> Result<RunKey> {
        match run.cipher {
            RunCipher::Archive => self.run_keys.of(&RunSecret::Archive),
            RunCipher::Writers => self.run_keys.of(&RunSecret::Writers),
            RunCipher::Shared => (self.run_keys).of_shared(&run.link, || self.secret_of(run)),
        }
    }

    /// The secret of a run, which both of its frames state.
    fn secret_of(&self, run: &RunRow) -> Result<RunSecret> {
        let offset = self.records_offset + run.frame_position();
        let file = &*self.sealed.file;
        let frame_bytes = run_frame_bytes(run.cipher);
        let start = run_start_at(file, offset, frame_bytes, self.archive_id)?;
        if let Some(start) = start.filter(|start| start.secret.cipher() == run.cipher) {
            return Ok(start.secret);
        }
        let offset = self.records_offset + run.records_end();
        let end = run_end_at(file, offset, self.archive_id);
        Ok(end.map_err(|error| error.at_offset(offset))?.secret)
    }

    /// The runs of an earlier group, whose last one is `last`.
    fn group(&self, group: usize, last: &RunRow) -> Result<Arc<Vec<RunRow>>> {
        if let Some(known) = self.groups.lock().get(&group) {
            return Ok(Arc::clone(known));
        }
        let offset = self.records_offset + last.records_end();
        let found = run_end_at(&*self.sealed.file, offset, self.archive_id);
        let table = self.table_of(offset, &found.map_err(|error| error.at_offset(offset))?)?;
        let before = self.table.groups.get(..group);
        if table.last() != Some(last) || Some(&table.groups[..]) != before {
            let text = "the tables of two appended runs contradict each other";
            return Err(Error::damaged(text).at_offset(offset));
        }
        let runs = Arc::new(table.runs);
        self.groups.lock().insert(group, Arc::clone(&runs));
        Ok(runs)
    }

    /// Reads bytes that are all there. `knows_gone`: zeros stand for what is gone.
    fn read(
        &self,
        offset: u64,
        buffer: &mut [u8],
        knows_gone: bool,
        reading: Reading,
    ) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let rest = buffer.get_mut(done..).unwrap_or_default();
            done += self.read_piece(at, rest, knows_gone, reading)?;
        }
        Ok(())
    }

    /// Reads bytes of the base or of one run. Returns how many.
    fn read_piece(
        &self,
        at: u64,
        buffer: &mut [u8],
        knows_gone: bool,
        reading: Reading,
    ) -> io::Result<usize> {
        let run = self.records_with(at).map_err(io::Error::other)?;
        let left = usize::try_from(run.end - at).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        let is_gone = |record: u64| {
            let start = run.start + record * RECORD_BYTES as u64;
            knows_gone && self.is_gone(start..start + RECORD_BYTES as u64)
        };
        let cipher = run.cipher.as_ref().unwrap_or(&self.base_cipher);
        let records = self.records(cipher, run.position, run.records);
        let (piece, _) = buffer.split_at_mut(count);
        (self.sealed).read_but(&records, at - run.start, piece, &is_gone, reading)?;
        Ok(count)
    }

    /// The records with a byte of the archive inside.
    fn records_with(&self, at: u64) -> Result<RunRecords> {
        if at < self.table.base_bytes {
            return Ok(RunRecords {
                cipher: None,
                position: 0,
                records: self.table.base_records,
                start: 0,
                end: self.table.base_bytes,
            });
        }
        let run = self.run_of(at)?;
        Ok(RunRecords {
            cipher: Some(self.run_key(&run)?.records(&self.salt, &run.link)),
            position: run.position,
            records: run.records,
            start: run.start,
            end: run.end(),
        })
    }

    /// Whether the archive inside says that all of a range is gone.
    fn is_gone(&self, range: Range<u64>) -> bool {
        let gone = self.gone_frames();
        let runs = gone.runs();
        let after = runs.partition_point(|run| run.start <= range.start);
        let run = after.checked_sub(1).and_then(|last| runs.get(last));
        run.is_some_and(|run| range.end <= run.end)
    }

    /// The frames of the archive inside that are gone.
    pub(crate) fn gone_frames(&self) -> Arc<GoneFrames> {
        let known = self.gone.lock().clone();
        known.unwrap_or_else(|| {
            let gone = Arc::new(gone_frames(&WithoutGone(self)));
            Arc::clone(self.gone.lock().insert(gone))
        })
    }

    /// The bytes in the file of the records that have nothing but a range of the archive inside,
    /// which is in the base or in one run.
    ///
    /// # Errors
    /// `Damaged` for the tables of runs; `Io`.
    pub(crate) fn sealed_range(&self, range: &Range<u64>) -> Result<Range<u64>> {
        let run = self.records_with(range.start)?;
        let inside = |offset: u64| offset.min(run.end) - run.start;
        let first = inside(range.start).div_ceil(RECORD_BYTES as u64);
        let end = inside(range.end) / RECORD_BYTES as u64;
        let cipher = run.cipher.as_ref().unwrap_or(&self.base_cipher);
        let records = self.records(cipher, run.position, run.records);
        Ok(records.offset_of(first)..records.offset_of(end.max(first)))
    }

    /// Where what is complete ends in the file, with its tail, and where what is appended to it
    /// does.
    ///
    /// # Errors
    /// `Damaged` if nothing says it.
    pub(crate) fn complete_end(&self) -> Result<(u64, u64)> {
        let text = "the encrypted archive is truncated";
        self.complete_end.ok_or_else(|| Error::damaged(text))
    }

    /// Where the archive or the run whose part of the archive inside ends at `inner_end` ends in
    /// the file, with its tail; `None` if none does. Generation 0 is in the archive itself, also if
    /// the first run has all of it anew.
    pub(crate) fn end_in_file(&self, inner_end: u64, generation: u16) -> Result<Option<u64>> {
        let base_end = self.table.base_records * SEALED_RECORD_BYTES as u64;
        let base_end = self.records_offset + base_end + TAIL_BYTES as u64;
        if inner_end <= self.table.base_bytes || generation == 0 {
            return Ok(Some(base_end));
        }
        let run = self.run_of(inner_end - 1)?;
        if run.end() != inner_end {
            return Ok(None);
        }
        let offset = self.records_offset + run.records_end();
        let end = run_end_at(&*self.sealed.file, offset, self.archive_id)?;
        Ok(Some(offset + end.frame_bytes + TAIL_BYTES as u64))
    }

    /// Where the run whose part of the archive inside begins at `inner_start` begins in the file.
    pub(crate) fn start_in_file(&self, inner_start: u64) -> Result<Option<u64>> {
        if inner_start < self.table.base_bytes || inner_start >= self.inner_bytes {
            return Ok(None);
        }
        let run = self.run_of(inner_start)?;
        let offset = self.records_offset + run.frame_position();
        Ok((run.start == inner_start).then_some(offset))
    }

    /// How many bytes of a run that is not complete follow.
    pub(crate) fn incomplete_bytes(&self) -> u64 {
        self.incomplete_bytes
    }

    /// The first run, if there is one.
    pub(crate) fn first_run(&self) -> Result<Option<RunRow>> {
        match self.table.groups.first() {
            None => Ok(self.table.runs.first().copied()),
            Some(last) => Ok(self.group(0, last)?.first().copied()),
        }
    }

    /// The link of the newest run; without runs, the salt.
    fn last_link(&self) -> [u8; LINK_BYTES] {
        self.table.last().map_or(self.salt, |last| last.link)
    }

    /// The number of records before the first tail.
    pub(crate) fn base_records(&self) -> u64 {
        self.table.base_records
    }

    /// What a run behind this archive continues.
    ///
    /// # Errors
    /// `Damaged` if the archive has no end.
    pub(crate) fn origin(&self) -> Result<RunOrigin> {
        Ok(RunOrigin {
            archive_id: self.archive_id,
            salt: self.salt,
            records_offset: self.records_offset,
            append_at: self.complete_end()?.1,
            table: self.table.clone(),
            writer: RunWriter::Owner(self.key.run_key(), self.appendix_cipher()),
        })
    }

    /// What a writer needs who cannot read the archive.
    pub(crate) fn writer_keys(&self) -> WriterKeys {
        WriterKeys::of(&self.key, &self.salt)
    }

    /// As [`origin`](Self::origin), for a run without content: if there are writers who cannot read
    /// the archive, they can read that.
    ///
    /// # Errors
    /// As [`origin`](Self::origin).
    pub(crate) fn origin_without_content(&self) -> Result<RunOrigin> {
        let mut origin = self.origin()?;
        let has_writers = |row: &RunRow| row.cipher != RunCipher::Archive;
        if origin.table.rows().any(has_writers) {
            let key = self.key.writers_key(&self.salt);
            origin.writer = RunWriter::ForWriters(key, self.appendix_cipher());
        }
        Ok(origin)
    }

    /// The cipher of what is appended to the archive.
    pub(crate) fn appendix_cipher(&self) -> AppendixCipher {
        self.key.appendix(&self.salt)
    }

    /// The number in all frames of the archive.
    pub(crate) fn archive_id(&self) -> u32 {
        self.archive_id
    }
}

/// The records of the base, or of a run.
struct RunRecords {
    /// Of a run.
    cipher: Option<RecordCipher>,
    position: u64,
    records: u64,
    /// Which bytes of the archive inside they have.
    start: u64,
    end: u64,
}

/// The archive inside, as if nothing of it were gone.
struct WithoutGone<'a>(&'a EnvelopeSource);

impl Source for WithoutGone<'_> {
    fn size_bytes(&self) -> io::Result<u64> {
        self.0.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.0.inner_bytes.saturating_sub(offset);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        (self.0).read(offset, buffer.split_at_mut(count).0, false, Reading::Source)?;
        Ok(count)
    }
}

/// The frames that an archive says are gone; none if that cannot be read.
fn gone_frames(source: &dyn Source) -> GoneFrames {
    let read = || {
        let limits = Limits::default();
        let end = source.size_bytes()?;
        let none = || Error::damaged("the archive has no end");
        let tail = tail_before(source, end)?.ok_or_else(none)?;
        let offset = (end - TAIL_BYTES as u64).checked_sub(tail.back_bytes);
        let offset = offset.ok_or_else(none)?;
        let last = read_frame_at(source, offset, FrameKind::End, None, &limits)?;
        let (last, _) = ArchiveEnd::parse(&last.payload)?;
        let Some(generation) = last.generation else {
            return Ok(GoneFrames::default());
        };
        let (offset, bytes) = generation.catalog;
        let catalog =
            read_frame_at(source, offset, FrameKind::Catalog, Some(bytes), &limits)?.payload;
        match Payload::parse(FrameKind::Catalog, &catalog, &limits)? {
            Payload::Catalog(catalog) => Ok(catalog.gone),
            _ => Err(none()),
        }
    };
    let found: Result<GoneFrames> = read();
    found.unwrap_or_default()
}

/// The size of the archive inside, as the last bytes of its `records` records state it.
pub(super) fn inner_bytes(stated: [u8; INNER_BYTES_BYTES], records: u64) -> Result<u64> {
    let stated = u64::from_le_bytes(stated);
    if record_count(stated) > records {
        return Err(Error::damaged(format!(
            "the encrypted archive states {stated} bytes, more than its {records} records hold"
        )));
    }
    Ok(stated)
}

impl Source for EnvelopeSource {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.inner_bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_as(offset, buffer, Reading::Source)
    }

    fn has_changed(&self) -> io::Result<bool> {
        self.sealed.file.has_changed()
    }

    fn cache(&self) -> Option<&dyn CachedRanges> {
        self.sealed.file.cache().map(|_| self as &dyn CachedRanges)
    }
}

/// What a cache has of an encrypted archive are its records as they are in the file, which no other
/// archive has: equal blocks of two archives do not show.
impl CachedRanges for EnvelopeSource {
    fn read_cached(
        &self,
        offset: u64,
        buffer: &mut [u8],
        _named: Option<&dyn NamedRange>,
    ) -> io::Result<usize> {
        self.read_as(offset, buffer, Reading::Cached)
    }

    /// Records are authentic, wherever they come from.
    fn read_anew(
        &self,
        offset: u64,
        buffer: &mut [u8],
        _named: Option<&dyn NamedRange>,
    ) -> io::Result<bool> {
        self.read_at(offset, buffer).map(|_| false)
    }
}

impl EnvelopeSource {
    fn read_as(&self, offset: u64, buffer: &mut [u8], reading: Reading) -> io::Result<usize> {
        let left = self.inner_bytes.saturating_sub(offset);
        let count = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        self.read(offset, buffer.split_at_mut(count).0, true, reading)?;
        Ok(count)
    }
}
