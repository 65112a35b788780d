//! The directory with the state of a writer.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;

use refrain_format::envelope::StoredEnvelope;
use refrain_format::envelope::run::{RunRow, RunSecret, RunTable};
use refrain_format::envelope::state::StatePart;
use refrain_protect::envelope::{LINK_BYTES, RunKey, SALT_BYTES};
use refrain_storage::{FileSource, Source};

use super::super::end::{EnvelopeEnd, FoundEnd, envelope_end};
use super::super::run_ending::{RunOrigin, RunWriter, WriterKeys};
use super::super::source::EnvelopeSource;
use super::catch_up::{is_for_writers, read_run, table_for_writers};
use super::kept::Next;
use super::mirror::{Mirror, StateFile};
use super::recorder::StateRecorder;
use crate::error::{Error, Result};
use crate::writer_state::WriterState;

/// The ending of the names of files.
const EXTENSION: &str = "state";

/// More files than these are written again as one: each takes a descriptor while they are read.
const FILES_MAX: usize = 32;

/// What is copied at once.
const COPY_BYTES: usize = 1 << 20;

/// An archive as the state knows it, which is as it is.
pub(crate) struct KnownArchive {
    /// The archive inside, without blocks and anchors.
    pub inside: Arc<dyn Source>,
    pub origin: RunOrigin,
    /// Where what is complete ends in the file, with its own tail.
    pub own_end: u64,
}

/// Where state behind a run goes, and with which keys the run after it is written.
#[derive(Debug, Clone)]
pub(crate) struct StateOwner {
    pub state: WriterState,
    pub keys: WriterKeys,
}

/// An archive in a file, as its end shows it to everybody.
struct Place<'a> {
    file: &'a Arc<dyn Source>,
    salt: [u8; SALT_BYTES],
    records_offset: u64,
    end: FoundEnd,
}

impl Place<'_> {
    /// The link of the last run; without runs, the salt.
    fn link(&self) -> [u8; LINK_BYTES] {
        let run_end = self.end.run_end.as_ref();
        run_end.map_or(self.salt, |(_, run_end)| run_end.link)
    }

    /// Whether the last run of a table is where the file says it ends.
    fn is_end_of(&self, table: &RunTable) -> bool {
        let records_end = self.records_offset + table.records_end();
        match &self.end.run_end {
            Some((offset, _)) => *offset == records_end,
            None => self.end.end > records_end,
        }
    }
}

