//! Codec 4: one bzip2 stream per block, through libbz2-rs. The granularity of prefixes is a bzip2
//! block (100 to 900 kB).

use bzip2::Compression;
use bzip2::{Action, Compress, Decompress, Status};

use crate::codec::{
    Codec, CodecDescription, OnIncompressible, checked_level, clamped_level, reserve,
};
use crate::codecs::stream_decoder::{self, StreamDecoder, damaged, fill};
use crate::error::{Error, Result};
use crate::id::CodecId;
use crate::library_memory::create_with_memory;
use crate::params::Params;
use crate::settings::Settings;
use crate::workspace::Workspace;

/// The unit of bzip2's block size, bytes: level n sorts n units at a time.
const LEVEL_BYTES: u64 = 100_000;
/// bzip2's default effort on repetitive data. It is fixed since it changes only the speed.
const WORK_FACTOR: u32 = 30;

/// The speeds of libbz2-rs.
const ENCODER_MB_PER_S: usize = 15;
const DECODER_MB_PER_S: usize = 30;

pub(crate) struct Bzip2;

impl CodecId {
    /// One bzip2 stream.
    pub const BZIP2: Self = Self(4);
}

impl Codec for Bzip2 {
    fn describe(&self) -> CodecDescription {
        CodecDescription {
            id: CodecId::BZIP2,
            name: "bzip2",
            summary: "bzip2: block sorting, small memory",
            levels: 1..=9,
            default_level: 9,
        }
    }

    fn encode(
        &self,
        workspace: &mut Workspace,
        raw: &[u8],
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Result<Params> {
        let level = useful_level(raw.len() as u64, checked_level(self, settings)?);
        reserve(CodecId::BZIP2, out, bound_bytes(raw.len()))?;
        workspace.host.call(raw.len(), ENCODER_MB_PER_S, || {
            let create = || Compress::new(Compression::new(level), WORK_FACTOR);
            let memory_bytes = encoder_bytes(level);
            let stream = create_with_memory(CodecId::BZIP2, memory_bytes, create)?;
            run_encoder(stream, raw, out)
        })?;
        Ok(Params::EMPTY)
    }

    fn decode(
        &self,
        workspace: &mut Workspace,
        _params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        workspace.host.call(out.len(), DECODER_MB_PER_S, || {
            stream_decoder::decode(&mut Decompress::new(false), data, out)
        })
    }

    fn decode_prefix(
        &self,
        workspace: &mut Workspace,
        _params: &Params,
        data: &[u8],
        raw_length_bytes: u64,
        out: &mut [u8],
    ) -> Result<()> {
        workspace.host.call(out.len(), DECODER_MB_PER_S, || {
            fill(&mut Decompress::new(false), data, out, raw_length_bytes).map(|_| ())
        })
    }

    fn encode_memory_bytes(&self, raw_length_bytes: u64, settings: &Settings) -> u64 {
        let level = useful_level(raw_length_bytes, clamped_level(self, settings));
        encoder_bytes(level)
    }

    fn decode_memory_bytes(&self, _raw_length_bytes: u64, _params: &Params) -> u64 {
        DECODER_BYTES_MAX
    }

    fn with_less_memory(&self, raw_length_bytes: u64, settings: &Settings) -> Option<Settings> {
        let level = useful_level(raw_length_bytes, clamped_level(self, settings));
        (level > 1).then_some(Settings {
            level: i32::try_from(level - 1).ok(),
            ..*settings
        })
    }

    fn is_slow_to_decode(&self) -> bool {
        true
    }

    fn on_incompressible(&self, _settings: &Settings) -> OnIncompressible {
        OnIncompressible::Confirm
    }
}

/// The memory of an encoder at a level.
fn encoder_bytes(level: u32) -> u64 {
    (400 << 10) + 8 * LEVEL_BYTES * u64::from(level)
}

/// The level, or the smallest level whose block size contains the whole block.
fn useful_level(raw_length_bytes: u64, level: i32) -> u32 {
    let filled = raw_length_bytes.div_ceil(LEVEL_BYTES).clamp(1, 9);
    let level = u64::try_from(level).unwrap_or(1).clamp(1, 9);
    u32::try_from(level.min(filled)).unwrap_or(9)
}

/// The memory of a decoder. The header of the stream states the level, up to 9.
const DECODER_BYTES_MAX: u64 = (128 << 10) + 4 * LEVEL_BYTES * 9;

/// From the manual of bzip2: at most one percent and 600 bytes more than the input.
fn bound_bytes(raw_length_bytes: usize) -> usize {
    raw_length_bytes + raw_length_bytes / 100 + 600
}

fn run_encoder(mut stream: Compress, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |cause| Error::Encoder {
        codec: CodecId::BZIP2,
        cause,
    };
    loop {
        let consumed = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
        let input = raw.get(consumed..).unwrap_or(&[]);
        match stream.compress_vec(input, out, Action::Finish) {
            Ok(Status::StreamEnd) => return Ok(()),
            Ok(_) if out.len() < out.capacity() => {}
            Ok(_) => return Err(failed("output larger than its bound")),
            Err(_) => return Err(failed("bzip2 failed")),
        }
    }
}

impl StreamDecoder for Decompress {
    const CODEC: CodecId = CodecId::BZIP2;

    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<bool> {
        match self.decompress(input, out) {
            Ok(Status::MemNeeded) => Err(Error::OutOfMemory {
                codec: CodecId::BZIP2,
                wanted_bytes: DECODER_BYTES_MAX,
            }),
            Ok(status) => Ok(status == Status::StreamEnd),
            Err(_) => Err(damaged::<Self>("not a bzip2 stream")),
        }
    }

    fn totals(&self) -> (u64, u64) {
        (self.total_in(), self.total_out())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_follows_the_block() {
        assert_eq!(useful_level(1, 9), 1);
        assert_eq!(useful_level(100_001, 9), 2);
        assert_eq!(useful_level(1 << 30, 9), 9);
        assert_eq!(useful_level(1 << 30, 4), 4);
        let mut out = Vec::new();
        Bzip2
            .encode(
                &mut Workspace::new(),
                &[5; 1000],
                &Settings::default(),
                &mut out,
            )
            .unwrap();
        assert_eq!(&out[..4], b"BZh1");
    }
}
