//! The filter of a plug-in.

use std::ops::RangeInclusive;

use refrain_codec::{Error as CodecError, FilterDescription, Host, PluginFilter};

use crate::current::{Current, kept};
use crate::library::LoadedFilter;

/// What a call is expected to do at least: longer ones are made aside.
const MEGABYTES_PER_SECOND: usize = 500;

#[derive(Debug)]
pub(crate) struct FilterPlugin {
    id: u8,
    name: &'static str,
    parameters: RangeInclusive<u8>,
    current: Current<LoadedFilter>,
}

impl FilterPlugin {
    pub(crate) fn new(loaded: LoadedFilter) -> FilterPlugin {
        FilterPlugin {
            id: loaded.number,
            name: kept(&loaded.name),
            parameters: loaded.parameters.clone(),
            current: Current::new(loaded),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Takes a later version, if it is one, with the same parameters.
    pub(crate) fn replace_by(&self, new: LoadedFilter) -> bool {
        let own = (self.id, self.name, &self.parameters);
        let is_same = (new.number, new.name.as_str(), &new.parameters) == own;
        if is_same {
            self.current.set(new);
        }
        is_same
    }

    /// Makes a call in the current library, which returns the length if all is well.
    fn call(
        &self,
        host: Host,
        bytes: &mut [u8],
        cause: &'static str,
        call: impl FnOnce(&LoadedFilter, &mut [u8]) -> i64 + Send,
    ) -> Result<(), CodecError> {
        let length = bytes.len();
        let made = || call(&self.current.get(), bytes);
        let (id, name) = (self.id, self.name);
        match host.call(length, MEGABYTES_PER_SECOND, made) {
            found if usize::try_from(found) == Ok(length) => Ok(()),
            found if found < 0 => Err(CodecError::FilterFailed { id, name, cause }),
            _ => Err(CodecError::FilterFailed {
                id,
                name,
                cause: "the plug-in states another length than that of the bytes",
            }),
        }
    }
}

impl PluginFilter for FilterPlugin {
    fn describe(&self) -> FilterDescription {
        FilterDescription {
            id: self.id,
            name: self.name,
            parameters: self.parameters.clone(),
        }
    }

    fn encode(&self, host: Host, param: u8, bytes: &mut [u8]) -> Result<(), CodecError> {
        let cause = "the plug-in does not filter the bytes";
        self.call(host, bytes, cause, |loaded, bytes| {
            loaded.encode(bytes, param)
        })
    }

    fn decode(&self, host: Host, param: u8, bytes: &mut [u8]) -> Result<(), CodecError> {
        let cause = "the plug-in cannot undo it: the bytes are damaged";
        self.call(host, bytes, cause, |loaded, bytes| {
            loaded.decode(bytes, param)
        })
    }

    fn memory_bytes(&self) -> u64 {
        self.current.get().memory_bytes
    }
}
