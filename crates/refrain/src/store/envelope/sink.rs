//! Encrypts an archive while it is written.

use std::io;
use std::sync::Arc;

use refrain_format::MAGIC;
use refrain_format::envelope::run::RunTable;
use refrain_format::envelope::{envelope_tail, padded_record_count, record_count};
use refrain_pool::Lock;
use refrain_protect::envelope::{AppendixCipher, RECORD_BYTES, RecordCipher, SEALED_RECORD_BYTES};
use refrain_storage::{ReadBack, Sink, Source, in_zero_pieces};

use super::keys::new_envelope;
use super::run_ending::{RunEnding, RunOrigin, RunWriter, WriterKeys};
use super::source::{RecordsAt, SealedRecords};
use super::state::{StateOwner, StateRecorder};
use crate::error::Result;
use crate::options::Encryption;
use crate::store::appendix::LastFrame;
use crate::writer_state::WriterState;

/// How many records are encrypted and written at once.
const BATCH_RECORDS: usize = 64;

/// Encrypts what is written to it, and writes that to another sink.
pub(crate) struct EnvelopeSink<'a> {
    inner: &'a mut dyn Sink,
    written: Arc<Written>,
    /// `None` for a writer that cannot read.
    appendix_cipher: Option<AppendixCipher>,
    archive_id: u32,
    is_padded: bool,
    ending: Ending,
    /// What a writer remembers of the archive inside.
    recorder: Option<Box<StateRecorder>>,
    /// The bytes in the other sink, once published.
    archive_bytes: u64,
}

/// What follows the records.
enum Ending {
    /// The tail of an archive whose records begin there.
    Archive { records_offset: u64 },
    /// The end of a run.
    Run(Box<RunEnding>),
}

/// The records so far.
pub(super) struct Written {
    cipher: RecordCipher,
    /// Where the first begins in the file.
    offset: u64,
    /// What is before them, of the archive inside.
    earlier: Option<Arc<dyn Source>>,
    /// How many bytes that is.
    start: u64,
    batch: Lock<Batch>,
}

/// The records that were not yet encrypted, each with room for its tag.
#[derive(Default)]
struct Batch {
    /// The number of the first.
    first: u64,
    records: Vec<u8>,
    /// The bytes in them.
    bytes: usize,
}

impl Batch {
    fn offset(&self) -> u64 {
        self.first * RECORD_BYTES as u64
    }

    /// Adds bytes up to the end of the batch. Returns how many.
    fn push(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while taken < bytes.len() && self.bytes < BATCH_RECORDS * RECORD_BYTES {
            let (record, at) = (self.bytes / RECORD_BYTES, self.bytes % RECORD_BYTES);
            let start = record * SEALED_RECORD_BYTES;
            if at == 0 {
                self.records.resize(start + SEALED_RECORD_BYTES, 0);
            }
            let rest = bytes.get(taken..).unwrap_or_default();
            let count = rest.len().min(RECORD_BYTES - at);
            if let Some(target) = self.records.get_mut(start + at..start + at + count) {
                target.copy_from_slice(rest.split_at(count).0);
            }
            (self.bytes, taken) = (self.bytes + count, taken + count);
        }
        taken
    }

    /// Encrypts all records; the last of the archive is marked.
    fn seal(&mut self, cipher: &RecordCipher, is_end: bool) {
        let (records, _) = self.records.as_chunks_mut::<SEALED_RECORD_BYTES>();
        let last = records.len().saturating_sub(1);
        for (at, record) in records.iter_mut().enumerate() {
            cipher.seal(self.first + at as u64, is_end && at == last, record);
        }
    }

    fn clear(&mut self) {
        self.first += (self.records.len() / SEALED_RECORD_BYTES) as u64;
        self.records.clear();
        self.bytes = 0;
    }

    fn is_full(&self) -> bool {
        self.bytes == BATCH_RECORDS * RECORD_BYTES
    }

