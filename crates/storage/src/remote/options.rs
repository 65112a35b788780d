//! Options for reading a remote object.

use std::path::PathBuf;
use std::time::Duration;

use refrain_pool::Cancellation;

/// Options for reading a remote object.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// The time without progress after which a failed request is not repeated.
    pub deadline: Duration,
    /// The rate in bytes per second that counts as progress, for all requests in flight together.
    pub rate_min: u64,
    /// The longest time for the head of a response, and without a byte or below the minimal rate in
    /// its body, after which a request is repeated.
    pub stall: Duration,
    /// The longest time to connect.
    pub connect: Duration,
    /// The maximum number of consecutive attempts without progress.
    pub attempts_max: u32,
    /// The bytes of fetched pages to keep. Reading ahead uses half of them.
    pub cache_bytes: u64,
    /// The directory of a temporary file for fetched pages that do not fit into memory. The file
    /// has no name, is created only when needed, and never on a disk of which it would fill half.
    /// Without it such pages are fetched again.
    pub temporary: Option<PathBuf>,
    /// The maximum number of requests in flight, apart from those of waiting readers. Slow servers
    /// get fewer.
    pub requests_max: usize,
    /// Certificates (PEM) of the authorities to trust. If empty, `https` is refused.
    pub certificates: Vec<u8>,
    /// Once it is cancelled, no request is repeated, and the reads that wait to do so fail.
    pub cancellation: Cancellation,
}

impl Default for RemoteOptions {
    fn default() -> RemoteOptions {
        RemoteOptions {
            deadline: Duration::from_secs(30),
            rate_min: 8000,
            stall: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            attempts_max: 5,
            cache_bytes: 32 << 20,
            temporary: None,
            requests_max: 8,
            certificates: Vec::new(),
            cancellation: Cancellation::new(),
        }
    }
}
