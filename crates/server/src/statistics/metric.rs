//! Numbers that other parts of a server add to its statistics.

/// A number with a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// The name after the prefix `refrain_`; that of a counter ends with `_total`.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// The number.
    pub value: f64,
}

impl Metric {
    /// Whether the number only grows.
    pub fn is_counter(&self) -> bool {
        self.name.ends_with("_total")
    }
}

/// Something that has numbers.
pub trait MetricSource: Send + Sync {
    /// The numbers at present.
    fn metrics(&self) -> Vec<Metric>;
}

impl<F: Fn() -> Vec<Metric> + Send + Sync> MetricSource for F {
    fn metrics(&self) -> Vec<Metric> {
        self()
    }
}
