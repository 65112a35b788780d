//! A folder on this machine whose files are created and deleted, never changed.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder_source::FolderSource;
use super::layout::{JoinedVolume, Layout};
use super::place::{Alone, VolumeLock, VolumePlace};
use crate::atomic_file::{AtomicFile, OutputOptions};
use crate::failure::{at, refuse};
use crate::sink::Sink;
use crate::source::Source;

/// A folder on this machine.
///
/// Files appear whole, under names that did not exist (`linkat`), when they are on the disk. Other
/// writers are kept out by a lock of the folder itself (`flock`), where the file system has such
/// locks.
#[derive(Debug, Clone)]
pub struct VolumeFolder {
    path: PathBuf,
    label: String,
    /// What the page cache may hold of a volume that is written.
    cache_bytes: Option<u64>,
}

impl VolumeFolder {
    /// The folder at `path`, which may not exist yet.
    pub fn new(path: impl AsRef<Path>) -> VolumeFolder {
        let path = path.as_ref().to_owned();
        VolumeFolder {
            label: path.to_string_lossy().into_owned(),
            path,
            cache_bytes: None,
        }
    }

    /// Lets the page cache hold at most so much of a volume that is written.
    #[must_use]
    pub fn with_cache(self, cache_bytes: Option<u64>) -> VolumeFolder {
        VolumeFolder {
            cache_bytes,
            ..self
        }
    }

    /// Creates the folder, unless it exists; not those above it.
    ///
    /// # Errors
    /// From the operating system.
    pub fn create_folder(&self) -> io::Result<()> {
        match fs::create_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            created => created.map_err(at("create", &self.path)),
        }
    }
}

impl VolumePlace for VolumeFolder {
    fn label(&self) -> &str {
        &self.label
    }

