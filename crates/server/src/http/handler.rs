//! The HTTP handler: serves a connection from its first to its last request.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use refrain_sync::clock::Clock;

use super::answer::answer;
use super::connection::{ClientWriter, Connection};
use super::exchange::{Exchange, Served, UNAVAILABLE, refuse};
use super::head::{HeadError, RequestBody, RequestHead};
use super::host::{REFUSED, is_local_name};
use super::reader::{NoRequest, RequestReader};
use super::response::Status;
use super::settings::HttpSettings;
use super::shared::Shared;
use crate::archives::Archives;
use crate::clients::{Client, Handler};
use crate::error::Result;
use crate::listener::Listener;
use crate::parking::{SILENCE, park};
use crate::statistics::{Operation, Outcome};
use crate::time_limit::TimeLimit;
use crate::tls::TlsSettings;

/// The longest request body that is read and discarded, in bytes. No resource takes one.
const BODY_BYTES_MAX: u64 = 64 << 10;

/// How long a refused client may keep sending. Closing at once could lose the response.
const LINGER: Duration = Duration::from_secs(1);

/// How long a client that is refused may take to notice.
const REFUSAL_TIME_MAX: Duration = Duration::from_secs(5);

/// A connection between two requests.
struct Session {
    connection: Connection,
    reader: RequestReader,
    /// When the client was last answered, or connected.
    idle_since: Duration,
}

/// Serves archives over HTTP. Clones share them.
#[derive(Clone)]
pub struct HttpHandler {
    shared: Arc<Shared>,
    /// Whether requests must use a name of this machine.
    is_loopback: bool,
    tls: Option<TlsSettings>,
}

impl HttpHandler {
    /// A handler for one archive, whose members' names it reads, or for several.
    ///
    /// # Errors
    /// If the archive's index cannot be read.
    pub fn new(archives: impl Into<Archives>, settings: HttpSettings) -> Result<HttpHandler> {
        Ok(HttpHandler {
            shared: Arc::new(Shared::new(archives.into(), settings)?),
            is_loopback: false,
            tls: None,
        })
    }

    /// The same handler for the clients of one socket. On a loopback address it refuses requests
    /// that call the server by another machine's name: they may come from a malicious web page.
    pub fn at(&self, listener: &Listener) -> HttpHandler {
        HttpHandler {
            shared: Arc::clone(&self.shared),
            is_loopback: listener.is_loopback(),
            tls: self.tls.clone(),
        }
    }

    /// Requires TLS.
    #[must_use]
    pub fn with_tls(self, settings: TlsSettings) -> HttpHandler {
        HttpHandler {
            tls: Some(settings),
            ..self
        }
    }

    /// The number of requests being answered.
    pub fn requests_in_flight(&self) -> u64 {
        self.shared.requests_in_flight()
    }

    /// Prepares a connection.
    ///
    /// # Errors
    /// If the client has left, or TLS fails.
    fn begin(&self, client: Client) -> io::Result<Session> {
        let settings = &self.shared.settings;
        let tls = self.tls.as_ref();
        let limit = tls.map(|_| TimeLimit::start(client.socket(), settings.head_timeout));
        let pace = client.pace(settings.write_timeout, self.shared.archives.reporter());
        let connection = Connection::begin(client, tls, pace)?;
        drop(limit);
        connection.set_receive_timeout(SILENCE)?;
        Ok(Session {
            connection,
            reader: RequestReader::default(),
            idle_since: self.shared.clock.now(),
        })
    }

    /// How long a client may be silent from now on.
    fn idle_time_left(&self, session: &Session) -> Duration {
        if session.connection.is_stopping() {
            return Duration::ZERO;
        }
        let idle = self.shared.clock.now().saturating_sub(session.idle_since);
        self.shared.settings.idle_timeout.saturating_sub(idle)
    }

    /// Answers requests. Returns `true` when the client is silent, `false` when the connection has
    /// ended.
    fn serve_until_silence(&self, session: &mut Session) -> bool {
        let Session {
            connection,
            reader,
            idle_since,
        } = session;
        let (clock, limit) = (&self.shared.clock, self.shared.settings.head_timeout);
        loop {
            let is_last = match reader.next(connection, clock, limit) {
                Ok(head) => !self.answer(&head, reader, connection),
                Err(NoRequest::Ended) => return false,
                Err(NoRequest::Silence) => return true,
                Err(NoRequest::Late) => {
                    let text = "the request did not end in time";
                    self.refuse_request(connection, Status(408), text);
                    true
                }
                Err(NoRequest::Malformed(error)) => {
                    let (status, text) = describe(error);
                    self.refuse_request(connection, status, text);
                    true
                }
            };
            if is_last {
                self.linger(reader, connection);
                return false;
            }
            *idle_since = clock.now();
        }
    }

