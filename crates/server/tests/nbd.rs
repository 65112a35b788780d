//! The NBD handler as seen by clients, byte by byte: clients that follow the protocol, and clients
//! that do not.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use refrain::storage::{MemorySink, MemorySource};
use refrain::{
    Archive, CompressOptions, Content, MemberInput, Purpose, ReadOptions, Unwatched, compress,
};
use refrain_server::nbd::{Exports, NbdHandler};
use refrain_server::{Clients, Handler, Service, Socket};
use refrain_testkit::Rng;

const CLIENTS_MAX: usize = 64;

/// Data, a hole, and data that repeats.
fn image() -> Vec<u8> {
    let mut rng = Rng::new(1);
    let mut image: Vec<u8> = (0..600_000).map(|_| rng.below(40) as u8 + 1).collect();
    image.resize(2_000_000, 0);
    image.extend_from_within(1000..300_000);
    image
}

struct Server {
    handler: Arc<dyn Handler>,
    clients: Clients,
    image: Vec<u8>,
    /// What the handler reported.
    reported: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new() -> Server {
        Server::with(|_| {})
    }

    /// A server of a modified archive.
    fn with(change: impl FnOnce(&mut Vec<u8>)) -> Server {
        let image = image();
        let member = |name: &str, content: Vec<u8>| MemberInput {
            name: name.into(),
            mode: None,
            modified: None,
            content: Content::Source(Arc::new(MemorySource::new(content))),
        };
        let members = vec![member("disk", image.clone()), member("empty", vec![])];
        let mut sink = MemorySink::new();
        let output = sink.output();
        let options = CompressOptions {
            purpose: Purpose::Serve,
            ..CompressOptions::default()
        };
        compress(members, &mut sink, &options, &Unwatched).unwrap();
        let mut bytes = output.published().unwrap();
        change(&mut bytes);
        let source = Arc::new(MemorySource::new(bytes));
        let archive = Archive::open(source, &ReadOptions::default()).unwrap();
        let reported = Arc::new(Mutex::new(vec![]));
        let own = Arc::clone(&reported);
        let reporter = Arc::new(move |line: &str| own.lock().unwrap().push(line.to_owned()));
        let exports = Exports::new(Service::new(archive, reporter)).unwrap();
        let exports = exports.with_readahead(2);
        Server {
            reported,
            handler: Arc::new(NbdHandler::new(exports, 1 << 30, CLIENTS_MAX)),
            clients: Clients::new(CLIENTS_MAX),
            image,
        }
    }

    fn connect(&self) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let client = self.clients.add(Socket::Unix(ours)).unwrap();
        let handler = Arc::clone(&self.handler);
        std::thread::spawn(move || handler.serve(client));
        theirs
    }

    /// A client that has taken an export, with structured replies and holes or without.
    fn go(&self, is_structured: bool) -> UnixStream {
        let mut client = self.connect();
        greet(&mut client);
        if is_structured {
            option(&mut client, 8, &[]);
            assert_eq!(option_reply(&mut client), (8, 1, vec![]));
            let mut data = name("disk");
            data.extend_from_slice(&1_u32.to_be_bytes());
            data.extend(name("base:allocation"));
            option(&mut client, 10, &data);
            assert_eq!(option_reply(&mut client).1, 4);
            assert_eq!(option_reply(&mut client).1, 1);
        }
        let mut data = name("disk");
        data.extend_from_slice(&0_u16.to_be_bytes());
        option(&mut client, 7, &data);
        let (_, kind, export) = option_reply(&mut client);
        assert_eq!((kind, &export[..2]), (3, &[0, 0][..]));
        assert_eq!(export[2..10], (self.image.len() as u64).to_be_bytes());
        while option_reply(&mut client).1 != 1 {}
        client
    }

    /// Waits until all clients have left.
    fn wait_idle(&self) {
        for _ in 0..2000 {
            if self.clients.count() == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{} clients are still there", self.clients.count());
    }
}

fn greet(client: &mut UnixStream) {
    let mut greeting = [0; 18];
    client.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
    client.write_all(&3_u32.to_be_bytes()).unwrap();
}

