//! Codec 6: PPMd variant H (Shkarin 2001) with 7z's range coder, through `ppmd-rust`. Dense on text
//! and source code. Decoding takes as much time as encoding. Parameters: order (one byte) and model
//! memory (four bytes, little-endian).
//!
//! Corrupt input cannot break the model: it is built from decoded symbols only, and any sequence of
//! symbols is a valid one. The range decoder checks the rest.

use std::io::{Read, Write};

use ppmd_rust::{
    PPMD7_MAX_MEM_SIZE, PPMD7_MAX_ORDER, PPMD7_MIN_MEM_SIZE, PPMD7_MIN_ORDER, Ppmd7Decoder,
    Ppmd7Encoder,
};

use crate::codec::{
    Codec, CodecDescription, OnIncompressible, check_setting, checked_level, clamped_level, reserve,
};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::id::CodecId;
use crate::params::Params;
use crate::settings::Settings;
use crate::workspace::Workspace;

/// The bytes between two check-ins, at 5 to 20 MB/s.
const PIECE_BYTES: usize = 4 << 10;

const MEMORY_MIN_BYTES: u32 = 1 << 16;
/// The largest model memory used, bytes; also the most that an archive may require of a reader.
const MEMORY_MAX_BYTES: u32 = 256 << 20;
/// A model uses at most this many bytes per raw byte at the orders used here. More memory would
/// never be used, but has to be cleared.
const MEMORY_PER_RAW_BYTE: u64 = 24;
/// A quarter of the level's memory is still better than lighter codecs; less is not.
const REDUCTIONS_MAX: u32 = 2;

/// Model order and log2 of the most memory (bytes) per level 1..=9.
const LEVELS: [(u32, u32); 9] = [
    (3, 22),
    (4, 23),
    (5, 24),
    (6, 24),
    (8, 25),
    (10, 25),
    (12, 26),
    (16, 27),
    (20, 28),
];
const _: () = assert!(1 << LEVELS[8].1 == MEMORY_MAX_BYTES);

pub(crate) struct Ppmd;

impl CodecId {
    /// PPMd variant H with the range coder of 7z.
    pub const PPMD: Self = Self(6);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Model {
    order: u32,
    memory_bytes: u32,
}

impl Codec for Ppmd {
    fn describe(&self) -> CodecDescription {
        CodecDescription {
            id: CodecId::PPMD,
            name: "ppmd",
            summary: "PPMd: dense on text, decodes as slowly as it encodes",
            levels: 1..=9,
            default_level: 5,
        }
    }

