//! An archive, a listener, and a client that sends exactly what it is told.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use refrain::storage::{MemorySink, MemorySource, Source};
use refrain::{
    Archive, CompressOptions, Content, DirectoryContent, MemberInput, ReadOptions, Timestamp,
    Unwatched, compress,
};
use refrain_server::http::{HttpHandler, HttpSettings};
use refrain_server::{Clients, Listener, Service, StopSignal};
use refrain_testkit::data;

const CLIENTS_MAX: usize = 64;

/// When `disk.img` was modified: Sun, 06 Nov 1994 08:49:37 GMT.
pub const MODIFIED: i64 = 784_111_777;

/// The content of `disk.img`: data, zeros, data again.
pub fn disk() -> Vec<u8> {
    let text = data::text(700_000, 1);
    [
        &text[..],
        &vec![0; 1_000_000],
        &data::text(300_001, 2),
        &text[..100_000],
    ]
    .concat()
}

/// An archive of `disk.img`, the directory `tree`, the tar stream `sub/old.tar` and `empty`.
pub fn archive() -> Vec<u8> {
    static ARCHIVE: OnceLock<Vec<u8>> = OnceLock::new();
    ARCHIVE.get_or_init(make_archive).clone()
}

fn make_archive() -> Vec<u8> {
    let root = tempfile::tempdir().unwrap();
    write_tree(root.path());
    let mut tar = vec![];
    tar.extend(tar_entry(b"./a.txt", b"in a tar\n"));
    tar.extend(tar_entry(b"deep/er/b.txt", b"implied\n"));
    tar.extend([0; 1024]);
    let file = |name: &str, content: Vec<u8>| MemberInput {
        name: name.into(),
        mode: Some(0o644),
        modified: Some(Timestamp {
            seconds: MODIFIED,
            nanoseconds: 5,
        }),
        content: Content::Source(Arc::new(MemorySource::new(content))),
    };
    let tree = MemberInput {
        name: "tree".into(),
        mode: None,
        modified: None,
        content: Content::directory(DirectoryContent::all(root.path())),
    };
    let members = vec![
        file("disk.img", disk()),
        tree,
        file("sub/old.tar", tar),
        file("empty", vec![]),
    ];
    let mut sink = MemorySink::new();
    let output = sink.output();
    // Several blocks for each range.
    let options = CompressOptions {
        block_bytes: Some(128 << 10),
        ..CompressOptions::default()
    };
    compress(members, &mut sink, &options, &Unwatched).unwrap();
    output.published().unwrap()
}

