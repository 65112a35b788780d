//! An archive in volumes, found but not opened.

use std::sync::Arc;

use refrain::storage::Source;
use refrain::volumes::open_volumes;
use refrain_storage::VolumePlace;

use crate::failure::{Failure, Result};

/// An archive in volumes.
pub struct InVolumes {
    /// Where the volumes are.
    pub place: Arc<dyn VolumePlace>,
    /// The name of the head, if it is not the newest.
    pub head: Option<String>,
}

impl InVolumes {
    /// Its bytes.
    ///
    /// # Errors
    /// From the engine.
    pub fn source(&self, label: &str) -> Result<Arc<dyn Source>> {
        open_volumes(&self.place, self.head.as_deref())
            .map_err(|error| Failure::engine(label, error))
    }
}
