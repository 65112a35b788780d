//! The NBD handler: files of an archive as block devices, for QEMU, the Linux kernel, libnbd and
//! others.
//!
//! Fixed newstyle negotiation with TLS on request, structured replies, holes (`base:allocation`),
//! several connections per client, prefetch requests. Everything is read-only.

mod allocation;
mod connection;
mod exports;
mod negotiation;
#[cfg(any(test, feature = "property"))]
pub mod property;
mod protocol;
mod requests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use refrain_pool::Permits;

use self::connection::{Connection, Shared};
use self::negotiation::{Agreed, Ended, Negotiation};
use crate::channel::{Channel, PlainChannel};
use crate::clients::{Client, Handler};
use crate::parking::SILENCE;
use crate::time_limit::TimeLimit;
use crate::tls::TlsSettings;

pub use self::exports::{Exports, Wrap};

/// How long a silent client may take for each step of the negotiation.
const NEGOTIATION_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the whole negotiation may take, with that of TLS.
const NEGOTIATION_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a client that is refused may take to notice.
const REFUSAL_TIME_MAX: Duration = Duration::from_secs(5);

/// How long a client may take for 64 KiB of replies.
const SEND_TIME_MAX: Duration = Duration::from_secs(30);

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
    /// How long a client may be silent.
    idle_time_max: Option<Duration>,
}

impl NbdHandler {
    /// A handler of these exports for up to `clients_max` clients at once. `memory_bytes` is the
    /// budget of the whole server, of which all clients together use about an eighth.
    pub fn new(exports: Exports, memory_bytes: u64, clients_max: usize) -> NbdHandler {
        let share_bytes = memory_bytes / 16;
        let threads = share_bytes / THREAD_BYTES / clients_max.max(1) as u64;
        let shared = Shared {
            journal: exports.archives().journal().clone(),
            reply_memory: Permits::new(share_bytes.max(REPLY_BYTES_MIN)),
            threads_per_client: threads.clamp(2, THREADS_PER_CLIENT_MAX) as usize,
        };
        NbdHandler {
            exports,
            shared: Arc::new(shared),
            tls: None,
            idle_time_max: None,
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

    /// Disconnects clients that are silent for this time. Without a limit, the kernel still ends
    /// connections over the network whose clients have vanished.
    #[must_use]
    pub fn with_idle_limit(self, time_max: Option<Duration>) -> NbdHandler {
        NbdHandler {
            idle_time_max: time_max,
            ..self
        }
    }

    /// Lets a client negotiate. With `refusal`, it is told this and nothing else. `None` if it has
    /// left.
    fn negotiate(
        &self,
        client: &Client,
        refusal: Option<&str>,
    ) -> io::Result<Option<(Arc<dyn Channel>, Agreed)>> {
        let time_max = if refusal.is_some() { REFUSAL_TIME_MAX } else { NEGOTIATION_TIME_MAX };
        let socket = client.socket();
        let _limit = TimeLimit::start(socket, time_max);
        let pace = || client.pace(SEND_TIME_MAX, self.shared.journal.reporter());
        let channel: Arc<dyn Channel> = Arc::new(PlainChannel::new(Arc::clone(socket), pace())?);
        channel.set_receive_timeout(Some(NEGOTIATION_TIMEOUT))?;
        let mut negotiation = self.negotiation(&*channel, refusal);
        negotiation.needs_tls = self.tls.is_some();
        if !negotiation.greet()? {
            return Ok(None);
        }
        let has_no_zeroes = negotiation.has_no_zeroes;
        match (negotiation.run()?, &self.tls) {
            (Ended::Agreed(agreed), _) => Ok(Some((channel, agreed))),
            (Ended::StartTls, Some(tls)) => {
                let channel: Arc<dyn Channel> = Arc::new(tls.accept(Arc::clone(socket), pace())?);
                // Everything agreed on before is void.
                let mut negotiation = self.negotiation(&*channel, refusal);
                negotiation.has_no_zeroes = has_no_zeroes;
                match negotiation.run()? {
                    Ended::Agreed(agreed) => Ok(Some((channel, agreed))),
                    Ended::StartTls | Ended::Left => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    fn negotiation<'a>(
        &'a self,
        channel: &'a dyn Channel,
        refusal: Option<&'a str>,
    ) -> Negotiation<'a> {
        Negotiation {
            channel,
            exports: &self.exports,
            refusal,
            needs_tls: false,
            is_structured: false,
            context_of: None,
            has_no_zeroes: false,
        }
    }

    fn connect(&self, mut client: Client) -> io::Result<Option<Arc<Connection>>> {
        let Some((channel, agreed)) = self.negotiate(&client, None)? else {
            return Ok(None);
        };
        client.take_export(&agreed.name);
        channel.set_receive_timeout(Some(SILENCE))?;
        let shared = Arc::clone(&self.shared);
        Ok(Some(Connection::new(
            shared,
            client,
            channel,
            agreed,
            self.idle_time_max,
        )))
    }
}

impl Handler for NbdHandler {
    // Failures here concern only one client, whose connection ends.

    fn serve(&self, client: Client) {
        match self.connect(client) {
            // TLS may hold a request that the socket knows nothing of.
            Ok(Some(connection)) if self.tls.is_some() => connection.run(),
            Ok(Some(connection)) => connection.begin_parked(),
            Ok(None) | Err(_) => {}
        }
    }

    fn refuse(&self, client: Client) {
        let _ = self.negotiate(&client, Some(&client.clients().refusal()));
    }
}
