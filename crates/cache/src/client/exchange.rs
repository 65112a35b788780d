//! A request on a connection, and its reply.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt};

use crate::engine::{Engine, Reply, ReplyParser};

/// What is read at once before it is known how long the value is.
const READ_BYTES: usize = 2 << 10;

/// A socket that does not block, a request that is sent on it, and the reply as far as it is there.
pub(super) struct Exchange {
    socket: OwnedFd,
    request: Vec<u8>,
    sent: usize,
    parser: ReplyParser,
}

impl Exchange {
    /// Begins to connect.
    ///
    /// # Errors
    /// From the system, at once; a connection that is refused later fails in
    /// [`advance`](Self::advance).
    pub(super) fn connect(
        address: SocketAddr,
        engine: Engine,
        request: Vec<u8>,
    ) -> io::Result<Exchange> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Exchange::on(socket, engine, request)),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a request on a connection that has none.
    pub(super) fn on(socket: OwnedFd, engine: Engine, request: Vec<u8>) -> Exchange {
        Exchange {
            socket,
            request,
            sent: 0,
            parser: engine.parser(),
        }
    }

    /// The connection, once the reply is there.
    pub(super) fn into_socket(self) -> OwnedFd {
        self.socket
    }

    /// Whether it waits until more can be sent.
    pub(super) fn is_sending(&self) -> bool {
        self.sent < self.request.len()
    }

    /// Sends and reads what can be. Returns the reply when it is there.
    ///
    /// # Errors
    /// The connection is refused, broken or closed, or what is read is no reply.
    pub(super) fn advance(&mut self, value_bytes_max: usize) -> io::Result<Option<Reply>> {
        let was_sending = self.is_sending();
        while let Some(rest) = self
            .request
            .get(self.sent..)
            .filter(|rest| !rest.is_empty())
        {
            match rustix::net::send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => self.sent += count,
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if was_sending {
            // No reply is there yet, and if it is, when it came is not known.
            return Ok(None);
        }
        let mut buffer = [0; READ_BYTES];
        loop {
            let flags = RecvFlags::empty();
            let received = match self.parser.value() {
                Some(value) => rustix::net::recv(&self.socket, spare_capacity(value), flags),
                None => rustix::net::recv(&self.socket, &mut buffer, flags),
            };
            let reply = match received {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) if self.parser.value().is_some() => self.parser.value_grew(),
                Ok((count, _)) => {
                    let bytes = buffer.get(..count).unwrap_or_default();
                    self.parser.take(bytes, value_bytes_max)
                }
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if let Some(reply) = reply.map_err(io::Error::other)? {
                return Ok(Some(reply));
            }
        }
    }
}

impl AsFd for Exchange {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
