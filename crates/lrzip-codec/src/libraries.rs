//! Decoder stages that wrap libraries: bzip2, zlib and LZMA.

use bzip2::Decompress as Bzip2Decompress;
use flate2::{Decompress as ZlibDecompress, FlushDecompress};
use liblzma::stream::{Action, Filters, Stream};

use crate::stage::{Progress, Stage, damaged};
use refrain_codec::CodecId;
use refrain_codec::{Error, Result};

pub(crate) struct Bzip2Stage {
    stream: Bzip2Decompress,
    has_ended: bool,
}

impl Bzip2Stage {
    pub(crate) fn new() -> Bzip2Stage {
        Bzip2Stage {
            stream: Bzip2Decompress::new(false),
            has_ended: false,
        }
    }
}

impl Stage for Bzip2Stage {
    fn step(&mut self, input: &[u8], _is_last: bool, out: &mut [u8]) -> Result<Progress> {
        if self.has_ended {
            return Ok(Progress::default());
        }
        let before = (self.stream.total_in(), self.stream.total_out());
        let status = match self.stream.decompress(input, out) {
            Ok(bzip2::Status::MemNeeded) => Err(out_of_memory(CodecId::BZIP2, 4 << 20)),
            Ok(status) => {
                self.has_ended = status == bzip2::Status::StreamEnd;
                Ok(())
            }
            Err(_) => Err(damaged(
                CodecId::BZIP2,
                "not a bzip2 stream, or its checksum differs",
            )),
        };
        let after = (self.stream.total_in(), self.stream.total_out());
        progress(before, after, status)
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}

pub(crate) struct ZlibStage {
    stream: ZlibDecompress,
    has_ended: bool,
}

impl ZlibStage {
    pub(crate) fn new() -> ZlibStage {
        ZlibStage {
            stream: ZlibDecompress::new(true),
            has_ended: false,
        }
    }
}

impl Stage for ZlibStage {
    fn step(&mut self, input: &[u8], _is_last: bool, out: &mut [u8]) -> Result<Progress> {
        if self.has_ended {
            return Ok(Progress::default());
        }
        let before = (self.stream.total_in(), self.stream.total_out());
        let status = self.stream.decompress(input, out, FlushDecompress::None);
        self.has_ended = matches!(status, Ok(flate2::Status::StreamEnd));
        let status = status.map(drop).map_err(|_| {
            damaged(
                CodecId::DEFLATE,
                "not a zlib stream, or its checksum differs",
            )
        });
        let after = (self.stream.total_in(), self.stream.total_out());
        progress(before, after, status)
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}

/// LZMA without a header.
pub(crate) struct LzmaStage {
    stream: Stream,
}

impl LzmaStage {
    /// `properties` is `(pb * 5 + lp) * 9 + lc`.
    pub(crate) fn new(properties: u8, dictionary_bytes: u32) -> Result<LzmaStage> {
        let [a, b, c, d] = dictionary_bytes.to_le_bytes();
        let mut filters = Filters::new();
        filters
            .lzma1_properties(&[properties, a, b, c, d])
            .map_err(|_| Error::Description {
                field: "LZMA properties",
                value: u64::from(properties),
            })?;
        let stream = Stream::new_raw_decoder(&filters)
            .map_err(|_| out_of_memory(CodecId::LZMA, u64::from(dictionary_bytes)))?;
        Ok(LzmaStage { stream })
    }
}

impl Stage for LzmaStage {
    fn step(&mut self, input: &[u8], _is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let before = (self.stream.total_in(), self.stream.total_out());
        let status = self.stream.process(input, out, Action::Run);
        let status = status.map(drop).map_err(|error| match error {
            liblzma::stream::Error::Mem => out_of_memory(CodecId::LZMA, 0),
            _ => damaged(CodecId::LZMA, "not LZMA data, or not for this dictionary"),
        });
        let after = (self.stream.total_in(), self.stream.total_out());
        progress(before, after, status)
    }
}

fn out_of_memory(codec: CodecId, wanted_bytes: u64) -> Error {
    Error::OutOfMemory {
        codec,
        wanted_bytes,
    }
}

/// Computes the progress of a step from the totals before and after it. One step processes at most
/// one buffer, so the differences fit in `usize`.
///
/// A library may read past the bytes that it has produced and report an error there. The bytes
/// produced count nevertheless; if more are needed, the next step returns the error. Otherwise the
/// result would depend on how the input is split.
fn progress(before: (u64, u64), after: (u64, u64), status: Result<()>) -> Result<Progress> {
    let difference = |a: u64, b: u64| usize::try_from(b - a).unwrap_or(usize::MAX);
    let progress = Progress {
        consumed_bytes: difference(before.0, after.0),
        produced_bytes: difference(before.1, after.1),
    };
    match status {
        Err(error) if progress.produced_bytes == 0 => Err(error),
        _ => Ok(progress),
    }
}
