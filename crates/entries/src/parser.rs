//! A push parser for tar streams. The caller pushes bytes in pieces of any length; the parser calls
//! a handler for each entry and its data.
//!
//! ```text
//!            ┌──────────── padding ◄──────────┐
//!            ▼                                │
//!   ──► header ── a file with data ──► data ──┤
//!        │  ▲ │                               │
//!        │  │ └── 'x' 'L' 'K' 'g' ─► extension┘
//!        │  └── no data
//!        └── record of zeros ──► end (the rest is ignored)
//! ```

use crate::entry::EntryKind;
use crate::header::{HeaderError, Overrides, PlainHeader, TarHeader};
use crate::tar::record::{RECORD_BYTES, padding_bytes};

/// The limit for pax records and long names, in bytes. Paths of Linux have at most 4096.
const EXTENSION_BYTES_MAX: u64 = 1 << 20;

/// A record of zeros.
static ZERO_RECORD: [u8; RECORD_BYTES] = [0; RECORD_BYTES];

/// Receives the entries of a stream.
pub trait TarHandler {
    /// The error of the handler, which ends the parsing.
    type Error: From<TarError>;
    /// Begins an entry.
    fn entry(&mut self, header: TarHeader) -> Result<(), Self::Error>;
    /// Receives data of the current entry, in order.
    fn data(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
    /// Receives the next data of the current entry as a number of zero bytes.
    fn zeros(&mut self, length_bytes: u64) -> Result<(), Self::Error>;
    /// Completes the current entry.
    fn entry_end(&mut self) -> Result<(), Self::Error>;
}

/// The reason why a stream is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TarError {
    /// A header is malformed.
    Header {
        /// The offset of the header in the stream.
        offset: u64,
        /// The reason.
        cause: HeaderError,
    },
    /// Pax records or a long name exceed the limit of 1 MiB.
    ExtensionTooLong {
        /// The offset of the header in the stream.
        offset: u64,
        /// The length in the header.
        length_bytes: u64,
    },
    /// The stream ends inside an entry, or without its end mark.
    EndsEarly {
        /// The length of the stream.
        offset: u64,
    },
}

impl std::fmt::Display for TarError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TarError::Header { offset, cause } => write!(f, "at tar offset {offset}: {cause}"),
            TarError::ExtensionTooLong {
                offset,
                length_bytes,
            } => write!(
                f,
                "at tar offset {offset}: extended header of {length_bytes} bytes, \
                 limit {EXTENSION_BYTES_MAX}"
            ),
            TarError::EndsEarly { offset } => {
                write!(f, "the tar stream is truncated at offset {offset}")
            }
        }
    }
}

impl std::error::Error for TarError {}

impl From<TarError> for std::io::Error {
    fn from(error: TarError) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::InvalidData, error)
    }
}

/// The part of the stream that the next bytes belong to.
#[derive(Debug)]
enum ParserState {
    /// A header record, which is being collected.
    Header,
    /// The data of an extension header, which is being collected.
    Extension {
        flag: u8,
        remaining: u64,
        padding: u64,
    },
    /// The data of a file, which is passed to the handler.
    Data { remaining: u64, padding: u64 },
    /// Zeros up to the next record, which are skipped.
    Padding { remaining: u64 },
    /// Anything after the end mark, which is ignored.
    End,
}

/// A push parser of tar streams.
#[derive(Debug)]
pub struct TarParser {
    state: ParserState,
    /// The part of the header or extension that has arrived.
    collected: Vec<u8>,
    overrides: Overrides,
    offset: u64,
    /// The bytes after the end mark, up to the last one that is not zero.
    ignored_bytes: u64,
    /// Where the end mark ends.
    end: u64,
}

/// The next part of the stream: bytes, or a number of zero bytes.
#[derive(Debug, Clone, Copy)]
enum TarInput<'a> {
    Bytes(&'a [u8]),
    Zeros(u64),
}

