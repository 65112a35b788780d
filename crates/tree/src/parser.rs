//! A push parser for tar streams: pieces of any length in, entries and their data out.
//!
//! ```text
//!            ┌──────────── padding ◄──────────┐
//!            ▼                                │
//!   ──► header ── a file with data ──► data ──┤
//!        │  ▲ │                               │
//!        │  │ └── 'x' 'L' 'K' 'g' ─► extension┘
//!        │  └── no data
//!        └── zero record ──► end (the rest is ignored)
//! ```

use crate::entry::EntryKind;
use crate::header::{HeaderError, Overrides, PlainHeader, RECORD_BYTES, TarHeader, padding_bytes};

/// Bytes of pax records or a long name; Linux paths end at 4096, so this is generous.
const EXTENSION_BYTES_MAX: u64 = 1 << 20;

/// A record of zeros.
static ZERO_RECORD: [u8; RECORD_BYTES] = [0; RECORD_BYTES];

/// What takes the entries of a stream.
pub trait TarHandler {
    /// Why a visitor refuses.
    type Error: From<TarError>;
    /// An entry begins.
    fn entry(&mut self, header: TarHeader) -> Result<(), Self::Error>;
    /// Data of the current entry, in order.
    fn data(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
    /// The current entry goes on with this many zero bytes.
    fn zeros(&mut self, length_bytes: u64) -> Result<(), Self::Error>;
    /// The current entry is complete.
    fn entry_end(&mut self) -> Result<(), Self::Error>;
}

/// What is wrong with a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TarError {
    /// A header is malformed.
    Header {
        /// Where it begins in the stream.
        offset: u64,
        /// What is wrong.
        cause: HeaderError,
    },
    /// Pax records or a long name are longer than anybody's.
    ExtensionTooLong {
        /// Where the header begins in the stream.
        offset: u64,
        /// The length it states.
        length_bytes: u64,
    },
    /// The stream ends inside an entry, or without its end mark.
    EndsEarly {
        /// Length of the stream.
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
                write!(f, "the tar stream ends early, at {offset}")
            }
        }
    }
}

impl std::error::Error for TarError {}

/// Where in the stream the parser is.
#[derive(Debug)]
enum State {
    /// Collecting a header record.
    Header,
    /// Collecting what an extension header carries.
    Extension {
        flag: u8,
        remaining: u64,
        padding: u64,
    },
    /// Passing on the data of a file.
    Data { remaining: u64, padding: u64 },
    /// Skipping zeros up to the next record.
    Padding { remaining: u64 },
    /// After the end mark.
    End,
}

/// The parser.
#[derive(Debug)]
pub struct TarParser {
    state: State,
    /// The header or extension that is being collected.
    collected: Vec<u8>,
    overrides: Overrides,
    offset: u64,
}

/// A piece of the stream: bytes, or zeros that nobody wrote down.
#[derive(Debug, Clone, Copy)]
enum Piece<'a> {
    Bytes(&'a [u8]),
    Zeros(u64),
}

impl<'a> Piece<'a> {
    fn length_bytes(self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::Zeros(length_bytes) => length_bytes,
        }
    }

    /// The first `at` bytes, which must exist, and the rest.
    fn split(self, at: u64) -> (Piece<'a>, Piece<'a>) {
        match self {
            Piece::Bytes(bytes) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                let (head, tail) = bytes.split_at(at);
                (Piece::Bytes(head), Piece::Bytes(tail))
            }
            Piece::Zeros(length) => (Piece::Zeros(at), Piece::Zeros(length.saturating_sub(at))),
        }
    }

    /// Appends to `collected`; callers bound the length by a record or an extension.
    fn append_to(self, collected: &mut Vec<u8>) {
        match self {
            Piece::Bytes(bytes) => collected.extend_from_slice(bytes),
            Piece::Zeros(length) => {
                let length = usize::try_from(length).unwrap_or(0);
                collected.resize(collected.len().saturating_add(length), 0);
            }
        }
    }
}

impl Default for TarParser {
    fn default() -> Self {
        TarParser {
            state: State::Header,
            collected: Vec::with_capacity(RECORD_BYTES),
            overrides: Overrides::default(),
            offset: 0,
        }
    }
}

