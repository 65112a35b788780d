//! Remote sources against a server that misbehaves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests may fail loudly"
)]

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use refrain_storage::{Location, RemoteOptions, RemoteSource, Source};
use refrain_testkit::data;
use refrain_testkit::http_server::{Fault, HttpServer, Object};

mod origins;

const PAGE: u64 = 64 << 10;

fn content(length: usize) -> Vec<u8> {
    data::text(length, 11)
}

/// Fast enough for tests.
fn options() -> RemoteOptions {
    RemoteOptions {
        deadline: Duration::from_secs(20),
        stall: Duration::from_secs(1),
        ..RemoteOptions::default()
    }
}

fn server_with(bytes: &[u8]) -> (HttpServer, String) {
    let server = HttpServer::start().unwrap();
    server.put("/x", Object::new(bytes, "\"a\""));
    let url = server.url("/x");
    (server, url)
}

fn open_with(url: &str, options: &RemoteOptions) -> io::Result<RemoteSource> {
    RemoteSource::open(Location::http(url).unwrap(), options)
}

fn open(url: &str) -> io::Result<RemoteSource> {
    open_with(url, &options())
}

fn read(source: &RemoteSource, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0xEE; length];
    let count = source.read_at(offset, &mut buffer)?;
    buffer.truncate(count);
    Ok(buffer)
}

#[track_caller]
fn assert_error(result: io::Result<Vec<u8>>, kind: io::ErrorKind, parts: &[&str]) {
    let error = result.expect_err("a failure");
    assert_eq!(error.kind(), kind, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "no {part:?} in {error}");
    }
}

#[test]
fn small_reads_take_few_requests() {
    let bytes = content(10 << 20);
    let (server, url) = server_with(&bytes);
    let source = open(&url).unwrap();
    assert_eq!(source.size_bytes().unwrap(), bytes.len() as u64);
    assert_eq!(read(&source, 0, 512).unwrap(), &bytes[..512]);
    assert_eq!(server.request_count(), 1);
    for back in [8, 100, 5000, 100_000] {
        let at = bytes.len() - back;
        assert_eq!(read(&source, at as u64, 8).unwrap(), &bytes[at..at + 8]);
    }
    assert_eq!(server.request_count(), 2);
    assert_eq!(
        read(&source, 5 << 20, 4096).unwrap(),
        &bytes[5 << 20..][..4096]
    );
    assert_eq!(server.request_count(), 3);
    assert!(server.sent_bytes() <= 5 * PAGE, "{}", server.sent_bytes());
    let statistics = source.statistics();
    assert_eq!((statistics.requests, statistics.repetitions), (3, 0));
    assert_eq!(statistics.received_bytes, server.sent_bytes());
    // Every request after the first is for the pinned object.
    let requests = server.requests();
    let conditions = requests
        .iter()
        .map(|request| request.headers.get("if-match"));
    let conditions: Vec<_> = conditions.map(|tag| tag.map(String::as_str)).collect();
    assert_eq!(conditions, [None, Some("\"a\""), Some("\"a\"")]);
}

#[test]
fn ends_are_short_reads() {
    for length in [
        0,
        1,
        1000,
        PAGE as usize,
        PAGE as usize + 1,
        4 * PAGE as usize - 1,
    ] {
        let bytes = content(length);
        let (_server, url) = server_with(&bytes);
        let source = open(&url).unwrap();
        assert_eq!(source.size_bytes().unwrap(), length as u64);
        assert_eq!(read(&source, 0, length + 7).unwrap(), bytes);
        assert_eq!(read(&source, length as u64, 7).unwrap(), []);
        assert_eq!(read(&source, u64::MAX, 7).unwrap(), []);
        let from = length.saturating_sub(3);
        assert_eq!(read(&source, from as u64, 7).unwrap(), &bytes[from..]);
    }
}