    fn encode(
        &self,
        workspace: &mut Workspace,
        raw: &[u8],
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Result<Params> {
        let model = self.model(raw.len() as u64, settings)?;
        // The worst case measured on incompressible data is below 2 percent; a longer output only
        // costs a copy.
        reserve(CodecId::PPMD, out, raw.len() + raw.len() / 32 + 64)?;
        let mut encoder = Ppmd7Encoder::new(out, model.order, model.memory_bytes)
            .map_err(|error| encoder_error(&error, model))?;
        let failed = |_| Error::Encoder {
            codec: CodecId::PPMD,
            cause: "cannot write to memory",
        };
        for piece in raw.chunks(PIECE_BYTES) {
            encoder.write_all(piece).map_err(failed)?;
            (workspace.host.check_in)();
        }
        encoder.finish(false).map_err(failed)?;
        Ok(model.to_params())
    }

    fn decode(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let unread = decode_some(workspace.host, params, data, out.len() as u64, out)?;
        if unread.is_empty() { Ok(()) } else { Err(damaged("bytes after the end")) }
    }

    fn decode_prefix(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        raw_length_bytes: u64,
        out: &mut [u8],
    ) -> Result<()> {
        decode_some(workspace.host, params, data, raw_length_bytes, out).map(|_| ())
    }

    fn check_params(&self, params: &Params, raw_length_bytes: u64) -> Result<()> {
        Model::from_params(params, raw_length_bytes).map(|_| ())
    }

    fn encode_memory_bytes(&self, raw_length_bytes: u64, settings: &Settings) -> u64 {
        let memory_bytes = match self.model(raw_length_bytes, settings) {
            Ok(model) => model.memory_bytes,
            Err(_) => MEMORY_MAX_BYTES,
        };
        u64::from(memory_bytes) + (64 << 10)
    }

    fn decode_memory_bytes(&self, raw_length_bytes: u64, params: &Params) -> u64 {
        let memory_bytes = Model::from_params(params, raw_length_bytes)
            .map_or(MEMORY_MAX_BYTES, |model| model.memory_bytes);
        u64::from(memory_bytes) + (64 << 10)
    }

    fn with_less_memory(&self, raw_length_bytes: u64, settings: &Settings) -> Option<Settings> {
        let now = self.model(raw_length_bytes, settings).ok()?.memory_bytes;
        let unlimited = Settings {
            model_memory_bytes: None,
            ..*settings
        };
        let wanted = self.model(raw_length_bytes, &unlimited).ok()?.memory_bytes;
        let less = (now / 2).max(MEMORY_MIN_BYTES);
        (less < now && less >= wanted >> REDUCTIONS_MAX).then_some(Settings {
            model_memory_bytes: Some(less),
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

impl Ppmd {
    fn model(&self, raw_length_bytes: u64, settings: &Settings) -> Result<Model> {
        checked_level(self, settings)?;
        let row = usize::try_from(clamped_level(self, settings) - 1).unwrap_or(0);
        let (level_order, memory_log) = LEVELS[row.min(LEVELS.len() - 1)];
        let order = settings.order.unwrap_or(level_order);
        check_setting(
            CodecId::PPMD,
            "order",
            i64::from(order),
            i64::from(PPMD7_MIN_ORDER)..=i64::from(PPMD7_MAX_ORDER),
        )?;
        let most = settings.model_memory_bytes.unwrap_or(1 << memory_log);
        check_setting(
            CodecId::PPMD,
            "model_memory_bytes",
            i64::from(most),
            i64::from(MEMORY_MIN_BYTES)..=i64::from(MEMORY_MAX_BYTES),
        )?;
        Ok(Model {
            order,
            memory_bytes: most.min(useful_memory_bytes(raw_length_bytes)),
        })
    }
}

impl Model {
    fn to_params(self) -> Params {
        let [a, b, c, d] = self.memory_bytes.to_le_bytes();
        // The maximum order is 64.
        Params::from_array([self.order as u8, a, b, c, d])
    }

    fn from_params(params: &Params, raw_length_bytes: u64) -> Result<Self> {
        let [order, a, b, c, d] = params.to_array()?;
        let order = u32::from(order);
        if !(PPMD7_MIN_ORDER..=PPMD7_MAX_ORDER).contains(&order) {
            return Err(Error::Description {
                field: "ppmd order",
                value: u64::from(order),
            });
        }
        let memory_bytes = u32::from_le_bytes([a, b, c, d]);
        if !(PPMD7_MIN_MEM_SIZE..=PPMD7_MAX_MEM_SIZE).contains(&memory_bytes) {
            return Err(Error::Description {
                field: "ppmd model memory",
                value: u64::from(memory_bytes),
            });
        }
        // A tiny block cannot make a reader clear a large model.
        let limit_bytes = useful_memory_bytes(raw_length_bytes);
        if memory_bytes > limit_bytes {
            return Err(Error::Limit {
                codec: CodecId::PPMD,
                what: "model memory",
                stated_bytes: u64::from(memory_bytes),
                limit_bytes: u64::from(limit_bytes),
            });
        }
        Ok(Self {
            order,
            memory_bytes,
        })
    }
}

/// The most memory that a block of this length can use, within the limits of the codec.
fn useful_memory_bytes(raw_length_bytes: u64) -> u32 {
    let useful = raw_length_bytes.saturating_mul(MEMORY_PER_RAW_BYTE);
    u32::try_from(useful)
        .unwrap_or(MEMORY_MAX_BYTES)
        .clamp(MEMORY_MIN_BYTES, MEMORY_MAX_BYTES)
}

/// Fills `out`; returns the rest of the data.
fn decode_some<'a>(
    host: Host,
    params: &Params,
    data: &'a [u8],
    raw_length_bytes: u64,
    out: &mut [u8],
) -> Result<&'a [u8]> {
    let model = Model::from_params(params, raw_length_bytes)?;
    let mut decoder = Ppmd7Decoder::new(data, model.order, model.memory_bytes)
        .map_err(|error| decoder_error(&error, model))?;
    let mut filled = 0;
    while filled < out.len() {
        let end = out.len().min(filled + PIECE_BYTES);
        match decoder.read(&mut out[filled..end]) {
            Ok(0) => {
                return Err(Error::Length {
                    codec: CodecId::PPMD,
                    expected_bytes: raw_length_bytes,
                    found_bytes: filled as u64,
                });
            }
            Ok(count) => {
                filled += count;
                (host.check_in)();
            }
            Err(_) => return Err(damaged("not a PPMd stream")),
        }
    }
    Ok(decoder.into_inner())
}

fn encoder_error(error: &ppmd_rust::Error, model: Model) -> Error {
    match error {
        ppmd_rust::Error::MemoryAllocation => out_of_memory(model),
        _ => Error::Encoder {
            codec: CodecId::PPMD,
            cause: "parameters rejected",
        },
    }
}

fn decoder_error(error: &ppmd_rust::Error, model: Model) -> Error {
    match error {
        ppmd_rust::Error::MemoryAllocation => out_of_memory(model),
        _ => damaged("not a PPMd stream"),
    }
}

fn out_of_memory(model: Model) -> Error {
    Error::OutOfMemory {
        codec: CodecId::PPMD,
        wanted_bytes: u64::from(model.memory_bytes),
    }
}

fn damaged(cause: &'static str) -> Error {
    Error::Damaged {
        codec: CodecId::PPMD,
        cause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_an_error_for_forged_model_memory() {
        for (order, memory) in [
            (1, 1 << 20),
            (65, 1 << 20),
            (6, 0),
            (6, 2047),
            (6, u32::MAX),
        ] {
            let forged = Model {
                order,
                memory_bytes: memory,
            };
            assert!(matches!(
                Ppmd.check_params(&forged.to_params(), 1 << 20),
                Err(Error::Description { .. })
            ));
        }
        let limit = |memory_bytes, raw_length_bytes| {
            let model = Model {
                order: 64,
                memory_bytes,
            };
            let checked = Ppmd.check_params(&model.to_params(), raw_length_bytes);
            matches!(checked, Err(Error::Limit { .. }))
        };
        assert!(limit((1 << 16) + 1, 100) && !limit(1 << 16, 100));
        assert!(limit(240_001, 10_000) && !limit(240_000, 10_000));
        assert!(limit((256 << 20) + 1, 1 << 30) && !limit(256 << 20, 1 << 30));
        assert!(!limit(2048, 1 << 30));
        // A tiny block cannot make a reader allocate a large model.
        let large = Model {
            order: 6,
            memory_bytes: 16 << 20,
        };
        assert!(Ppmd.check_params(&large.to_params(), 100).is_err());
        assert!(Ppmd.check_params(&large.to_params(), 1 << 20).is_ok());
    }

    #[test]
    fn reduces_memory_at_most_twice() {
        let first = Settings::level(5);
        let second = Ppmd.with_less_memory(8 << 20, &first).unwrap();
        let third = Ppmd.with_less_memory(8 << 20, &second).unwrap();
        assert_eq!(third.model_memory_bytes, Some(8 << 20));
        assert_eq!(Ppmd.with_less_memory(8 << 20, &third), None);
    }
}
