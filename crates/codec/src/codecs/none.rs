//! Codec 0: stores the bytes without compression.

use crate::codec::{Codec, CodecDescription, OnIncompressible, checked_level, reserve};
use crate::error::{Error, Result};
use crate::host::PIECE_BYTES;
use crate::id::CodecId;
use crate::params::Params;
use crate::settings::Settings;
use crate::workspace::Workspace;

pub(crate) struct Stored;

impl CodecId {
    /// The block as it is.
    pub const NONE: Self = Self(0);
}

impl Codec for Stored {
    fn describe(&self) -> CodecDescription {
        CodecDescription {
            id: CodecId::NONE,
            name: "none",
            summary: "stores blocks as they are",
            levels: 0..=0,
            default_level: 0,
        }
    }

    fn encode(
        &self,
        workspace: &mut Workspace,
        raw: &[u8],
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Result<Params> {
        checked_level(self, settings)?;
        reserve(CodecId::NONE, out, raw.len())?;
        workspace.host.append(out, raw);
        Ok(Params::EMPTY)
    }

    fn decode(
        &self,
        workspace: &mut Workspace,
        _params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        if data.len() != out.len() {
            return Err(Error::Length {
                codec: CodecId::NONE,
                expected_bytes: out.len() as u64,
                found_bytes: data.len() as u64,
            });
        }
        for (out, data) in out.chunks_mut(PIECE_BYTES).zip(data.chunks(PIECE_BYTES)) {
            out.copy_from_slice(data);
            (workspace.host.check_in)();
        }
        Ok(())
    }

    fn decode_prefix(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        raw_length_bytes: u64,
        out: &mut [u8],
    ) -> Result<()> {
        if data.len() as u64 != raw_length_bytes || out.len() > data.len() {
            return Err(Error::Length {
                codec: CodecId::NONE,
                expected_bytes: raw_length_bytes,
                found_bytes: data.len() as u64,
            });
        }
        self.decode(workspace, params, &data[..out.len()], out)
    }

    fn decode_damaged(
        &self,
        _workspace: &mut Workspace,
        _params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) {
        for (out, byte) in out.iter_mut().zip(data) {
            *out = *byte;
        }
    }

    fn encode_memory_bytes(&self, _raw_length_bytes: u64, _settings: &Settings) -> u64 {
        0
    }

    fn decode_memory_bytes(&self, _raw_length_bytes: u64, _params: &Params) -> u64 {
        0
    }

    fn on_incompressible(&self, _settings: &Settings) -> OnIncompressible {
        OnIncompressible::Store
    }
}
