//! Which decoders read an archive: those of this build, or those that it carries.

use std::fmt;
use std::sync::Arc;

use refrain_codec::CodecId;

pub use refrain_format::DecoderRole;

/// Which decoders read an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DecoderChoice {
    /// Those of this build. For a codec or filter that it lacks, the module that the archive
    /// carries.
    #[default]
    Own,
    /// The modules that the archive carries, for everything: an archive without them is refused. A
    /// plug-in that is loaded is used where the archive carries no module in its place.
    /// Far slower, for the proof that the archive opens by itself.
    Carried,
}

/// Is told which codecs and filters a module of the archive stands in for: once for each, and for
/// each opened archive.
#[derive(Clone, Default)]
pub struct DecoderListener(Option<Arc<dyn Fn(DecoderRole) + Send + Sync>>);

impl DecoderListener {
    /// Does nothing.
    pub const SILENT: DecoderListener = DecoderListener(None);

    /// Calls `listen`, from any thread.
    pub fn new(listen: impl Fn(DecoderRole) + Send + Sync + 'static) -> DecoderListener {
        DecoderListener(Some(Arc::new(listen)))
    }

    pub(crate) fn tell(&self, role: DecoderRole) {
        if let Some(listen) = &self.0 {
            listen(role);
        }
    }
}

impl fmt::Debug for DecoderListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecoderListener")
    }
}

/// A codec or filter for which an archive carries a decoder, or says of which plug-in it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecoderInfo {
    /// The codec or filter.
    pub role: DecoderRole,
    /// The length of the decoder, a WebAssembly module, in bytes.
    pub module_bytes: Option<u64>,
    /// The name of the plug-in.
    pub plugin: Option<String>,
}

impl DecoderInfo {
    /// The codec or filter: its number, and its name if this build has it.
    pub fn name(&self) -> String {
        name_of(self.role)
    }
}

/// The codec or filter for messages: its number, and its name if this build has it.
pub(crate) fn name_of(role: DecoderRole) -> String {
    let name = match role {
        DecoderRole::Codec(number) => CodecId(number).name(),
        DecoderRole::Filter(_) => None,
    };
    name.map_or_else(|| role.to_string(), |name| format!("{role} ({name})"))
}