impl<'a> TarInput<'a> {
    fn length_bytes(self) -> u64 {
        match self {
            TarInput::Bytes(bytes) => bytes.len() as u64,
            TarInput::Zeros(length_bytes) => length_bytes,
        }
    }

    /// Splits at `at`, which is at most the length.
    fn split(self, at: u64) -> (TarInput<'a>, TarInput<'a>) {
        match self {
            TarInput::Bytes(bytes) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                let (head, tail) = bytes.split_at(at);
                (TarInput::Bytes(head), TarInput::Bytes(tail))
            }
            TarInput::Zeros(length) => (
                TarInput::Zeros(at),
                TarInput::Zeros(length.saturating_sub(at)),
            ),
        }
    }

    /// Appends to `collected`. The caller limits the length to that of a record or extension.
    fn append_to(self, collected: &mut Vec<u8>) {
        match self {
            TarInput::Bytes(bytes) => collected.extend_from_slice(bytes),
            TarInput::Zeros(length) => {
                let length = usize::try_from(length).unwrap_or(0);
                collected.resize(collected.len().saturating_add(length), 0);
            }
        }
    }
}

impl Default for TarParser {
    fn default() -> Self {
        TarParser {
            state: ParserState::Header,
            collected: Vec::with_capacity(RECORD_BYTES),
            overrides: Overrides::default(),
            offset: 0,
            ignored_bytes: 0,
            end: 0,
        }
    }
}

impl TarParser {
    /// Parses the next bytes of the stream.
    pub fn push<V: TarHandler>(&mut self, bytes: &[u8], handler: &mut V) -> Result<(), V::Error> {
        self.push_input(TarInput::Bytes(bytes), handler)
    }

    /// Parses the next `length_bytes` bytes of the stream, all zero. Takes constant time for data.
    pub fn push_zeros<V: TarHandler>(
        &mut self,
        length_bytes: u64,
        handler: &mut V,
    ) -> Result<(), V::Error> {
        self.push_input(TarInput::Zeros(length_bytes), handler)
    }

    /// Ends the stream.
    ///
    /// # Errors
    ///
    /// [`TarError::EndsEarly`] if the end mark has not been parsed.
    pub fn finish(&self) -> Result<(), TarError> {
        match self.state {
            ParserState::End => Ok(()),
            _ => Err(TarError::EndsEarly {
                offset: self.offset,
            }),
        }
    }

    /// The bytes that follow the end mark and were ignored; 0 if they are zeros.
    pub fn ignored_bytes(&self) -> u64 {
        self.ignored_bytes
    }

    fn push_input<V: TarHandler>(
        &mut self,
        input: TarInput,
        handler: &mut V,
    ) -> Result<(), V::Error> {
        let mut rest = input;
        while rest.length_bytes() > 0 {
            let length_bytes = self.accepted_bytes().min(rest.length_bytes());
            let (head, tail) = rest.split(length_bytes);
            self.offset = self.offset.saturating_add(length_bytes);
            self.step(head, handler)?;
            rest = tail;
        }
        Ok(())
    }

    /// The number of bytes that the present state accepts; never zero.
    fn accepted_bytes(&self) -> u64 {
        match self.state {
            ParserState::Header => (RECORD_BYTES - self.collected.len()) as u64,
            ParserState::Extension { remaining, .. } => remaining,
            ParserState::Data { remaining, .. } => remaining,
            ParserState::Padding { remaining } => remaining,
            ParserState::End => u64::MAX,
        }
    }

