//! What is around the records of a run while it is written.

use refrain_format::Tail;
use refrain_format::envelope::run::{
    RunEnd, RunRow, RunSecret, RunStart, RunTable, run_frame_bytes,
};
use refrain_protect::envelope::{
    AppendixCipher, FileKey, LINK_BYTES, Recipient, RecordCipher, RunKey, SALT_BYTES,
    SLOT_RANDOM_BYTES, run_link,
};
use zeroize::Zeroizing;

use super::keys::random;
use crate::error::{Error, ErrorKind, Result};

/// With what a run is written.
#[derive(Debug, Clone)]
pub(crate) enum RunWriter {
    /// With the archive's key, and the cipher of appendices that follows from it.
    Owner(RunKey, AppendixCipher),
    /// With the key of writers, instead of the archive's.
    ForWriters(RunKey, AppendixCipher),
    /// By a writer who cannot read the archive.
    Writer(WriterKeys),
}

/// What a writer has who cannot read the archive.
#[derive(Debug, Clone)]
pub(crate) struct WriterKeys {
    /// The public key of those who can.
    pub public_key: Recipient,
    /// The key of runs without content.
    pub writers_key: RunKey,
}

impl WriterKeys {
    pub(super) fn of(key: &FileKey, salt: &[u8; SALT_BYTES]) -> WriterKeys {
        WriterKeys {
            public_key: key.run_pair(salt).recipient(),
            writers_key: key.writers_key(salt),
        }
    }
}

/// What a run continues, and where it goes.
#[derive(Debug, Clone)]
pub(crate) struct RunOrigin {
    pub archive_id: u32,
    pub salt: [u8; SALT_BYTES],
    /// Where the first record of the archive begins in the file.
    pub records_offset: u64,
    /// Where the Run frame goes in the file.
    pub append_at: u64,
    /// Of all runs before.
    pub table: RunTable,
    pub writer: RunWriter,
}

impl RunOrigin {
    /// The link of the last run; without runs, the salt.
    pub(crate) fn last_link(&self) -> [u8; LINK_BYTES] {
        self.table.last().map_or(self.salt, |last| last.link)
    }
}

/// The frames of a run.
pub(super) struct RunEnding {
    pub origin: RunOrigin,
    salt: [u8; SALT_BYTES],
    secret: RunSecret,
    key: RunKey,
    pub link: [u8; LINK_BYTES],
    position: u64,
}

impl RunEnding {
    /// Of a run behind the end of an archive, with a new salt.
    pub(super) fn new(mut origin: RunOrigin, is_anew: bool) -> Result<RunEnding> {
        let (secret, key) = match &origin.writer {
            RunWriter::Owner(key, _) => (RunSecret::Archive, key.clone()),
            RunWriter::ForWriters(key, _) => (RunSecret::Writers, key.clone()),
            RunWriter::Writer(keys) => {
                let random = Zeroizing::new(random::<SLOT_RANDOM_BYTES>()?);
                let agreed = RunKey::agree(&keys.public_key, &random);
                let text = "the public key for runs is of another kind";
                let agreed = agreed.ok_or_else(|| Error::new(ErrorKind::Internal, text))?;
                (RunSecret::Shared(agreed.0), agreed.1)
            }
        };
        let begins_at = origin.append_at + run_frame_bytes(secret.cipher());
        let position = begins_at - origin.records_offset;
        let salt = random::<SALT_BYTES>()?;
        let link = run_link(&origin.last_link(), &salt, position);
        if is_anew {
            let table = &origin.table;
            origin.table = RunTable::of_base(table.base_records, 0, table.is_padded);
        }
        Ok(RunEnding {
            origin,
            salt,
            secret,
            key,
            link,
            position,
        })
    }

    /// The frame before the records.
    pub(super) fn first_frame(&self) -> Vec<u8> {
        let start = RunStart {
            number: self.origin.table.number() + 1,
            salt: self.salt,
            secret: self.secret.clone(),
        };
        start.to_frame(self.origin.archive_id)
    }

    /// Where the records begin in the file.
    pub(super) fn records_at(&self) -> u64 {
        self.origin.records_offset + self.position
    }

    pub(super) fn record_cipher(&self) -> RecordCipher {
        self.key.records(&self.origin.salt, &self.link)
    }

    /// Takes the run with so many records with so many bytes into the table.
    pub(super) fn complete(&mut self, records: u64, bytes: u64) -> Result<()> {
        let table = &mut self.origin.table;
        Ok(table.push(RunRow {
            position: self.position,
            records,
            start: table.end(),
            bytes,
            link: self.link,
            cipher: self.secret.cipher(),
        })?)
    }

    /// What follows the records of a complete run: a frame and a tail.
    pub(super) fn last_bytes(&self, records: u64) -> Vec<u8> {
        let table = &self.origin.table;
        let cipher = self.key.table(&self.origin.salt, &self.link);
        let end = RunEnd {
            number: table.number(),
            link: self.link,
            records,
            secret: self.secret.clone(),
            sealed: cipher.seal(table.to_bytes()),
            frame_bytes: 0,
        };
        let mut frame = end.to_frame(self.origin.archive_id);
        let tail = Tail {
            back_bytes: frame.len() as u64,
        };
        frame.extend(tail.to_bytes());
        frame
    }
}
