//! The codec of a plug-in.

use refrain_codec::{
    Codec, CodecDescription, CodecId, Error as CodecError, OnIncompressible, Params, Settings,
    Workspace,
};

use crate::abi::NO_ROOM;
use crate::current::{Current, kept};
use crate::library::LoadedCodec;

/// The levels of every plug-in.
const LEVELS: std::ops::RangeInclusive<i32> = 1..=9;
const DEFAULT_LEVEL: i32 = 5;

/// What a call is expected to do at least: longer ones are made aside.
const MEGABYTES_PER_SECOND: usize = 100;

#[derive(Debug)]
pub(crate) struct CodecPlugin {
    id: CodecId,
    name: &'static str,
    current: Current<LoadedCodec>,
}

impl CodecPlugin {
    pub(crate) fn new(loaded: LoadedCodec) -> CodecPlugin {
        CodecPlugin {
            id: CodecId(loaded.number),
            name: kept(&loaded.name),
            current: Current::new(loaded),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Takes a later version, if it is one.
    pub(crate) fn replace_by(&self, new: LoadedCodec) -> bool {
        let is_same = (CodecId(new.number), new.name.as_str()) == (self.id, self.name);
        if is_same {
            self.current.set(new);
        }
        is_same
    }

    fn decoded(&self, loaded: &LoadedCodec, data: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
        let found = loaded.decode(data, out);
        match u64::try_from(found) {
            Ok(found) if found == out.len() as u64 => Ok(()),
            Ok(found_bytes) => Err(CodecError::Length {
                codec: self.id,
                expected_bytes: out.len() as u64,
                found_bytes,
            }),
            Err(_) => Err(CodecError::Damaged {
                codec: self.id,
                cause: "the plug-in cannot decode it",
            }),
        }
    }

    fn refused(&self, cause: &'static str) -> CodecError {
        CodecError::Encoder {
            codec: self.id,
            cause,
        }
    }

    fn room(&self, bytes: usize) -> Result<Vec<u8>, CodecError> {
        let mut room = Vec::new();
        match room.try_reserve_exact(bytes) {
            Ok(()) => room.resize(bytes, 0),
            Err(_) => {
                return Err(CodecError::OutOfMemory {
                    codec: self.id,
                    wanted_bytes: bytes as u64,
                });
            }
        }
        Ok(room)
    }

    /// Encodes at the end of `out`, and decodes it again: whatever a plug-in has wrong must not
    /// cost anybody the data.
    fn encoded(&self, raw: &[u8], level: i32, out: &mut Vec<u8>) -> Result<(), CodecError> {
        let (loaded, start) = (self.current.get(), out.len());
        if out.try_reserve_exact(raw.len()).is_err() {
            return Err(CodecError::OutOfMemory {
                codec: self.id,
                wanted_bytes: raw.len() as u64,
            });
        }
        out.resize(start + raw.len(), 0);
        let length = loaded.encode(raw, &mut out[start..], level);
        if length == NO_ROOM {
            return Err(CodecError::NoRoom { codec: self.id });
        }
        let length = usize::try_from(length);
        let length = length.map_err(|_| self.refused("the plug-in does not encode it"))?;
        if length == 0 || length > raw.len() {
            return Err(self.refused("the plug-in states an impossible length"));
        }
        out.truncate(start + length);
        let mut again = self.room(raw.len())?;
        let is_same = self.decoded(&loaded, &out[start..], &mut again).is_ok() && again == raw;
        if is_same {
            Ok(())
        } else {
            Err(self.refused("what the plug-in encodes does not decode to the same bytes"))
        }
    }
}

impl Codec for CodecPlugin {
    fn describe(&self) -> CodecDescription {
        CodecDescription {
            id: self.id,
            name: self.name,
            summary: "a plug-in",
            levels: LEVELS,
            default_level: DEFAULT_LEVEL,
        }
    }

    fn encode(
        &self,
        workspace: &mut Workspace,
        raw: &[u8],
        settings: &Settings,
        out: &mut Vec<u8>,
    ) -> Result<Params, CodecError> {
        let level = settings.level.unwrap_or(DEFAULT_LEVEL);
        if !LEVELS.contains(&level) {
            return Err(CodecError::Setting {
                codec: self.id,
                name: "level",
                value: level.into(),
                minimum: i64::from(*LEVELS.start()),
                maximum: i64::from(*LEVELS.end()),
            });
        }
        let host = workspace.host();
        host.call(raw.len(), MEGABYTES_PER_SECOND, || {
            self.encoded(raw, level, out)
        })?;
        Ok(Params::EMPTY)
    }

    fn decode(
        &self,
        workspace: &mut Workspace,
        _params: &Params,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        let host = workspace.host();
        host.call(out.len(), MEGABYTES_PER_SECOND, || {
            self.decoded(&self.current.get(), data, out)
        })
    }

    fn decode_prefix(
        &self,
        workspace: &mut Workspace,
        params: &Params,
        data: &[u8],
        raw_length_bytes: u64,
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        let mut whole = self.room(usize::try_from(raw_length_bytes).unwrap_or(usize::MAX))?;
        self.decode(workspace, params, data, &mut whole)?;
        match whole.get(..out.len()) {
            Some(prefix) => out.copy_from_slice(prefix),
            None => return Err(self.refused("a prefix is longer than its block")),
        }
        Ok(())
    }

    fn encode_memory_bytes(&self, raw_length_bytes: u64, _settings: &Settings) -> u64 {
        let loaded = self.current.get();
        let own = loaded.encode_memory_bytes.max(loaded.decode_memory_bytes);
        // The room for the data, and what it decodes to.
        own.saturating_add(raw_length_bytes.saturating_mul(2))
    }

    fn decode_memory_bytes(&self, raw_length_bytes: u64, _params: &Params) -> u64 {
        let own = self.current.get().decode_memory_bytes;
        own.saturating_add(raw_length_bytes)
    }

    fn on_incompressible(&self, _settings: &Settings) -> OnIncompressible {
        OnIncompressible::Store
    }
}