#[test]
fn a_sequential_pass_has_several_requests_in_flight() {
    let bytes = content(24 << 20);
    let (server, url) = server_with(&bytes);
    server.set_latency(Duration::from_millis(20));
    let source = open(&url).unwrap();
    let mut all = Vec::new();
    while all.len() < bytes.len() {
        let piece = read(&source, all.len() as u64, 100_000).unwrap();
        all.extend(piece);
    }
    assert!(all == bytes);
    assert!(server.in_flight_max() >= 3, "{}", server.in_flight_max());
    assert!(server.request_count() <= 60, "{}", server.request_count());
    assert!(server.sent_bytes() <= bytes.len() as u64 + PAGE);
}

#[test]
fn threads_that_need_the_same_bytes_fetch_them_once() {
    let bytes = content(3 << 20);
    let (server, url) = server_with(&bytes);
    server.set_latency(Duration::from_millis(50));
    let source = open(&url).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (source, bytes) = (&source, &bytes);
            scope.spawn(move || {
                let at = (1 << 20) + thread * 100;
                assert_eq!(read(source, at as u64, 100).unwrap(), &bytes[at..at + 100]);
            });
        }
    });
    assert_eq!(server.request_count(), 2);
}

#[test]
fn what_has_no_room_in_memory_is_found_in_a_temporary_file() {
    let bytes = content(6 << 20);
    let directory = tempfile::tempdir().unwrap();
    for temporary in [None, Some(directory.path().to_owned())] {
        let is_kept = temporary.is_some();
        let (server, url) = server_with(&bytes);
        let small = RemoteOptions {
            cache_bytes: 1 << 20,
            temporary,
            ..options()
        };
        let source = open_with(&url, &small).unwrap();
        for _ in 0..3 {
            assert!(read(&source, 0, bytes.len()).unwrap() == bytes);
            for at in (0..bytes.len() - 5000).rev().step_by(99_999) {
                assert!(read(&source, at as u64, 5000).unwrap() == bytes[at..at + 5000]);
            }
        }
        // Some may be fetched twice: the temporary file gets forgotten pages only at the end of a
        // read.
        let once = 2 * bytes.len() as u64;
        assert_eq!(
            server.sent_bytes() <= once,
            is_kept,
            "{}",
            server.sent_bytes()
        );
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn what_may_pass_is_repeated() {
    let until = "Date: Wed, 21 Oct 2015 07:28:00 GMT\r\nRetry-After: Wed, 21 Oct 2015 07:28:01 GMT";
    let faults = [
        Fault::Close,
        Fault::Stall(Duration::from_secs(2)),
        Fault::StallInBody(Duration::from_secs(2)),
        Fault::ShortBody,
        Fault::LongBody,
        Fault::WrongRange,
        Fault::Status(503, String::new(), String::new()),
        Fault::Status(429, "Retry-After: 1".into(), String::new()),
        Fault::Status(429, until.into(), String::new()),
        Fault::Status(500, String::new(), String::new()),
    ];
    let bytes = content(1 << 20);
    for fault in faults {
        let (server, url) = server_with(&bytes);
        let source = open(&url).unwrap();
        server.fault_at(1, fault.clone());
        let start = Instant::now();
        let found = read(&source, 300_000, 200_000);
        assert!(found.unwrap() == bytes[300_000..500_000], "{fault:?}");
        assert_eq!(server.request_count(), 3, "{fault:?}");
        assert_eq!(source.statistics().repetitions, 1, "{fault:?}");
        let waited = start.elapsed() >= Duration::from_secs(1);
        let must_wait = matches!(fault, Fault::Status(429, ..));
        assert!(waited || !must_wait, "{fault:?}");
    }
}

#[test]
fn the_rest_of_a_body_is_asked_for() {
    let bytes = content(1 << 20);
    let (server, url) = server_with(&bytes);
    let source = open(&url).unwrap();
    server.fault_at(1, Fault::ShortBody);
    assert!(read(&source, 4 * PAGE, 4 * PAGE as usize).unwrap() == bytes[4 << 16..8 << 16]);
    let ranges: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.range())
        .collect();
    assert_eq!(ranges[1], Some(4 * PAGE..8 * PAGE));
    assert_eq!(ranges[2], Some(6 * PAGE..8 * PAGE));
}

#[test]
fn a_broken_server_gets_few_requests_and_a_clear_error() {
    let (server, url) = server_with(&content(1 << 20));
    let source = open(&url).unwrap();
    server.fault_always(Some(Fault::Status(503, String::new(), String::new())));
    let failed = read(&source, 300_000, 10);
    let parts = [
        "cannot read http://127.0.0.1",
        "/x: status 503",
        "after 5 attempts in",
    ];
    assert_error(failed, io::ErrorKind::TimedOut, &parts);
    assert_eq!(server.request_count(), 6);
    // Many reads exhaust the budget of repetitions.
    for page in 5..15 {
        assert!(read(&source, page * PAGE, 10).is_err());
    }
    assert!(
        server.request_count() <= 6 + 10 + 20,
        "{}",
        server.request_count()
    );
    server.fault_always(None);
    assert_eq!(read(&source, 300_000, 10).unwrap().len(), 10);
}

#[test]
fn a_deadline_holds() {
    let (server, url) = server_with(&content(1 << 20));
    let short = RemoteOptions {
        deadline: Duration::from_millis(700),
        ..options()
    };
    let source = open_with(&url, &short).unwrap();
    server.fault_always(Some(Fault::Stall(Duration::from_secs(5))));
    let start = Instant::now();
    let failed = read(&source, 300_000, 10);
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
    assert_error(
        failed,
        io::ErrorKind::TimedOut,
        &["does not answer in time"],
    );
    // A server that asks for a longer wait than there is time is not asked again.
    let wait = Fault::Status(503, "Retry-After: 3600".into(), String::new());
    server.fault_always(Some(wait));
    let start = Instant::now();
    let told = "asks to be left alone for 3600 s";
    assert_error(
        read(&source, 300_000, 10),
        io::ErrorKind::TimedOut,
        &["status 503", told],
    );
    assert!(start.elapsed() < Duration::from_secs(2));
}

/// The server asks for a wait that the deadline allows but no test would survive.
const LONG_WAIT: &str = "Retry-After: 3000";

fn patient(options: RemoteOptions) -> RemoteOptions {
    RemoteOptions {
        deadline: Duration::from_secs(3600),
        ..options
    }
}

#[test]
fn a_wait_before_a_repetition_can_be_cancelled() {
    let (server, url) = server_with(&content(1 << 20));
    let options = patient(options());
    let source = open_with(&url, &options).unwrap();
    server.fault_always(Some(Fault::Status(503, LONG_WAIT.into(), String::new())));
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(&source, 300_000, 10));
        while server.request_count() < 2 {
            std::thread::yield_now();
        }
        options.cancellation.cancel();
        let failed = reading.join().unwrap();
        let parts = ["status 503", "; cancelled before the next attempt"];
        assert_error(failed, io::ErrorKind::Other, &parts);
    });
    assert_eq!(
        (server.request_count(), source.statistics().repetitions),
        (2, 0)
    );
}