    /// Copies bytes from an offset in the batch.
    fn read(&self, offset: usize, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buffer.len() && offset + done < self.bytes {
            let (record, at) = (
                (offset + done) / RECORD_BYTES,
                (offset + done) % RECORD_BYTES,
            );
            let start = record * SEALED_RECORD_BYTES + at;
            let count = (RECORD_BYTES - at)
                .min(buffer.len() - done)
                .min(self.bytes - offset - done);
            let content = self.records.get(start..start + count).unwrap_or_default();
            if let Some(target) = buffer.get_mut(done..done + content.len()) {
                target.copy_from_slice(content);
            }
            done += count;
        }
        done
    }
}

impl<'a> EnvelopeSink<'a> {
    /// Draws a key and writes the header.
    ///
    /// # Errors
    /// `Usage` for an encryption without secrets, or an empty password; `Io`.
    pub(crate) fn begin(
        inner: &'a mut dyn Sink,
        encryption: &Encryption,
        memory_bytes: u64,
    ) -> Result<EnvelopeSink<'a>> {
        EnvelopeSink::begin_with_state(inner, encryption, memory_bytes, None)
    }

    /// As [`begin`](Self::begin). What a writer without a secret needs is kept in `state`.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub(crate) fn begin_with_state(
        inner: &'a mut dyn Sink,
        encryption: &Encryption,
        memory_bytes: u64,
        state: Option<&WriterState>,
    ) -> Result<EnvelopeSink<'a>> {
        let (file_key, envelope) = new_envelope(encryption, memory_bytes)?;
        let salt = envelope.salt;
        let recorder = state.map(|state| {
            let owner = StateOwner {
                state: state.clone(),
                keys: WriterKeys::of(&file_key, &salt),
            };
            owner.recorder(salt, salt, (None, 0))
        });
        let frames = envelope.to_frames(&file_key, envelope.frame_bytes())?;
        let head = [&MAGIC[..], &frames[0], &frames[1]].concat();
        inner.write_all(&head)?;
        let records_offset = head.len() as u64;
        Ok(EnvelopeSink {
            inner,
            written: Arc::new(Written {
                cipher: file_key.records(&envelope.salt),
                offset: records_offset,
                earlier: None,
                start: 0,
                batch: Lock::default(),
            }),
            appendix_cipher: Some(file_key.appendix(&envelope.salt)),
            archive_id: envelope.archive_id(),
            is_padded: encryption.is_padded,
            ending: Ending::Archive { records_offset },
            recorder: recorder.transpose()?.map(Box::new),
            archive_bytes: 0,
        })
    }

    /// Begins a run behind an archive, of which `inner` has everything, with `earlier` inside. What
    /// is written continues that, or replaces it, if it `is_anew`: its records remain, and nothing
    /// reads them. A key is drawn, so that whatever was ever written at this place has another.
    /// What a writer without a secret needs is kept for `owner`.
    ///
    /// # Errors
    /// `Limit` for too many runs; `Io`.
    pub(crate) fn begin_run(
        inner: &'a mut dyn Sink,
        (origin, earlier): (RunOrigin, &Arc<dyn Source>),
        (is_anew, is_padded): (bool, bool),
        owner: Option<&StateOwner>,
    ) -> Result<EnvelopeSink<'a>> {
        let appendix_cipher = match &origin.writer {
            RunWriter::Owner(_, cipher) | RunWriter::ForWriters(_, cipher) => Some(cipher.clone()),
            RunWriter::Writer(_) => None,
        };
        let last_link = origin.last_link();
        let mut ending = RunEnding::new(origin, is_anew)?;
        ending.origin.table.is_padded |= is_padded;
        let is_padded = ending.origin.table.is_padded;
        let start = ending.origin.table.end();
        let recorder = owner.map(|owner| {
            let parent = (start > 0).then_some(last_link);
            owner.recorder(ending.origin.salt, ending.link, (parent, start))
        });
        inner.write_all(&ending.first_frame())?;
        Ok(EnvelopeSink {
            inner,
            written: Arc::new(Written {
                cipher: ending.record_cipher(),
                offset: ending.records_at(),
                earlier: (start > 0).then(|| Arc::clone(earlier)),
                start,
                batch: Lock::default(),
            }),
            appendix_cipher,
            archive_id: ending.origin.archive_id,
            is_padded,
            ending: Ending::Run(Box::new(ending)),
            recorder: recorder.transpose()?.map(Box::new),
            archive_bytes: 0,
        })
    }

    /// The second copy of the header, which counts as the last frame of an archive.
    pub(crate) fn last_frame(&self) -> LastFrame {
        LastFrame {
            archive_id: self.archive_id,
            sequence: 1,
            generation: 0,
        }
    }

    /// The cipher of what is appended to the archive; `None` for a writer that cannot read it.
    pub(crate) fn appendix_cipher(&self) -> Option<&AppendixCipher> {
        self.appendix_cipher.as_ref()
    }

    /// The size of the encrypted archive, or of the run, once it is published.
    pub(crate) fn archive_bytes(&self) -> u64 {
        self.archive_bytes
    }

    fn flush(&mut self, batch: &mut Batch, is_end: bool) -> io::Result<()> {
        batch.seal(&self.written.cipher, is_end);
        self.inner.write_all(&batch.records)
    }
}

