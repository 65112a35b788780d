//! State shared by all handlers.

use std::ops::Range;
use std::sync::Arc;

use refrain::Archive;

use crate::reports::Reports;
use crate::statistics::Statistics;

/// An opened archive that handlers serve, and the statistics of requests. Clones share both.
#[derive(Clone)]
pub struct Service {
    archive: Arc<Archive>,
    statistics: Arc<Statistics>,
    reporter: Arc<Reporter>,
    reports: Arc<Reports>,
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
            reports: Arc::default(),
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

    /// Reports a line unless one with this key was reported before.
    pub(crate) fn report_once(&self, key: String, line: &str) {
        if self.reports.is_new(key) {
            self.report(line);
        }
    }

    /// Reports that a range of a file cannot be read, in bytes: once for each cause and file, as
    /// clients repeat what failed, and ask for many ranges of one block.
    pub(crate) fn report_unread(&self, name: &str, range: Range<u64>, error: &refrain::Error) {
        let Range { start, end } = range;
        let line = format!("{name}: cannot be read between {start} and {end}: {error}");
        self.report_once(format!("{name}: {}", cause_of(error)), &line);
    }

    /// The statistics of all handlers.
    pub fn statistics(&self) -> &Arc<Statistics> {
        &self.statistics
    }
}

/// What failed, without the place in the content, which depends on the request.
pub(crate) fn cause_of(error: &refrain::Error) -> String {
    let (block, offset) = (error.location.block, error.location.archive_offset);
    format!("{block:?} {offset:?} {}", error.cause)
}
