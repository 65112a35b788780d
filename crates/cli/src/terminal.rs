//! Restricts what is written to a terminal.

use std::io::{self, IsTerminal};

use refrain::storage::Sink;

use crate::failure::{BinaryContent, Failure, Result};

/// Refuses to write binary data to a terminal unless `force` is set.
pub fn check_stdout(force: bool) -> Result<()> {
    if io::stdout().is_terminal() && !force {
        Err(Failure::usage(
            "standard output",
            "is a terminal and the output is binary: redirect it, or use -o FILE or --force",
        ))
    } else {
        Ok(())
    }
}

/// Passes text to a terminal. Refuses anything else: a terminal takes control characters as
/// commands.
pub struct TextSink {
    terminal: Box<dyn Sink>,
    /// The beginning of a character whose other bytes come with the next write.
    begun: Vec<u8>,
    written_bytes: u64,
}

impl TextSink {
    /// A sink that refuses anything but text.
    pub fn new(terminal: Box<dyn Sink>) -> TextSink {
        TextSink {
            terminal,
            begun: Vec::new(),
            written_bytes: 0,
        }
    }

    fn refuse<T>(&self) -> io::Result<T> {
        let written_bytes = self.written_bytes;
        let cause = BinaryContent { written_bytes };
        Err(io::Error::new(io::ErrorKind::InvalidInput, cause))
    }
}

impl Sink for TextSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let length = match std::str::from_utf8(&all) {
            Ok(_) => all.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return self.refuse(),
        };
        self.begun = all.split_off(length);
        let text = String::from_utf8(all);
        let text = text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if text
            .chars()
            .any(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r' | '\u{c}'))
        {
            return self.refuse();
        }
        self.written_bytes += text.len() as u64;
        self.terminal.write_all(text.as_bytes())
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        match length_bytes {
            0 => Ok(()),
            _ => self.refuse(),
        }
    }

    fn publish(&mut self) -> io::Result<()> {
        if self.begun.is_empty() { self.terminal.publish() } else { self.refuse() }
    }
}

#[cfg(test)]
mod tests {
    use refrain::storage::MemorySink;

    use super::*;

    fn written(pieces: &[&[u8]]) -> bool {
        let mut sink = TextSink::new(Box::new(MemorySink::default()));
        let is_text = pieces.iter().all(|piece| sink.write_all(piece).is_ok());
        is_text && sink.publish().is_ok()
    }

    #[test]
    fn text_is_what_a_terminal_shows_and_nothing_that_it_obeys() {
        for text in [
            &[&b""[..]][..],
            &[b"a line\r\n\ttext\x0c"],
            &["Gr\u{fc}\u{df}e, \u{4e16}".as_bytes()],
            // A character in two pieces.
            &[b"gr\xc3", b"\xbcn"],
        ] {
            assert!(written(text), "{text:?}");
        }
        for binary in [
            &[&b"\0"[..]][..],
            &[b"text", b"and \x1b[2J"],
            &[b"latin-1: gr\xfcn"],
            &["C1: \u{9b}".as_bytes()],
            &[b"\x7f"],
            &[b"cut off: \xc3"],
            &[b"gr\xc3", b"n"],
        ] {
            assert!(!written(binary), "{binary:?}");
        }
        let mut sink = TextSink::new(Box::new(MemorySink::default()));
        assert!(
            sink.write_zeros(1)
                .is_err_and(|error| BinaryContent::is_cause(&error))
        );
    }
}
