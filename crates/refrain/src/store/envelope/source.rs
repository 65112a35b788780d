//! The archive inside an envelope, readable at any offset.

use std::io;
use std::sync::Arc;

use refrain_format::envelope::{INNER_BYTES_BYTES, StoredEnvelope, record_count};
use refrain_pool::Lock;
use refrain_protect::envelope::{
    FileKey, NotAuthentic, RECORD_BYTES, RecordCipher, SEALED_RECORD_BYTES,
};
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::store::appendix::{records_end_before, tail_before};
use crate::store::ending::protected_end;

/// How many records are read at once.
const BATCH_RECORDS: u64 = 64;

/// How many buffers are kept for later reads.
const BUFFERS_MAX: usize = 8;

/// The records of an archive in a file.
pub(super) struct SealedRecords {
    file: Arc<dyn Source>,
    records_offset: u64,
    buffers: Lock<Vec<Vec<u8>>>,
}

impl SealedRecords {
    pub(super) fn new(file: Arc<dyn Source>, records_offset: u64) -> SealedRecords {
        SealedRecords {
            file,
            records_offset,
            buffers: Lock::default(),
        }
    }

    fn offset_in_file(&self, record: u64) -> u64 {
        self.records_offset + record * SEALED_RECORD_BYTES as u64
    }

    fn damaged(&self, record: u64) -> Error {
        let offset = self.offset_in_file(record);
        Error::damaged(NotAuthentic.to_string()).at_offset(offset)
    }

    /// Fills `buffer` with decrypted bytes from `offset` on, which are all there.
    pub(super) fn read_at(
        &self,
        cipher: &RecordCipher,
        offset: u64,
        buffer: &mut [u8],
        is_last: impl Fn(u64) -> bool,
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
            self.decrypt(cipher, first, &mut sealed, &is_last)?;
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
    fn decrypt(
        &self,
        cipher: &RecordCipher,
        first: u64,
        sealed: &mut [u8],
        is_last: impl Fn(u64) -> bool,
    ) -> io::Result<()> {
        let read = self.file.read_at(self.offset_in_file(first), sealed)?;
        let (records, _) = sealed.as_chunks_mut::<SEALED_RECORD_BYTES>();
        let complete = read / SEALED_RECORD_BYTES;
        for (at, record) in records.iter_mut().enumerate() {
            let number = first + at as u64;
            if at >= complete || cipher.open(number, is_last(number), record).is_err() {
                return Err(io::Error::other(self.damaged(number)));
            }
        }
        Ok(())
    }
}

/// The archive inside an envelope. Every byte that it returns is authentic, and errors for others
/// are `Damaged`. One that is truncated ends with a record that cannot be read, so that no reader
/// takes it for complete.
pub(super) struct EnvelopeSource {
    sealed: SealedRecords,
    cipher: RecordCipher,
    records: u64,
    inner_bytes: u64,
}

impl EnvelopeSource {
    pub(super) fn open(
        file: Arc<dyn Source>,
        stored: &StoredEnvelope,
        key: &FileKey,
    ) -> Result<EnvelopeSource> {
        let records_offset = stored.records_offset();
        let archive_bytes = file.size_bytes()?;
        let records_bytes = match records_end(&*file, records_offset)? {
            Some(end) => end - records_offset,
            None => archive_bytes.saturating_sub(records_offset) + SEALED_RECORD_BYTES as u64,
        };
        let records = records_bytes / SEALED_RECORD_BYTES as u64;
        let mut source = EnvelopeSource {
            sealed: SealedRecords::new(file, records_offset),
            cipher: key.records(&stored.envelope.salt),
            records,
            inner_bytes: records * RECORD_BYTES as u64,
        };
        let mut stated = [0; INNER_BYTES_BYTES];
        let read = source.read(source.inner_bytes - stated.len() as u64, &mut stated);
        match read.map_err(Error::from) {
            Ok(()) => source.inner_bytes = inner_bytes(stated, records)?,
            Err(error) if error.kind == ErrorKind::Damaged => {}
            Err(error) => return Err(error),
        }
        Ok(source)
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let is_last = |record| record + 1 == self.records;
        self.sealed.read_at(&self.cipher, offset, buffer, is_last)
    }
}

/// Where the records end, with or without an appendix. `None` if the archive has no end.
pub(crate) fn records_end(file: &dyn Source, records_offset: u64) -> Result<Option<u64>> {
    let end = protected_end(file)?;
    if tail_before(file, end)?.is_none() {
        return Ok(None);
    }
    records_end_before(file, records_offset, end)
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
        let left = self.inner_bytes.saturating_sub(offset);
        let count = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        self.read(offset, buffer.split_at_mut(count).0)?;
        Ok(count)
    }

    fn has_changed(&self) -> io::Result<bool> {
        self.sealed.file.has_changed()
    }
}
