//! The clients of a server: their number, and how they are disconnected.

use std::collections::HashMap;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use refrain_pool::{Event, Lock};
use refrain_sync::clock::RealClock;

use crate::client_rules::{ClientRule, latency_of};
use crate::pace::Pace;
use crate::reports::Occurrences;
use crate::service::Reporter;
use crate::share::Share;
use crate::socket::Socket;

/// Serves connected clients.
pub trait Handler: Send + Sync + 'static {
    /// Serves a client on this thread, and perhaps others, until either side ends the connection.
    /// May return earlier, while the client is silent. The connection ends soon after
    /// [`Clients::stop`], which shuts down the receiving side of the socket: a read returns no more
    /// bytes, and requests that have arrived are answered.
    fn serve(&self, client: Client);

    /// Tells a client that there are too many, and ends its connection soon.
    fn refuse(&self, client: Client);
}

/// How many refused clients are told at once. Others' connections end without a word.
const REFUSED_MAX: usize = 16;

/// What is done with someone who connects.
pub(crate) enum Admission {
    /// A client.
    Served(Client),
    /// There are too many.
    Refused(Client),
    /// There are too many, and too many who are being told.
    Closed,
    /// The server is stopping: the connection ends.
    Stopping,
}

/// All clients of a server. Clones share them.
#[derive(Clone)]
pub struct Clients(Arc<State>);

struct State {
    clients_max: usize,
    rules: Vec<ClientRule>,
    clock: RealClock,
    connected: Lock<Connected>,
    refusals: Occurrences,
    /// Those whose connections ended because they did not read, and because they were silent.
    slow: Occurrences,
    silent: AtomicU64,
    /// Happens when the server is stopping and has no clients.
    all_left: Event,
}

#[derive(Default)]
struct Connected {
    /// The connections of clients, and of those who are being refused.
    sockets: HashMap<u64, Arc<Socket>>,
    /// How many of these are being refused.
    refused: usize,
    /// The number of the next connection.
    next: u64,
    /// The number of clients so far.
    count: u64,
    is_stopping: bool,
    /// When the last client left, or the server started.
    idle_since_ns: u64,
}

impl Clients {
    /// For at most `clients_max` clients at once.
    pub fn new(clients_max: usize) -> Clients {
        Clients::with_rules(clients_max, vec![])
    }

    /// The same, with the latency class of the first rule for each client.
    pub fn with_rules(clients_max: usize, rules: Vec<ClientRule>) -> Clients {
        Clients(Arc::new(State {
            clients_max,
            rules,
            clock: RealClock::new(),
            connected: Lock::default(),
            refusals: Occurrences::new(),
            slow: Occurrences::new(),
            silent: AtomicU64::new(0),
            all_left: Event::new(),
        }))
    }

    /// Counts a new client. `None` if there are too many or the server is stopping; the connection
    /// is closed.
    pub fn add(&self, socket: Socket) -> Option<Client> {
        match self.admit(socket) {
            Admission::Served(client) => Some(client),
            Admission::Refused(_) | Admission::Closed | Admission::Stopping => None,
        }
    }

    /// Counts a new client, unless there are too many or the server is stopping.
    pub(crate) fn admit(&self, socket: Socket) -> Admission {
        let socket = Arc::new(socket);
        let share = Share::new(latency_of(&self.0.rules, &socket, None));
        let mut connected = self.0.connected.lock();
        if connected.is_stopping {
            return Admission::Stopping;
        }
        let is_refused = connected.served() >= self.0.clients_max;
        if is_refused && connected.refused >= REFUSED_MAX {
            return Admission::Closed;
        }
        let number = connected.next;
        connected.next += 1;
        connected.sockets.insert(number, Arc::clone(&socket));
        let client = Client {
            clients: self.clone(),
            number,
            socket,
            share,
            is_refused,
        };
        if is_refused {
            connected.refused += 1;
            Admission::Refused(client)
        } else {
            connected.count += 1;
            Admission::Served(client)
        }
    }

