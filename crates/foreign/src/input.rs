//! The compressed file as a window that moves forward and knows its offset.

use std::io::{self, Read};

use crate::error::{Error, Result};

/// How many bytes are requested from the reader at once.
const READ_BYTES: usize = 256 << 10;

/// A reader with a buffer of bytes that were read but not consumed.
pub(crate) struct Input {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    has_ended: bool,
}

impl Input {
    pub(crate) fn new(reader: Box<dyn Read + Send>) -> Input {
        Input {
            reader,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            has_ended: false,
        }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub(crate) fn window(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    pub(crate) fn fill(&mut self) -> io::Result<&[u8]> {
        self.show(1)
    }

    /// The window, extended to at least `count` bytes unless the file ends before.
    pub(crate) fn show(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.end - self.start < count && !self.has_ended {
            self.read_more(count)?;
        }
        Ok(self.window())
    }

    fn read_more(&mut self, count: usize) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let wanted = count.max(READ_BYTES).max(self.end + 1);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let free = self.buffer.get_mut(self.end..).unwrap_or_default();
        match self.reader.read(free) {
            Ok(read) => {
                self.end += read;
                self.has_ended = read == 0;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// Skips `count` bytes, possibly more than the window has.
    ///
    /// # Errors
    /// `Truncated` if the file ends before.
    pub(crate) fn skip(&mut self, mut count: u64, what: &'static str) -> Result<()> {
        while count > 0 {
            let visible = self.fill()?.len();
            if visible == 0 {
                return Err(self.truncated(what));
            }
            let passed = visible.min(usize::try_from(count).unwrap_or(usize::MAX));
            self.consume(passed);
            count -= passed as u64;
        }
        Ok(())
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// `Truncated` if the file ends before.
    pub(crate) fn take<const COUNT: usize>(&mut self, what: &'static str) -> Result<[u8; COUNT]> {
        let Some(bytes) = self.show(COUNT)?.first_chunk::<COUNT>().copied() else {
            return Err(self.truncated(what));
        };
        self.consume(COUNT);
        Ok(bytes)
    }

    /// Fills `target` with the next bytes.
    ///
    /// # Errors
    /// `Truncated` if the file ends before.
    pub(crate) fn take_into(&mut self, target: &mut [u8], what: &'static str) -> Result<()> {
        let mut done = 0;
        while let Some(rest) = target.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let window = self.fill()?;
            let count = window.len().min(rest.len());
            if count == 0 {
                return Err(self.truncated(what));
            }
            if let (Some(to), Some(from)) = (rest.get_mut(..count), window.get(..count)) {
                to.copy_from_slice(from);
            }
            self.consume(count);
            done += count;
        }
        Ok(())
    }

    /// The error for a file that ends too early. Consumes the window: the file ends after it.
    pub(crate) fn truncated(&mut self, what: &'static str) -> Error {
        Error::Truncated {
            offset: self.offset + (self.end - self.start) as u64,
            what,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_moves_and_counts() {
        let mut input = Input::new(Box::new(&b"0123456789"[..]));
        assert_eq!(input.show(3).unwrap().get(..3), Some(&b"012"[..]));
        input.consume(3);
        assert_eq!(input.take::<2>("x").unwrap(), *b"34");
        input.skip(2, "x").unwrap();
        assert_eq!(input.offset(), 7);
        let mut rest = [0; 4];
        let error = input.take_into(&mut rest, "a header").unwrap_err();
        assert_eq!(error.to_string(), "the file ends inside a header");
        assert_eq!(error.offset(), Some(10));
    }
}