impl EnvelopeSink<'_> {
    /// Encrypts bytes of the archive inside, or what is behind it.
    fn seal_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let written = Arc::clone(&self.written);
        let mut batch = written.batch.lock();
        while !bytes.is_empty() {
            // A full batch is written when more follows: the last record must be in one.
            if batch.is_full() {
                self.flush(&mut batch, false)?;
                batch.clear();
            }
            bytes = bytes.split_at(batch.push(bytes)).1;
        }
        Ok(())
    }

    /// Publishes the state behind what is written, before that is: a state whose run was never
    /// completed is not found, but a run without a state takes a secret to go on from.
    fn publish_state(&mut self, records: u64, inner_bytes: u64) -> io::Result<()> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        match &self.ending {
            Ending::Run(ending) => recorder.publish(&ending.origin.table),
            Ending::Archive { .. } => {
                recorder.publish(&RunTable::of_base(records, inner_bytes, self.is_padded))
            }
        }
    }
}

impl Sink for EnvelopeSink<'_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(recorder) = &mut self.recorder {
            recorder.write_all(bytes)?;
        }
        self.seal_all(bytes)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        in_zero_pieces(length_bytes, |zeros| self.write_all(zeros))
    }

    fn read_back(&self) -> Option<Arc<dyn Source>> {
        let inner = self.inner.read_back()?;
        Some(Arc::new(WrittenSource {
            sealed: SealedRecords::new(inner),
            written: Arc::clone(&self.written),
        }))
    }

    fn is_stored(&self) -> bool {
        self.inner.is_stored()
    }

    fn read_back_result(&self) -> Option<ReadBack> {
        self.inner.read_back_result()
    }

    fn file_id(&self) -> Option<(u64, u64)> {
        self.inner.file_id()
    }

    fn publish(&mut self) -> io::Result<()> {
        let inner_bytes = self.written.bytes();
        let records = if self.is_padded {
            padded_record_count(inner_bytes)
        } else {
            record_count(inner_bytes)
        };
        let stated = inner_bytes.to_le_bytes();
        let content_bytes = records * RECORD_BYTES as u64 - stated.len() as u64;
        in_zero_pieces(content_bytes - inner_bytes, |zeros| self.seal_all(zeros))?;
        self.seal_all(&stated)?;
        let written = Arc::clone(&self.written);
        let mut batch = written.batch.lock();
        self.flush(&mut batch, true)?;
        batch.clear();
        let last_bytes = match &mut self.ending {
            Ending::Archive { records_offset } => {
                let tail = envelope_tail(*records_offset, records);
                self.archive_bytes = tail.back_bytes + MAGIC.len() as u64;
                tail.to_bytes().to_vec()
            }
            Ending::Run(ending) => {
                let records_bytes = records * SEALED_RECORD_BYTES as u64;
                self.archive_bytes = ending.first_frame().len() as u64 + records_bytes;
                ending
                    .complete(records, inner_bytes)
                    .map_err(io::Error::other)?;
                ending.last_bytes(records)
            }
        };
        drop(batch);
        self.publish_state(records, inner_bytes)?;
        self.archive_bytes += last_bytes.len() as u64;
        self.inner.write_all(&last_bytes)?;
        self.inner.publish()
    }
}

impl Written {
    /// The bytes in the records.
    fn bytes(&self) -> u64 {
        let batch = self.batch.lock();
        batch.offset() + batch.bytes as u64
    }
}