fn write_tree(root: &Path) {
    let write = |path: &str, content: &[u8]| std::fs::write(root.join(path), content).unwrap();
    std::fs::create_dir_all(root.join("dir/inner")).unwrap();
    std::fs::create_dir(root.join("many")).unwrap();
    write("hello.txt", b"hello\n");
    write("dir/data.bin", &data::text(200_000, 3));
    write("dir/inner/<b>&\".html", b"<b>bold</b>");
    write("dir/a b%20c", b"spaces");
    for number in 0..2000 {
        write(
            &format!("many/file-{number:05}"),
            number.to_string().as_bytes(),
        );
    }
    std::fs::hard_link(root.join("hello.txt"), root.join("dir/hard")).unwrap();
    symlink("../hello.txt", root.join("dir/soft")).unwrap();
    symlink("inner", root.join("dir/through")).unwrap();
    symlink("/etc/passwd", root.join("dir/absolute")).unwrap();
    symlink("../../../x", root.join("dir/outside")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
}

/// An entry of a tar stream with a short path.
fn tar_entry(path: &[u8], content: &[u8]) -> Vec<u8> {
    let mut head = [0_u8; 512];
    head[..path.len()].copy_from_slice(path);
    head[100..107].copy_from_slice(b"0000644");
    head[108..115].copy_from_slice(b"0000000");
    head[116..123].copy_from_slice(b"0000000");
    head[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    head[136..147].copy_from_slice(b"00000000001");
    head[148..156].fill(b' ');
    head[156] = b'0';
    head[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = head.iter().map(|&byte| u32::from(byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let padding = vec![0; content.len().next_multiple_of(512) - content.len()];
    [&head[..], content, &padding].concat()
}

/// A handler behind a listener. Dropping it stops both and waits for all connections to end.
pub struct Server {
    pub address: SocketAddr,
    pub handler: HttpHandler,
    pub clients: Clients,
    /// What the handler reported.
    pub failures: Arc<Mutex<Vec<String>>>,
    signal: Option<StopSignal>,
}

impl Server {
    pub fn start() -> Server {
        Server::with(archive(), HttpSettings::default())
    }

    pub fn with(archive: Vec<u8>, settings: HttpSettings) -> Server {
        Server::over(Arc::new(MemorySource::new(archive)), settings)
    }

    pub fn over(source: Arc<dyn Source>, settings: HttpSettings) -> Server {
        Server::for_clients(Clients::new(CLIENTS_MAX), source, settings)
    }

    pub fn for_clients(
        clients: Clients,
        source: Arc<dyn Source>,
        settings: HttpSettings,
    ) -> Server {
        let archive = Archive::open(source, &ReadOptions::default()).unwrap();
        let failures = Arc::new(Mutex::new(vec![]));
        let report = Arc::clone(&failures);
        let reporter = Arc::new(move |line: &str| report.lock().unwrap().push(line.to_owned()));
        let service = Service::new(archive, reporter);
        let handler = HttpHandler::new(service.clone(), settings).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let signal = Listener::from_tcp(listener)
            .start(
                Arc::new(handler.clone()),
                clients.clone(),
                service.reporter(),
            )
            .unwrap();
        Server {
            address,
            handler,
            clients,
            failures,
            signal: Some(signal),
        }
    }

    pub fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Client {
            stream,
            received: vec![],
        }
    }

    /// One request on its own connection.
    pub fn get(&self, path: &str, fields: &str) -> Response {
        self.connect().request("GET", path, fields)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.signal.take());
        self.clients.stop();
        let have_left = self.clients.wait_until_none(Duration::from_secs(20));
        assert!(have_left || thread::panicking(), "a connection goes on");
    }
}

/// A client that sends exactly what it is told.
pub struct Client {
    pub stream: TcpStream,
    received: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Response {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn request(&mut self, method: &str, path: &str, fields: &str) -> Response {
        self.send(format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{fields}\r\n").as_bytes());
        self.response(method != "HEAD")
    }

    /// Reads a response.
    pub fn response(&mut self, has_body: bool) -> Response {
        let end = loop {
            let end = self
                .received
                .windows(4)
                .position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                break end + 4;
            }
            assert!(
                self.receive() > 0,
                "the connection ended in a head: {:?}",
                self.received
            );
        };
        let head: Vec<u8> = self.received.drain(..end).collect();
        let head = String::from_utf8(head).unwrap();
        let status = head[9..12].parse().unwrap();
        let mut response = Response {
            status,
            head,
            body: vec![],
        };
        if !has_body || status == 304 {
            return response;
        }
        if response.field("Transfer-Encoding") == Some("chunked") {
            response.body = self.chunks();
        } else if let Some(length) = response.field("Content-Length") {
            let length: usize = length.parse().unwrap();
            while self.received.len() < length && self.receive() > 0 {}
            let length = length.min(self.received.len());
            response.body = self.received.drain(..length).collect();
        } else {
            response.body = self.rest();
        }
        response
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = vec![];
        loop {
            let line = loop {
                if let Some(end) = self.received.windows(2).position(|two| two == b"\r\n") {
                    break end;
                }
                assert!(self.receive() > 0, "the connection ended in a chunk");
            };
            let size: Vec<u8> = self.received.drain(..line + 2).collect();
            let size = std::str::from_utf8(&size[..line]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            while self.received.len() < size + 2 {
                assert!(self.receive() > 0, "the connection ended in a chunk");
            }
            body.extend(self.received.drain(..size));
            assert_eq!(self.received.drain(..2).collect::<Vec<u8>>(), b"\r\n");
            if size == 0 {
                return body;
            }
        }
    }

    /// All bytes until the connection ends.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.receive() > 0 {}
        std::mem::take(&mut self.received)
    }

    fn receive(&mut self) -> usize {
        let mut buffer = [0; 64 << 10];
        match self.stream.read(&mut buffer) {
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                count
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("{error}"),
        }
    }
}