    /// Counts one that was refused because of `what`, and reports it at most once per minute.
    pub(crate) fn count_refused(&self, reporter: &Reporter, what: &str) {
        self.0.refusals.add(reporter, what);
    }

    /// The number of those who were refused since the start.
    pub fn refused_since_start(&self) -> u64 {
        self.0.refusals.count()
    }

    /// The number of those whose connections ended because they took too little of what was sent.
    pub fn slow_since_start(&self) -> u64 {
        self.0.slow.count()
    }

    /// The number of those whose connections ended because they were silent.
    pub fn silent_since_start(&self) -> u64 {
        self.0.silent.load(Ordering::Relaxed)
    }

    /// What those are told who are one too many.
    pub(crate) fn refusal(&self) -> String {
        let clients_max = self.0.clients_max;
        let s = if clients_max == 1 { "" } else { "s" };
        format!("the server has {clients_max} client{s} already, and takes no more")
    }

    /// The number of clients.
    pub fn count(&self) -> usize {
        self.0.connected.lock().served()
    }

    /// The number of clients since the start.
    pub fn count_since_start(&self) -> u64 {
        self.0.connected.lock().count
    }

    /// How long there has been no client.
    pub fn idle_time(&self) -> Duration {
        let connected = self.0.connected.lock();
        if connected.served() == 0 {
            let idle_ns = self
                .0
                .clock
                .now_ns()
                .saturating_sub(connected.idle_since_ns);
            Duration::from_nanos(idle_ns)
        } else {
            Duration::ZERO
        }
    }

    /// Accepts no new clients and no new requests. Requests that have arrived are still answered.
    pub fn stop(&self) {
        let mut connected = self.0.connected.lock();
        connected.is_stopping = true;
        for socket in connected.sockets.values() {
            socket.shutdown(Shutdown::Read);
        }
        self.0.tell_if_all_left(&connected);
    }

    /// After [`Clients::stop`]: waits until there are no clients, for `time_max` at most. Returns
    /// whether there are none.
    pub fn wait_until_none(&self, time_max: Duration) -> bool {
        self.0.all_left.wait_for(time_max)
    }

    /// Whether [`Clients::stop`] was called.
    pub fn is_stopping(&self) -> bool {
        self.0.connected.lock().is_stopping
    }

    /// Ends all connections, whatever the clients wait for.
    pub fn disconnect(&self) {
        for socket in self.0.connected.lock().sockets.values() {
            socket.shutdown(Shutdown::Both);
        }
    }
}

impl Connected {
    fn served(&self) -> usize {
        self.sockets.len() - self.refused
    }
}

impl State {
    fn tell_if_all_left(&self, connected: &Connected) {
        if connected.is_stopping && connected.sockets.is_empty() {
            self.all_left.happen();
        }
    }
}

/// A client. It counts until this is dropped.
pub struct Client {
    clients: Clients,
    number: u64,
    socket: Arc<Socket>,
    share: Share,
    is_refused: bool,
}

impl Client {
    /// The client's connection.
    pub fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// The client has taken this export.
    pub(crate) fn take_export(&mut self, name: &[u8]) {
        let rules = &self.clients.0.rules;
        let latency = latency_of(rules, &self.socket, Some(name));
        if latency != latency_of(rules, &self.socket, None) {
            self.share = Share::new(latency);
        }
    }

    /// The client's part of the machine.
    pub(crate) fn share(&self) -> &Share {
        &self.share
    }

    /// A pace for the client, which is ended, counted and reported if it takes less than 64 KiB
    /// while writes wait for `time_max`.
    pub(crate) fn pace(&self, time_max: Duration, reporter: Arc<Reporter>) -> Pace {
        let (clients, socket) = (self.clients.clone(), Arc::clone(&self.socket));
        Pace::new(time_max, move || {
            socket.abort();
            let seconds = time_max.as_secs_f64();
            let what =
                format!("a client was disconnected: it took less than 64 KiB in {seconds} s");
            clients.0.slow.add(&*reporter, &what);
        })
    }