    /// Parses input that is at most `accepted_bytes` long.
    fn step<V: TarHandler>(&mut self, input: TarInput, handler: &mut V) -> Result<(), V::Error> {
        let taken = input.length_bytes();
        match &mut self.state {
            ParserState::Header => {
                input.append_to(&mut self.collected);
                if self.collected.len() == RECORD_BYTES {
                    self.header_complete(handler)?;
                }
            }
            ParserState::Extension {
                remaining,
                flag,
                padding,
            } => {
                input.append_to(&mut self.collected);
                *remaining -= taken;
                if *remaining == 0 {
                    let (flag, padding) = (*flag, *padding);
                    self.extension_complete(flag)?;
                    self.state = after_data(padding);
                }
            }
            ParserState::Data { remaining, padding } => {
                *remaining -= taken;
                let (is_complete, padding) = (*remaining == 0, *padding);
                match input {
                    TarInput::Bytes(bytes) => handler.data(bytes)?,
                    TarInput::Zeros(length_bytes) => handler.zeros(length_bytes)?,
                }
                if is_complete {
                    handler.entry_end()?;
                    self.state = after_data(padding);
                }
            }
            ParserState::Padding { remaining } => {
                *remaining -= taken;
                if *remaining == 0 {
                    self.state = ParserState::Header;
                }
            }
            ParserState::End => {
                if let TarInput::Bytes(bytes) = input
                    && bytes.iter().any(|byte| *byte != 0)
                {
                    self.ignored_bytes = self.offset - self.end;
                }
            }
        }
        Ok(())
    }

    fn header_complete<V: TarHandler>(&mut self, handler: &mut V) -> Result<(), V::Error> {
        let offset = self.offset.saturating_sub(RECORD_BYTES as u64);
        let record: [u8; RECORD_BYTES] = *self.collected.first_chunk().unwrap_or(&ZERO_RECORD);
        self.collected.clear();
        if record == ZERO_RECORD {
            self.state = ParserState::End;
            self.end = self.offset;
            return Ok(());
        }
        let at = |cause| TarError::Header { offset, cause };
        let plain = PlainHeader::checked(&record).map_err(at)?;
        match plain.flag() {
            flag @ (b'x' | b'g' | b'L' | b'K') => {
                let size_bytes = plain.size_bytes().map_err(at)?;
                self.extension_begins(flag, size_bytes, offset)?;
            }
            _ => {
                let header = plain
                    .resolve(std::mem::take(&mut self.overrides))
                    .map_err(at)?;
                self.entry_begins(header, handler)?;
            }
        }
        Ok(())
    }

    fn extension_begins(&mut self, flag: u8, size_bytes: u64, offset: u64) -> Result<(), TarError> {
        if size_bytes > EXTENSION_BYTES_MAX {
            return Err(TarError::ExtensionTooLong {
                offset,
                length_bytes: size_bytes,
            });
        }
        if size_bytes > 0 {
            let padding = padding_bytes(size_bytes);
            self.state = ParserState::Extension {
                flag,
                remaining: size_bytes,
                padding,
            };
        }
        Ok(())
    }

    fn extension_complete(&mut self, flag: u8) -> Result<(), TarError> {
        let data = std::mem::take(&mut self.collected);
        match flag {
            b'L' => self.overrides.set_long_path(&data),
            b'K' => self.overrides.set_long_link(&data),
            b'x' => self
                .overrides
                .set_pax(&data)
                .map_err(|cause| TarError::Header {
                    offset: self.offset.saturating_sub(data.len() as u64),
                    cause,
                })?,
            // 'g' sets defaults for all entries; in practice it holds comments.
            _ => {}
        }
        Ok(())
    }

    fn entry_begins<V: TarHandler>(
        &mut self,
        header: TarHeader,
        handler: &mut V,
    ) -> Result<(), V::Error> {
        let size_bytes = header.size_bytes;
        let has_data = header.kind == EntryKind::File && size_bytes > 0;
        handler.entry(header)?;
        if has_data {
            let padding = padding_bytes(size_bytes);
            self.state = ParserState::Data {
                remaining: size_bytes,
                padding,
            };
        } else {
            handler.entry_end()?
        }
        Ok(())
    }
}

fn after_data(padding: u64) -> ParserState {
    match padding {
        0 => ParserState::Header,
        remaining => ParserState::Padding { remaining },
    }
}
