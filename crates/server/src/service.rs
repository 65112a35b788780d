//! What all handlers share.

use std::sync::Arc;

use refrain::Archive;

use crate::statistics::Statistics;

/// An opened archive that handlers serve, and the statistics of what is asked of it. Cloning it
/// gives another handle to the same.
#[derive(Clone)]
pub struct Service {
    archive: Arc<Archive>,
    statistics: Arc<Statistics>,
    reporter: Arc<Reporter>,
}

/// Is told in one line what the server's owner should know: damage, a client that was refused.
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

    /// Who is told.
    pub fn reporter(&self) -> Arc<Reporter> {
        Arc::clone(&self.reporter)
    }

    /// Tells the server's owner something.
    pub fn report(&self, line: &str) {
        (self.reporter)(line);
    }

    /// The statistics of all handlers.
    pub fn statistics(&self) -> &Arc<Statistics> {
        &self.statistics
    }
}