impl WriterState {
    fn path(&self, link: &[u8; LINK_BYTES]) -> PathBuf {
        let name: String = link[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.directory.join(format!("{name}.{EXTENSION}"))
    }

    /// The archive in a file, if it is as the state knows it, or only runs without content follow.
    ///
    /// # Errors
    /// `Damaged` if the end of the archive is, or a file of the state; `Io`.
    pub(crate) fn known(
        &self,
        file: &Arc<dyn Source>,
        stored: &StoredEnvelope,
    ) -> Result<Option<KnownArchive>> {
        let (records_offset, archive_id) = (stored.records_offset(), stored.envelope.archive_id());
        let end = match envelope_end(&**file, (records_offset, archive_id))? {
            EnvelopeEnd::Complete(end) | EnvelopeEnd::Incomplete(end) => end,
            EnvelopeEnd::DamagedRun { .. } | EnvelopeEnd::Nowhere => {
                return Err(Error::damaged(
                    "the end of the encrypted archive is damaged",
                ));
            }
        };
        let place = Place {
            file,
            salt: stored.envelope.salt,
            records_offset,
            end,
        };
        let files = match self.files_up_to(&place.salt, place.link())? {
            None if self.catch_up(&place)? => self.files_up_to(&place.salt, place.link())?,
            files => files,
        };
        let Some(files) = files else { return Ok(None) };
        let is_as_known = |last: &StateFile| place.is_end_of(&last.part.table);
        if !files.last().is_some_and(is_as_known) {
            return Ok(None);
        }
        let files = self.joined(files)?;
        self.remove_others(&files)?;
        let Some(last) = files.last() else { return Ok(None) };
        let origin = RunOrigin {
            archive_id,
            salt: place.salt,
            records_offset,
            append_at: place.end.append_at,
            table: last.part.table.clone(),
            writer: RunWriter::Writer(keys_of(&last.part)?),
        };
        Ok(Some(KnownArchive {
            inside: Arc::new(Mirror { files }),
            origin,
            own_end: place.end.end,
        }))
    }

    /// Takes the runs behind those that are known, if all are for writers. Returns whether that is
    /// so.
    fn catch_up(&self, place: &Place<'_>) -> Result<bool> {
        let Some((offset, run_end)) = &place.end.run_end else { return Ok(false) };
        let Some(keys) = self.any_keys(&place.salt)? else { return Ok(false) };
        if run_end.secret != RunSecret::Writers {
            return Ok(false);
        }
        let key = &keys.writers_key;
        let archive = (&place.salt, place.records_offset);
        let newest = table_for_writers(key, archive, (*offset, run_end))?;
        let rows: Vec<_> = newest.rows().collect();
        let known = |row: &&RunRow| self.path(&row.link).exists();
        let first = rows.iter().rposition(known).map_or(0, |last| last + 1);
        let (before, new) = rows.split_at(first);
        let parent = before.last().map_or(place.salt, |row| row.link);
        let Some(files) = self.files_up_to(&place.salt, parent)? else {
            return Ok(false);
        };
        let Some(last) = files.last() else { return Ok(false) };
        let mut table = last.part.table.clone();
        if !new.iter().all(|row| is_for_writers(row)) {
            return Ok(false);
        }
        let owner = StateOwner {
            state: self.clone(),
            keys: keys.clone(),
        };
        let mut parent = parent;
        for row in new {
            let from = (Some(parent), table.end());
            table.push(**row)?;
            let mut recorder = owner.recorder(place.salt, row.link, from)?;
            read_run(place.file, key, archive, row, &mut |bytes| {
                recorder.write_all(bytes)
            })?;
            recorder.publish(&table)?;
            parent = row.link;
        }
        Ok(true)
    }

    /// The keys in any file of an archive: all have the same.
    fn any_keys(&self, salt: &[u8; SALT_BYTES]) -> Result<Option<WriterKeys>> {
        for path in self.paths()? {
            let file = FileSource::open(&path).map_err(Error::from);
            let file = file.and_then(|source| StateFile::open(Arc::new(source)));
            if let Ok(file) = file
                && file.part.salt == *salt
            {
                return Ok(Some(keys_of(&file.part)?));
            }
        }
        Ok(None)
    }

    /// The files behind all runs up to that with a link; `None` if there are none for it.
    fn files_up_to(
        &self,
        salt: &[u8; SALT_BYTES],
        link: [u8; LINK_BYTES],
    ) -> Result<Option<Vec<StateFile>>> {
        let mut files = Vec::new();
        let mut next = Some(link);
        while let Some(link) = next {
            let path = self.path(&link);
            let source = match FileSource::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                source => source?,
            };
            let at = |error: Error| error.in_file(path.to_string_lossy());
            let file = StateFile::open(Arc::new(source)).map_err(at)?;
            let is_lower = |last: &StateFile| file.part.table.end() < last.part.table.end();
            if file.part.link != link
                || file.part.salt != *salt
                || !files.last().is_none_or(is_lower)
            {
                return Err(at(Error::damaged("is the state of another archive")));
            }
            next = file.part.parent;
            files.push(file);
        }
        files.reverse();
        Ok(Some(files))
    }

