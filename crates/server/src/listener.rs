//! Sockets that clients connect to.

use std::fmt;
use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain_pool::{SignalDelivery, start_detached};
use rustix::event::{PollFd, PollFlags, poll};

use crate::clients::{Admission, Clients, Handler};
use crate::error::{Error, Result};
use crate::service::Reporter;
use crate::socket::Socket;
use crate::threads::run_on_thread;

/// The prefix of the address of a socket on this machine.
const UNIX_PREFIX: &str = "unix:";

/// Where clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `unix:PATH`.
    Unix(PathBuf),
    /// `HOST:PORT`, `[IPV6]:PORT`.
    Tcp(String),
}

impl Address {
    /// Parses an address.
    ///
    /// # Errors
    /// `Refused` if it is malformed.
    pub fn parse(text: &str) -> Result<Address> {
        if let Some(path) = text.strip_prefix(UNIX_PREFIX) {
            return if path.is_empty() {
                Err(Error::Refused("unix: needs a path".to_owned()))
            } else {
                Ok(Address::Unix(PathBuf::from(path)))
            };
        }
        match text.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                Ok(Address::Tcp(text.to_owned()))
            }
            _ => Err(Error::Refused(format!(
                "{text:?} is not an address: unix:PATH or HOST:PORT"
            ))),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "{UNIX_PREFIX}{}", path.display()),
            Address::Tcp(text) => f.write_str(text),
        }
    }
}

/// A socket that clients connect to.
#[derive(Debug)]
pub struct Listener {
    socket: ListeningSocket,
    /// The path of a socket that was created here, removed at the end.
    path: Option<OwnPath>,
}

/// The path of a socket, removed when it is dropped.
#[derive(Debug)]
struct OwnPath(PathBuf);

#[derive(Debug)]
enum ListeningSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Creates a socket that clients can connect to. Replaces the abandoned socket of a server that
    /// has ended.
    ///
    /// # Errors
    /// `System`, for example if the port or path is in use.
    pub fn bind(address: &Address) -> Result<Listener> {
        let failed = |error| Error::system(format!("cannot listen at {address}"), error);
        match address {
            Address::Tcp(text) => {
                let addresses: Vec<_> = text.to_socket_addrs().map_err(failed)?.collect();
                let listener = TcpListener::bind(addresses.as_slice()).map_err(failed)?;
                Ok(Listener {
                    socket: ListeningSocket::Tcp(listener),
                    path: None,
                })
            }
            Address::Unix(path) => {
                remove_abandoned(path).map_err(failed)?;
                let listener = UnixListener::bind(path).map_err(failed)?;
                Ok(Listener {
                    socket: ListeningSocket::Unix(listener),
                    path: Some(OwnPath(path.clone())),
                })
            }
        }
    }

    /// For a socket created by someone else, such as systemd.
    pub fn from_tcp(listener: TcpListener) -> Listener {
        Listener {
            socket: ListeningSocket::Tcp(listener),
            path: None,
        }
    }

    /// For a socket created by someone else, such as systemd.
    pub fn from_unix(listener: UnixListener) -> Listener {
        Listener {
            socket: ListeningSocket::Unix(listener),
            path: None,
        }
    }

    /// Where clients connect, with the port that the system chose.
    pub fn address(&self) -> String {
        match &self.socket {
            ListeningSocket::Tcp(listener) => {
                let address = listener.local_addr();
                address.map_or_else(|_| "tcp".to_owned(), |address| address.to_string())
            }
            ListeningSocket::Unix(listener) => {
                let address = listener.local_addr().ok();
                let path = address.as_ref().and_then(|address| address.as_pathname());
                let path = path.map(|path| path.display().to_string());
                format!("{UNIX_PREFIX}{}", path.unwrap_or_default())
            }
        }
    }

    /// Whether only programs on this machine can connect over the network: the address is in
    /// 127.0.0.0/8 or is ::1.
    pub fn is_loopback(&self) -> bool {
        match &self.socket {
            ListeningSocket::Tcp(listener) => (listener.local_addr())
                .is_ok_and(|address| address.ip().to_canonical().is_loopback()),
            ListeningSocket::Unix(_) => false,
        }
    }

    fn accept(&self) -> io::Result<Socket> {
        match &self.socket {
            ListeningSocket::Tcp(listener) => listener
                .accept()
                .map(|(stream, _): (TcpStream, _)| Socket::tcp(stream)),
            ListeningSocket::Unix(listener) => {
                listener.accept().map(|(stream, _)| Socket::Unix(stream))
            }
        }
    }

    /// Accepts clients on a thread of its own and serves them on others, until the signal is
    /// dropped.
    ///
    /// # Errors
    /// `System` if no thread can be started.
    pub fn start(
        mut self,
        handler: Arc<dyn Handler>,
        clients: Clients,
        reporter: Arc<Reporter>,
    ) -> Result<StopSignal> {
        let failed = |error| Error::system("cannot start to listen", error);
        let (keep, watched) = UnixStream::pair().map_err(failed)?;
        let path = self.path.take();
        let run = move || self.accept_all(&watched, &handler, &clients, &*reporter);
        if start_detached("listener", SignalDelivery::OwnFaults, run) {
            Ok(StopSignal {
                _path: path,
                _keep: keep,
            })
        } else {
            Err(failed(io::ErrorKind::OutOfMemory.into()))
        }
    }

    fn accept_all(
        &self,
        stop: &UnixStream,
        handler: &Arc<dyn Handler>,
        clients: &Clients,
        reporter: &Reporter,
    ) {
        while self.wait(stop) {
            let socket = match self.accept() {
                Ok(socket) => socket,
                Err(error) if is_of_one_client(&error) => continue,
                Err(error) => {
                    let address = self.address();
                    let what = format!("cannot accept a client at {address}: {error}");
                    clients.count_refused(reporter, &what);
                    // Descriptors may become available when a client leaves.
                    rest(stop);
                    continue;
                }
            };
            let admission = clients.admit(socket);
            if matches!(admission, Admission::Refused(_) | Admission::Closed) {
                let what = format!("a client was refused: {}", clients.refusal());
                clients.count_refused(reporter, &what);
            }
            let own = Arc::clone(handler);
            let is_running = match admission {
                Admission::Served(client) => run_on_thread(move || own.serve(client)),
                Admission::Refused(client) => run_on_thread(move || own.refuse(client)),
                Admission::Closed | Admission::Stopping => true,
            };
            if !is_running {
                let what = "a client was refused: the system allows no more threads";
                clients.count_refused(reporter, what);
            }
        }
    }

    /// Waits for a client; `false` means stop.
    fn wait(&self, stop: &UnixStream) -> bool {
        let listener = match &self.socket {
            ListeningSocket::Tcp(listener) => listener.as_fd(),
            ListeningSocket::Unix(listener) => listener.as_fd(),
        };
        let mut descriptors = [
            PollFd::from_borrowed_fd(listener, PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
        ];
        loop {
            match poll(&mut descriptors, None) {
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
                Ok(_) => return descriptors[1].revents().is_empty(),
            }
        }
    }
}

