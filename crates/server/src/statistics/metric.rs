//! Numbers that other parts of a server add to its statistics.

/// A named number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// The name without the prefix `refrain_`; counters end with `_total`.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// The number.
    pub value: f64,
}

impl Metric {
    /// Whether the number only increases.
    pub fn is_counter(&self) -> bool {
        self.name.ends_with("_total")
    }
}

/// Provides numbers.
pub trait MetricSource: Send + Sync {
    /// The present numbers.
    fn metrics(&self) -> Vec<Metric>;
}

impl<F: Fn() -> Vec<Metric> + Send + Sync> MetricSource for F {
    fn metrics(&self) -> Vec<Metric> {
        self()
    }
}
