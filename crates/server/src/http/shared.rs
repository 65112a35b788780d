//! What all connections of a door share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use refrain_timer::clock::RealClock;

use super::settings::HttpSettings;
use crate::error::Result;
use crate::service::Service;
use crate::statistics::Metric;
use crate::tree::{Tree, TreeOptions};

/// What all connections of a door share.
pub(super) struct Shared {
    pub service: Service,
    /// The members and entries.
    pub tree: Tree,
    pub settings: HttpSettings,
    pub clock: RealClock,
    pub is_stopping: AtomicBool,
    pub in_flight: AtomicU64,
}

impl Shared {
    /// # Errors
    /// Those of the archive's index.
    pub(super) fn new(service: Service, settings: HttpSettings) -> Result<Shared> {
        let options = TreeOptions {
            unnamed: settings.unnamed_member.clone(),
            ..TreeOptions::default()
        };
        let tree = Tree::open(service.archive().clone(), &options)?;
        Ok(Shared {
            service,
            tree,
            settings,
            clock: RealClock::new(),
            is_stopping: AtomicBool::new(false),
            in_flight: AtomicU64::new(0),
        })
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    pub(super) fn requests_in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// The numbers that stand beside the operations in statistics.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        let sources = self.settings.metrics.iter();
        let mut metrics: Vec<Metric> = sources.flat_map(|source| source.metrics()).collect();
        metrics.push(Metric {
            name: "http_requests_in_flight",
            help: "HTTP requests that are being answered.",
            value: self.requests_in_flight() as f64,
        });
        metrics
    }

    /// Reports a failure that no client learns in full.
    pub(super) fn report(&self, text: &str) {
        if let Some(report) = &self.settings.on_failure {
            report(text);
        }
    }
}