impl Drop for OwnPath {
    fn drop(&mut self) {
        // It may already have been removed.
        let _ = fs::remove_file(&self.0);
    }
}

/// While this exists, a listener accepts clients. Dropping it also removes the path of its socket.
#[derive(Debug)]
pub struct StopSignal {
    _path: Option<OwnPath>,
    _keep: UnixStream,
}

/// Whether an error of accepting concerns only one client, which has already left.
fn is_of_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted
    )
}

/// Waits a moment, or until the listener has to stop.
fn rest(stop: &UnixStream) {
    let a_little = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    let _ = poll(&mut [PollFd::new(stop, PollFlags::IN)], Some(&a_little));
}

/// Removes a socket that no server listens on.
fn remove_abandoned(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if !is_socket {
        return Ok(());
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::clients::Client;

    #[test]
    fn addresses_are_read_and_others_refused() {
        let read = |text: &str| Address::parse(text).unwrap().to_string();
        for text in [
            "unix:/run/a.sock",
            "localhost:10809",
            "[::1]:0",
            "0.0.0.0:80",
        ] {
            assert_eq!(read(text), text);
        }
        for text in [
            "",
            "unix:",
            "host",
            ":80",
            "host:",
            "host:99999",
            "/run/a.sock",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    /// Sends back what it receives.
    struct Echo;

    impl Handler for Echo {
        fn serve(&self, client: Client) {
            let mut bytes = vec![];
            (&**client.socket()).read_to_end(&mut bytes).unwrap();
            (&**client.socket()).write_all(&bytes).unwrap();
        }

        fn refuse(&self, client: Client) {
            let text = client.clients().refusal();
            (&**client.socket()).write_all(text.as_bytes()).unwrap();
        }
    }

    #[test]
    fn the_path_of_a_living_server_is_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        let address = Address::Unix(directory.path().join("socket"));
        let listener = Listener::bind(&address).unwrap();
        assert!(Listener::bind(&address).is_err(), "it is in use");
        drop(listener);
        assert!(Listener::bind(&address).is_ok());
    }

    #[test]
    fn clients_are_served_until_the_signal_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        // A server that ended without cleaning up.
        drop(UnixListener::bind(&path).unwrap());
        let address = Address::Unix(path.clone());
        let listener = Listener::bind(&address).unwrap();
        assert_eq!(listener.address(), address.to_string());
        let clients = Clients::new(1);
        let reported = Arc::new(refrain_pool::Lock::new(vec![]));
        let own = Arc::clone(&reported);
        let reporter = Arc::new(move |line: &str| own.lock().push(line.to_owned()));
        let signal = listener
            .start(Arc::new(Echo), clients.clone(), reporter)
            .unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(b"hello").unwrap();
        while clients.count() == 0 {
            std::thread::yield_now();
        }
        for _ in 0..3 {
            let mut refused = UnixStream::connect(&path).unwrap();
            let mut text = String::new();
            refused.read_to_string(&mut text).unwrap();
            assert_eq!(text, "the server has 1 client already, and takes no more");
        }
        assert_eq!(clients.refused_since_start(), 3);
        assert_eq!(reported.lock().len(), 1, "{:?}", reported.lock());
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut reply = String::new();
        client.read_to_string(&mut reply).unwrap();
        assert_eq!(reply, "hello");
        drop(signal);
        assert!(!path.exists());
    }
}
