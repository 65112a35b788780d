//! Codec 5: raw deflate (RFC 1951) through zlib-rs. Its output depends on no processor feature.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::codec::{Codec, CodecDescription, OnIncompressible, checked_level, reserve};
use crate::codecs::stream_decoder::{self, StreamDecoder, damaged, fill};
use crate::error::{Error, Result};
use crate::id::CodecId;
use crate::params::Params;
use crate::settings::Settings;
use crate::workspace::Workspace;

/// The upper bounds from zlib's documentation: about (1 << 17) + (1 << 17) bytes for an encoder, 32
/// KiB and tables for a decoder. zlib-rs pads its windows.
const ENCODER_BYTES: u64 = 512 << 10;
const DECODER_BYTES: u64 = 96 << 10;

/// The speeds of zlib-rs at its default level.
const ENCODER_MB_PER_S: usize = 50;
const DECODER_MB_PER_S: usize = 400;

pub(crate) struct Deflate;

impl CodecId {
    /// Raw deflate (RFC 1951).
    pub const DEFLATE: Self = Self(5);
}

#[derive(Default)]
pub(crate) struct DeflateState {
    encoder: Option<(u32, Compress)>,
    decoder: Option<Decompress>,
}

impl DeflateState {
    fn encoder(&mut self, level: u32) -> &mut Compress {
        let slot = &mut self.encoder;
        if slot
            .as_ref()
            .is_some_and(|(made_for, _)| *made_for != level)
        {
            *slot = None;
        }
        let fresh = || (level, Compress::new(Compression::new(level), false));
        let (_, stream) = slot.get_or_insert_with(fresh);
        stream.reset();
        stream
    }

    fn decoder(&mut self) -> &mut Decompress {
        let stream = self.decoder.get_or_insert_with(|| Decompress::new(false));
        stream.reset(false);
        stream
    }
}

impl Codec for Deflate {
    fn describe(&self) -> CodecDescription {
        CodecDescription {
            id: CodecId::DEFLATE,
            name: "deflate",
            summary: "deflate: as in gzip and zip",
            levels: 1..=9,
            default_level: 6,
        }
    }

    fn encode(
        &self,
        workspace: &mut Workspace,
        raw: &[u8],
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Result<Params> {
        let level = u32::try_from(checked_level(self, settings)?).unwrap_or(1);
        reserve(CodecId::DEFLATE, out, bound_bytes(raw.len()))?;
        let host = workspace.host;
        let stream = workspace.state::<DeflateState>().encoder(level);
        let run = || run_encoder(stream, raw, out);
        host.call(raw.len(), ENCODER_MB_PER_S, run)?;
        Ok(Params::EMPTY)
    }

    fn decode(
        &self,
        workspace: &mut Workspace,
        _params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let host = workspace.host;
        let stream = workspace.state::<DeflateState>().decoder();
        host.call(out.len(), DECODER_MB_PER_S, || {
            stream_decoder::decode(stream, data, out)
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
        let host = workspace.host;
        let stream = workspace.state::<DeflateState>().decoder();
        host.call(out.len(), DECODER_MB_PER_S, || {
            fill(stream, data, out, raw_length_bytes).map(|_| ())
        })
    }

    fn encode_memory_bytes(&self, _raw_length_bytes: u64, _settings: &Settings) -> u64 {
        ENCODER_BYTES
    }

    fn decode_memory_bytes(&self, _raw_length_bytes: u64, _params: &Params) -> u64 {
        DECODER_BYTES
    }

    fn on_incompressible(&self, _settings: &Settings) -> OnIncompressible {
        OnIncompressible::Store
    }
}

/// Generous: zlib's bound for its fast level is a quarter more than the input in bad cases.
fn bound_bytes(raw_length_bytes: usize) -> usize {
    raw_length_bytes + raw_length_bytes / 4 + 1024
}

fn run_encoder(stream: &mut Compress, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |cause| Error::Encoder {
        codec: CodecId::DEFLATE,
        cause,
    };
    loop {
        let consumed = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
        let input = raw.get(consumed..).unwrap_or(&[]);
        match stream.compress_vec(input, out, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => return Ok(()),
            Ok(_) if out.len() < out.capacity() => {}
            Ok(_) => return Err(failed("output larger than its bound")),
            Err(_) => return Err(failed("zlib failed")),
        }
    }
}

impl StreamDecoder for Decompress {
    const CODEC: CodecId = CodecId::DEFLATE;

    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<bool> {
        match self.decompress(input, out, FlushDecompress::None) {
            Ok(status) => Ok(status == Status::StreamEnd),
            Err(_) => Err(damaged::<Self>("not a deflate stream")),
        }
    }

    fn totals(&self) -> (u64, u64) {
        (self.total_in(), self.total_out())
    }
}
