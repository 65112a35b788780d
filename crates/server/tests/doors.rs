//! Clients that are too many, silent, or behind TLS, at listeners of both protocols.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use refrain::storage::{MemorySink, MemorySource};
use refrain::{Archive, CompressOptions, Content, MemberInput, ReadOptions, Unwatched, compress};
use refrain_server::http::{HttpHandler, HttpSettings};
use refrain_server::nbd::{Exports, NbdHandler};
use refrain_server::{Clients, Handler, Listener, Service, StopSignal, TlsSettings};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto::ring};

const CONTENT: &[u8] = b"what is in the disk";

/// How long a test waits for what has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A service of one file.
struct Server {
    address: String,
    clients: Clients,
    reported: Arc<Mutex<Vec<String>>>,
    _signal: StopSignal,
}

impl Server {
    fn start(clients_max: usize, handler: impl FnOnce(Service) -> Arc<dyn Handler>) -> Server {
        let member = MemberInput {
            name: "disk".into(),
            mode: None,
            modified: None,
            content: Content::Source(Arc::new(MemorySource::new(CONTENT.to_vec()))),
        };
        let mut sink = MemorySink::new();
        let output = sink.output();
        compress(
            vec![member],
            &mut sink,
            &CompressOptions::default(),
            &Unwatched,
        )
        .unwrap();
        let source = Arc::new(MemorySource::new(output.published().unwrap()));
        let archive = Archive::open(source, &ReadOptions::default()).unwrap();
        let reported = Arc::new(Mutex::new(vec![]));
        let own = Arc::clone(&reported);
        let reporter = Arc::new(move |line: &str| own.lock().unwrap().push(line.to_owned()));
        let service = Service::new(archive, reporter);
        let clients = Clients::new(clients_max);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listener = Listener::from_tcp(listener);
        let address = listener.address();
        let reporter = service.reporter();
        let signal = listener.start(handler(service), clients.clone(), reporter);
        Server {
            address,
            clients,
            reported,
            _signal: signal.unwrap(),
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}

fn nbd(service: Service) -> NbdHandler {
    NbdHandler::new(Exports::new(service).unwrap(), 1 << 30, 64)
}

fn http(service: Service) -> HttpHandler {
    HttpHandler::new(service, HttpSettings::default()).unwrap()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn greet(client: &mut (impl Read + Write)) {
    client.read_exact(&mut [0; 18]).unwrap();
    client.write_all(&3_u32.to_be_bytes()).unwrap();
}

fn option(client: &mut impl Write, option: u32, data: &[u8]) {
    let length = (data.len() as u32).to_be_bytes();
    let bytes = [b"IHAVEOPT", &option.to_be_bytes()[..], &length, data].concat();
    client.write_all(&bytes).unwrap();
}

/// The kind of the reply, and its data.
fn option_reply(client: &mut impl Read) -> (u32, Vec<u8>) {
    let mut head = [0; 20];
    client.read_exact(&mut head).unwrap();
    let u32_at = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
    let mut data = vec![0; u32_at(16) as usize];
    client.read_exact(&mut data).unwrap();
    (u32_at(12), data)
}

/// Takes the export in the old way.
fn take_export(client: &mut (impl Read + Write)) {
    option(client, 1, b"disk");
    client.read_exact(&mut [0; 10]).unwrap();
}

fn read_all(client: &mut (impl Read + Write)) -> Vec<u8> {
    let mut request = vec![0x25, 0x60, 0x95, 0x13];
    request.resize(27, 0);
    request.push(CONTENT.len() as u8);
    client.write_all(&request).unwrap();
    client.read_exact(&mut [0; 16]).unwrap();
    let mut content = vec![0; CONTENT.len()];
    client.read_exact(&mut content).unwrap();
    content
}

#[test]
fn one_nbd_client_too_many_is_told_and_the_owner_as_well() {
    let server = Server::start(1, |service| Arc::new(nbd(service)));
    let mut served = server.connect();
    greet(&mut served);
    take_export(&mut served);
    for _ in 0..3 {
        let mut refused = server.connect();
        greet(&mut refused);
        option(&mut refused, 7, b"\0\0\0\x04disk\0\0");
        let (kind, text) = option_reply(&mut refused);
        assert_eq!(kind, 1 << 31 | 2);
        assert_eq!(text, b"the server has 1 client already, and takes no more");
        option(&mut refused, 2, &[]);
        assert_eq!(option_reply(&mut refused).0, 1);
        assert_eq!(refused.read(&mut [0]).unwrap(), 0);
    }
    assert_eq!(read_all(&mut served), CONTENT);
    assert_eq!(server.clients.refused_since_start(), 3);
    assert_eq!(server.reported.lock().unwrap().len(), 1);
    drop(served);
    wait_until("the client has left", || server.clients.count() == 0);
    let mut next = server.connect();
    greet(&mut next);
    take_export(&mut next);
    assert_eq!(read_all(&mut next), CONTENT);
}

#[test]
fn one_http_client_too_many_may_come_again() {
    let server = Server::start(1, |service| Arc::new(http(service)));
    let mut served = server.connect();
    let request = b"GET /disk HTTP/1.1\r\nHost: localhost\r\n\r\n";
    served.write_all(request).unwrap();
    served.read_exact(&mut [0; 15]).unwrap();
    let mut refused = server.connect();
    refused.write_all(request).unwrap();
    let mut answer = String::new();
    refused.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"),
        "{answer}"
    );
    assert!(answer.contains("\r\nRetry-After: 1\r\n"), "{answer}");
    assert!(answer.contains("has 1 client already"), "{answer}");
    assert_eq!(server.clients.refused_since_start(), 1);
    assert_eq!(server.reported.lock().unwrap().len(), 1);
}

#[test]
fn a_silent_nbd_client_leaves_after_the_limit_for_it() {
    let limit = Duration::from_millis(300);
    let server = Server::start(2, |service| {
        Arc::new(nbd(service).with_idle_limit(Some(limit)))
    });
    let mut silent = server.connect();
    greet(&mut silent);
    take_export(&mut silent);
    assert_eq!(read_all(&mut silent), CONTENT);
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    // Also in the middle of a refused write.
    let mut writing = server.connect();
    greet(&mut writing);
    take_export(&mut writing);
    let mut request = vec![0x25, 0x60, 0x95, 0x13, 0, 0, 0, 1];
    request.resize(27, 0);
    request.push(9);
    writing.write_all(&request).unwrap();
    assert_eq!(writing.read(&mut [0]).unwrap(), 0);
}

/// A certificate for localhost, which stands for itself.
fn make_certificate(directory: &Path) -> (TlsSettings, Arc<ClientConfig>) {
    let (certificate, key) = (directory.join("certificate"), directory.join("key"));
    let made = Command::new("openssl")
        .args("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test".split(' '))
        .args(["-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(&certificate).unwrap())
        .unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let settings = TlsSettings::read(&certificate, &key, None).unwrap();
    (settings, Arc::new(config))
}

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

fn secure(config: &Arc<ClientConfig>, stream: TcpStream) -> TlsStream {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    StreamOwned::new(connection, stream)
}

/// How many threads of this process serve clients.
fn client_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |thread: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(thread.ok()?.path().join("comm")).ok()
    };
    let names = threads.filter_map(name);
    names
        .filter(|name| name.trim_end().ends_with("client"))
        .count()
}

#[test]
fn silent_clients_with_tls_hold_no_threads() {
    const CLIENTS: usize = 40;
    let directory = tempfile::tempdir().unwrap();
    let (settings, config) = make_certificate(directory.path());
    let server = Server::start(64, |service| Arc::new(nbd(service).with_tls(settings)));
    let connect = |_| {
        let mut plain = server.connect();
        greet(&mut plain);
        option(&mut plain, 5, &[]);
        assert_eq!(option_reply(&mut plain).0, 1);
        let mut client = secure(&config, plain);
        take_export(&mut client);
        assert_eq!(read_all(&mut client), CONTENT);
        client
    };
    let mut silent: Vec<_> = (0..CLIENTS).map(connect).collect();
    // Other tests have some.
    wait_until("the threads end", || client_threads() < CLIENTS / 2);
    assert_eq!(server.clients.count(), CLIENTS);
    for client in &mut silent {
        assert_eq!(read_all(client), CONTENT);
    }
}

#[test]
fn http_is_answered_through_tls_and_not_in_the_clear() {
    let directory = tempfile::tempdir().unwrap();
    let (settings, config) = make_certificate(directory.path());
    let server = Server::start(1, |service| Arc::new(http(service).with_tls(settings)));
    let request = b"GET /disk HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut plain = server.connect();
    plain.write_all(request).unwrap();
    let mut answer = vec![];
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    wait_until("the client has left", || server.clients.count() == 0);
    let mut client = secure(&config, server.connect());
    client.write_all(request).unwrap();
    let mut answer = vec![];
    // An end without the notice of TLS would be an error.
    client.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200") && answer.ends_with(CONTENT));
    // A client too many is told through TLS.
    let mut kept = secure(&config, server.connect());
    let request = b"GET /disk HTTP/1.1\r\nHost: localhost\r\n\r\n";
    kept.write_all(request).unwrap();
    kept.read_exact(&mut [0; 15]).unwrap();
    let mut refused = secure(&config, server.connect());
    refused.write_all(request).unwrap();
    let mut answer = String::new();
    refused.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}
