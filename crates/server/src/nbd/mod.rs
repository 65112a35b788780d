//! The NBD handler: files of an archive as block devices, for QEMU, the Linux kernel, libnbd and
//! others.
//!
//! Fixed newstyle negotiation with TLS on request, structured replies, holes (`base:allocation`),
//! several connections per client, prefetch requests. Everything is read-only.

mod allocation;
mod channel;
mod connection;
mod exports;
mod negotiation;
#[cfg(any(test, feature = "property"))]
pub mod property;
mod protocol;
mod requests;
mod tls;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use refrain_pool::Permits;

use self::channel::Channel;
use self::connection::{Connection, Shared};
use self::negotiation::{Agreed, Ended, Negotiation};
use crate::clients::{Client, Handler};
use crate::parking::SILENCE;

pub use self::exports::{Exports, Wrap};
pub use self::tls::TlsSettings;

/// How long a silent client may take for each step of the negotiation.
const NEGOTIATION_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may accept no byte of a reply.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

const THREADS_PER_CLIENT_MAX: u64 = 16;

/// The memory of a client's thread, in bytes: the chunk being sent, and what decoding needs.
const THREAD_BYTES: u64 = 512 << 10;

/// The minimum memory for replies that cannot be sent in chunks, in bytes.
const REPLY_BYTES_MIN: u64 = 32 << 20;

/// Serves exports to NBD clients.
pub struct NbdHandler {
    exports: Exports,
    shared: Arc<Shared>,
    tls: Option<TlsSettings>,
}

impl NbdHandler {
    /// A handler of these exports for up to `clients_max` clients at once. `memory_bytes` is the
    /// budget of the whole server, of which all clients together use about an eighth.
    pub fn new(exports: Exports, memory_bytes: u64, clients_max: usize) -> NbdHandler {
        let share_bytes = memory_bytes / 16;
        let threads = share_bytes / THREAD_BYTES / clients_max.max(1) as u64;
        let shared = Shared {
            service: exports.service().clone(),
            reply_memory: Permits::new(share_bytes.max(REPLY_BYTES_MIN)),
            threads_per_client: threads.clamp(2, THREADS_PER_CLIENT_MAX) as usize,
        };
        NbdHandler {
            exports,
            shared: Arc::new(shared),
            tls: None,
        }
    }

    /// Requires TLS.
    #[must_use]
    pub fn with_tls(self, settings: TlsSettings) -> NbdHandler {
        NbdHandler {
            tls: Some(settings),
            ..self
        }
    }

    /// Lets a client negotiate; `None` if it has left.
    fn negotiate(&self, client: Client) -> io::Result<Option<Arc<Connection>>> {
        let socket = Arc::clone(client.socket());
        socket.set_read_timeout(Some(NEGOTIATION_TIMEOUT))?;
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        let channel: Arc<dyn Channel> = Arc::clone(&socket) as _;
        let mut negotiation = self.negotiation(&*channel, self.tls.is_some());
        if !negotiation.greet()? {
            return Ok(None);
        }
        let has_no_zeroes = negotiation.has_no_zeroes;
        match (negotiation.run()?, &self.tls) {
            (Ended::Agreed(agreed), _) => self.connection(client, channel, agreed),
            (Ended::StartTls, Some(tls)) => {
                let channel: Arc<dyn Channel> = Arc::new(tls.accept(socket)?);
                // Everything agreed on before is void.
                let mut negotiation = self.negotiation(&*channel, false);
                negotiation.has_no_zeroes = has_no_zeroes;
                match negotiation.run()? {
                    Ended::Agreed(agreed) => self.connection(client, channel, agreed),
                    Ended::StartTls | Ended::Left => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    fn negotiation<'a>(&'a self, channel: &'a dyn Channel, needs_tls: bool) -> Negotiation<'a> {
        Negotiation {
            channel,
            exports: &self.exports,
            needs_tls,
            is_structured: false,
            context_of: None,
            has_no_zeroes: false,
        }
    }

    fn connection(
        &self,
        mut client: Client,
        channel: Arc<dyn Channel>,
        agreed: Agreed,
    ) -> io::Result<Option<Arc<Connection>>> {
        client.take_export(&agreed.name);
        channel.set_receive_timeout(Some(SILENCE))?;
        let shared = Arc::clone(&self.shared);
        Ok(Some(Connection::new(shared, client, channel, agreed)))
    }
}

impl Handler for NbdHandler {
    fn serve(&self, client: Client) {
        // Failures here concern only this client, whose connection ends.
        if let Ok(Some(connection)) = self.negotiate(client) {
            connection.run();
        }
    }
}
