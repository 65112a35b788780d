//! bzip2: concatenated streams, each with a CRC-32 per block and one over all of them.

use bzip2::{Decompress, Status};

use crate::bzip2_blocks::CONTENT_BYTES_MAX;
use crate::decoder::Decoder;
use crate::error::{Error, Result};
use crate::input::Input;

pub(crate) struct Bzip2Decoder {
    input: Input,
    stream: Option<Decompress>,
    streams: u64,
}

impl Bzip2Decoder {
    pub(crate) fn new(input: Input) -> Bzip2Decoder {
        Bzip2Decoder {
            input,
            stream: None,
            streams: 0,
        }
    }

    fn begin(&mut self) -> Result<Option<Decompress>> {
        let offset = self.input.offset();
        match (self.input.show(4)?, self.streams) {
            ([], 1..) => Ok(None),
            ([b'B', b'Z', b'h', b'1'..=b'9', ..], _) => {
                self.streams += 1;
                Ok(Some(Decompress::new(false)))
            }
            (_, 0) => Err(Error::damaged(offset, "this is not a bzip2 file")),
            (rest, _) if b"BZh".starts_with(rest.get(..3).unwrap_or(rest)) => {
                Err(self.input.truncated("the header of a bzip2 stream"))
            }
            (_, _) => {
                let what = "the data after the bzip2 stream is not a bzip2 stream";
                Err(Error::damaged(offset, what))
            }
        }
    }
}

impl Decoder for Bzip2Decoder {
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
            let (in_before, out_before) = (stream.total_in(), stream.total_out());
            let status = stream.decompress(self.input.window(), buffer);
            let consumed = usize::try_from(stream.total_in() - in_before).unwrap_or(0);
            let written = usize::try_from(stream.total_out() - out_before).unwrap_or(0);
            self.input.consume(consumed);
            match status {
                Ok(Status::StreamEnd) => self.stream = None,
                Ok(Status::MemNeeded) => {
                    return Err(Error::Memory {
                        offset: self.input.offset(),
                        what: "the bzip2 block needs more memory".to_owned(),
                        allowed_bytes: 0,
                    });
                }
                Ok(_) if consumed == 0 && written == 0 && self.input.has_ended() => {
                    return Err(self.input.truncated("a bzip2 stream"));
                }
                Ok(_) => {}
                Err(_) => {
                    let what = "the bzip2 data is damaged, or a checksum differs";
                    return Err(Error::damaged(self.input.offset(), what));
                }
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

    /// The checksum of a block is compared before the next one is decoded.
    fn check_distance_bytes(&self) -> u64 {
        CONTENT_BYTES_MAX as u64 + 1
    }
}