    /// Counts the client as one that ends because it is silent.
    pub(crate) fn count_silent(&self) {
        self.clients.0.silent.fetch_add(1, Ordering::Relaxed);
    }

    /// All clients of the server.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.socket.shutdown(Shutdown::Both);
        let state = &self.clients.0;
        let mut connected = state.connected.lock();
        connected.sockets.remove(&self.number);
        if self.is_refused {
            connected.refused -= 1;
        } else {
            connected.idle_since_ns = state.clock.now_ns();
        }
        state.tell_if_all_left(&connected);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::channel::{Channel, PlainChannel};

    #[test]
    fn clients_are_counted_limited_and_stopped() {
        let clients = Clients::new(2);
        let connect = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (clients.add(Socket::Unix(ours)), theirs)
        };
        let (first, _) = connect();
        let (second, mut of_second) = connect();
        assert!(connect().0.is_none(), "there are two already");
        assert_eq!(clients.count(), 2);
        assert_eq!(clients.idle_time(), Duration::ZERO);
        drop(first);
        assert_eq!((clients.count(), clients.count_since_start()), (1, 2));
        clients.stop();
        assert!(connect().0.is_none(), "the server stops");
        assert!(!clients.wait_until_none(Duration::ZERO));
        let second = second.unwrap();
        let mut buffer = [0; 1];
        assert_eq!((&**second.socket()).read(&mut buffer).unwrap(), 0);
        (&**second.socket()).write_all(b"!").unwrap();
        of_second.read_exact(&mut buffer).unwrap();
        drop(second);
        assert_eq!(of_second.read(&mut buffer).unwrap(), 0);
        assert_eq!(clients.count(), 0);
        assert!(clients.wait_until_none(Duration::from_secs(3600)));
    }

    #[test]
    fn a_client_that_takes_nothing_is_reset_counted_and_reported() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let clients = Clients::new(1);
        let client = clients
            .add(Socket::tcp(listener.accept().unwrap().0))
            .unwrap();
        let reported = Arc::new(Lock::new(vec![]));
        let own = Arc::clone(&reported);
        let reporter = Arc::new(move |line: &str| own.lock().push(line.to_owned()));
        let pace = client.pace(Duration::from_millis(20), reporter);
        let channel = PlainChannel::new(Arc::clone(client.socket()), pace).unwrap();
        let content = vec![0; 64 << 20];
        for _ in 0..2 {
            let error = channel.send(b"", &content).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
        }
        drop((channel, client));
        // An end in order would follow what the kernel still holds for the client.
        let error = theirs.read_to_end(&mut vec![]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!((clients.count(), clients.slow_since_start()), (0, 1));
        let expected = "a client was disconnected: it took less than 64 KiB in 0.02 s";
        assert_eq!(*reported.lock(), [expected]);
    }

    #[test]
    fn those_who_are_refused_are_no_clients_and_few_at_once() {
        let clients = Clients::new(1);
        let admit = || clients.admit(Socket::Unix(UnixStream::pair().unwrap().0));
        let Admission::Served(served) = admit() else { unreachable!("the first") };
        let mut refused: Vec<_> = (0..REFUSED_MAX).map(|_| admit()).collect();
        assert!(
            refused
                .iter()
                .all(|one| matches!(one, Admission::Refused(_)))
        );
        assert!(matches!(admit(), Admission::Closed));
        assert_eq!((clients.count(), clients.count_since_start()), (1, 1));
        refused.pop();
        assert!(matches!(admit(), Admission::Refused(_)));
        drop(served);
        assert_eq!(clients.count(), 0);
        assert!(matches!(admit(), Admission::Served(_)));
        clients.stop();
        assert!(matches!(admit(), Admission::Stopping));
        assert!(
            !clients.wait_until_none(Duration::ZERO),
            "some are being told"
        );
        drop(refused);
        assert!(clients.wait_until_none(Duration::from_secs(3600)));
    }
}
