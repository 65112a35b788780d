//! What must hold for any bytes from a client, for a property test and a fuzz target.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use refrain_pool::{Lock, Permits};

use super::connection::{Connection, Shared};
use super::exports::Exports;
use super::negotiation::{Ended, Negotiation};
use crate::channel::Channel;
use crate::clients::Clients;
use crate::fixture::{archive_of, open};
use crate::service::Service;
use crate::socket::Socket;

/// The maximum reply bytes per byte from a client: a request of 28 bytes may ask for 32 MiB.
const REPLY_FACTOR: usize = 2 << 20;

/// A client with predetermined bytes, which counts what it receives.
#[derive(Default)]
struct Bytes {
    left: Lock<Vec<u8>>,
    sent_bytes: Lock<usize>,
}

impl Channel for Bytes {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut left = self.left.lock();
        let count = left.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(left.drain(..count)) {
            *to = from;
        }
        Ok(count)
    }

    fn send(&self, head: &[u8], body: &[u8]) -> io::Result<()> {
        *self.sent_bytes.lock() += head.len() + body.len();
        Ok(())
    }

    fn set_receive_timeout(&self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn finish(&self) -> io::Result<()> {
        Ok(())
    }

    fn close(&self) {}
}

/// Exports of a small archive.
fn exports() -> Option<&'static Exports> {
    static EXPORTS: OnceLock<Option<Exports>> = OnceLock::new();
    let make = || {
        let mut content = b"some content, and a hole".repeat(400);
        content.resize(100_000, 0);
        let archive = open(archive_of("disk", content).ok()?).ok()?;
        Exports::new(Service::new(archive, Arc::new(|_: &str| {}))).ok()
    };
    EXPORTS.get_or_init(make).as_ref()
}

/// A client that sends these bytes, after taking an export or from the beginning, gets replies of
/// bounded length, and its connection ends. Returns the number of reply bytes.
///
/// # Panics
/// If the property does not hold.
pub fn client(has_negotiated: bool, bytes: &[u8]) -> usize {
    let Some(exports) = exports() else {
        return 0;
    };
    let channel = Arc::new(Bytes::default());
    let mut all = vec![];
    if has_negotiated {
        all.extend_from_slice(b"\0\0\0\x03IHAVEOPT\0\0\0\x08\0\0\0\0");
        all.extend_from_slice(b"IHAVEOPT\0\0\0\x01\0\0\0\x04disk");
    }
    all.extend_from_slice(bytes);
    let all_bytes = all.len();
    *channel.left.lock() = all;
    // Both ends are closed at the end; nothing is sent through them.
    let Ok((socket, _other)) = std::os::unix::net::UnixStream::pair() else {
        return 0;
    };
    let clients = Clients::new(1);
    if let Some(agreed) = agreed(&channel, exports)
        && let Some(client) = clients.add(Socket::Unix(socket))
    {
        let shared = Arc::new(Shared {
            journal: exports.archives().journal().clone(),
            reply_memory: Permits::new(1 << 20),
            threads_per_client: 1,
        });
        Connection::new(shared, client, channel.clone(), agreed, None).run();
    }
    let sent_bytes = *channel.sent_bytes.lock();
    assert_eq!(clients.count(), 0, "the client is gone");
    assert!(sent_bytes <= 4096 + all_bytes.saturating_mul(REPLY_FACTOR));
    sent_bytes
}

fn agreed(channel: &Arc<Bytes>, exports: &Exports) -> Option<super::negotiation::Agreed> {
    let mut negotiation = Negotiation {
        channel: &**channel,
        exports,
        refusal: None,
        needs_tls: false,
        is_structured: false,
        context_of: None,
        has_no_zeroes: false,
    };
    if !negotiation.greet().ok()? {
        return None;
    }
    match negotiation.run().ok()? {
        Ended::Agreed(agreed) => Some(agreed),
        Ended::StartTls | Ended::Left => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_client_that_keeps_the_protocol_gets_what_it_asks_for() {
        let mut read = vec![0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        read.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 100]);
        let without = client(true, &[]);
        assert_eq!(client(true, &read), without + 28 + 100);
    }

    proptest! {
        #[test]
        fn any_bytes_end(has_negotiated: bool, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            client(has_negotiated, &bytes);
        }
    }
}
