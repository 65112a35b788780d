//! The sink for a path: atomic for files, direct for devices and pipes.

use std::fs::{Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::atomic_file::{AtomicFile, Checking, OutputOptions, Overwrite};
use crate::blocking::Blocking;
use crate::checked_device::CheckedDevice;
use crate::failure::{at, refuse};
use crate::sink::Sink;
use crate::stream::StreamSink;

/// Creates a sink for `path`.
///
/// For a regular file, or a path that does not exist, it is an [`AtomicFile`]. A device, terminal
/// or named pipe (`/dev/null`, `/dev/stdout`) is written directly, not replaced by a file. A block
/// device holds data like a file, so it is refused unless `options` contain [`Overwrite::Replace`],
/// and it is read back like one if they ask for that. Opening a named pipe waits for its reader.
///
/// # Errors
/// As [`AtomicFile::create`]; [`io::ErrorKind::IsADirectory`] for a directory;
/// [`io::ErrorKind::Unsupported`] for what cannot be read back, but is to be.
pub fn create_output(path: impl AsRef<Path>, options: &OutputOptions) -> io::Result<Box<dyn Sink>> {
    let path = path.as_ref();
    match std::fs::metadata(path) {
        Ok(existing) if is_direct(&existing) => open_direct(path, &existing, options),
        _ => Ok(Box::new(AtomicFile::create(path, options)?)),
    }
}

/// A file without a name in `directory`, for content that is read back. It is never published.
///
/// # Errors
/// As [`create_output`].
pub fn temporary_content(directory: &Path) -> io::Result<Box<dyn Sink>> {
    let path = directory.join(format!(".refrain-{}.content", std::process::id()));
    let options = OutputOptions {
        sparse: true,
        // It may hold data from files that others may not read.
        mode: Some(0o600),
        ..OutputOptions::default()
    };
    create_output(path, &options)
}

fn is_direct(existing: &Metadata) -> bool {
    !existing.is_file() && !existing.is_dir()
}

fn open_direct(
    path: &Path,
    existing: &Metadata,
    options: &OutputOptions,
) -> io::Result<Box<dyn Sink>> {
    if existing.file_type().is_block_device() && options.overwrite == Overwrite::Refuse {
        let kind = io::ErrorKind::AlreadyExists;
        return Err(refuse("write", path, kind, "is a block device"));
    }
    let is_checked = options.checking != Checking::Off;
    if is_checked && !existing.file_type().is_block_device() {
        let kind = io::ErrorKind::Unsupported;
        let reason = "it is neither a file nor a block device";
        return Err(refuse("read back what is written to", path, kind, reason));
    }
    let file = OpenOptions::new().read(is_checked).write(true).open(path);
    let file = file.map_err(at("open", path))?;
    if is_checked {
        return Ok(Box::new(CheckedDevice::new(file, path)?));
    }
    Ok(Box::new(StreamSink::new(Blocking(file), path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn write_and_publish(path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut sink = create_output(path, &OutputOptions::default())?;
        sink.write_all(bytes)?;
        sink.write_zeros(3)?;
        sink.publish()
    }

    #[test]
    fn devices_are_written_and_remain_devices() {
        let null = Path::new("/dev/null");
        let sink = create_output(null, &OutputOptions::default()).unwrap();
        assert!(sink.read_back().is_none());
        write_and_publish(null, b"gone").unwrap();
        let metadata = std::fs::metadata(null).unwrap();
        assert!(metadata.file_type().is_char_device());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error_with_its_path() {
        let error = write_and_publish(Path::new("/dev/full"), b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().contains("write /dev/full"), "{error}");
    }

    #[test]
    fn what_cannot_be_read_back_is_refused() {
        let options = OutputOptions {
            checking: Checking::ReadBack,
            ..OutputOptions::default()
        };
        let Err(error) = create_output("/dev/null", &options) else {
            panic!("not refused")
        };
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert!(error.to_string().contains("/dev/null"), "{error}");
    }

    #[test]
    fn named_pipes_are_written_directly() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut got = Vec::new();
                let mut file = std::fs::File::open(&path).unwrap();
                file.read_to_end(&mut got).unwrap();
                got
            });
            write_and_publish(&path, b"through").unwrap();
            assert_eq!(reader.join().unwrap(), b"through\0\0\0");
        });
        let metadata = std::fs::metadata(&path).unwrap();
        assert!(metadata.file_type().is_fifo());
    }

    #[test]
    fn files_are_created_and_directories_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        write_and_publish(&path, b"f").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"f\0\0\0");
        let error = write_and_publish(directory.path(), b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }
}
