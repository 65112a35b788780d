//! Asks a service for its statistics, over TCP or a socket of this machine.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::failure::{Failure, Result};

/// How long each step may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest response that is read, in bytes; a service's has some 10 kB.
const RESPONSE_BYTES_MAX: u64 = 4 << 20;

/// Where a service is.
#[derive(Debug, PartialEq, Eq)]
enum Address {
    Unix(PathBuf),
    /// Host and port.
    Tcp(String),
}

/// A client of a service.
#[derive(Debug)]
pub struct Client {
    label: String,
    address: Address,
}

impl Client {
    /// A client of the service at this address.
    pub fn new(text: &str) -> Result<Client> {
        let address = parse(text).ok_or_else(|| {
            let why = "is not an address: HOST:PORT, http://HOST:PORT or unix:PATH";
            Failure::usage(text, why)
        })?;
        Ok(Client {
            label: text.to_owned(),
            address,
        })
    }

    pub fn statistics(&self) -> Result<Value> {
        let body = self.request("GET", "/.refrain/statistics")?;
        serde_json::from_slice(&body).map_err(|error| {
            let text =
                format!("its statistics are not JSON ({error}): is it `refrain serve --http`?");
            Failure::refused(&self.label, text)
        })
    }

    /// Resets the statistics.
    pub fn reset(&self) -> Result<()> {
        self.request("POST", "/.refrain/statistics/reset").map(drop)
    }

    /// The body of a response.
    fn request(&self, method: &str, path: &str) -> Result<Vec<u8>> {
        let failed = |error| Failure::Io {
            file: self.label.clone(),
            action: "ask",
            error,
        };
        let response = match &self.address {
            Address::Unix(path_of_socket) => {
                let stream = UnixStream::connect(path_of_socket).map_err(failed)?;
                stream.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
                stream.set_write_timeout(Some(TIMEOUT)).map_err(failed)?;
                exchange(stream, "localhost", method, path)
            }
            Address::Tcp(address) => {
                let stream = connect(address).map_err(failed)?;
                stream.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
                stream.set_write_timeout(Some(TIMEOUT)).map_err(failed)?;
                exchange(stream, address, method, path)
            }
        };
        match split(&response.map_err(failed)?) {
            Some((200, body)) => Ok(body),
            Some((status, body)) => {
                let text = String::from_utf8_lossy(&body);
                let text = format!("it answers {status}: {}", text.trim());
                Err(Failure::refused(&self.label, text))
            }
            None => {
                let text = "what it answers is not HTTP";
                Err(Failure::refused(&self.label, text))
            }
        }
    }
}

fn parse(text: &str) -> Option<Address> {
    if let Some(path) = text.strip_prefix("unix:") {
        return (!path.is_empty()).then(|| Address::Unix(PathBuf::from(path)));
    }
    let text = text.strip_prefix("http://").unwrap_or(text);
    let text = text.split('/').next().unwrap_or_default();
    let has_port = text
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    match has_port {
        true => Some(Address::Tcp(text.to_owned())),
        false if text.is_empty() || (text.contains(':') && !text.ends_with(']')) => None,
        false => Some(Address::Tcp(format!("{text}:80"))),
    }
}

/// Connects to the first address of a host that answers.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Sends a request and reads to the end: HTTP/1.0 has no chunks.
fn exchange(
    mut stream: impl Read + Write,
    host: &str,
    method: &str,
    path: &str,
) -> io::Result<Vec<u8>> {
    let request =
        format!("{method} {path} HTTP/1.0\r\nHost: {host}\r\nAccept: application/json\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut response = vec![];
    stream.take(RESPONSE_BYTES_MAX).read_to_end(&mut response)?;
    Ok(response)
}

/// The status and the body of a response.
fn split(response: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = response.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = str::from_utf8(&response[..end]).ok()?;
    let mut words = head.lines().next()?.split(' ');
    words
        .next()
        .filter(|version| version.starts_with("HTTP/1."))?;
    let status = words.next()?.parse().ok()?;
    Some((status, response[end + 4..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_or_sockets() {
        let tcp = |text: &str| Some(Address::Tcp(text.to_owned()));
        assert_eq!(parse("a:80"), tcp("a:80"));
        assert_eq!(parse("http://a:8080/x"), tcp("a:8080"));
        assert_eq!(parse("http://a"), tcp("a:80"));
        assert_eq!(parse("http://[::1]"), tcp("[::1]:80"));
        assert_eq!(parse("[::1]:8080"), tcp("[::1]:8080"));
        assert_eq!(parse("unix:/a b"), Some(Address::Unix("/a b".into())));
        for text in ["", "unix:", "http://", ":80", "a:b", "a:99999"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn responses_are_split() {
        assert_eq!(
            split(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n{}"),
            Some((200, b"{}".to_vec()))
        );
        assert_eq!(split(b"HTTP/1.1 404\r\n\r\n"), Some((404, vec![])));
        for text in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "NBDMAGIC\r\n\r\n",
            "HTTP/1.1 x y\r\n\r\n",
        ] {
            assert_eq!(split(text.as_bytes()), None, "{text}");
        }
    }
}