/// What was written so far, decrypted again.
struct WrittenSource {
    sealed: SealedRecords,
    written: Arc<Written>,
}

impl Source for WrittenSource {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.written.start + self.written.bytes())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let earlier_bytes = self.written.start.saturating_sub(offset);
        let earlier_bytes = usize::try_from(earlier_bytes).unwrap_or(usize::MAX);
        let (before, own) = buffer.split_at_mut(earlier_bytes.min(buffer.len()));
        let mut count = 0;
        if let Some(earlier) = self.written.earlier.as_ref().filter(|_| !before.is_empty()) {
            count = earlier.read_at(offset, before)?;
        }
        if own.is_empty() || count < before.len() {
            return Ok(count);
        }
        let own_offset = offset + count as u64 - self.written.start;
        Ok(count + self.read_own(own_offset, own)?)
    }
}

impl WrittenSource {
    /// Reads bytes from an offset in the records.
    fn read_own(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let batch = self.written.batch.lock();
        let sealed_bytes = batch.offset().saturating_sub(offset);
        let sealed_bytes = usize::try_from(sealed_bytes).unwrap_or(usize::MAX);
        let (sealed, fresh) = buffer.split_at_mut(sealed_bytes.min(buffer.len()));
        let offset_in_batch = (offset + sealed.len() as u64).saturating_sub(batch.offset());
        let count = batch.read(offset_in_batch as usize, fresh);
        drop(batch);
        let records = RecordsAt {
            cipher: &self.written.cipher,
            offset: self.written.offset,
            count: None,
        };
        self.sealed.read_at(&records, offset, sealed)?;
        Ok(sealed.len() + count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::open::{unlocked, unlocked_feed};
    use super::*;
    use crate::error::ErrorKind;
    use crate::options::{PasswordSource, ReadOptions};
    use crate::storage::{AtomicFile, MemorySink, MemorySource, OutputOptions};
    use crate::store::frames::ArchiveFeed;
    use refrain_protect::envelope::Identity;
    use refrain_testkit::Rng;
    use std::io::{Cursor, Read};

    fn identity() -> Identity {
        "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
            .parse()
            .unwrap()
    }

    fn encryption(is_padded: bool) -> Encryption {
        Encryption {
            passwords: vec![],
            recipients: vec![identity().recipient()],
            is_padded,
        }
    }

    fn options() -> ReadOptions {
        ReadOptions {
            identities: vec![identity()],
            ..ReadOptions::default()
        }
    }

    /// Bytes without pattern, whose last one is not zero, and zeros in the middle.
    fn content(length: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut bytes: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(0x9e37_79b1).wrapping_add(7);
                (state >> 24) as u8
            })
            .collect();
        let (from, to) = (length / 5, length / 2);
        bytes[from..to].fill(0);
        if let Some(last) = bytes.last_mut() {
            *last = 1;
        }
        bytes
    }

    fn sealed(bytes: &[u8], is_padded: bool) -> Vec<u8> {
        let mut sink = MemorySink::new();
        let output = sink.output();
        let mut envelope =
            EnvelopeSink::begin(&mut sink, &encryption(is_padded), 64 << 20).unwrap();
        for piece in bytes.chunks(9_999) {
            envelope.write_all(piece).unwrap();
        }
        envelope.publish().unwrap();
        let archive_bytes = envelope.archive_bytes();
        let archive = output.published().unwrap();
        assert_eq!(archive.len() as u64, archive_bytes);
        archive
    }

    fn opened(archive: &[u8]) -> Result<Vec<u8>> {
        let source = unlocked(Arc::new(MemorySource::new(archive.to_vec())), &options())?.source;
        let mut bytes = vec![0; source.size_bytes()? as usize];
        assert_eq!(source.read_at(0, &mut bytes)?, bytes.len());
        Ok(bytes)
    }

