//! A plug-in: the codec or filter of a library, which a later version of it may replace.

use std::path::Path;

use refrain_codec::{register_plugin, register_plugin_filter};

use crate::codec::CodecPlugin;
use crate::error::Error;
use crate::filter::FilterPlugin;
use crate::library::Loaded;

/// The codec or filter of a library, which may be replaced by a later version of itself.
#[derive(Debug)]
pub struct Plugin(Kind);

#[derive(Debug)]
enum Kind {
    Codec(CodecPlugin),
    Filter(FilterPlugin),
}

impl Plugin {
    /// Loads a library.
    ///
    /// # Errors
    /// All but `Taken`, `Different` and `Sample`.
    pub fn load(path: &Path) -> Result<Plugin, Error> {
        Ok(Plugin(match Loaded::open(path)? {
            Loaded::Codec(loaded) => Kind::Codec(CodecPlugin::new(loaded)),
            Loaded::Filter(loaded) => Kind::Filter(FilterPlugin::new(loaded)),
        }))
    }

    /// Adds the codec or filter to those of the process.
    ///
    /// # Errors
    /// `Taken`.
    pub fn register(self) -> Result<&'static Plugin, Error> {
        let plugin: &'static Plugin = Box::leak(Box::new(self));
        let registered = match &plugin.0 {
            Kind::Codec(codec) => register_plugin(codec),
            Kind::Filter(filter) => register_plugin_filter(filter),
        };
        registered.map_err(Error::Taken)?;
        Ok(plugin)
    }

    /// Uses a later version of the library from now on. Calls that have begun end in the old one.
    ///
    /// # Errors
    /// As [`Plugin::load`], and `Different`: the old one stays.
    pub fn replace_by(&self, path: &Path) -> Result<(), Error> {
        let is_same = match (&self.0, Loaded::open(path)?) {
            (Kind::Codec(codec), Loaded::Codec(new)) => codec.replace_by(new),
            (Kind::Filter(filter), Loaded::Filter(new)) => filter.replace_by(new),
            _ => false,
        };
        let name = self.name();
        is_same.then_some(()).ok_or(Error::Different { name })
    }

    /// Its name, which archives record.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match &self.0 {
            Kind::Codec(codec) => codec.name(),
            Kind::Filter(filter) => filter.name(),
        }
    }
}
