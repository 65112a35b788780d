//! The bytes of one client's connection, plain or through TLS.

use std::io::{self, Read};
use std::net::Shutdown;
use std::time::Duration;

use crate::socket::Socket;

/// A connection. One thread receives at a time, and one sends; both may happen at once.
pub(super) trait Channel: Send + Sync {
    /// Receives at least one byte; 0 if the client has closed the connection.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Sends both parts completely.
    fn send(&self, head: &[u8], body: &[u8]) -> io::Result<()>;

    /// Limits how long a receive waits.
    fn set_receive_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// Closes both directions at once.
    fn close(&self);
}

impl Channel for Socket {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match (&mut &*self).read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                received => return received,
            }
        }
    }

    fn send(&self, head: &[u8], body: &[u8]) -> io::Result<()> {
        self.write_parts(head, body)
    }

    fn set_receive_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)
    }

    fn close(&self) {
        self.shutdown(Shutdown::Both);
    }
}

/// Fills the buffer.
pub(super) fn receive_exactly(channel: &dyn Channel, buffer: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        match channel.receive(&mut buffer[done..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => done += count,
        }
    }
    Ok(())
}