    /// Serves a client of a listener until the connection ends, without a thread while the client
    /// is silent.
    fn go_on(&self, mut session: Session) {
        let share = session.connection.client.share().clone();
        if !share.install(|| self.serve_until_silence(&mut session)) {
            return;
        }
        let left = self.idle_time_left(&session);
        if !left.is_zero() {
            let this = self.clone();
            let socket = Arc::clone(session.connection.client.socket());
            park(&socket, Some(left), move |is_readable| {
                if is_readable {
                    this.go_on(session);
                } else {
                    session.connection.client.count_silent();
                }
            });
        }
    }

    /// Answers a request. Returns whether the connection stays open.
    fn answer(
        &self,
        head: &RequestHead,
        reader: &mut RequestReader,
        connection: &Connection,
    ) -> bool {
        let statistics = self.shared.archives.journal().statistics();
        let started_ns = statistics.now_ns();
        let clock = &self.shared.clock;
        let limit = self.shared.settings.head_timeout;
        let has_no_body = match head.body {
            RequestBody::Length(0) => true,
            RequestBody::Length(length) if length <= BODY_BYTES_MAX => {
                reader.skip_body(connection, length, (clock, limit))
            }
            RequestBody::Length(_) | RequestBody::Coded => false,
        };
        if !has_no_body {
            self.refuse_request(connection, Status(413), "no resource takes a body");
            return false;
        }
        self.shared.in_flight.fetch_add(1, Ordering::Relaxed);
        let is_local = connection.is_local();
        let is_stopping = connection.is_stopping();
        let mut client = ClientWriter::new(connection);
        let mut exchange = Exchange {
            shared: &self.shared,
            head,
            keeps_alive: head.is_kept_alive && !is_stopping,
            is_local,
            client: &mut client,
            counts: None,
        };
        let names = &self.shared.settings.host_names;
        let served = if !self.is_loopback || is_local_name(head, names) {
            answer(&mut exchange)
        } else {
            exchange.text(Status(421), REFUSED, &[])
        };
        let Served {
            operation,
            is_failure,
            is_kept_alive,
        } = served;
        let counts = exchange.counts.take();
        self.shared.in_flight.fetch_sub(1, Ordering::Relaxed);
        let outcome = if is_failure { Outcome::Failed } else { Outcome::Bytes(client.body_bytes) };
        statistics.record(operation, started_ns, outcome);
        if let Some(counts) = counts {
            counts.add(outcome);
        }
        is_kept_alive
    }

    /// Answers an unusable request.
    fn refuse_request(&self, connection: &Connection, status: Status, text: &str) {
        let statistics = self.shared.archives.journal().statistics();
        let started_ns = statistics.now_ns();
        let mut client = ClientWriter::new(connection);
        // The connection ends in any case.
        let _ = refuse(&mut client, status, text);
        statistics.record(Operation::HttpPage, started_ns, Outcome::Failed);
    }

    /// Ends the connection so that the client can still receive the response.
    fn linger(&self, reader: &mut RequestReader, connection: &Connection) {
        if connection.finish().is_ok() {
            let wait = if connection.is_stopping() { Duration::ZERO } else { LINGER };
            reader.skip_body(connection, BODY_BYTES_MAX, (&self.shared.clock, wait));
        }
    }
}

impl Handler for HttpHandler {
    fn serve(&self, client: Client) {
        // Failures here concern only this client, whose connection ends.
        if let Ok(session) = self.begin(client) {
            self.go_on(session);
        }
    }

    fn refuse(&self, client: Client) {
        // A client with TLS, or one that has not sent its request, needs a moment to be told.
        let _limit = TimeLimit::start(client.socket(), REFUSAL_TIME_MAX);
        let text = client.clients().refusal();
        let Ok(mut session) = self.begin(client) else { return };
        let (connection, reader) = (&session.connection, &mut session.reader);
        let (clock, limit) = (&self.shared.clock, self.shared.settings.head_timeout);
        if connection.set_receive_timeout(REFUSAL_TIME_MAX).is_ok()
            && reader.next(connection, clock, limit).is_ok()
        {
            self.refuse_request(connection, UNAVAILABLE, &text);
            self.linger(reader, connection);
        }
    }
}

fn describe(error: HeadError) -> (Status, &'static str) {
    match error {
        HeadError::Malformed(why) => (Status(400), why),
        HeadError::LongTarget => (Status(414), "the request line is longer than 8 KiB"),
        HeadError::LongHead => (Status(431), "the head has more than 16 KiB or 64 fields"),
        HeadError::Version => (Status(505), "this server speaks HTTP/1.0 and HTTP/1.1"),
    }
}
