//! Clients that are broken or malicious.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use super::support::{Server, archive, disk};
use refrain_server::http::HttpSettings;
use refrain_testkit::Rng;

/// Short limits, so that tests reach them.
fn hasty() -> Server {
    let settings = HttpSettings {
        head_timeout: Duration::from_millis(600),
        idle_timeout: Duration::from_millis(600),
        write_timeout: Duration::from_millis(600),
        ..HttpSettings::default()
    };
    Server::with(archive(), settings)
}

#[test]
fn what_is_no_request_gets_a_status_and_the_end() {
    let server = Server::start();
    let long_line = format!("GET /{} HTTP/1.1\r\n", "a".repeat(9000));
    let long_head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "b".repeat(17_000));
    let many = format!(
        "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
        "X: y\r\n".repeat(100)
    );
    let body = "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\nxxx";
    let coded = "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    for (text, status) in [
        ("\u{1}\u{2}\u{3}\r\n\r\n", 400),
        ("GET\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n bad\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\n\r\n", 505),
        (
            "BREW / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            501,
        ),
        (
            "DELETE / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            405,
        ),
        (
            "GET x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            400,
        ),
        (long_line.as_str(), 414),
        (long_head.as_str(), 431),
        (many.as_str(), 431),
        (body, 413),
        (coded, 413),
    ] {
        let mut client = server.connect();
        client.send(text.as_bytes());
        let _ = client.stream.shutdown(Shutdown::Write);
        let response = client.response(true);
        assert_eq!(response.status, status, "{text:.60}");
        assert_eq!(response.field("Connection"), Some("close"), "{text:.60}");
        assert_eq!(client.rest(), b"");
    }
}

#[test]
fn random_bytes_end_the_connection() {
    let server = Server::start();
    let mut random = Rng::new(1);
    for _ in 0..200 {
        let mut client = server.connect();
        let count = random.below(600) as usize;
        let bytes: Vec<u8> = (0..count).map(|_| random.below(256) as u8).collect();
        // The server may close the connection first.
        let _ = client.stream.write_all(&bytes);
        let _ = client.stream.write_all(b"\r\n\r\n");
        let _ = client.stream.shutdown(Shutdown::Write);
        let mut answer = vec![];
        let _ = client.stream.read_to_end(&mut answer);
        assert!(
            answer.is_empty()
                || answer.starts_with(b"HTTP/1.1 4")
                || answer.starts_with(b"HTTP/1.1 505"),
            "{bytes:?}"
        );
    }
    assert_eq!(server.get("/empty", "").status, 200);
}

