//! xz: concatenated streams, with zero padding between and after them. liblzma's threads decode the
//! blocks of a stream that has several and states their sizes.

use liblzma::stream::{Action, Error as LzmaError, MtStreamBuilder, Status, Stream};

use crate::decoder::{Decoder, Resources};
use crate::error::{Error, Result};
use crate::input::Input;

const MAGIC: &[u8; 6] = b"\xfd7zXZ\0";
pub(crate) const HEADER_BYTES: usize = 12;
/// The longest call of the library in milliseconds: a signal should be noticed soon.
const CALL_MILLISECONDS: u32 = 200;

pub(crate) struct XzDecoder {
    input: Input,
    resources: Resources,
    stream: Option<Stream>,
    streams: u64,
}

impl XzDecoder {
    pub(crate) fn new(input: Input, resources: Resources) -> XzDecoder {
        XzDecoder {
            input,
            resources,
            stream: None,
            streams: 0,
        }
    }

    fn begin(&mut self) -> Result<Option<Stream>> {
        if self.streams > 0 {
            self.pass_padding()?;
        }
        let offset = self.input.offset();
        let header = self.input.show(HEADER_BYTES)?;
        if header.is_empty() && self.streams > 0 {
            return Ok(None);
        }
        if !header.starts_with(MAGIC.get(..header.len().min(6)).unwrap_or_default()) {
            let what = match self.streams {
                0 => "this is not an xz file",
                _ => "the data after the xz stream is not an xz stream",
            };
            return Err(Error::damaged(offset, what));
        }
        let Some(header) = header.first_chunk::<HEADER_BYTES>() else {
            return Err(self.input.truncated("the header of an xz stream"));
        };
        check_supported(header, offset)?;
        self.streams += 1;
        let memory_bytes = self.resources.memory_bytes;
        let stream = match self.resources.threads {
            0 | 1 => Stream::new_stream_decoder(memory_bytes, 0),
            threads => MtStreamBuilder::new()
                .threads(u32::try_from(threads).unwrap_or(u32::MAX))
                .timeout_ms(CALL_MILLISECONDS)
                .memlimit_threading(memory_bytes)
                .memlimit_stop(memory_bytes)
                .decoder(),
        };
        stream.map(Some).map_err(|error| self.failure(error))
    }

    /// Skips the padding after a stream: zeros, a multiple of four.
    fn pass_padding(&mut self) -> Result<()> {
        let start = self.input.offset();
        loop {
            let window = self.input.fill()?;
            let zeros = window.iter().take_while(|byte| **byte == 0).count();
            let has_more = zeros > 0 && zeros == window.len();
            self.input.consume(zeros);
            if !has_more {
                break;
            }
        }
        let padding = self.input.offset() - start;
        if padding.is_multiple_of(4) {
            Ok(())
        } else {
            let what = format!("{padding} bytes of padding, not a multiple of four");
            Err(Error::damaged(start, what))
        }
    }

    fn failure(&self, error: LzmaError) -> Error {
        let offset = self.input.offset();
        match error {
            LzmaError::MemLimit | LzmaError::Mem => Error::Memory {
                offset,
                what: "the dictionary of the xz stream needs more memory".to_owned(),
                allowed_bytes: self.resources.memory_bytes,
            },
            LzmaError::Options | LzmaError::UnsupportedCheck => {
                Error::unsupported(offset, "the xz stream needs a filter that is not supported")
            }
            LzmaError::Format => Error::damaged(offset, "this is not an xz stream"),
            _ => Error::damaged(offset, "the xz data is damaged, or a checksum differs"),
        }
    }
}

impl Decoder for XzDecoder {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        while !buffer.is_empty() {
            let Some(stream) = &mut self.stream else {
                self.stream = self.begin()?;
                match self.stream {
                    Some(_) => continue,
                    None => break,
                }
            };
            self.input.fill()?;
            let action = if self.input.has_ended() { Action::Finish } else { Action::Run };
            let (in_before, out_before) = (stream.total_in(), stream.total_out());
            let status = stream.process(self.input.window(), buffer, action);
            let consumed = usize::try_from(stream.total_in() - in_before).unwrap_or(0);
            let written = usize::try_from(stream.total_out() - out_before).unwrap_or(0);
            self.input.consume(consumed);
            match status {
                Ok(Status::StreamEnd) => self.stream = None,
                // Stuck: the buffer has room, so more input would be needed.
                Ok(Status::MemNeeded) if self.input.window().is_empty() && written == 0 => {
                    self.input.fill()?;
                    if self.input.window().is_empty() {
                        return Err(self.input.truncated("an xz stream"));
                    }
                }
                Ok(_) => {}
                Err(error) => return Err(self.failure(error)),
            }
            if written > 0 {
                return Ok(written);
            }
        }
        Ok(0)
    }

    fn offset(&self) -> u64 {
        self.input.offset()
    }

    fn is_checked(&self) -> bool {
        self.stream.is_none()
    }
}

/// The check of a stream, by the second byte of its flags.
pub(crate) fn check_name(id: u8) -> Option<&'static str> {
    match id {
        0 => Some("none"),
        1 => Some("CRC-32"),
        4 => Some("CRC-64"),
        10 => Some("SHA-256"),
        _ => None,
    }
}

/// Refuses a stream with an unsupported check. Damage is left to the library.
fn check_supported(header: &[u8; HEADER_BYTES], offset: u64) -> Result<()> {
    let [.., reserved, id, a, b, c, d] = *header;
    let is_intact = crc32fast::hash(&[reserved, id]) == u32::from_le_bytes([a, b, c, d]);
    if is_intact && (reserved != 0 || id > 15) {
        let what = format!("the xz stream flags {reserved:02x}{id:02x} are not supported");
        return Err(Error::unsupported(offset, what));
    }
    if !(is_intact && check_name(id).is_none()) {
        Ok(())
    } else {
        let what = format!("the integrity check {id} of the xz stream is not supported");
        Err(Error::unsupported(offset, what))
    }
}
