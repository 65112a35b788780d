//! State shared by all connections of a handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use refrain_cache::tiers::TierRow;
use refrain_sync::clock::RealClock;

use super::answer_memory::AnswerMemory;
use super::settings::HttpSettings;
use super::working_archives::WorkingArchives;
use crate::archives::Archives;
use crate::error::Result;
use crate::reports::Occurrences;
use crate::statistics::Metric;
use crate::tree::TreeMemory;

/// State shared by all connections of a handler.
pub(super) struct Shared {
    pub archives: Archives,
    /// For the members and entries of all archives.
    pub tree_memory: Arc<TreeMemory>,
    pub settings: HttpSettings,
    pub clock: RealClock,
    pub in_flight: AtomicU64,
    pub answer_memory: AnswerMemory,
    pub working_archives: WorkingArchives,
    /// Requests that were refused because answers use the memory.
    pub refusals: Occurrences,
}

impl Shared {
    /// # Errors
    /// If the index of an archive without a name cannot be read.
    pub(super) fn new(archives: Archives, settings: HttpSettings) -> Result<Shared> {
        let tree_memory = TreeMemory::new(&settings.tree);
        if let Some(opened) = archives.only() {
            opened.tree(&settings.tree, &settings.tree.unnamed, &tree_memory)?;
        }
        Ok(Shared {
            answer_memory: AnswerMemory::new(settings.answer_bytes),
            working_archives: WorkingArchives::new(settings.working_bytes),
            refusals: Occurrences::new(),
            archives,
            tree_memory,
            settings,
            clock: RealClock::new(),
            in_flight: AtomicU64::new(0),
        })
    }

    pub(super) fn requests_in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Numbers shown in addition to the operations' statistics.
    pub(super) fn tiers(&self) -> Vec<TierRow> {
        let tiers = self.settings.tiers.as_ref();
        tiers.map_or_else(Vec::new, |tiers| tiers.rows())
    }

    pub(super) fn reset_tiers(&self) {
        self.settings.tiers.iter().for_each(|tiers| tiers.reset());
    }

    pub(super) fn metrics(&self) -> Vec<Metric> {
        let sources = self.settings.metrics.iter();
        let mut metrics: Vec<Metric> = sources.flat_map(|source| source.metrics()).collect();
        let read = self.archives.read_statistics();
        for (name, help, value) in [
            (
                "http_requests_in_flight",
                "HTTP requests being answered.",
                self.requests_in_flight(),
            ),
            (
                "http_requests_refused_total",
                "HTTP requests refused because others used the memory for answers or decoded blocks.",
                self.refusals.count(),
            ),
            (
                "cache_hits_total",
                "Blocks that reads found in memory.",
                read.hits,
            ),
            (
                "cache_misses_total",
                "Blocks that reads did not find in memory.",
                read.misses,
            ),
            (
                "delivered_bytes_total",
                "Bytes that reads took from blocks.",
                read.delivered_bytes,
            ),
            (
                "decoded_bytes_total",
                "Bytes that were decoded.",
                read.decoded_bytes,
            ),
            (
                "source_bytes_total",
                "Bytes of frames read from the archive.",
                read.source_bytes,
            ),
            (
                "prefetches_total",
                "Blocks decoded ahead of reads.",
                read.prefetches,
            ),
        ] {
            metrics.push(Metric {
                name,
                help,
                value: value as f64,
            });
        }
        metrics
    }
}