fn name(name: &str) -> Vec<u8> {
    let mut bytes = (name.len() as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(name.as_bytes());
    bytes
}

fn option(client: &mut UnixStream, option: u32, data: &[u8]) {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend_from_slice(&option.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    client.write_all(&bytes).unwrap();
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The option, the kind of the reply, and its data.
fn option_reply(client: &mut UnixStream) -> (u32, u32, Vec<u8>) {
    let mut head = [0; 20];
    client.read_exact(&mut head).unwrap();
    let mut data = vec![0; u32_at(&head, 16) as usize];
    client.read_exact(&mut data).unwrap();
    (u32_at(&head, 8), u32_at(&head, 12), data)
}

fn request(flags: u16, command: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend_from_slice(&flags.to_be_bytes());
    bytes.extend_from_slice(&command.to_be_bytes());
    bytes.extend_from_slice(&cookie.to_be_bytes());
    bytes.extend_from_slice(&offset.to_be_bytes());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes
}

/// The flags, the kind, the cookie and the payload of a chunk.
fn chunk(client: &mut UnixStream) -> (u16, u16, u64, Vec<u8>) {
    let mut head = [0; 20];
    client.read_exact(&mut head).unwrap();
    assert_eq!(u32_at(&head, 0), 0x668e_33ef);
    let mut payload = vec![0; u32_at(&head, 16) as usize];
    client.read_exact(&mut payload).unwrap();
    let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let cookie = u64::from_be_bytes(head[8..16].try_into().unwrap());
    (u16_at(4), u16_at(6), cookie, payload)
}

/// Reads by structured replies, joining the chunks.
fn read_structured(client: &mut UnixStream, flags: u16, range: std::ops::Range<usize>) -> Vec<u8> {
    let length = range.len() as u32;
    let bytes = request(flags, 0, 7, range.start as u64, length);
    client.write_all(&bytes).unwrap();
    let mut found = vec![0xff; range.len()];
    loop {
        let (flags, kind, cookie, payload) = chunk(client);
        assert_eq!(cookie, 7);
        let offset = || u64::from_be_bytes(payload[..8].try_into().unwrap()) as usize - range.start;
        match kind {
            0 => {}
            1 => found[offset()..][..payload.len() - 8].copy_from_slice(&payload[8..]),
            2 => found[offset()..][..u32_at(&payload, 8) as usize].fill(0),
            other => panic!("chunk of kind {other}: {payload:?}"),
        }
        if flags & 1 != 0 {
            return found;
        }
    }
}

fn simple_error(client: &mut UnixStream, cookie: u64) -> u32 {
    let mut reply = [0; 16];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(u32_at(&reply, 0), 0x6744_6698);
    assert_eq!(reply[8..], cookie.to_be_bytes());
    u32_at(&reply, 4)
}

#[test]
fn any_range_is_read_by_both_kinds_of_replies() {
    let server = Server::new();
    let (mut structured, mut simple) = (server.go(true), server.go(false));
    let mut rng = Rng::new(5);
    let size = server.image.len();
    let mut ranges = vec![
        0..1,
        size - 1..size,
        0..size,
        500_000..2_100_000,
        700_000..700_010,
    ];
    for _ in 0..200 {
        let start = rng.below(size as u64) as usize;
        let length = 1 << rng.below(19);
        ranges.push(start..(start + length).min(size));
    }
    for range in ranges {
        let expected = &server.image[range.clone()];
        assert!(read_structured(&mut structured, 0, range.clone()) == expected);
        assert!(read_structured(&mut structured, 4, range.clone()) == expected);
        let bytes = request(0, 0, 3, range.start as u64, range.len() as u32);
        simple.write_all(&bytes).unwrap();
        assert_eq!(simple_error(&mut simple, 3), 0);
        let mut found = vec![0; range.len()];
        simple.read_exact(&mut found).unwrap();
        assert!(found == expected, "{range:?}");
    }
}

#[test]
fn holes_are_told_and_cover_the_range() {
    let server = Server::new();
    let mut client = server.go(true);
    let size = server.image.len() as u32;
    client.write_all(&request(0, 7, 1, 0, size)).unwrap();
    let (flags, kind, _, payload) = chunk(&mut client);
    assert_eq!((flags, kind, u32_at(&payload, 0)), (1, 5, 1));
    let extents: Vec<_> = payload[4..]
        .chunks(8)
        .map(|extent| (u32_at(extent, 0), u32_at(extent, 4)))
        .collect();
    assert_eq!(extents.iter().map(|(length, _)| length).sum::<u32>(), size);
    let hole = 1_998_848 - 602_112;
    assert_eq!(extents[..2], [(602_112, 0), (hole, 3)], "{extents:?}");
    let mut at = 0;
    for (length, state) in extents {
        let part = &server.image[at..at + length as usize];
        assert!(state == 0 || part.iter().all(|&byte| byte == 0));
        at += length as usize;
    }
}

#[test]
fn replies_may_overtake_one_another_and_all_arrive() {
    let server = Server::new();
    let mut client = server.go(true);
    let size = server.image.len() as u64;
    let offsets: Vec<u64> = (0..500)
        .map(|number| number * 7919 % (size - 4096))
        .collect();
    let mut sender = client.try_clone().unwrap();
    let sent = offsets.clone();
    let sending = std::thread::spawn(move || {
        for (cookie, offset) in sent.into_iter().enumerate() {
            sender
                .write_all(&request(0, 0, cookie as u64, offset, 4096))
                .unwrap();
        }
    });
    let mut seen = vec![false; offsets.len()];
    for _ in 0..offsets.len() {
        let (flags, kind, cookie, payload) = chunk(&mut client);
        assert_eq!((flags, kind), (1, 1));
        let offset = offsets[cookie as usize];
        assert_eq!(payload[..8], offset.to_be_bytes());
        assert!(payload[8..] == server.image[offset as usize..][..4096]);
        assert!(!std::mem::replace(&mut seen[cookie as usize], true));
    }
    sending.join().unwrap();
}

#[test]
fn what_is_not_allowed_gets_an_error_and_the_connection_goes_on() {
    let server = Server::new();
    let size = server.image.len() as u64;
    let mut client = server.go(false);
    let mut write = request(0, 1, 1, 0, 5);
    write.extend_from_slice(b"bytes");
    let cases = [
        (write, 1),
        (request(0, 4, 1, 0, 4096), 1),
        (request(0, 6, 1, 0, 4096), 1),
        (request(0, 0, 1, size - 1, 2), 22),
        (request(0, 0, 1, u64::MAX, 4096), 22),
        (request(0, 0, 1, u64::MAX - 4096, u32::MAX), 22),
        (request(0, 7, 1, 0, 4096), 22),
        (request(0, 99, 1, 0, 0), 22),
        (request(0, 3, 1, 0, 0), 0),
        (request(0, 5, 1, 0, 4096), 0),
        (request(0, 5, 1, size, 1), 22),
        (request(0, 0, 1, size, 0), 0),
    ];
    for (bytes, error) in cases {
        client.write_all(&bytes).unwrap();
        assert_eq!(simple_error(&mut client, 1), error, "{:?}", &bytes[..28]);
    }
    let mut structured = server.go(true);
    structured
        .write_all(&request(0, 0, 9, size - 1, 2))
        .unwrap();
    let (flags, kind, cookie, payload) = chunk(&mut structured);
    assert_eq!((flags, kind, cookie), (1, 1 << 15 | 1, 9));
    assert_eq!(u32_at(&payload, 0), 22);
    assert!(read_structured(&mut structured, 0, 0..10) == server.image[..10]);
}

#[test]
fn options_that_cannot_be_had_are_refused_and_others_still_taken() {
    let server = Server::new();
    let mut client = server.connect();
    greet(&mut client);
    option(&mut client, 3, &[]);
    let listed = |reply: (u32, u32, Vec<u8>)| String::from_utf8(reply.2).unwrap();
    assert_eq!(listed(option_reply(&mut client)), "\0\0\0\u{4}disk");
    assert_eq!(listed(option_reply(&mut client)), "\0\0\0\u{5}empty");
    assert_eq!(option_reply(&mut client).1, 1);
    const ERROR: u32 = 1 << 31;
    let mut unknown = name("other");
    unknown.extend_from_slice(&[0, 0]);
    let mut several = name("");
    several.extend_from_slice(&[0, 0]);
    let wrong_count = [name("disk"), vec![0, 9, 0, 0]].concat();
    let mut long = name(&"é".repeat(2048));
    long.extend_from_slice(&[0, 0]);
    let cases: [(u32, &[u8], u32); 9] = [
        (7, &long, ERROR | 6),
        (99, b"", ERROR | 1),
        (5, b"", ERROR | 1),
        (3, b"x", ERROR | 3),
        (7, b"", ERROR | 6),
        (7, &unknown, ERROR | 6),
        (6, &several, ERROR | 6),
        (7, &wrong_count, ERROR | 3),
        (10, &name("disk"), ERROR | 3),
    ];
    for (number, data, kind) in cases {
        option(&mut client, number, data);
        let reply = option_reply(&mut client);
        assert_eq!((reply.0, reply.1), (number, kind), "{data:?}");
        assert!(reply.2.len() <= 4096 && str::from_utf8(&reply.2).is_ok());
    }
    option(&mut client, 2, &[]);
    assert_eq!(option_reply(&mut client).1, 1);
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    server.wait_idle();
}

#[test]
fn damage_is_an_error_for_its_ranges_only() {
    let server = Server::with(|bytes| {
        // In the first half are blocks.
        let at = bytes.len() / 3;
        bytes[at] ^= 1;
    });
    let mut client = server.go(true);
    let mut failed = 0;
    // Twice: what is damaged is reported once.
    let starts = || (0..server.image.len() - 4096).step_by(65_536);
    for start in starts().chain(starts()) {
        client
            .write_all(&request(0, 0, 1, start as u64, 4096))
            .unwrap();
        let (_, kind, _, payload) = chunk(&mut client);
        match kind {
            1 => assert!(payload[8..] == server.image[start..start + 4096]),
            2 => assert!(
                server.image[start..start + 4096]
                    .iter()
                    .all(|&byte| byte == 0)
            ),
            _ => {
                assert_eq!((kind, u32_at(&payload, 0)), (1 << 15 | 2, 5));
                failed += 1;
            }
        }
    }
    assert!((2..24).contains(&failed), "{failed} of 72");
    let reported = server.reported.lock().unwrap();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0].starts_with("disk: cannot be read"),
        "{reported:?}"
    );
}

#[test]
fn clients_that_leave_or_stop_reading_do_not_disturb_others() {
    let server = Server::new();
    let mut patient = server.go(true);
    for _ in 0..50 {
        let mut leaving = server.go(true);
        for number in 0..30 {
            leaving
                .write_all(&request(0, 0, number, 0, 200_000))
                .unwrap();
        }
        drop(leaving);
    }
    let mut stuck = server.go(true);
    stuck
        .set_write_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    // It sends requests and never reads, until the server accepts no more of them.
    for number in 0..1000 {
        if stuck.write_all(&request(0, 0, number, 0, 500_000)).is_err() {
            break;
        }
    }
    assert!(read_structured(&mut patient, 0, 0..600_000) == server.image[..600_000]);
    drop(stuck);
    drop(patient);
    server.wait_idle();
}

#[test]
fn requests_that_were_received_are_answered_when_the_server_stops() {
    let server = Server::new();
    let mut client = server.go(false);
    client.write_all(&request(0, 0, 1, 0, 100_000)).unwrap();
    assert_eq!(simple_error(&mut client, 1), 0);
    server.clients.stop();
    let mut data = vec![];
    client.read_to_end(&mut data).unwrap();
    assert!(data == server.image[..100_000]);
    server.wait_idle();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn nonsense_ends_one_connection_at_most(
        negotiates: bool,
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        starts_well: bool,
    ) {
        let server = Server::new();
        let mut client = if negotiates { server.go(true) } else { server.connect() };
        let start: &[u8] = match (starts_well, negotiates) {
            (false, _) => &[],
            (true, true) => &[0x25, 0x60, 0x95, 0x13, 0, 0, 0],
            (true, false) => b"\0\0\0\x03IHAVEOPT\0\0\0",
        };
        // The server may have closed the connection before everything was written.
        let _ = client.write_all(start).and_then(|()| client.write_all(&bytes));
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let ended = client.read_to_end(&mut vec![]);
        let is_end = ended.as_ref().map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |_| true);
        prop_assert!(is_end, "{ended:?}");
        drop(client);
        server.wait_idle();
        let mut next = server.go(true);
        prop_assert!(read_structured(&mut next, 0, 5..50) == server.image[5..50]);
    }
}
