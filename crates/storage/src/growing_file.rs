//! [`GrowingFile`]: appends to a file that others read meanwhile, whole or not at all.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::appender::Appender;
use crate::failure::at;
use crate::file::FileSource;
use crate::growing::GrowingSink;
use crate::sink::Sink;
use crate::source::Source;

/// A file that is only appended to, and parts of which may be [given back](Self::punch).
///
/// It is locked against other writers (`flock`, which ends with its process, so no lock outlives a
/// crash); readers are not kept out, and see its earlier bytes unchanged. What was appended and not
/// published is cut off when the value is dropped. After a crash it remains behind the end, for the
/// next writer to cut off. The last byte is written when everything before it is on the disk, so an
/// end that says that it is complete never precedes what it ends.
#[derive(Debug)]
pub struct GrowingFile {
    file: File,
    path: PathBuf,
    /// `None` until something is appended.
    appended: Option<Appended>,
    is_published: bool,
}

#[derive(Debug)]
struct Appended {
    appender: Appender,
    /// The length before.
    start: u64,
}

impl GrowingFile {
    /// Opens and locks a file.
    ///
    /// # Errors
    /// It cannot be opened for reading and writing, is not a regular file, or another program is
    /// appending to it, or has replaced it (`WouldBlock`).
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(at("open", &path))?;
        if !file.metadata().map_err(at("read", &path))?.is_file() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
            return Err(at("append to", &path)(error));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text = "another program is appending to it";
                let error = io::Error::new(io::ErrorKind::WouldBlock, text);
                return Err(at("lock", &path)(error));
            }
            Err(TryLockError::Error(error)) => return Err(at("lock", &path)(error)),
        }
        check_in_place(&file, &path)?;
        Ok(GrowingFile {
            file,
            path,
            appended: None,
            is_published: false,
        })
    }

    /// The bytes of the file as it is now.
    ///
    /// # Errors
    /// Of reading its length.
    pub fn source(&self) -> io::Result<Arc<dyn Source>> {
        let file = self.file.try_clone().map_err(at("read", &self.path))?;
        Ok(Arc::new(FileSource::from_file(file, &self.path)?))
    }

    /// Starts to append behind the first `end` bytes; what follows them is cut off. Call it before
    /// the first write, and again before what is written after something was published.
    ///
    /// # Errors
    /// The file cannot be cut, or is shorter.
    pub fn append_behind(&mut self, end: u64) -> io::Result<()> {
        let length = self.file.metadata().map_err(at("read", &self.path))?.len();
        if length < end {
            let error = io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter");
            return Err(at("append to", &self.path)(error));
        }
        if length > end {
            self.file.set_len(end).map_err(at("cut", &self.path))?;
        }
        let file = self.file.try_clone().map_err(at("append to", &self.path))?;
        self.appended = Some(Appended {
            appender: Appender::behind(file, self.path.clone(), end),
            start: end,
        });
        self.is_published = false;
        Ok(())
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn appended(&mut self) -> io::Result<&mut Appended> {
        let error = || io::Error::other("nothing is appended yet");
        self.appended.as_mut().ok_or_else(error)
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data().map_err(at("sync", &self.path))
    }
}

/// Checks that the path leads to the file: who held the lock before may have replaced it.
fn check_in_place(file: &File, path: &Path) -> io::Result<()> {
    let locked = file.metadata().map_err(at("read", path))?;
    let named = std::fs::metadata(path).map_err(at("read", path))?;
    if (locked.dev(), locked.ino()) == (named.dev(), named.ino()) {
        return Ok(());
    }
    let text = "another program has replaced it meanwhile";
    let error = io::Error::new(io::ErrorKind::WouldBlock, text);
    Err(at("append to", path)(error))
}

impl Sink for GrowingFile {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.appended()?.appender.write_all(bytes)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.appended()?.appender.write_zeros(length_bytes)
    }

    fn read_back(&self) -> Option<Arc<dyn Source>> {
        (self.appended.as_ref()).map(|appended| appended.appender.view())
    }

    fn is_stored(&self) -> bool {
        true
    }

    fn file_id(&self) -> Option<(u64, u64)> {
        let metadata = self.file.metadata().ok()?;
        Some((metadata.dev(), metadata.ino()))
    }

    fn publish(&mut self) -> io::Result<()> {
        self.appended()?;
        self.sync()?;
        self.appended()?.appender.finish()?;
        self.sync()?;
        self.is_published = true;
        Ok(())
    }
}

impl GrowingSink for GrowingFile {
    fn source(&self) -> io::Result<Arc<dyn Source>> {
        GrowingFile::source(self)
    }

    fn append_behind(&mut self, end: u64) -> io::Result<()> {
        GrowingFile::append_behind(self, end)
    }
}

impl Drop for GrowingFile {
    fn drop(&mut self) {
        if let Some(appended) = &self.appended
            && !self.is_published
        {
            // What remains if this fails is behind the end of the archive, as after a crash.
            let _ = self.file.set_len(appended.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_grows_whole_or_not_at_all() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("file");
        std::fs::write(&path, b"archive, torn")?;
        let long = vec![7; 1 << 18];
        let mut growing = GrowingFile::open(&path)?;
        assert!(growing.write_all(b"x").is_err());
        growing.append_behind(7)?;
        growing.write_all(&long)?;
        assert_eq!(std::fs::read(&path)?[..7], *b"archive");
        drop(growing);
        assert_eq!(std::fs::read(&path)?, b"archive");
        let mut growing = GrowingFile::open(&path)?;
        growing.append_behind(7)?;
        for piece in [&long[..], b"", b"end"] {
            growing.write_all(piece)?;
        }
        let view = growing.read_back().expect("a file");
        let mut read = [0; 8];
        assert_eq!(view.read_at(3, &mut read)?, 8);
        assert_eq!(read, *b"hive\x07\x07\x07\x07");
        growing.publish()?;
        drop(growing);
        assert_eq!(
            std::fs::read(&path)?,
            [&b"archive"[..], &long, b"end"].concat()
        );
        Ok(())
    }

    #[test]
    fn there_is_one_writer_at_a_time() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("file");
        std::fs::write(&path, b"archive")?;
        let first = GrowingFile::open(&path)?;
        let second = GrowingFile::open(&path).expect_err("locked");
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(first.source()?.size_bytes()?, 7);
        drop(first);
        let mut third = GrowingFile::open(&path)?;
        assert!(third.append_behind(8).is_err(), "the file is shorter");
        assert!(GrowingFile::open(directory.path()).is_err());
        let replaced = File::open(&path)?;
        check_in_place(&replaced, &path)?;
        std::fs::write(directory.path().join("other"), b"new")?;
        std::fs::rename(directory.path().join("other"), &path)?;
        let error = check_in_place(&replaced, &path).expect_err("replaced");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        Ok(())
    }
}
