//! Settings of an HTTP handler.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use refrain_cache::Tiers;

use crate::statistics::MetricSource;
use crate::tree::TreeOptions;

/// Settings of an HTTP handler.
#[derive(Clone)]
pub struct HttpSettings {
    /// The name of the archive, or of all of several, for people.
    pub archive_name: String,
    /// The members and entries, and the memory for them.
    pub tree: TreeOptions,
    /// How long a request's head may take from its first byte to its last.
    pub head_timeout: Duration,
    /// How long a connection may be idle.
    pub idle_timeout: Duration,
    /// How long a client may take for 64 KiB of a response.
    pub write_timeout: Duration,
    /// How much content is decoded at once for a response, in bytes of memory per connection.
    pub chunk_bytes: usize,
    /// The memory for the responses being sent, in bytes. Requests beyond it are refused.
    pub answer_bytes: u64,
    /// The memory for blocks that long responses decode, in bytes: requests for archives beyond it
    /// are refused.
    pub working_bytes: u64,
    /// How long caches may keep content of a single archive, in seconds. Frames, whose address
    /// contains their hash, may be kept for a year.
    pub max_age_seconds: u64,
    /// Names by which clients of a loopback socket may call this server, in addition to every
    /// machine's own names.
    pub host_names: Vec<String>,
    /// Whether clients on other machines may reset the statistics.
    pub resets_from_anywhere: bool,
    /// Further numbers for the statistics.
    pub metrics: Vec<Arc<dyn MetricSource>>,
    /// The caches in front of the archives, whose counts are among the statistics.
    pub tiers: Option<Arc<Tiers>>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        HttpSettings {
            archive_name: "archive".to_owned(),
            tree: TreeOptions::default(),
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            chunk_bytes: 1 << 20,
            answer_bytes: 64 << 20,
            working_bytes: u64::MAX,
            max_age_seconds: 86_400,
            host_names: vec![],
            resets_from_anywhere: false,
            metrics: vec![],
            tiers: None,
        }
    }
}

impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSettings")
            .field("archive_name", &self.archive_name)
            .field("tree", &self.tree)
            .field("head_timeout", &self.head_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("write_timeout", &self.write_timeout)
            .field("chunk_bytes", &self.chunk_bytes)
            .field("answer_bytes", &self.answer_bytes)
            .field("working_bytes", &self.working_bytes)
            .field("max_age_seconds", &self.max_age_seconds)
            .field("host_names", &self.host_names)
            .field("resets_from_anywhere", &self.resets_from_anywhere)
            .finish_non_exhaustive()
    }
}
