//! What is around the records of a run while it is written.

use std::sync::Arc;

use refrain_format::Tail;
use refrain_format::envelope::run::{RUN_FRAME_BYTES, RunEnd, RunRow, RunStart, RunTable};
use refrain_protect::envelope::{FileKey, LINK_BYTES, RecordCipher, SALT_BYTES, run_link};

use super::keys::random;
use super::source::EnvelopeSource;
use crate::error::Result;

/// The frames of a run.
pub(super) struct RunEnding {
    key: FileKey,
    archive_salt: [u8; SALT_BYTES],
    archive_id: u32,
    salt: [u8; SALT_BYTES],
    link: [u8; LINK_BYTES],
    position: u64,
    /// Of all runs before.
    pub table: RunTable,
}

impl RunEnding {
    /// Of a run behind the end of an archive, with a new salt.
    pub(super) fn new(earlier: &Arc<EnvelopeSource>, is_anew: bool) -> Result<RunEnding> {
        let mut table = earlier.table().clone();
        if is_anew {
            table = RunTable::of_base(table.base_records, 0, table.is_padded);
        }
        let begins_at = earlier.complete_end()?.1 + RUN_FRAME_BYTES as u64;
        let position = begins_at - earlier.records_offset();
        let salt = random::<SALT_BYTES>()?;
        Ok(RunEnding {
            key: earlier.key().clone(),
            archive_salt: *earlier.salt(),
            archive_id: earlier.archive_id(),
            salt,
            link: run_link(&earlier.last_link(), &salt, position),
            position,
            table,
        })
    }

    fn number(&self) -> u64 {
        self.table.number() + 1
    }

    /// The frame before the records.
    pub(super) fn first_frame(&self) -> Vec<u8> {
        let start = RunStart {
            number: self.number(),
            salt: self.salt,
        };
        start.to_frame(self.archive_id)
    }

    pub(super) fn record_cipher(&self) -> RecordCipher {
        self.key.run_records(&self.archive_salt, &self.link)
    }

    /// What follows so many records with so many bytes: a frame and a tail.
    pub(super) fn last_bytes(&mut self, records: u64, bytes: u64) -> Result<Vec<u8>> {
        self.table.push(RunRow {
            position: self.position,
            records,
            start: self.table.end(),
            bytes,
            link: self.link,
        })?;
        let cipher = self.key.run_table(&self.archive_salt, &self.link);
        let end = RunEnd {
            number: self.table.number(),
            link: self.link,
            records,
            sealed: cipher.seal(self.table.to_bytes()),
            frame_bytes: 0,
        };
        let mut frame = end.to_frame(self.archive_id);
        let tail = Tail {
            back_bytes: frame.len() as u64,
        };
        frame.extend(tail.to_bytes());
        Ok(frame)
    }
}
