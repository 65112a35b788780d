//! Servers that are odd, slow or dying.

use std::io;
use std::time::Duration;

use refrain_storage::RemoteOptions;
use refrain_testkit::http_server::{Fault, Object};

use super::{PAGE, assert_error, content, open, open_with, options, read, server_with};

#[test]
fn odd_heads_are_read() {
    let bytes = content(1 << 20);
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let fields = |lines: &str| Fault::Fields(lines.to_owned());
    for fault in [
        Fault::Before("HTTP/1.1 100 Continue\r\nX-Field: 1\r\n\r\n".into()),
        Fault::Before(hints.repeat(3)),
        Fault::PartAsWhole,
        fields(&"X-Field: value\r\n".repeat(1000)),
        fields("Content-Encoding: AWS-Chunked\r\n"),
        fields("Content-Encoding: Identity, aws-chunked\r\ncontent-encoding:\r\n"),
    ] {
        let (server, url) = server_with(&bytes);
        server.fault_always(Some(fault.clone()));
        let source = open(&url).unwrap();
        let found = read(&source, 300_000, 400_000).unwrap();
        assert!(found == bytes[300_000..700_000], "{fault:?}");
        assert_eq!(source.statistics().repetitions, 0, "{fault:?}");
    }
    let (server, url) = server_with(&bytes);
    server.fault_always(Some(fields("Content-Encoding: identity, GZip\r\n")));
    let failed = open(&url).map(|_| Vec::new());
    assert_error(failed, io::ErrorKind::Unsupported, &["identity, GZip"]);
}

#[test]
fn an_impossible_length_is_an_error_at_once() {
    let (server, url) = server_with(&content(1 << 20));
    for length in [u64::MAX, u64::MAX - 1, 1 << 63] {
        server.fault_always(Some(Fault::Total(length)));
        let failed = open(&url).map(|_| Vec::new());
        let text = format!("an impossible length of {length} bytes");
        assert_error(failed, io::ErrorKind::InvalidData, &[&text]);
    }
    assert_eq!(server.request_count(), 3);
    // The longest that a file could have.
    let length = i64::MAX.unsigned_abs();
    server.fault_always(Some(Fault::Total(length)));
    let source = open(&url).unwrap();
    let parts = ["the object changed", "1048576 now"];
    let kind = io::ErrorKind::StaleNetworkFileHandle;
    assert_error(read(&source, length - 10, 20), kind, &parts);
}

#[test]
fn a_redirection_is_resolved_again_when_its_target_fails() {
    let bytes = content(1 << 20);
    let unbound = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let status = |status| Fault::Status(status, String::new(), String::new());
    for fault in [
        None,
        Some(Fault::Close),
        Some(Fault::ShortBody),
        Some(status(500)),
        Some(status(501)),
        Some(status(503)),
        Some(Fault::Encoded),
    ] {
        let (first, second) = (server_with(&bytes).0, server_with(&bytes).0);
        let (server, url) = server_with(b"");
        server.fault_always(Some(Fault::redirect(&first.url("/x"))));
        let source = open(&url).unwrap();
        let is_refused = fault.is_none();
        first.fault_always(fault.clone());
        if is_refused {
            // The address of a server that is gone.
            let port = unbound.local_addr().unwrap().port();
            server.fault_always(Some(Fault::redirect(&format!("http://127.0.0.1:{port}/"))));
            first.fault_always(Some(status(403)));
            server.fault_at(2, Fault::redirect(&second.url("/x")));
        } else {
            server.fault_always(Some(Fault::redirect(&second.url("/x"))));
        }
        let found = read(&source, 300_000, 10).unwrap();
        assert_eq!(found, &bytes[300_000..300_010], "{fault:?}");
        assert_eq!(second.request_count(), 1, "{fault:?}");
    }
}

#[test]
fn a_redirection_may_lead_to_an_address_that_is_not_ascii() {
    let (server, _) = server_with(b"");
    server.put("/%C3%BCber", Object::new(content(1000), "\"a\""));
    server.fault_at(0, Fault::redirect("/\u{fc}ber"));
    let source = open(&server.url("/x")).unwrap();
    assert_eq!(read(&source, 0, 1000).unwrap(), content(1000));
}

#[test]
fn slow_progress_has_no_deadline() {
    let bytes = content(1 << 20);
    let (server, url) = server_with(&bytes);
    let options = RemoteOptions {
        deadline: Duration::from_millis(400),
        stall: Duration::from_secs(20),
        ..options()
    };
    let source = open_with(&url, &options).unwrap();
    // Takes two seconds.
    server.fault_always(Some(Fault::Drip(4 << 10, Duration::from_millis(40))));
    let found = read(&source, 4 * PAGE, 200 << 10).unwrap();
    assert!(found == bytes[4 << 16..][..200 << 10]);
    assert_eq!(source.statistics().repetitions, 0);
}

#[test]
fn bytes_below_the_minimal_rate_are_no_progress() {
    let (server, url) = server_with(&content(1 << 20));
    let options = RemoteOptions {
        attempts_max: 2,
        ..options()
    };
    let source = open_with(&url, &options).unwrap();
    server.fault_always(Some(Fault::Drip(1, Duration::from_millis(50))));
    let failed = read(&source, 300_000, 10);
    let parts = ["the server is too slow", "less than", "2 attempts"];
    assert_error(failed, io::ErrorKind::TimedOut, &parts);
}
