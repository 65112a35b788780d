//! A pipe, socket or terminal as a stream that lets other jobs run while it is silent.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;

use refrain_pool::suspend_until_readable;

use crate::blocking::Blocking;

/// Reads a file from its present offset. In a job of [`Lane::Input`](refrain_pool::Lane::Input),
/// other jobs run while a pipe, a socket or a terminal is silent ([`suspend_until_readable`]).
/// Elsewhere it is read like any file.
#[derive(Debug)]
pub struct DescriptorReader {
    file: Blocking<File>,
    may_wait: bool,
}

impl DescriptorReader {
    /// Reads `file`.
    ///
    /// # Errors
    /// If the system does not tell the type of the file.
    pub fn new(file: File) -> io::Result<DescriptorReader> {
        let kind = file.metadata()?.file_type();
        Ok(DescriptorReader {
            file: Blocking(file),
            may_wait: kind.is_fifo() || kind.is_socket() || kind.is_char_device(),
        })
    }
}

impl Read for DescriptorReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.may_wait {
            // If this did not wait, the read does.
            suspend_until_readable(&self.file.0);
        }
        self.file.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;

    use refrain_pool::{Lane, crew};

    use super::*;

    #[test]
    fn a_silent_pipe_lets_others_read() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"skipped").unwrap();
        let silent = File::from(OwnedFd::from(reader));
        let read_all = |file: File| {
            let mut text = String::new();
            let read = DescriptorReader::new(file)?.read_to_string(&mut text);
            read.map(|_| text)
        };
        crew(1, |crew| {
            crew.submit(Lane::Input, move || read_all(silent));
            crew.submit(Lane::Input, move || read_all(file));
            assert_eq!(crew.next().unwrap().unwrap().unwrap(), "");
            writer.write_all(b"at last").unwrap();
            drop(writer);
            assert_eq!(crew.next().unwrap().unwrap().unwrap(), "at last");
        });
    }
}
