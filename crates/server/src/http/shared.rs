//! State shared by all connections of a handler.

use std::sync::atomic::{AtomicU64, Ordering};

use refrain_sync::clock::RealClock;

use super::answer_memory::AnswerMemory;
use super::settings::HttpSettings;
use crate::error::Result;
use crate::reports::Refusals;
use crate::service::Service;
use crate::statistics::Metric;
use crate::tree::Tree;

/// State shared by all connections of a handler.
pub(super) struct Shared {
    pub service: Service,
    /// The members and entries.
    pub tree: Tree,
    pub settings: HttpSettings,
    pub clock: RealClock,
    pub in_flight: AtomicU64,
    pub answer_memory: AnswerMemory,
    /// Requests that were refused because answers use the memory.
    pub refusals: Refusals,
}

impl Shared {
    /// # Errors
    /// If the archive's index cannot be read.
    pub(super) fn new(service: Service, settings: HttpSettings) -> Result<Shared> {
        let tree = Tree::open(service.archive().clone(), &settings.tree)?;
        tree.report_to(service.reporter());
        Ok(Shared {
            answer_memory: AnswerMemory::new(settings.answer_bytes),
            refusals: Refusals::new(),
            service,
            tree,
            settings,
            clock: RealClock::new(),
            in_flight: AtomicU64::new(0),
        })
    }

    pub(super) fn requests_in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Numbers shown in addition to the operations' statistics.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        let sources = self.settings.metrics.iter();
        let mut metrics: Vec<Metric> = sources.flat_map(|source| source.metrics()).collect();
        let read = self.service.archive().read_statistics();
        for (name, help, value) in [
            (
                "http_requests_in_flight",
                "HTTP requests being answered.",
                self.requests_in_flight(),
            ),
            (
                "http_requests_refused_total",
                "HTTP requests refused while the memory for answers was in use.",
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
