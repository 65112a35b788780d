//! TLS on a connection used by several threads.
//!
//! One lock guards the state of the encryption. A receiving thread does not hold it while it waits
//! for the socket, so that others can send.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use refrain_pool::Lock;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerConfig, ServerConnection, WebPkiClientVerifier};
use rustls::{RootCertStore, crypto::ring};

use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::pace::Pace;
use crate::socket::Socket;

/// How long a peer may be silent in the middle of the encryption's own handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// What a server needs for TLS. Clones share it.
#[derive(Clone, Debug)]
pub struct TlsSettings(Arc<ServerConfig>);

impl TlsSettings {
    /// Reads the server's certificates (its own first) and key, in PEM, and the certificates of the
    /// authorities for clients, if clients need a certificate.
    ///
    /// # Errors
    /// `Refused` with the file, if its content is wrong.
    pub fn read(
        certificate: &Path,
        key: &Path,
        client_authorities: Option<&Path>,
    ) -> Result<TlsSettings> {
        let refused = |path: &Path, why: &dyn std::fmt::Display| {
            Error::Refused(format!("{}: {why}", path.display()))
        };
        let certificates = certificates(certificate)?;
        let private = PrivateKeyDer::from_pem_file(key).map_err(|why| refused(key, &why))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|why| refused(certificate, &why))?;
        let builder = match client_authorities {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in self::certificates(path)? {
                    roots.add(authority).map_err(|why| refused(path, &why))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = verifier.build().map_err(|why| refused(path, &why))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let settings = builder.with_single_cert(certificates, private);
        let settings = settings.map_err(|why| refused(certificate, &why))?;
        Ok(TlsSettings(Arc::new(settings)))
    }

    /// Starts TLS on a connection whose client requested it, or must use it.
    pub(crate) fn accept(&self, socket: Arc<Socket>, pace: Pace) -> io::Result<TlsChannel> {
        let connection = ServerConnection::new(Arc::clone(&self.0)).map_err(io::Error::other)?;
        socket.set_write_timeout(Some(pace.write_timeout()))?;
        let channel = TlsChannel {
            socket,
            state: Lock::new(State { connection, pace }),
            receive_timeout: Lock::new(Some(HANDSHAKE_TIMEOUT)),
        };
        while channel.state.lock().connection.is_handshaking() {
            channel.exchange(Some(HANDSHAKE_TIMEOUT))?;
        }
        Ok(channel)
    }
}

/// The certificates in a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let refused =
        |why: &dyn std::fmt::Display| Error::Refused(format!("{}: {why}", path.display()));
    let found = CertificateDer::pem_file_iter(path).map_err(|why| refused(&why))?;
    let found: std::result::Result<Vec<_>, _> = found.collect();
    let found = found.map_err(|why| refused(&why))?;
    if found.is_empty() { Err(refused(&"holds no certificate")) } else { Ok(found) }
}

/// A connection through TLS.
pub(crate) struct TlsChannel {
    socket: Arc<Socket>,
    state: Lock<State>,
    receive_timeout: Lock<Option<Duration>>,
}

struct State {
    connection: ServerConnection,
    pace: Pace,
}

impl TlsChannel {
    /// Sends pending data, then waits for bytes from the client and processes them.
    fn exchange(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.flush(&mut self.state.lock())?;
        if !self.socket.wait_readable(timeout)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut state = self.state.lock();
        if state.connection.read_tls(&mut &*self.socket)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let taken = state.connection.process_new_packets();
        // The reply may be an alert that tells the client what is wrong.
        self.flush(&mut state)?;
        taken.map_err(io::Error::other)?;
        Ok(())
    }

    fn flush(&self, State { connection, pace }: &mut State) -> io::Result<()> {
        while connection.wants_write() {
            pace.write(|| connection.write_tls(&mut &*self.socket))?;
        }
        Ok(())
    }
}

impl Channel for TlsChannel {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let timeout = *self.receive_timeout.lock();
        loop {
            match self.state.lock().connection.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The client may close the connection without notice.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                received => return received,
            }
            match self.exchange(timeout) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                exchanged => exchanged?,
            }
        }
    }

    fn send(&self, head: &[u8], body: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        for part in [head, body] {
            let mut left = part;
            while !left.is_empty() {
                // The writer takes as much as its buffer allows.
                let count = state.connection.writer().write(left)?;
                left = &left[count..];
                self.flush(&mut state)?;
            }
        }
        Ok(())
    }

    fn set_receive_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        *self.receive_timeout.lock() = timeout;
        Ok(())
    }

    fn finish(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.connection.send_close_notify();
        let flushed = self.flush(&mut state);
        self.socket.shutdown(Shutdown::Write);
        flushed
    }

    fn close(&self) {
        self.socket.shutdown(Shutdown::Both);
    }
}