    fn names(&self, prefix: &str, count_max: usize) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(at("read", &self.path))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(at("read", &self.path))?;
            let name = entry.file_name().into_string();
            names.extend(name.ok().filter(|name| name.starts_with(prefix)));
        }
        names.sort_unstable();
        names.truncate(count_max);
        Ok(names)
    }

    fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let path = self.path.join(name);
        let file = File::open(&path).map_err(at("open", &path))?;
        let mut bytes = Vec::new();
        let mut beginning = file.take(bytes_max.saturating_add(1));
        beginning
            .read_to_end(&mut bytes)
            .map_err(at("read", &path))?;
        if bytes.len() as u64 > bytes_max {
            let text = format!("it has more than {bytes_max} bytes");
            return Err(refuse("read", &path, io::ErrorKind::InvalidData, &text));
        }
        Ok(bytes)
    }

    fn joined(&self, volumes: Vec<JoinedVolume>) -> io::Result<Arc<dyn Source>> {
        let layout = Layout::new(volumes);
        Ok(Arc::new(FolderSource::new(self.path.clone(), layout)))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Sink>> {
        let options = OutputOptions {
            cache_bytes: self.cache_bytes,
            ..OutputOptions::default()
        };
        let file = AtomicFile::create(self.path.join(name), &options)?;
        Ok(Box::new(file))
    }

    fn create_alone(&self, name: &str, bytes: &[u8]) -> io::Result<Alone> {
        let mut file = AtomicFile::create(self.path.join(name), &OutputOptions::default())?;
        file.write_all(bytes)?;
        file.publish()?;
        Ok(Alone::Certain)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(at("remove", &path)),
        }
    }

    fn lock(&self) -> io::Result<VolumeLock> {
        let folder = File::open(&self.path).map_err(at("open", &self.path))?;
        match folder.try_lock() {
            Ok(()) => Ok(VolumeLock::of(folder)),
            Err(TryLockError::WouldBlock) => {
                let text = "another program is writing to it";
                Err(refuse("lock", &self.path, io::ErrorKind::WouldBlock, text))
            }
            // Network file systems may not lock folders.
            Err(TryLockError::Error(_)) => Ok(VolumeLock::default()),
        }
    }

    fn file_id(&self) -> Option<(u64, u64)> {
        let metadata = fs::metadata(&self.path).ok()?;
        Some((metadata.dev(), metadata.ino()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &VolumeFolder, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut sink = folder.create(name)?;
        sink.write_all(bytes)?;
        sink.publish()
    }

    fn joined(folder: &VolumeFolder, volumes: &[(&str, &[(u64, u64)])]) -> Arc<dyn Source> {
        let volumes = volumes.iter().map(|(name, pieces)| JoinedVolume {
            name: (*name).to_owned(),
            pieces: pieces.to_vec(),
        });
        folder.joined(volumes.collect()).unwrap()
    }

    #[test]
    fn volumes_are_read_one_behind_the_other() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let folder = VolumeFolder::new(directory.path());
        // More than are open at once.
        let names: Vec<String> = (0..100).map(|number| format!("v{number:03}")).collect();
        let mut expected = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let bytes = vec![number as u8; number * 7 + 1];
            put(&folder, name, &bytes)?;
            expected.extend(bytes);
            expected.extend(vec![0; number % 3]);
        }
        let pieces: Vec<_> = (0..100).map(|n| [(n * 7 + 1, n % 3)]).collect();
        let volumes: Vec<_> = (names.iter().zip(&pieces))
            .map(|(name, pieces)| (&**name, &pieces[..]))
            .collect();
        let source = joined(&folder, &volumes);
        assert_eq!(source.size_bytes()?, expected.len() as u64);
        for (offset, length) in [
            (0, 40_000),
            (5, 1),
            (1000, 999),
            (34_000, 4000),
            (40_000, 9),
        ] {
            let mut buffer = vec![0xEE; length];
            let count = source.read_at(offset, &mut buffer)?;
            let from = (offset as usize).min(expected.len());
            let to = (from + length).min(expected.len());
            assert!(buffer[..count] == expected[from..to], "{offset}");
        }
        Ok(())
    }

    #[test]
    fn a_missing_or_shorter_volume_is_named() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let folder = VolumeFolder::new(directory.path());
        put(&folder, "a", b"1234")?;
        let source = joined(&folder, &[("a", &[(4, 0)]), ("b", &[(7, 0)])]);
        let error = source.read_at(2, &mut [0; 4]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(
            error
                .to_string()
                .contains("the volume b of 7 bytes is missing"),
            "{error}"
        );
        assert_eq!(source.read_at(0, &mut [0; 4])?, 4);
        let source = joined(&folder, &[("a", &[(5, 0)])]);
        let error = source.read_at(0, &mut [0; 1]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("the volume a has 4 bytes instead of 5"),
            "{error}"
        );
        Ok(())
    }

    #[test]
    fn files_are_created_once_and_whole() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let folder = VolumeFolder::new(directory.path().join("new"));
        assert!(folder.names("", 9)?.is_empty());
        assert!(folder.lock().is_err());
        folder.create_folder()?;
        folder.create_folder()?;
        let mut begun = folder.create("v1")?;
        begun.write_all(b"x")?;
        assert!(folder.names("", 9)?.is_empty());
        drop(begun);
        assert_eq!(folder.create_alone("h1", b"first")?, Alone::Certain);
        let error = folder.create_alone("h1", b"second").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(folder.read("h1", 5)?, b"first");
        let error = folder.read("h1", 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        put(&folder, "v1", b"")?;
        put(&folder, "v0", b"")?;
        assert_eq!(folder.names("v", 9)?, ["v0", "v1"]);
        assert_eq!(folder.names("", 1)?, ["h1"]);
        folder.remove("v0")?;
        folder.remove("v0")?;
        assert_eq!(folder.names("v", 9)?, ["v1"]);
        Ok(())
    }

    #[test]
    fn there_is_one_writer_at_a_time() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let folder = VolumeFolder::new(directory.path());
        let lock = folder.lock()?;
        assert!(lock.is_held());
        assert_eq!(folder.lock().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(lock);
        assert!(folder.lock()?.is_held());
        Ok(())
    }
}
