//! The clients of a server: their number, and how they are disconnected.

use std::collections::HashMap;
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use refrain_pool::{Event, Lock};
use refrain_sync::clock::RealClock;

use crate::client_rules::{ClientRule, latency_of};
use crate::share::Share;
use crate::socket::Socket;

/// Serves connected clients.
pub trait Handler: Send + Sync + 'static {
    /// Serves a client on this thread, and perhaps others, until either side ends the connection.
    /// May return earlier, while the client is silent. The connection ends soon after
    /// [`Clients::stop`], which shuts down the receiving side of the socket: a read returns no more
    /// bytes, and requests that have arrived are answered.
    fn serve(&self, client: Client);
}

/// All clients of a server. Clones share them.
#[derive(Clone)]
pub struct Clients(Arc<State>);

struct State {
    clients_max: usize,
    rules: Vec<ClientRule>,
    clock: RealClock,
    connected: Lock<Connected>,
    /// Happens when the server is stopping and has no clients.
    all_left: Event,
}

#[derive(Default)]
struct Connected {
    sockets: HashMap<u64, Arc<Socket>>,
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
            all_left: Event::new(),
        }))
    }

    /// Counts a new client. `None` if there are too many or the server is stopping; the connection
    /// is closed.
    pub fn add(&self, socket: Socket) -> Option<Client> {
        let socket = Arc::new(socket);
        let share = Share::new(latency_of(&self.0.rules, &socket, None));
        let mut connected = self.0.connected.lock();
        if connected.is_stopping || connected.sockets.len() >= self.0.clients_max {
            return None;
        }
        let number = connected.count;
        connected.count += 1;
        connected.sockets.insert(number, Arc::clone(&socket));
        Some(Client {
            clients: self.clone(),
            number,
            socket,
            share,
        })
    }

    /// The number of clients.
    pub fn count(&self) -> usize {
        self.0.connected.lock().sockets.len()
    }

    /// The number of clients since the start.
    pub fn count_since_start(&self) -> u64 {
        self.0.connected.lock().count
    }

    /// How long there has been no client.
    pub fn idle_time(&self) -> Duration {
        let connected = self.0.connected.lock();
        if connected.sockets.is_empty() {
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
        connected.idle_since_ns = state.clock.now_ns();
        state.tell_if_all_left(&connected);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

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
        second.socket().write_parts(b"!", b"").unwrap();
        of_second.read_exact(&mut buffer).unwrap();
        drop(second);
        assert_eq!(of_second.read(&mut buffer).unwrap(), 0);
        assert_eq!(clients.count(), 0);
        assert!(clients.wait_until_none(Duration::from_secs(3600)));
    }
}