#[test]
fn a_replaced_object_is_an_error_forever() {
    let stale = io::ErrorKind::StaleNetworkFileHandle;
    let bytes = content(1 << 20);
    // From a server that supports If-Match, and from one that does not.
    let new_tag = |server: &HttpServer| server.put("/x", Object::new(content(1 << 20), "\"b\""));
    let ignored = |server: &HttpServer| server.fault_always(Some(Fault::OtherTag));
    let longer = |server: &HttpServer| server.fault_always(Some(Fault::Total((1 << 20) + 1)));
    type Replace<'a> = &'a dyn Fn(&HttpServer);
    let cases: [(Replace, &str); 3] = [
        (&new_tag, "ETag \"a\" before, \"b\" now"),
        (&ignored, "ETag \"a\" before, \"other\" now"),
        (&longer, "1048576 bytes before, 1048577 now"),
    ];
    for (replace, difference) in cases {
        let (server, url) = server_with(&bytes);
        let source = open(&url).unwrap();
        replace(&server);
        let parts = ["the object changed while it was read", difference];
        assert_error(read(&source, 300_000, 10), stale, &parts);
        // Memory still holds bytes of the old object.
        assert_error(read(&source, 0, 10), stale, &parts);
        let count = server.request_count();
        server.fault_always(None);
        assert_error(read(&source, 600_000, 10), stale, &parts);
        assert_eq!(server.request_count(), count);
    }
}