    fn streamed(archive: &[u8]) -> Result<Vec<u8>> {
        let feed = ArchiveFeed::Stream(Box::new(Cursor::new(archive.to_vec())));
        let ArchiveFeed::Stream(mut stream) = unlocked_feed(feed, &options())? else {
            panic!("a stream stays a stream");
        };
        let mut bytes = vec![];
        stream.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    const LENGTHS: [usize; 8] = [
        1,
        RECORD_BYTES - 9,
        RECORD_BYTES - 8,
        RECORD_BYTES - 7,
        RECORD_BYTES,
        BATCH_RECORDS * RECORD_BYTES - 8,
        BATCH_RECORDS * RECORD_BYTES,
        BATCH_RECORDS * RECORD_BYTES * 2 + 5,
    ];

    #[test]
    fn what_was_written_is_read_from_files_and_pipes() {
        for length in LENGTHS {
            for is_padded in [false, true] {
                let bytes = content(length);
                let archive = sealed(&bytes, is_padded);
                assert!(opened(&archive).unwrap() == bytes, "{length}");
                assert!(streamed(&archive).unwrap() == bytes, "{length}");
            }
        }
    }

    #[test]
    fn any_range_is_read() {
        let bytes = content(BATCH_RECORDS * RECORD_BYTES * 2);
        let archive = sealed(&bytes, false);
        let source = unlocked(Arc::new(MemorySource::new(archive)), &options())
            .unwrap()
            .source;
        for (offset, length) in [
            (0, 1),
            (RECORD_BYTES - 1, 2),
            (RECORD_BYTES, RECORD_BYTES),
            (5, BATCH_RECORDS * RECORD_BYTES),
            (bytes.len() - 3, 9),
            (bytes.len() + 1, 9),
        ] {
            let mut buffer = vec![0; length];
            let count = source.read_at(offset as u64, &mut buffer).unwrap();
            let end = (offset + length).min(bytes.len());
            assert!(buffer[..count] == bytes[offset.min(end)..end], "{offset}");
        }
    }

    #[test]
    fn what_was_written_is_read_back_meanwhile() {
        let bytes = content(BATCH_RECORDS * RECORD_BYTES + 70_000);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let mut file = AtomicFile::create(path, &OutputOptions::default()).unwrap();
        let mut sink = EnvelopeSink::begin(&mut file, &encryption(false), 64 << 20).unwrap();
        let back = sink.read_back().expect("a regular file");
        for (number, piece) in bytes.chunks(50_001).enumerate() {
            sink.write_all(piece).unwrap();
            let end = (number * 50_001) + piece.len();
            assert_eq!(back.size_bytes().unwrap(), end as u64);
            let start = end.saturating_sub(120_000);
            let mut found = vec![0; end - start];
            assert_eq!(back.read_at(start as u64, &mut found).unwrap(), found.len());
            assert!(found == bytes[start..end], "{start}");
        }
    }

    #[test]
    fn damage_truncation_and_exchange_are_refused() {
        let bytes = content(RECORD_BYTES * 5);
        let archive = sealed(&bytes, false);
        let first = 2056;
        let refused = |changed: &[u8], what: &str| {
            for result in [opened(changed), streamed(changed)] {
                let error = result.expect_err(what);
                assert_eq!(error.kind, ErrorKind::Damaged, "{what}: {error}");
            }
        };
        for at in (first..archive.len()).step_by(997) {
            let mut changed = archive.clone();
            changed[at] ^= 1;
            refused(&changed, "a flipped bit");
        }
        for cut in (first..archive.len()).step_by(997) {
            refused(&archive[..cut], "a cut");
        }
        let mut swapped = archive.clone();
        let (one, two) = swapped[first..].split_at_mut(SEALED_RECORD_BYTES);
        one.swap_with_slice(&mut two[..SEALED_RECORD_BYTES]);
        refused(&swapped, "two records exchanged");
        let mut shortened = archive.clone();
        let removed = first + SEALED_RECORD_BYTES..first + 2 * SEALED_RECORD_BYTES;
        shortened.drain(removed);
        refused(&shortened, "a record left out");
        let tail = envelope_tail(first as u64, 2).to_bytes();
        let early = [&archive[..first + 2 * SEALED_RECORD_BYTES], &tail].concat();
        refused(&early, "an earlier end");
        let other = sealed(&bytes, false);
        let mut spliced = archive.clone();
        spliced[first..first + SEALED_RECORD_BYTES]
            .copy_from_slice(&other[first..first + SEALED_RECORD_BYTES]);
        refused(&spliced, "a record of another archive");
    }

    /// Changes an archive at random: bits, ranges from elsewhere in it or in another archive for
    /// the same key, cuts, insertions.
    fn tamper(archive: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
        let mut changed = archive.to_vec();
        let length = changed.len() as u64;
        // Often whole records, which only their places tell apart.
        let (unit, start) = if rng.below(2) == 0 { (1, 0) } else { (SEALED_RECORD_BYTES, 2056) };
        let mut place = || {
            let units = (length - start as u64) / unit as u64;
            start + rng.below(units) as usize * unit
        };
        let (from, to) = (place(), place());
        let count = (1 + rng.below(3) as usize * unit).min(changed.len() - from.max(to));
        match rng.below(6) {
            0 => changed[to] ^= 1 << rng.below(8),
            1 => changed.copy_within(from..from + count, to),
            2 => changed[to..to + count].copy_from_slice(&other[from..from + count]),
            3 => changed.truncate(to),
            4 => drop(changed.drain(to..to + count)),
            _ => drop(changed.splice(to..to, other[from..from + count].iter().copied())),
        }
        changed
    }

    #[test]
    fn tampering_is_refused_or_changes_nothing() {
        let bytes = content(RECORD_BYTES * 3 + 100);
        let (archive, other) = (sealed(&bytes, false), sealed(&bytes, true));
        let mut rng = Rng::new(41);
        let cases = refrain_testkit::scaled(300);
        let mut refused = 0;
        for number in 0..cases {
            let changed = tamper(&archive, &other, &mut rng);
            // What changes a header, or is like an appendix, may leave all bytes as they are. With
            // both headers lost, a file is not known to be encrypted, and stays as it is.
            for found in [opened(&changed), streamed(&changed)] {
                match found {
                    Ok(found) => assert!(found == bytes || found == changed, "case {number}"),
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(refused > cases, "{refused} of {cases}");
    }

    #[test]
    fn either_copy_of_the_header_suffices() {
        let bytes = content(100);
        let archive = sealed(&bytes, false);
        for at in [60, 1_100] {
            let mut changed = archive.clone();
            changed[at] ^= 1;
            assert!(opened(&changed).unwrap() == bytes, "{at}");
        }
        let mut changed = archive.clone();
        changed[60] ^= 1;
        changed[1_100] ^= 1;
        assert_eq!(opened(&changed).expect_err("both").kind, ErrorKind::Damaged);
    }

    #[test]
    fn other_secrets_are_refused() {
        let archive = sealed(&content(100), false);
        let source: Arc<dyn Source> = Arc::new(MemorySource::new(archive));
        let other = Identity::X25519(zeroize::Zeroizing::new([7; 32]));
        for (identities, part) in [(vec![], "is needed"), (vec![other], "not encrypted for")] {
            let options = ReadOptions {
                identities,
                password: Some(PasswordSource::from_bytes(b"not asked for")),
                ..ReadOptions::default()
            };
            let error = unlocked(source.clone(), &options).err().expect("locked");
            assert_eq!(error.kind, ErrorKind::Usage);
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn passwords_open_in_the_first_place() {
        let with = |password: &[u8]| PasswordSource::from_bytes(password);
        let encryption = Encryption {
            passwords: vec![with(b"one"), with(b"two")],
            recipients: vec![],
            is_padded: false,
        };
        let mut sink = MemorySink::new();
        let output = sink.output();
        // The least memory, which keeps the test short.
        let mut envelope = EnvelopeSink::begin(&mut sink, &encryption, 32 << 20).unwrap();
        envelope.write_all(b"x").unwrap();
        envelope.publish().unwrap();
        let source: Arc<dyn Source> = Arc::new(MemorySource::new(output.published().unwrap()));
        for (password, is_right) in [(&b"two"[..], true), (b"one", true), (b"three", false)] {
            let options = ReadOptions {
                password: Some(with(password)),
                ..ReadOptions::default()
            };
            let opened = unlocked(source.clone(), &options);
            assert_eq!(opened.is_ok(), is_right);
            if let Err(error) = opened {
                assert!(error.to_string().ends_with("password is wrong"), "{error}");
            }
        }
    }
}
