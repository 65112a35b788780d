//! An open descriptor as an output: standard output, which may be a pipe, a terminal, or a regular
//! file to which a shell redirected it.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain_pool::Lock;
use refrain_pool::trace::{Device, reading, writing};
use rustix::fs::OFlags;

use crate::blocking::Blocking;
use crate::failure::at;
use crate::file::reopen;
use crate::sink::Sink;
use crate::source::Source;
use crate::stream::StreamSink;
use crate::transfer::{in_zero_pieces, read_full, slice_at, write_full};

/// Small writes are buffered up to this many bytes.
const BUFFER_BYTES: usize = 128 << 10;

/// A sink over an open descriptor, which errors name `name`.
///
/// What was written can be read back if it is a regular file that this process may read, through
/// the descriptor itself or the same file opened again (on Linux, through `/proc`). Writing starts
/// at the descriptor's offset, or at the end of the file in append mode, and leaves the bytes
/// before that alone.
pub fn descriptor_output(file: File, name: impl AsRef<Path>) -> Box<dyn Sink> {
    let name = name.as_ref();
    match RedirectedFile::new(&file, name) {
        Some(sink) => Box::new(sink),
        None => Box::new(StreamSink::new(Blocking(file), name)),
    }
}

#[derive(Debug)]
struct Written {
    reader: File,
    name: PathBuf,
    start: u64,
    tail: Lock<Tail>,
}

/// The last bytes, not yet in the file.
#[derive(Debug, Default)]
struct Tail {
    offset: u64,
    bytes: Vec<u8>,
}

/// A regular file behind a descriptor that other processes may share.
#[derive(Debug)]
struct RedirectedFile {
    file: File,
    written: Arc<Written>,
}

impl RedirectedFile {
    /// `None` unless the descriptor is a regular file that can be read back.
    fn new(file: &File, name: &Path) -> Option<RedirectedFile> {
        let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let flags = rustix::fs::fcntl_getfl(file).ok()?;
        let mut file = file.try_clone().ok()?;
        let start = if flags.contains(OFlags::APPEND) {
            metadata.len()
        } else {
            file.stream_position().ok()?
        };
        let reader = if flags.contains(OFlags::RDWR) {
            file.try_clone().ok()?
        } else {
            reopen(&file)?
        };
        let written = Written {
            reader,
            name: name.to_owned(),
            start,
            tail: Lock::default(),
        };
        Some(RedirectedFile {
            file,
            written: Arc::new(written),
        })
    }

    fn flush_tail(&mut self) -> io::Result<()> {
        // Held while the bytes move from the buffer to the file, so that a reader finds them in one
        // of the two.
        let mut tail = self.written.tail.lock();
        // Emptied even after an error: the number of written bytes is unknown then.
        let bytes = std::mem::take(&mut tail.bytes);
        let file = &mut self.file;
        let written = writing(Device::Disk, bytes.len(), || {
            write_full(&bytes, |left| file.write(left))
        });
        written.map_err(at("write", &self.written.name))?;
        tail.offset += bytes.len() as u64;
        tail.bytes = bytes;
        tail.bytes.clear();
        Ok(())
    }
}

impl Sink for RedirectedFile {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut left = bytes;
        loop {
            let mut tail = self.written.tail.lock();
            let count = left.len().min(BUFFER_BYTES - tail.bytes.len());
            tail.bytes.extend_from_slice(&left[..count]);
            left = &left[count..];
            if tail.bytes.len() < BUFFER_BYTES {
                return Ok(());
            }
            drop(tail);
            self.flush_tail()?;
        }
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        in_zero_pieces(length_bytes, |piece| self.write_all(piece))
    }

    fn read_back(&self) -> Option<Arc<dyn Source>> {
        Some(Arc::new(WrittenView(self.written.clone())))
    }

    fn file_id(&self) -> Option<(u64, u64)> {
        let metadata = self.file.metadata().ok()?;
        Some((metadata.dev(), metadata.ino()))
    }

    fn publish(&mut self) -> io::Result<()> {
        self.flush_tail()
    }
}