#[test]
fn requests_may_come_all_at_once_or_byte_by_byte() {
    let server = Server::start();
    let mut client = server.connect();
    let one = "GET /tree/hello.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    let body = "GET /empty HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /";
    client.send(format!("{one}{body}\r\n{one}").as_bytes());
    assert_eq!(client.response(true).text(), "hello\n");
    assert_eq!(client.response(true).text(), "");
    assert_eq!(client.response(true).text(), "hello\n");
    for byte in one.bytes() {
        client.send(&[byte]);
    }
    assert_eq!(client.response(true).text(), "hello\n");
    client.send(b"GET /empty HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response(true).field("Connection"), Some("close"));
    assert_eq!(client.rest(), b"");
}

#[test]
fn slow_heads_and_idle_connections_end() {
    let server = hasty();
    let started = Instant::now();
    let mut idle = server.connect();
    let mut slow = server.connect();
    let response = std::thread::scope(|scope| {
        let mut writer = slow.stream.try_clone().unwrap();
        scope.spawn(move || {
            // Always something, never the end.
            for byte in b"GET /empty HTTP/1.1\r\nHost: a\r\nX: "
                .iter()
                .chain(&[b'y'; 1000])
            {
                if writer.write_all(&[*byte]).is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let response = slow.response(true);
        let _ = slow.stream.shutdown(Shutdown::Both);
        response
    });
    assert_eq!(response.status, 408);
    assert_eq!(idle.rest(), b"");
    assert_eq!(server.clients.silent_since_start(), 1);
    assert!(
        started.elapsed() < Duration::from_secs(8),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_client_that_does_not_read_is_left_and_the_others_are_served() {
    let server = hasty();
    let mut client = server.connect();
    let request = "GET /disk.img HTTP/1.1\r\nHost: a\r\n\r\n";
    // More responses than the buffers of both sockets hold.
    client.send(request.repeat(20).as_bytes());
    let other = server.get("/tree/hello.txt", "");
    assert_eq!(other.text(), "hello\n");
    let started = Instant::now();
    while server.clients.count() > 0 {
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "the request goes on"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let end = client.stream.read_to_end(&mut vec![]).unwrap_err();
    assert_eq!(end.kind(), ErrorKind::ConnectionReset);
    assert_eq!(server.clients.slow_since_start(), 1);
    let expected = "a client was disconnected: it took less than 64 KiB in 0.6 s";
    assert_eq!(*server.failures.lock().unwrap(), [expected]);
}

#[test]
fn clients_that_leave_in_the_middle_do_no_harm() {
    let server = Server::start();
    for length in [0, 1, 100, 70_000] {
        for _ in 0..5 {
            let mut client = server.connect();
            client.send(b"GET /disk.img HTTP/1.1\r\nHost: a\r\n\r\n");
            let mut buffer = vec![0; length];
            client.stream.read_exact(&mut buffer).unwrap();
        }
    }
    let whole = server.get("/disk.img", "");
    assert!(whole.body == disk());
    assert_eq!(*server.failures.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn a_stop_ends_waiting_connections_and_lets_a_response_end() {
    let server = Server::start();
    let mut idle = server.connect();
    assert_eq!(idle.request("GET", "/empty", "").status, 200);
    // It counts until a moment after its client has the answer.
    while server.handler.requests_in_flight() > 0 {
        std::thread::yield_now();
    }
    let mut busy = server.connect();
    busy.send(b"GET /disk.img HTTP/1.1\r\nHost: a\r\n\r\n");
    while server.handler.requests_in_flight() == 0 {
        if busy.stream.peek(&mut [0]).unwrap() > 0 {
            break;
        }
    }
    server.clients.stop();
    let started = Instant::now();
    assert_eq!(idle.rest(), b"");
    assert!(busy.response(true).body == disk());
    assert_eq!(busy.rest(), b"");
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn many_clients_at_once_get_the_same_bytes() {
    let server = Server::start();
    let disk = disk();
    std::thread::scope(|scope| {
        for number in 0..32_usize {
            let (server, disk) = (&server, &disk);
            scope.spawn(move || {
                let mut client = server.connect();
                for step in 0..8 {
                    let start = (number * 50_021 + step * 260_003) % (disk.len() - 5000);
                    let field = format!("Range: bytes={start}-{}\r\n", start + 4095);
                    let found = client.request("GET", "/disk.img", &field);
                    assert!(found.status == 206 && found.body == disk[start..start + 4096]);
                }
            });
        }
    });
    let handler = server.handler.clone();
    drop(server);
    assert_eq!(handler.requests_in_flight(), 0);
}

#[test]
fn answers_beyond_their_memory_are_refused_until_it_is_free() {
    let settings = HttpSettings {
        answer_bytes: 1,
        ..HttpSettings::default()
    };
    let server = Server::with(archive(), settings);
    let mut stalled = server.connect();
    // More than the buffers of sockets hold.
    let request = "GET /disk.img HTTP/1.1\r\nHost: test\r\n\r\n";
    stalled.send(request.repeat(100).as_bytes());
    let answers = || (0..100_000).map(|_| server.get("/disk.img", "Range: bytes=0-99\r\n"));
    let refused = answers().find(|answer| answer.status == 503).unwrap();
    assert_eq!(refused.field("Retry-After"), Some("1"));
    assert_eq!(server.get("/tree/", "").status, 200, "pages need none");
    drop(stalled);
    let answered = answers().find(|answer| answer.status == 206).unwrap();
    assert!(answered.body == disk()[..100]);
}
