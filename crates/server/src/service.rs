//! State shared by all handlers.

use std::sync::Arc;

use refrain::Archive;

use crate::statistics::Statistics;

/// An opened archive that handlers serve, and the statistics of requests. Clones share both.
#[derive(Clone)]
pub struct Service {
    archive: Arc<Archive>,
    statistics: Arc<Statistics>,
    reporter: Arc<Reporter>,
}

/// Receives lines that the server's owner should know: damage, a refused client.
pub type Reporter = dyn Fn(&str) + Send + Sync;

impl Service {
    /// A service of this archive.
    pub fn new(archive: Archive, reporter: Arc<Reporter>) -> Service {
        Service {
            archive: Arc::new(archive),
            statistics: Arc::new(Statistics::new()),
            reporter,
        }
    }

    /// The archive.
    pub fn archive(&self) -> &Arc<Archive> {
        &self.archive
    }

    /// The receiver of reports.
    pub fn reporter(&self) -> Arc<Reporter> {
        Arc::clone(&self.reporter)
    }

    /// Reports a line to the server's owner.
    pub fn report(&self, line: &str) {
        (self.reporter)(line);
    }

    /// The statistics of all handlers.
    pub fn statistics(&self) -> &Arc<Statistics> {
        &self.statistics
    }
}
