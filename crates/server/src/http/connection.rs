//! The connection of a client, and what was sent through it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::channel::{Channel, PlainChannel};
use crate::clients::Client;
use crate::pace::Pace;
use crate::socket::Socket;
use crate::tls::TlsSettings;

/// A client accepted by a listener.
pub(super) struct Connection {
    pub client: Client,
    channel: Arc<dyn Channel>,
}

impl Connection {
    /// Begins TLS, if that is required. The client must take responses at this pace.
    pub(super) fn begin(
        client: Client,
        tls: Option<&TlsSettings>,
        pace: Pace,
    ) -> io::Result<Connection> {
        let socket = Arc::clone(client.socket());
        let channel: Arc<dyn Channel> = match tls {
            None => Arc::new(PlainChannel::new(socket, pace)?),
            Some(tls) => Arc::new(tls.accept(socket, pace)?),
        };
        Ok(Connection { client, channel })
    }

    /// Limits how long a receive waits.
    pub(super) fn set_receive_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.channel.set_receive_timeout(Some(timeout))
    }

    /// Receives at least one byte; 0 if the client has closed the connection.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.channel.receive(buffer)
    }

    /// Tells the client that nothing more follows.
    pub(super) fn finish(&self) -> io::Result<()> {
        self.channel.finish()
    }

    /// Whether the client is on the same machine.
    pub(super) fn is_local(&self) -> bool {
        match &**self.client.socket() {
            Socket::Tcp(stream) => stream
                .peer_addr()
                .is_ok_and(|address| address.ip().to_canonical().is_loopback()),
            Socket::Unix(_) => true,
        }
    }

    /// Whether the server accepts no more requests.
    pub(super) fn is_stopping(&self) -> bool {
        self.client.clients().is_stopping()
    }
}

/// Sends to a client, and counts.
pub(super) struct ClientWriter<'a> {
    connection: &'a Connection,
    /// The bytes of bodies that were sent, whether or not all of them arrived.
    pub body_bytes: u64,
}

impl<'a> ClientWriter<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        ClientWriter {
            connection,
            body_bytes: 0,
        }
    }

    pub(super) fn write_body(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes)?;
        self.body_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Sends bytes that are not content: heads and chunk framing.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.connection.channel.send(bytes, &[])
    }
}
