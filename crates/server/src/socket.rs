//! A connected socket of any kind, used by several threads at once.

use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

/// When the connection of a client that answers nothing ends.
const VANISHED_TIME: Duration = Duration::from_secs(120);

/// How often the kernel asks a client that was silent, in the last part of this time.
const PROBES_MAX: u32 = 6;
const PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// A connected stream socket.
#[derive(Debug)]
pub enum Socket {
    /// Over the network.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
}

impl Socket {
    /// A TCP connection that sends small replies at once, and ends two minutes after its client has
    /// vanished: without a word, as when a machine or a network fails.
    pub fn tcp(stream: TcpStream) -> Socket {
        // Merely slower, or noticed later, if the system refuses.
        let _ = stream.set_nodelay(true);
        let _ = notice_vanished(&stream);
        Socket::Tcp(stream)
    }

    /// The address of the other side; `None` for a Unix socket, and if the client has left.
    pub(crate) fn peer_address(&self) -> Option<IpAddr> {
        match self {
            Socket::Tcp(stream) => Some(stream.peer_addr().ok()?.ip()),
            Socket::Unix(_) => None,
        }
    }

    /// Shuts down sending, receiving or both: threads that wait for it wake up.
    pub fn shutdown(&self, how: Shutdown) {
        // Fails only if the client has left.
        let _ = match self {
            Socket::Tcp(stream) => stream.shutdown(how),
            Socket::Unix(stream) => stream.shutdown(how),
        };
    }

    /// Ends the connection in both directions, and drops what the client has not taken: over the
    /// network, it is told as soon as the last thread lets go of the socket.
    pub(crate) fn abort(&self) {
        // Without this the client would first receive what the kernel still holds for it.
        let _ = sockopt::set_socket_linger(self, Some(Duration::ZERO));
        self.shutdown(Shutdown::Both);
    }

    /// Limits how long a read waits; `None`: forever.
    ///
    /// # Errors
    /// From the operating system.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_read_timeout(timeout),
            Socket::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// Limits how long a write waits; `None`: forever.
    ///
    /// # Errors
    /// From the operating system.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_write_timeout(timeout),
            Socket::Unix(stream) => stream.set_write_timeout(timeout),
        }
    }

    /// Waits until a read would not block. Returns `false` after the timeout.
    ///
    /// # Errors
    /// From the operating system.
    pub fn wait_readable(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let mut descriptors = [PollFd::new(self, PollFlags::IN)];
        loop {
            match poll(&mut descriptors, timeout.as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                ready => return Ok(ready? > 0),
            }
        }
    }
}

/// Lets the kernel ask a silent client whether it is there, and end a connection whose client
/// acknowledges nothing.
fn notice_vanished(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_tcp_keepidle(stream, VANISHED_TIME - PROBES_MAX * PROBE_INTERVAL)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, PROBES_MAX)?;
    let time_max_ms = VANISHED_TIME.as_millis() as u32;
    sockopt::set_tcp_user_timeout(stream, time_max_ms)?;
    Ok(sockopt::set_socket_keepalive(stream, true)?)
}

/// Whether an error means that a wait timed out.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).read(buffer),
            Socket::Unix(stream) => (&mut &*stream).read(buffer),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).write(bytes),
            Socket::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).write_vectored(parts),
            Socket::Unix(stream) => (&mut &*stream).write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_a_client_has_sent_and_its_end_are_noticed() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut ours, theirs) = (&Socket::Unix(ours), Socket::Unix(theirs));
        let is_readable = || theirs.wait_readable(Some(Duration::ZERO)).unwrap();
        assert!(!is_readable());
        ours.write_all(b"!").unwrap();
        assert!(is_readable());
        (&theirs).read_exact(&mut [0]).unwrap();
        assert!(!is_readable());
        ours.shutdown(Shutdown::Both);
        assert!(is_readable());
    }

    #[test]
    fn the_kernel_watches_over_connections_of_the_network() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = Socket::tcp(listener.accept().unwrap().0);
        assert!(sockopt::socket_keepalive(&socket).unwrap());
        let (idle, interval) = (
            sockopt::tcp_keepidle(&socket),
            sockopt::tcp_keepintvl(&socket),
        );
        let count = sockopt::tcp_keepcnt(&socket).unwrap();
        assert_eq!(idle.unwrap() + count * interval.unwrap(), VANISHED_TIME);
        assert_eq!(sockopt::tcp_user_timeout(&socket).unwrap(), 120_000);
    }
}
