//! How a remote object is read.

use std::path::PathBuf;
use std::time::Duration;

/// How a remote object is read.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// The longest time for one read of up to a few MiB, repetitions included. Larger reads
    /// consist of several.
    pub deadline: Duration,
    /// The longest time without a byte from the server, after which a request is repeated.
    pub stall: Duration,
    /// The longest time until there is a connection.
    pub connect: Duration,
    /// The most attempts in a row without a byte.
    pub attempts_max: u32,
    /// The bytes of fetched pages that are kept. A reader that reads ahead uses half of them.
    pub cache_bytes: u64,
    /// The directory of a temporary file for pages that were fetched and have no room there. It has
    /// no name, and is not made before it is needed, nor on a disk that it would fill by half.
    /// Without one such pages are fetched again.
    pub temporary: Option<PathBuf>,
    /// The most requests in flight.
    pub requests_max: usize,
    /// Certificates of authorities in PEM, which servers with TLS must have theirs from. Without
    /// any, `https` is refused.
    pub certificates: Vec<u8>,
    /// The URL of a proxy (`http://HOST:PORT`).
    pub proxy: Option<String>,
}

impl Default for RemoteOptions {
    fn default() -> RemoteOptions {
        RemoteOptions {
            deadline: Duration::from_secs(30),
            stall: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            attempts_max: 5,
            cache_bytes: 32 << 20,
            temporary: None,
            requests_max: 8,
            certificates: Vec::new(),
            proxy: None,
        }
    }
}