/// Reads the written bytes, from the file or from the buffer.
#[derive(Debug)]
struct WrittenView(Arc<Written>);

impl Source for WrittenView {
    fn size_bytes(&self) -> io::Result<u64> {
        let tail = self.0.tail.lock();
        Ok(tail.offset + tail.bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let Written {
            reader,
            name,
            start,
            tail,
        } = &*self.0;
        let (in_file, in_tail) = {
            let tail = tail.lock();
            let before_tail = tail.offset.saturating_sub(offset);
            let in_file = buffer
                .len()
                .min(before_tail.try_into().unwrap_or(usize::MAX));
            let (_, rest) = buffer.split_at_mut(in_file);
            let offset_in_tail = offset.saturating_sub(tail.offset);
            let piece = slice_at(&tail.bytes, offset_in_tail, rest.len());
            rest[..piece.len()].copy_from_slice(piece);
            (in_file, piece.len())
        };
        let part = &mut buffer[..in_file];
        let read = reading(Device::Disk, || {
            read_full(start + offset, part, |at_offset, part| {
                reader.read_at(part, at_offset)
            })
        });
        let read = read.map_err(at("read back", name))?;
        // Another process may have shortened the file.
        Ok(if read == in_file { in_file + in_tail } else { read })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Read;

    use super::*;
    use crate::property::{WriteStep, sink_holds_what_was_written, source_equals};

    fn steps() -> Vec<WriteStep> {
        let bytes: Vec<u8> = (0..400_u32).map(|at| ((at * 37) >> 2) as u8).collect();
        WriteStep::decode(&bytes)
    }

    /// Writes the steps to a file that holds `before`, opened with `options`. Returns the content
    /// of the file, and what was written.
    fn written(before: &[u8], options: &OpenOptions, offset: u64) -> (Vec<u8>, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        std::fs::write(&path, before).unwrap();
        let mut file = options.open(&path).unwrap();
        file.seek(io::SeekFrom::Start(offset)).unwrap();
        let mut sink = descriptor_output(file.try_clone().unwrap(), "standard output");
        let view = sink.read_back().expect("a regular file");
        let model = sink_holds_what_was_written(sink.as_mut(), &steps()).unwrap();
        sink.publish().unwrap();
        source_equals(&*view, &model, 0).unwrap();
        drop(sink);
        // Later writes by another process follow.
        file.write_all(b"later").unwrap();
        (std::fs::read(&path).unwrap(), model)
    }

    #[test]
    fn a_redirected_file_is_written_from_the_offset_and_read_back() {
        let mut options = OpenOptions::new();
        for is_read in [false, true] {
            options.write(true).read(is_read);
            let (file, model) = written(b"12345", &options, 3);
            assert_eq!(file, [b"123", &model[..], b"later"].concat());
        }
    }

    #[test]
    fn a_file_that_is_appended_to_keeps_what_it_has() {
        let (file, model) = written(b"12345", OpenOptions::new().append(true), 0);
        assert_eq!(file, [b"12345", &model[..], b"later"].concat());
    }

    #[test]
    fn a_shortened_file_is_read_as_far_as_it_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let file = File::create(&path).unwrap();
        let mut sink = descriptor_output(file.try_clone().unwrap(), "out");
        sink.write_all(&[7; 3 * BUFFER_BYTES + 5]).unwrap();
        file.set_len(10).unwrap();
        let view = sink.read_back().expect("a regular file");
        let mut buffer = vec![0; 3 * BUFFER_BYTES + 5];
        assert_eq!(view.read_at(4, &mut buffer).unwrap(), 6);
    }

    #[test]
    fn a_pipe_is_a_stream() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut sink = descriptor_output(File::from(std::os::fd::OwnedFd::from(writer)), "pipe");
        assert!(sink.read_back().is_none());
        sink.write_all(b"through").unwrap();
        sink.publish().unwrap();
        drop(sink);
        let mut got = Vec::new();
        reader.read_to_end(&mut got).unwrap();
        assert_eq!(got, b"through");
    }
}
