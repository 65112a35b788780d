//! What all handlers need of an archive: its bytes, and where to count and report.

use std::ops::Range;
use std::sync::Arc;

use refrain::Archive;

use crate::archive_counts::ArchiveCounts;
use crate::reports::Reports;
use crate::statistics::Statistics;

/// An opened archive that handlers serve, and the statistics of requests. Clones share both.
#[derive(Clone)]
pub struct Service(Arc<State>);

struct State {
    archive: Arc<Archive>,
    journal: Journal,
    /// For one of several archives: its name, and what was asked of it.
    named: Option<(String, Arc<ArchiveCounts>)>,
}

/// Receives lines that the server's owner should know: damage, a refused client.
pub type Reporter = dyn Fn(&str) + Send + Sync;

/// What a server counts and tells its owner. Clones share it.
#[derive(Clone)]
pub(crate) struct Journal {
    statistics: Arc<Statistics>,
    reporter: Arc<Reporter>,
    reports: Arc<Reports>,
}

impl Journal {
    pub(crate) fn new(reporter: Arc<Reporter>) -> Journal {
        Journal {
            statistics: Arc::new(Statistics::new()),
            reporter,
            reports: Arc::default(),
        }
    }

    /// The statistics of all handlers.
    pub(crate) fn statistics(&self) -> &Arc<Statistics> {
        &self.statistics
    }

    /// The receiver of reports.
    pub(crate) fn reporter(&self) -> Arc<Reporter> {
        Arc::clone(&self.reporter)
    }

    /// Reports a line unless one with this key was reported before.
    pub(crate) fn report_once(&self, key: String, line: &str) {
        if self.reports.is_new(key) {
            (self.reporter)(line);
        }
    }

    /// Reports that a range of a file cannot be read, in bytes: once for each cause and file, as
    /// clients repeat what failed, and ask for many ranges of one block.
    pub(crate) fn report_unread(&self, name: &str, range: Range<u64>, error: &refrain::Error) {
        let Range { start, end } = range;
        let line = format!("{name}: cannot be read between {start} and {end}: {error}");
        self.report_once(format!("{name}: {}", cause_of(error)), &line);
    }
}

impl Service {
    /// A service of this archive.
    pub fn new(archive: Archive, reporter: Arc<Reporter>) -> Service {
        Service::renewed(archive, Journal::new(reporter))
    }

    /// An archive in place of another.
    pub(crate) fn renewed(archive: Archive, journal: Journal) -> Service {
        Service(Arc::new(State {
            archive: Arc::new(archive),
            journal,
            named: None,
        }))
    }

    /// One of several archives.
    pub(crate) fn named(
        archive: Archive,
        journal: Journal,
        name: &[u8],
        counts: Arc<ArchiveCounts>,
    ) -> Service {
        Service(Arc::new(State {
            archive: Arc::new(archive),
            journal,
            named: Some((String::from_utf8_lossy(name).into_owned(), counts)),
        }))
    }

    /// The archive.
    pub fn archive(&self) -> &Arc<Archive> {
        &self.0.archive
    }

    /// The receiver of reports about the archive.
    pub fn reporter(&self) -> Arc<Reporter> {
        let reporter = self.0.journal.reporter();
        match &self.0.named {
            None => reporter,
            Some((name, _)) => {
                let name = name.clone();
                Arc::new(move |line: &str| reporter(&format!("{name}: {line}")))
            }
        }
    }

    /// Reports a line about the archive to the server's owner.
    pub fn report(&self, line: &str) {
        self.reporter()(line);
    }

    /// The statistics of all handlers.
    pub fn statistics(&self) -> &Arc<Statistics> {
        self.0.journal.statistics()
    }

    /// Where requests are counted and failures reported.
    pub(crate) fn journal(&self) -> &Journal {
        &self.0.journal
    }

    /// What was asked of one of several archives.
    pub(crate) fn counts(&self) -> Option<&Arc<ArchiveCounts>> {
        self.0.named.as_ref().map(|(_, counts)| counts)
    }

    /// Whether there are other clones of this: something reads the archive.
    pub(crate) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

/// What failed, without the place in the content, which depends on the request.
pub(crate) fn cause_of(error: &refrain::Error) -> String {
    let (block, offset) = (error.location.block, error.location.archive_offset);
    format!("{block:?} {offset:?} {}", error.cause)
}
