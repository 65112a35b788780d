//! The decoders that an archive carries: each in front of the first frame that needs it.

use refrain_carried::{Decoder, Role, decoder, decoders};
use refrain_format::{ArchiveAssembler, Coding, DecoderHeader, DecoderRole};
use refrain_protect::content_hash;

use crate::error::Result;

/// An upper bound on the size of a Decoder frame without its module.
const HEADS_BYTES_MAX: u64 = 256;

/// An upper bound on the frame that names a plug-in, in bytes.
pub(crate) const PLUGIN_BYTES_MAX: u64 = 512;

/// An upper bound on the frames of all decoders, in bytes.
pub(crate) fn decoders_bytes_max() -> u64 {
    let bytes = |decoder: &Decoder| decoder.module.len() as u64 + HEADS_BYTES_MAX;
    decoders().map(bytes).sum()
}

/// Which decoders were written.
pub(crate) struct CarriedDecoders {
    block_bytes_max: u64,
    written: Vec<(Role, u16)>,
}

/// The decoders of an archive that is continued.
pub(crate) struct EarlierDecoders {
    /// For what it carries some.
    pub carried: Vec<DecoderRole>,
    /// What its frames need.
    pub needed: Vec<DecoderRole>,
}

impl CarriedDecoders {
    /// For blocks of at most `block_bytes_max` raw bytes.
    pub(crate) fn new(block_bytes_max: u64) -> CarriedDecoders {
        CarriedDecoders {
            block_bytes_max,
            written: Vec::new(),
        }
    }

    /// The frames of the decoders that a frame coded so needs and that are not in the archive yet.
    pub(crate) fn frames_for(
        &mut self,
        coding: Option<&Coding>,
        archive: &mut ArchiveAssembler,
    ) -> Result<Vec<u8>> {
        let Some(coding) = coding else {
            return Ok(Vec::new());
        };
        let filters = coding.filters().iter();
        let filters = filters.map(|&(id, _)| DecoderRole::Filter(id));
        let codec = DecoderRole::Codec(coding.codec());
        self.missing(std::iter::once(codec).chain(filters), archive)
    }

    /// The frames of the decoders that an archive that is continued lacks so far.
    pub(crate) fn frames_behind(
        &mut self,
        earlier: &EarlierDecoders,
        archive: &mut ArchiveAssembler,
    ) -> Result<Vec<u8>> {
        self.written = earlier.carried.iter().copied().map(numbered).collect();
        self.missing(earlier.needed.iter().copied(), archive)
    }

    fn missing(
        &mut self,
        roles: impl Iterator<Item = DecoderRole>,
        archive: &mut ArchiveAssembler,
    ) -> Result<Vec<u8>> {
        let mut frames = Vec::new();
        for (role, number) in roles.map(numbered) {
            if self.written.contains(&(role, number)) {
                continue;
            }
            self.written.push((role, number));
            if let Some(decoder) = decoder(role, number) {
                let header = self.header(decoder);
                frames.extend(archive.decoder(&header, decoder.module)?);
            }
        }
        Ok(frames)
    }

    fn header(&self, decoder: &Decoder) -> DecoderHeader {
        DecoderHeader {
            // The archive knows where the one before is.
            back_bytes: 0,
            role: match decoder.role {
                Role::Codec => DecoderRole::Codec(decoder.number),
                Role::Filter => DecoderRole::Filter(decoder.number as u8),
            },
            memory_pages_max: decoder.memory_pages_max(self.block_bytes_max),
            steps_per_byte_max: decoder.steps_per_byte_max,
            module_hash: content_hash(decoder.module),
        }
    }
}

fn numbered(role: DecoderRole) -> (Role, u16) {
    match role {
        DecoderRole::Codec(number) => (Role::Codec, number),
        DecoderRole::Filter(id) => (Role::Filter, u16::from(id)),
    }
}
