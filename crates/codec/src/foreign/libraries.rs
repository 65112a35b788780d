//! Stages around libraries: bzip2, zlib, LZMA.

use bzip2::Decompress as Bunzip;
use flate2::{Decompress as Inflate, FlushDecompress};
use liblzma::stream::{Action, Filters, Stream};

use super::{Progress, Stage, damaged};
use crate::error::{Error, Result};
use crate::id::CodecId;

/// One bzip2 stream.
pub(super) struct Bzip2 {
    stream: Bunzip,
}

impl Bzip2 {
    pub(super) fn new() -> Bzip2 {
        Bzip2 {
            stream: Bunzip::new(false),
        }
    }
}

impl Stage for Bzip2 {
    fn step(&mut self, input: &[u8], _is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let before = (self.stream.total_in(), self.stream.total_out());
        let status = self
            .stream
            .decompress(input, out)
            .map_err(|_| damaged(CodecId::BZIP2, "not a bzip2 stream"))?;
        if status == bzip2::Status::MemNeeded {
            return Err(no_memory(CodecId::BZIP2, 4 << 20));
        }
        Ok(progress(
            before,
            (self.stream.total_in(), self.stream.total_out()),
        ))
    }
}

/// One zlib stream.
pub(super) struct Zlib {
    stream: Inflate,
}

impl Zlib {
    pub(super) fn new() -> Zlib {
        Zlib {
            stream: Inflate::new(true),
        }
    }
}

impl Stage for Zlib {
    fn step(&mut self, input: &[u8], _is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let before = (self.stream.total_in(), self.stream.total_out());
        self.stream
            .decompress(input, out, FlushDecompress::None)
            .map_err(|_| damaged(CodecId::DEFLATE, "not a zlib stream"))?;
        Ok(progress(
            before,
            (self.stream.total_in(), self.stream.total_out()),
        ))
    }
}

/// LZMA without a header.
pub(super) struct Lzma {
    stream: Stream,
}

impl Lzma {
    /// `properties` is `(pb * 5 + lp) * 9 + lc`.
    pub(super) fn new(properties: u8, dictionary_bytes: u32) -> Result<Lzma> {
        let [a, b, c, d] = dictionary_bytes.to_le_bytes();
        let mut filters = Filters::new();
        filters
            .lzma1_properties(&[properties, a, b, c, d])
            .map_err(|_| Error::Description {
                field: "LZMA properties",
                value: u64::from(properties),
            })?;
        let stream = Stream::new_raw_decoder(&filters)
            .map_err(|_| no_memory(CodecId::LZMA, u64::from(dictionary_bytes)))?;
        Ok(Lzma { stream })
    }
}

impl Stage for Lzma {
    fn step(&mut self, input: &[u8], _is_last: bool, out: &mut [u8]) -> Result<Progress> {
        let before = (self.stream.total_in(), self.stream.total_out());
        self.stream
            .process(input, out, Action::Run)
            .map_err(|error| match error {
                liblzma::stream::Error::Mem => no_memory(CodecId::LZMA, 0),
                _ => damaged(CodecId::LZMA, "not LZMA data, or not for this dictionary"),
            })?;
        Ok(progress(
            before,
            (self.stream.total_in(), self.stream.total_out()),
        ))
    }
}

fn no_memory(codec: CodecId, wanted_bytes: u64) -> Error {
    Error::OutOfMemory {
        codec,
        wanted_bytes,
    }
}

/// From totals before and after; one step is at most one buffer, so the differences fit.
fn progress(before: (u64, u64), after: (u64, u64)) -> Progress {
    let difference = |a: u64, b: u64| usize::try_from(b - a).unwrap_or(usize::MAX);
    Progress {
        taken_bytes: difference(before.0, after.0),
        made_bytes: difference(before.1, after.1),
    }
}