#[test]
fn a_date_pins_an_object_without_a_strong_etag() {
    let server = HttpServer::start().unwrap();
    let object = |date: &str| Object {
        bytes: Arc::new(content(1 << 20)),
        etag: None,
        last_modified: Some(date.to_owned()),
    };
    server.put("/x", object("Wed, 21 Oct 2015 07:28:00 GMT"));
    let source = open(&server.url("/x")).unwrap();
    read(&source, 300_000, 10).unwrap();
    let sent = server.requests()[1]
        .headers
        .get("if-unmodified-since")
        .cloned();
    assert_eq!(sent.as_deref(), Some("Wed, 21 Oct 2015 07:28:00 GMT"));
    server.put("/x", object("Wed, 21 Oct 2015 07:28:01 GMT"));
    let kind = io::ErrorKind::StaleNetworkFileHandle;
    assert_error(read(&source, 600_000, 10), kind, &["the object changed"]);
}

#[test]
fn a_server_without_ranges_is_refused_unless_the_object_is_small() {
    let (server, url) = server_with(&content(1 << 20));
    server.fault_always(Some(Fault::IgnoreRange));
    let failed = open(&url).map(|_| Vec::new());
    let parts = [
        "cannot open",
        "does not send ranges",
        "1048576 bytes (status 200)",
    ];
    assert_error(failed, io::ErrorKind::Unsupported, &parts);
    assert_eq!(server.request_count(), 1);
    server.put("/small", Object::new(content(1000), "\"s\""));
    let small = open(&server.url("/small")).unwrap();
    assert_eq!(read(&small, 0, 2000).unwrap(), content(1000));
}

#[test]
fn refusals_are_named_without_secrets() {
    let (server, url) = server_with(&content(1000));
    let url = url.replace("http://", "http://me:hush@") + "?token=hush";
    let xml = "<Error><Code>AccessDenied</Code></Error>";
    for (status, body, kind, part) in [
        (404, "", io::ErrorKind::NotFound, "status 404 Not Found"),
        (
            403,
            xml,
            io::ErrorKind::PermissionDenied,
            "status 403 Forbidden, AccessDenied",
        ),
        (
            401,
            "",
            io::ErrorKind::PermissionDenied,
            "status 401 Unauthorized",
        ),
        (418, "", io::ErrorKind::Other, "status 418"),
    ] {
        server.fault_always(Some(Fault::Status(status, String::new(), body.into())));
        let error = open(&url).expect_err("refused");
        assert_eq!(error.kind(), kind);
        let text = error.to_string();
        assert!(text.contains(part) && text.contains("/x?...:"), "{text}");
        assert!(!text.contains("hush") && !text.contains("me@"), "{text}");
    }
    assert_eq!(server.request_count(), 4);
    server.fault_always(Some(Fault::Encoded));
    let failed = open(&url).map(|_| Vec::new());
    assert_error(
        failed,
        io::ErrorKind::Unsupported,
        &["Content-Encoding: gzip"],
    );
    server.fault_always(None);
    assert!(open(&url).is_ok());
    let sent = server.requests().pop().unwrap().headers;
    assert_eq!(
        sent.get("authorization").map(String::as_str),
        Some("Basic bWU6aHVzaA==")
    );
}

