//! Sinks that cannot be read back: streams, and a sink that only counts.

use std::io::{self, Write};
use std::path::PathBuf;

use refrain_pool::trace::{Device, writing};

use crate::failure::at;
use crate::sink::Sink;
use crate::transfer::{in_zero_pieces, write_full};

/// Small writes are buffered up to this many bytes: the usual capacity of a pipe on Linux.
const BUFFER_BYTES: usize = 64 << 10;

/// A sink over any writer: standard output, a pipe, a socket, a device.
///
/// Zeros are written as zeros. Small writes are buffered until [`Sink::publish`] at the latest.
/// Dropping an unpublished sink discards the buffer; written bytes cannot be taken back.
#[derive(Debug)]
pub struct StreamSink<W: Write + Send> {
    writer: W,
    name: PathBuf,
    buffer: Vec<u8>,
}

impl<W: Write + Send> StreamSink<W> {
    /// A sink over `writer`, which errors name `name`.
    pub fn new(writer: W, name: impl Into<PathBuf>) -> Self {
        StreamSink {
            writer,
            name: name.into(),
            buffer: Vec::new(),
        }
    }

    fn write_out(&mut self, bytes: &[u8]) -> io::Result<()> {
        let writer = &mut self.writer;
        let written = writing(Device::Stream, bytes.len(), || {
            write_full(bytes, |left| writer.write(left))
        });
        written.map_err(at("write", &self.name))
    }

    fn flush_buffer(&mut self) -> io::Result<()> {
        // Emptied even after an error: the number of written bytes is unknown then, and a retry
        // could repeat bytes.
        let buffer = std::mem::take(&mut self.buffer);
        self.write_out(&buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write + Send> Sink for StreamSink<W> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush_buffer()?;
        }
        if bytes.len() >= BUFFER_BYTES {
            return self.write_out(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        in_zero_pieces(length_bytes, |piece| self.write_all(piece))
    }

    fn publish(&mut self) -> io::Result<()> {
        self.flush_buffer()?;
        self.writer.flush().map_err(at("flush", &self.name))
    }
}

/// Discards all bytes and counts them.
#[derive(Debug, Default, Clone)]
pub struct NullSink {
    length_bytes: u64,
}

impl NullSink {
    /// A sink with a count of zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of bytes written.
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }
}

impl Sink for NullSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_zeros(bytes.len() as u64)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        let total = self.length_bytes.checked_add(length_bytes);
        self.length_bytes = total.ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(())
    }

    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts at most 1000 bytes at a time, is often interrupted, and counts its calls.
    #[derive(Default)]
    struct SlowWriter {
        taken: Vec<u8>,
        calls: u32,
    }

    impl Write for SlowWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            if self.calls.is_multiple_of(2) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let count = bytes.len().min(1000);
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn all_bytes_arrive_in_order() {
        let mut writer = SlowWriter::default();
        let mut expected = Vec::new();
        let mut sink = StreamSink::new(&mut writer, "writer");
        for (index, length) in [40, 0, 100_000, 1, 65_536, 65_535, 3]
            .into_iter()
            .enumerate()
        {
            let piece = vec![index as u8 + 1; length];
            sink.write_all(&piece).unwrap();
            expected.extend(piece);
            sink.write_zeros(length as u64).unwrap();
            expected.resize(expected.len() + length, 0);
        }
        assert!(sink.read_back().is_none());
        sink.publish().unwrap();
        assert_eq!(writer.taken, expected);
    }

    #[test]
    fn small_writes_are_buffered() {
        let mut writer = SlowWriter::default();
        let mut sink = StreamSink::new(&mut writer, "writer");
        for _ in 0..20 {
            sink.write_all(&[1; 40]).unwrap();
        }
        sink.publish().unwrap();
        assert_eq!((writer.taken.len(), writer.calls), (800, 1));
    }

    #[test]
    fn errors_carry_name_and_kind() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut sink = StreamSink::new(Closed, "standard output");
        sink.write_all(b"buffered, so no error yet").unwrap();
        let error = sink.publish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        assert!(
            error.to_string().contains("write standard output"),
            "{error}"
        );
    }

    #[test]
    fn the_null_sink_counts() {
        let mut sink = NullSink::new();
        sink.write_all(b"12345").unwrap();
        sink.write_zeros(1 << 40).unwrap();
        assert_eq!(sink.length_bytes(), (1 << 40) + 5);
        assert!(sink.write_zeros(u64::MAX).is_err());
    }
}
