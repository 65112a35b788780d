//! A block device that is written directly, and read back at the end.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::at;
use crate::read_back::{ReadBack, read_back};
use crate::sink::Sink;
use crate::stream::StreamSink;
use crate::transfer::in_zero_pieces;
use crate::written_digests::StreamDigests;

/// Publishing syncs the device and compares it with what was written.
#[derive(Debug)]
pub(crate) struct CheckedDevice {
    stream: StreamSink<File>,
    file: File,
    path: PathBuf,
    digests: StreamDigests,
    read_back: Option<ReadBack>,
}

impl CheckedDevice {
    /// `file` must be open for reading and writing.
    pub(crate) fn new(file: File, path: &Path) -> io::Result<CheckedDevice> {
        let written = file.try_clone().map_err(at("open", path))?;
        Ok(CheckedDevice {
            stream: StreamSink::new(written, path),
            file,
            path: path.to_owned(),
            digests: StreamDigests::default(),
            read_back: None,
        })
    }
}

impl Sink for CheckedDevice {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digests.write(bytes);
        self.stream.write_all(bytes)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        in_zero_pieces(length_bytes, |piece| self.write_all(piece))
    }

    fn read_back_result(&self) -> Option<ReadBack> {
        self.read_back
    }

    fn publish(&mut self) -> io::Result<()> {
        self.stream.publish()?;
        self.file.sync_all().map_err(at("sync", &self.path))?;
        let length_bytes = self.digests.length_bytes();
        let digests = self.digests.finish();
        self.read_back = Some(read_back(&self.file, &self.path, length_bytes, &digests)?);
        Ok(())
    }
}