#[test]
fn nobody_listens_and_no_host() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let failed = open(&format!("http://127.0.0.1:{port}/x")).map(|_| Vec::new());
    assert_error(failed, io::ErrorKind::TimedOut, &["refused", "5 attempts"]);
    let failed = open("https://127.0.0.1:1/x").map(|_| Vec::new());
    assert_error(
        failed,
        io::ErrorKind::PermissionDenied,
        &["no certificates"],
    );
}

#[test]
fn redirections_are_followed_and_remembered_and_take_no_credentials_along() {
    let bytes = content(1 << 20);
    let (target, _) = server_with(&bytes);
    let (server, url) = server_with(b"");
    let to = target.url("/x?signature=1");
    server.fault_always(Some(Fault::redirect(&to)));
    let source = open(&url.replace("http://", "http://me:hush@")).unwrap();
    assert_eq!(
        read(&source, 300_000, 10).unwrap(),
        &bytes[300_000..300_010]
    );
    assert_eq!((server.request_count(), target.request_count()), (1, 2));
    let has_authorization = |server: &HttpServer| {
        let requests = server.requests();
        requests
            .iter()
            .any(|request| request.headers.contains_key("authorization"))
    };
    assert!(has_authorization(&server) && !has_authorization(&target));
    // The address expires; the server has a new one.
    let gone = Fault::Status(403, String::new(), String::new());
    target.fault_at(2, gone);
    assert_eq!(
        read(&source, 600_000, 10).unwrap(),
        &bytes[600_000..600_010]
    );
    assert_eq!((server.request_count(), target.request_count()), (2, 4));
}

#[test]
fn redirections_in_a_circle_and_to_elsewhere_are_refused() {
    let (server, url) = server_with(b"");
    server.fault_always(Some(Fault::redirect(&url)));
    let failed = open(&url).map(|_| Vec::new());
    assert_error(failed, io::ErrorKind::Other, &["more than 5 redirections"]);
    assert_eq!(server.request_count(), 6);
    server.fault_always(Some(Fault::redirect("file:///etc/passwd")));
    let failed = open(&url).map(|_| Vec::new());
    assert_error(
        failed,
        io::ErrorKind::PermissionDenied,
        &["something other than an http or https URL"],
    );
}

#[test]
fn a_failure_ahead_of_the_reader_is_not_its_failure() {
    let bytes = content(8 << 20);
    let (server, url) = server_with(&bytes);
    let source = open(&url).unwrap();
    for number in 3..7 {
        server.fault_at(number, Fault::Status(403, String::new(), String::new()));
    }
    let mut at = 0;
    while at < bytes.len() {
        let piece = read(&source, at as u64, 64 << 10);
        // A reader that finds a permanent failure retries once itself.
        if let Ok(piece) = piece {
            assert!(piece == bytes[at..at + piece.len()]);
            at += piece.len();
        }
        assert!(server.request_count() < 200);
    }
}

fn repeatable_fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::Close),
        Just(Fault::ShortBody),
        Just(Fault::LongBody),
        Just(Fault::WrongRange),
        Just(Fault::Status(503, String::new(), String::new())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_reads_equal_the_file(
        length in 0..3_000_000usize,
        reads in prop::collection::vec((0..3_200_000u64, 0..600_000usize, any::<bool>()), 1..24),
        faults in prop::collection::btree_map(1..40usize, repeatable_fault(), 0..6),
        cache_pages in 0..60u64,
        spills in any::<bool>(),
    ) {
        let bytes = content(length);
        let (server, url) = server_with(&bytes);
        for (number, fault) in faults {
            server.fault_at(number, fault);
        }
        let options = RemoteOptions {
            cache_bytes: cache_pages * PAGE,
            temporary: spills.then(std::env::temp_dir),
            ..options()
        };
        let source = open_with(&url, &options).unwrap();
        let mut last_end = 0;
        for (offset, count, follows) in reads {
            let offset = if follows { last_end } else { offset };
            last_end = offset + count as u64;
            let start = (offset as usize).min(length);
            let end = (offset as usize + count).min(length);
            prop_assert!(read(&source, offset, count).unwrap() == bytes[start..end]);
        }
    }
}