impl TarParser {
    /// Takes the next bytes of the stream.
    pub fn push<V: TarHandler>(&mut self, bytes: &[u8], visitor: &mut V) -> Result<(), V::Error> {
        self.push_piece(Piece::Bytes(bytes), visitor)
    }

    /// Takes the next `length_bytes` bytes of the stream, all zero, in constant time for data.
    pub fn push_zeros<V: TarHandler>(
        &mut self,
        length_bytes: u64,
        visitor: &mut V,
    ) -> Result<(), V::Error> {
        self.push_piece(Piece::Zeros(length_bytes), visitor)
    }

    /// The stream ends here; was it whole?
    pub fn finish(&self) -> Result<(), TarError> {
        match self.state {
            State::End => Ok(()),
            _ => Err(TarError::EndsEarly {
                offset: self.offset,
            }),
        }
    }

    fn push_piece<V: TarHandler>(&mut self, piece: Piece, visitor: &mut V) -> Result<(), V::Error> {
        let mut rest = piece;
        while rest.length_bytes() > 0 {
            let wanted = self.wanted_bytes().min(rest.length_bytes());
            let (head, tail) = rest.split(wanted);
            self.offset = self.offset.saturating_add(wanted);
            self.step(head, visitor)?;
            rest = tail;
        }
        Ok(())
    }

    /// How many bytes the present state can take; never zero.
    fn wanted_bytes(&self) -> u64 {
        match self.state {
            State::Header => (RECORD_BYTES - self.collected.len()) as u64,
            State::Extension { remaining, .. } => remaining,
            State::Data { remaining, .. } => remaining,
            State::Padding { remaining } => remaining,
            State::End => u64::MAX,
        }
    }

    /// Takes a piece that is not longer than wanted.
    fn step<V: TarHandler>(&mut self, piece: Piece, visitor: &mut V) -> Result<(), V::Error> {
        let taken = piece.length_bytes();
        match &mut self.state {
            State::Header => {
                piece.append_to(&mut self.collected);
                if self.collected.len() == RECORD_BYTES {
                    self.header_complete(visitor)?;
                }
            }
            State::Extension {
                remaining,
                flag,
                padding,
            } => {
                piece.append_to(&mut self.collected);
                *remaining -= taken;
                if *remaining == 0 {
                    let (flag, padding) = (*flag, *padding);
                    self.extension_complete(flag)?;
                    self.state = after_data(padding);
                }
            }
            State::Data { remaining, padding } => {
                *remaining -= taken;
                let (is_complete, padding) = (*remaining == 0, *padding);
                match piece {
                    Piece::Bytes(bytes) => visitor.data(bytes)?,
                    Piece::Zeros(length_bytes) => visitor.zeros(length_bytes)?,
                }
                if is_complete {
                    visitor.entry_end()?;
                    self.state = after_data(padding);
                }
            }
            State::Padding { remaining } => {
                *remaining -= taken;
                if *remaining == 0 {
                    self.state = State::Header;
                }
            }
            State::End => {}
        }
        Ok(())
    }

    fn header_complete<V: TarHandler>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        let offset = self.offset.saturating_sub(RECORD_BYTES as u64);
        let record: [u8; RECORD_BYTES] = *self.collected.first_chunk().unwrap_or(&ZERO_RECORD);
        self.collected.clear();
        if record == ZERO_RECORD {
            self.state = State::End;
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
                self.entry_begins(header, visitor)?;
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
            self.state = State::Extension {
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
            // 'g': defaults for all entries; writers put comments there.
            _ => {}
        }
        Ok(())
    }

    fn entry_begins<V: TarHandler>(
        &mut self,
        header: TarHeader,
        visitor: &mut V,
    ) -> Result<(), V::Error> {
        let size_bytes = header.size_bytes;
        let has_data = header.kind == EntryKind::File && size_bytes > 0;
        visitor.entry(header)?;
        match has_data {
            true => {
                let padding = padding_bytes(size_bytes);
                self.state = State::Data {
                    remaining: size_bytes,
                    padding,
                };
            }
            false => visitor.entry_end()?,
        }
        Ok(())
    }
}

fn after_data(padding: u64) -> State {
    match padding {
        0 => State::Header,
        remaining => State::Padding { remaining },
    }
}
