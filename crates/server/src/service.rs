//! What all doors share.

use std::sync::Arc;

use refrain::Archive;

use crate::statistics::Statistics;

/// An opened archive that doors serve, and the statistics of what is asked of it. Cloning it gives
/// another handle to the same.
#[derive(Clone)]
pub struct Service {
    archive: Arc<Archive>,
    statistics: Arc<Statistics>,
}

impl Service {
    /// A service of this archive.
    pub fn new(archive: Archive) -> Service {
        Service {
            archive: Arc::new(archive),
            statistics: Arc::new(Statistics::new()),
        }
    }

    /// The archive.
    pub fn archive(&self) -> &Arc<Archive> {
        &self.archive
    }

    /// The statistics of all doors.
    pub fn statistics(&self) -> &Arc<Statistics> {
        &self.statistics
    }
}
