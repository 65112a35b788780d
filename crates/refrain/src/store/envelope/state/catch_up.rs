//! Runs that others wrote for writers: they say which generations are kept, and have no content.

use std::io;
use std::sync::Arc;

use refrain_format::envelope::run::{RunCipher, RunEnd, RunRow, RunTable};
use refrain_protect::envelope::{RunKey, SALT_BYTES};
use refrain_storage::Source;

use super::super::source::{RecordsAt, SealedRecords};
use crate::error::{Error, Result};

/// What is read at once.
const READ_BYTES: usize = 1 << 20;

/// The rows of the table in a RunEnd frame at an offset of the file, which is one for writers.
///
/// # Errors
/// `Damaged` if the table is, or of another place.
pub(super) fn table_for_writers(
    key: &RunKey,
    (salt, records_offset): (&[u8; SALT_BYTES], u64),
    (offset, end): (u64, &RunEnd),
) -> Result<RunTable> {
    let forged = || {
        let text = "the end of an appended run is damaged or forged";
        Error::damaged(text).at_offset(offset)
    };
    let table = key.table(salt, &end.link).open(&end.sealed);
    let table = RunTable::parse(end.number, &table.map_err(|_| forged())?)?;
    let is_here = |last: &RunRow| {
        records_offset + last.records_end() == offset
            && (last.link, last.records) == (end.link, end.records)
    };
    if table.last().is_some_and(is_here) { Ok(table) } else { Err(forged()) }
}

/// Calls `each` with the part of the archive inside that a run for writers has.
///
/// # Errors
/// `Damaged`, `Io`; those of `each`.
pub(super) fn read_run(
    file: &Arc<dyn Source>,
    key: &RunKey,
    (salt, records_offset): (&[u8; SALT_BYTES], u64),
    row: &RunRow,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<()> {
    let sealed = SealedRecords::new(Arc::clone(file));
    let records = RecordsAt {
        cipher: &key.records(salt, &row.link),
        offset: records_offset + row.position,
        count: Some(row.records),
    };
    let mut buffer = vec![0; READ_BYTES];
    let mut offset = 0;
    while offset < row.bytes {
        let count = (row.bytes - offset).min(buffer.len() as u64);
        let piece = buffer.split_at_mut(count as usize).0;
        sealed.read_at(&records, offset, piece)?;
        each(piece)?;
        offset += count;
    }
    Ok(())
}

/// Whether a writer who cannot read the archive can read this run.
pub(super) fn is_for_writers(row: &RunRow) -> bool {
    row.cipher == RunCipher::Writers
}