    /// The paths of all files; none without a directory.
    fn paths(&self) -> Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let paths: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut paths = paths?;
        paths.retain(|path| path.extension().is_some_and(|found| found == EXTENSION));
        Ok(paths)
    }

    /// The files of an archive, as one if they are many.
    fn joined(&self, files: Vec<StateFile>) -> Result<Vec<StateFile>> {
        let Some(last) = files.last().filter(|_| files.len() > FILES_MAX) else {
            return Ok(files);
        };
        let part = last.part.clone();
        let owner = StateOwner {
            state: self.clone(),
            keys: keys_of(&part)?,
        };
        let mut recorder = owner.recorder(part.salt, part.link, (None, 0))?;
        let pieces: Vec<_> = files
            .iter()
            .flat_map(|file| file.part.pieces.clone())
            .collect();
        let mirror = Mirror { files };
        let mut buffer = vec![0; COPY_BYTES];
        let mut offset = 0;
        for piece in pieces {
            recorder.pass_over(piece.offset - offset);
            offset = piece.offset;
            while offset < piece.offset + piece.bytes {
                let left = piece.offset + piece.bytes - offset;
                let count = left.min(buffer.len() as u64);
                let bytes = buffer.split_at_mut(count as usize).0;
                mirror.read_at(offset, bytes)?;
                recorder.write_all(bytes)?;
                offset += count;
            }
        }
        recorder.publish(&part.table)?;
        let joined = self.files_up_to(&part.salt, part.link)?;
        joined.ok_or_else(|| Error::damaged("a state was removed while it was read"))
    }

    /// Removes what was written for runs that were not completed, or that others continued.
    fn remove_others(&self, files: &[StateFile]) -> Result<()> {
        let kept: Vec<_> = files
            .iter()
            .map(|file| self.path(&file.part.link))
            .collect();
        for path in self.paths()? {
            if !kept.contains(&path) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

fn keys_of(part: &StatePart) -> Result<WriterKeys> {
    let public_key = part.public_key.parse();
    Ok(WriterKeys {
        public_key: public_key.map_err(|_| Error::damaged("a state has no public key"))?,
        writers_key: RunKey::from_bytes(part.writers_key),
    })
}

impl StateOwner {
    /// Begins the state behind the run with a link, which continues `origin`, at an offset in the
    /// archive inside.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn recorder(
        &self,
        salt: [u8; SALT_BYTES],
        link: [u8; LINK_BYTES],
        (parent, offset): (Option<[u8; LINK_BYTES]>, u64),
    ) -> io::Result<StateRecorder> {
        let directory = &self.state.directory;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let path = self.state.path(&link);
        StateRecorder::create(&path, (salt, link), (parent, offset), &self.keys)
    }

    /// Writes the state of an archive as it is, for who can read it.
    ///
    /// # Errors
    /// `Damaged`, `Io`.
    pub(crate) fn record(&self, archive: &EnvelopeSource) -> Result<()> {
        let origin = archive.origin()?;
        let mut recorder = self.recorder(origin.salt, origin.last_link(), (None, 0))?;
        let end = archive.size_bytes()?;
        let gone = archive.gone_frames();
        let mut buffer = vec![0; COPY_BYTES];
        let mut offset = 0;
        while offset < end {
            let after = gone.runs().partition_point(|run| run.start < offset);
            let run = gone.runs().get(after).filter(|run| run.start == offset);
            let bytes = match (run, recorder.next()) {
                (Some(run), _) => {
                    recorder.pass_over(run.end - offset);
                    run.end - offset
                }
                (None, Next::LeftOut(bytes)) => {
                    recorder.pass_over(bytes);
                    bytes
                }
                (None, Next::Kept(bytes)) => {
                    let count = bytes.min(end - offset).min(buffer.len() as u64);
                    let piece = buffer.split_at_mut(count as usize).0;
                    archive.read_at(offset, piece)?;
                    recorder.write_all(piece)?;
                    count
                }
            };
            offset += bytes.max(1);
        }
        Ok(recorder.publish(&origin.table)?)
    }
}
