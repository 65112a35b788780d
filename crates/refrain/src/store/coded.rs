//! What decodes one block or section.

use refrain_codec::{
    BlockDescription, FilterStep, Workspace, decode, decode_damaged, decode_memory_bytes,
    decode_prefix, is_slow_to_decode,
};

use crate::error::Result;
use crate::store::carried_modules::CarriedStep;
use crate::store::memory::zeroed;
use crate::store::workspaces::HOST;

/// What decodes one block or section.
pub(crate) enum Coded {
    /// The codec and the filters of this build.
    Own(BlockDescription),
    /// At least one module of the archive.
    Carried(CarriedBlock),
}

/// A block whose codec or filters are undone by modules.
pub(crate) struct CarriedBlock {
    pub first: FirstStep,
    /// The filters, in the order in which they are undone.
    pub later: Vec<LaterStep>,
}

pub(crate) enum FirstStep {
    /// A codec of this build, without filters.
    Own(BlockDescription),
    /// A module, and the parameters of its codec.
    Module(CarriedStep, Vec<u8>),
}

pub(crate) enum LaterStep {
    Own(FilterStep),
    /// A module, and the parameter of its filter.
    Module(CarriedStep, u8),
}

impl Coded {
    /// The memory for decoding, without the raw and the compressed bytes.
    ///
    /// # Errors
    /// As [`decode_memory_bytes`].
    pub(crate) fn memory_bytes(&self, raw_bytes: u64) -> Result<u64> {
        let block = match self {
            Coded::Own(description) => return Ok(decode_memory_bytes(description, raw_bytes)?),
            Coded::Carried(block) => block,
        };
        let first_bytes = match &block.first {
            FirstStep::Own(description) => decode_memory_bytes(description, raw_bytes)?,
            FirstStep::Module(module, _) => module.memory_bytes(),
        };
        let later = block.later.iter().map(|step| match step {
            LaterStep::Own(filter) => filter.memory_bytes(),
            // It does not work in place.
            LaterStep::Module(module, _) => module.memory_bytes().saturating_add(raw_bytes),
        });
        Ok(later.fold(first_bytes, u64::max))
    }

    /// Whether caches should keep a compressed copy of the block.
    pub(crate) fn is_slow(&self) -> bool {
        match self {
            Coded::Own(description) => is_slow_to_decode(description.codec),
            Coded::Carried(_) => true,
        }
    }

    /// Whether it is decoded by codecs and filters of the engine alone, not by plug-ins or modules.
    pub(crate) fn is_engines(&self) -> bool {
        match self {
            Coded::Own(description) => {
                let mut filters = description.filters.steps();
                !description.codec.is_plugin()
                    && filters.all(|step| !FilterStep::PLUGINS.contains(&step.id()))
            }
            Coded::Carried(_) => false,
        }
    }

    /// Decodes all of it into `out`, whose former content is overwritten.
    ///
    /// # Errors
    /// `Damaged`, `Limit`; `out` is then empty.
    pub(crate) fn decode(
        &self,
        workspace: &mut Workspace,
        data: &[u8],
        raw_bytes: u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match self {
            Coded::Own(description) => Ok(decode(workspace, description, data, raw_bytes, out)?),
            Coded::Carried(block) => {
                let decoded = block.decode(workspace, data, raw_bytes, out);
                if decoded.is_err() {
                    out.clear();
                }
                decoded
            }
        }
    }

    /// Decodes at least the first `wanted_bytes`. A module decodes all.
    ///
    /// # Errors
    /// As [`Coded::decode`].
    pub(crate) fn decode_prefix(
        &self,
        workspace: &mut Workspace,
        data: &[u8],
        (raw_bytes, wanted_bytes): (u64, u64),
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match self {
            Coded::Own(description) => {
                let decoded =
                    decode_prefix(workspace, description, data, raw_bytes, wanted_bytes, out);
                Ok(decoded?)
            }
            Coded::Carried(_) => {
                self.decode(workspace, data, raw_bytes, out)?;
                out.truncate(usize::try_from(wanted_bytes).unwrap_or(usize::MAX));
                Ok(())
            }
        }
    }

    /// Decodes as much as possible of damaged data. A module decodes all or nothing.
    ///
    /// # Errors
    /// As [`decode_damaged`], and of modules also `Damaged` and `Limit`.
    pub(crate) fn decode_damaged(
        &self,
        workspace: &mut Workspace,
        data: &[u8],
        raw_bytes: u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match self {
            Coded::Own(description) => Ok(decode_damaged(
                workspace,
                description,
                data,
                raw_bytes,
                out,
            )?),
            Coded::Carried(_) => self.decode(workspace, data, raw_bytes, out),
        }
    }
}

impl CarriedBlock {
    fn decode(
        &self,
        workspace: &mut Workspace,
        data: &[u8],
        raw_bytes: u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let length = usize::try_from(raw_bytes).unwrap_or(usize::MAX);
        match &self.first {
            FirstStep::Own(description) => decode(workspace, description, data, raw_bytes, out)?,
            FirstStep::Module(module, params) => {
                *out = zeroed(length)?;
                module.decode(params, data, out)?;
            }
        }
        for step in &self.later {
            match step {
                LaterStep::Own(filter) => filter.decode(HOST, out)?,
                LaterStep::Module(module, param) => {
                    let filtered = std::mem::replace(out, zeroed(length)?);
                    module.decode(&[*param], &filtered, out)?;
                }
            }
        }
        Ok(())
    }
}
