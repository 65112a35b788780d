//! Which decoders read an archive: those of this build, or those that it carries.

use std::fmt;
use std::sync::Arc;

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
