//! Writes the state behind a run while the run is written.

use std::io;
use std::path::Path;

use refrain_format::envelope::run::RunTable;
use refrain_format::envelope::state::{StatePart, StatePiece};
use refrain_protect::envelope::{LINK_BYTES, SALT_BYTES};
use refrain_storage::{AtomicFile, Durability, OutputOptions, Overwrite, Sink};

use super::super::run_ending::WriterKeys;
use super::kept::{Kept, Next, Piece};

/// Gets the bytes of an archive inside as they are written, and keeps some of them.
pub(crate) struct StateRecorder {
    file: AtomicFile,
    kept: Kept,
    /// Where the next byte is in the archive inside.
    offset: u64,
    part: StatePart,
}

impl StateRecorder {
    /// Creates the file behind the run with this link, which continues that with the link `parent`
    /// at an offset in the archive inside; `None`: it begins it.
    pub(super) fn create(
        path: &Path,
        (salt, link): ([u8; SALT_BYTES], [u8; LINK_BYTES]),
        (parent, offset): (Option<[u8; LINK_BYTES]>, u64),
        keys: &WriterKeys,
    ) -> io::Result<StateRecorder> {
        let options = OutputOptions {
            overwrite: Overwrite::Replace,
            durability: Durability::Synced,
            mode: Some(0o600),
            ..OutputOptions::default()
        };
        Ok(StateRecorder {
            file: AtomicFile::create(path, &options)?,
            kept: Kept::default(),
            offset,
            part: StatePart {
                salt,
                link,
                parent,
                public_key: keys.public_key.to_string(),
                writers_key: *keys.writers_key.as_bytes(),
                table: RunTable::of_base(1, 0, false),
                pieces: Vec::new(),
            },
        })
    }

    /// Takes the next bytes.
    pub(in super::super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Self {
            file,
            kept,
            offset,
            part,
        } = self;
        kept.divide(bytes, &mut |piece| {
            match piece {
                Piece::LeftOut(bytes) => *offset += bytes,
                Piece::Kept(bytes) => {
                    file.write_all(bytes)?;
                    note(&mut part.pieces, *offset, bytes.len() as u64);
                    *offset += bytes.len() as u64;
                }
            }
            Ok(())
        })
    }

    /// What follows the bytes that it has.
    pub(super) fn next(&self) -> Next {
        self.kept.next()
    }

    /// Passes over bytes that are not kept, or, between frames, over whole frames.
    pub(super) fn pass_over(&mut self, bytes: u64) {
        self.kept.pass_over(bytes);
        self.offset += bytes;
    }

    /// Publishes the file: the table is that of the run. From then on the state is that behind the
    /// run, if that is completed.
    pub(in super::super) fn publish(&mut self, table: &RunTable) -> io::Result<()> {
        self.part.table = table.clone();
        self.file.write_all(&self.part.to_bytes())?;
        self.file.publish()
    }
}

/// Notes bytes that are kept, as a part of the piece before where they follow it.
fn note(pieces: &mut Vec<StatePiece>, offset: u64, bytes: u64) {
    match pieces.last_mut() {
        Some(last) if last.offset + last.bytes == offset => last.bytes += bytes,
        _ => pieces.push(StatePiece { offset, bytes }),
    }
}
