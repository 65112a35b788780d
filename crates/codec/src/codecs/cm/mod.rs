//! Codec 8: context mixing, the densest codec. The README beside this file describes the model and
//! its sources; `docs/codec-cm.md` specifies everything that a decoder must know, and
//! `tools/reader/refrain_reader/cm.py` is a decoder written from it.
//!
//! Encoder and decoder (`coding`) drive the same `Predictor`. Decoding takes the same time as
//! encoding. Parameters: level, profile (`profile`), raw length.
//!
//! Damaged payloads cannot break the model: it is built from decoded bits only, and any sequence of
//! bits is a valid one.

mod apm;
mod bit_history;
mod block;
mod byte_flag;
mod coding;
mod context;
mod counter;
pub(crate) mod lanes;
mod logistic;
mod matching;
mod mixer;
mod model;
mod predictor;
mod profile;
mod table;

use crate::codec::{
    Codec, CodecDescription, OnIncompressible, checked_level, clamped_level, reserve,
};
use crate::error::Result;
use crate::host::Host;
use crate::id::CodecId;
use crate::params::Params;
use crate::settings::Settings;
use crate::workspace::Workspace;
use block::BlockMemory;
use model::{LEVEL_DEFAULT, LEVEL_MAX, Model, TWO_SEGMENTS_MAX_BYTES};
use profile::Profile;

pub(crate) struct Cm;

impl CodecId {
    /// Context mixing.
    pub const CM: Self = Self(8);
}

impl Codec for Cm {
    fn describe(&self) -> CodecDescription {
        CodecDescription {
            id: CodecId::CM,
            name: "cm",
            summary: "context mixing: the densest, decodes as slowly as it encodes",
            levels: 1..=i32::from(LEVEL_MAX),
            default_level: i32::from(LEVEL_DEFAULT),
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
        let host = workspace.host;
        let memory = workspace.large_state::<BlockMemory>(CodecId::CM);
        let profile = choose_profile(host, memory, raw)?;
        let model = self.model(raw.len() as u64, settings, profile);
        // Most blocks need less; a longer output only costs a copy.
        reserve(CodecId::CM, out, raw.len() / 2 + 64)?;
        block::encode(host, memory, model, raw, out)?;
        Ok(model.to_params())
    }

    fn decode(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let model = Model::from_params(params, out.len() as u64)?;
        let host = workspace.host;
        let memory = workspace.large_state::<BlockMemory>(CodecId::CM);
        block::decode(host, memory, model, data, out)
    }

    fn decode_prefix(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        raw_length_bytes: u64,
        out: &mut [u8],
    ) -> Result<()> {
        let model = Model::from_params(params, raw_length_bytes)?;
        let host = workspace.host;
        let memory = workspace.large_state::<BlockMemory>(CodecId::CM);
        block::decode(host, memory, model, data, out)
    }

    fn check_params(&self, params: &Params, raw_length_bytes: u64) -> Result<()> {
        Model::from_params(params, raw_length_bytes).map(|_| ())
    }

    fn encode_memory_bytes(&self, raw_length_bytes: u64, settings: &Settings) -> u64 {
        // The last block of an archive is shorter, but may have two segments.
        let lengths = [
            raw_length_bytes,
            raw_length_bytes.min(TWO_SEGMENTS_MAX_BYTES),
        ];
        let memory = lengths.map(|length_bytes| {
            let model = self.model(length_bytes, settings, Profile::Text);
            model.memory_bytes() + block::second_data_bytes(model)
        });
        memory.into_iter().max().unwrap_or(u64::MAX)
    }

    fn decode_memory_bytes(&self, raw_length_bytes: u64, params: &Params) -> u64 {
        let largest = Settings::level(i32::from(LEVEL_MAX));
        Model::from_params(params, raw_length_bytes)
            .unwrap_or_else(|_| self.model(raw_length_bytes, &largest, Profile::Text))
            .memory_bytes()
    }

    fn with_less_memory(&self, _raw_length_bytes: u64, settings: &Settings) -> Option<Settings> {
        let level = clamped_level(self, settings);
        (level > 1).then(|| Settings {
            level: Some(level - 1),
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

/// Chooses the profile with the smallest result on a sample, by the lightest model. This takes a
/// few parts in a thousand of the time for a large block.
fn choose_profile(host: Host, memory: &mut BlockMemory, raw: &[u8]) -> Result<Profile> {
    let sample = profile::sample(raw);
    let candidates = Profile::candidates(&sample);
    let likeliest = candidates.first().copied().unwrap_or(Profile::Binary);
    if candidates.len() < 2 || raw.len() < profile::TRIAL_MIN_BYTES {
        return Ok(likeliest);
    }
    let mut best = (usize::MAX, likeliest);
    for profile in candidates {
        let model = Model {
            level: 1,
            profile,
            raw_length_bytes: sample.len() as u32,
        };
        let mut trial = Vec::new();
        block::encode(host, memory, model, &sample, &mut trial)?;
        if trial.len() < best.0 {
            best = (trial.len(), profile);
        }
    }
    Ok(best.1)
}

impl Cm {
    fn model(&self, raw_length_bytes: u64, settings: &Settings, profile: Profile) -> Model {
        Model {
            level: clamped_level(self, settings) as u8,
            profile,
            raw_length_bytes: u32::try_from(raw_length_bytes).unwrap_or(u32::MAX),
        }
    }
}
