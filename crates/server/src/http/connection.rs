//! The connection of a client, and writing to one that may not read.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use refrain_sync::clock::{Clock, RealClock};

use crate::clients::Client;
use crate::socket::{Socket, is_timeout};

/// A client's connection.
pub trait Connection: Read + Write + Send {
    /// Sets how long a read and a write may wait.
    ///
    /// # Errors
    /// From the operating system.
    fn set_timeouts(&self, read: Duration, write: Duration) -> io::Result<()>;

    /// Tells the client that nothing more follows.
    ///
    /// # Errors
    /// From the operating system.
    fn shutdown_write(&self) -> io::Result<()>;

    /// Whether the client is on the same machine.
    fn is_local(&self) -> bool;

    /// Whether the server accepts no more requests.
    fn is_stopping(&self) -> bool {
        false
    }
}

impl Connection for TcpStream {
    fn set_timeouts(&self, read: Duration, write: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(read))?;
        self.set_write_timeout(Some(write))
    }

    fn shutdown_write(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }

    fn is_local(&self) -> bool {
        self.peer_addr()
            .is_ok_and(|address| address.ip().to_canonical().is_loopback())
    }
}

impl Connection for UnixStream {
    fn set_timeouts(&self, read: Duration, write: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(read))?;
        self.set_write_timeout(Some(write))
    }

    fn shutdown_write(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }

    fn is_local(&self) -> bool {
        true
    }
}

impl Read for ClientConnection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&mut &**self.0.socket()).read(buffer)
    }
}

impl Write for ClientConnection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&mut &**self.0.socket()).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A client accepted by a listener.
pub(super) struct ClientConnection(pub Client);

impl Connection for ClientConnection {
    fn set_timeouts(&self, read: Duration, write: Duration) -> io::Result<()> {
        self.0.socket().set_read_timeout(Some(read))?;
        self.0.socket().set_write_timeout(Some(write))
    }

    fn shutdown_write(&self) -> io::Result<()> {
        self.0.socket().shutdown(Shutdown::Write);
        Ok(())
    }

    fn is_local(&self) -> bool {
        match &**self.0.socket() {
            Socket::Tcp(stream) => stream.is_local(),
            Socket::Unix(stream) => stream.is_local(),
        }
    }

    fn is_stopping(&self) -> bool {
        self.0.clients().is_stopping()
    }
}

/// The client must take this many bytes within the time limit for writing. Without a minimum, a
/// client that takes single bytes could occupy a thread forever.
const PIECE_BYTES: usize = 64 << 10;

/// Writes to a client that must keep reading.
pub(super) struct ClientWriter<'a, C> {
    pub connection: &'a mut C,
    clock: &'a RealClock,
    timeout: Duration,
    /// The bytes of bodies that were written, whether or not all of them arrived.
    pub body_bytes: u64,
}

impl<'a, C: Connection> ClientWriter<'a, C> {
    pub(super) fn new(connection: &'a mut C, clock: &'a RealClock, timeout: Duration) -> Self {
        ClientWriter {
            connection,
            clock,
            timeout,
            body_bytes: 0,
        }
    }

    pub(super) fn write_body(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes)?;
        self.body_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Writes bytes that are not content: heads and chunk framing.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        let mut deadline = self.clock.now() + self.timeout;
        let mut of_piece = 0;
        while !rest.is_empty() {
            match self.connection.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    rest = &rest[count..];
                    of_piece += count;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
            let now = self.clock.now();
            if of_piece >= PIECE_BYTES {
                (of_piece, deadline) = (0, now + self.timeout);
            } else if now >= deadline && !rest.is_empty() {
                let message = "the client does not read";
                return Err(io::Error::new(ErrorKind::TimedOut, message));
            }
        }
        Ok(())
    }
}
