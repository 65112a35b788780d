//! Members and entries, whole and in ranges.

use super::support::{Server, archive, disk};
use refrain_server::http::HttpSettings;
use refrain_server::tree::TreeOptions;

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

#[test]
fn members_and_entries_have_their_bytes_and_fields() {
    let server = Server::start();
    let disk = disk();
    let whole = server.get("/disk.img", "");
    assert_eq!(whole.status, 200);
    assert!(whole.body == disk);
    assert_eq!(whole.field("Last-Modified"), Some(DATE));
    assert_eq!(whole.field("Accept-Ranges"), Some("bytes"));
    assert_eq!(
        whole.field("Content-Type"),
        Some("application/octet-stream")
    );
    assert_eq!(whole.field("X-Content-Type-Options"), Some("nosniff"));
    assert_eq!(whole.field("Content-Encoding"), None);
    let caching = whole.field("Cache-Control").unwrap();
    assert_eq!(caching, "public, max-age=86400, immutable");
    let etag = whole.field("ETag").unwrap();
    assert_eq!(etag[1..33], blake3_of(&disk)[..32]);
    assert!(whole.field("Date").unwrap().ends_with(" GMT"));

    let entry = server.get("/tree/dir/a%20b%2520c", "");
    assert_eq!((entry.status, entry.text().as_str()), (200, "spaces"));
    let hard = server.get("/tree/dir/hard", "");
    assert_eq!((hard.status, hard.text().as_str()), (200, "hello\n"));
    let same = server.get("/tree/hello.txt", "");
    assert_eq!(hard.field("ETag"), same.field("ETag"));
    assert_ne!(hard.field("ETag"), entry.field("ETag"));
    assert_eq!(
        same.field("Content-Type"),
        Some("text/plain; charset=utf-8")
    );
    let empty = server.get("/empty", "");
    assert_eq!((empty.status, empty.body.len()), (200, 0));
    let in_tar = server.get("/sub/old.tar/deep/er/b.txt", "");
    assert_eq!((in_tar.status, in_tar.text().as_str()), (200, "implied\n"));
}

fn blake3_of(bytes: &[u8]) -> String {
    let mut hasher = refrain::DigestHasher::new(refrain::DigestAlgorithm::Blake3);
    hasher.update(bytes);
    hasher.finish().to_string()
}

#[test]
fn ranges_are_the_bytes_that_they_name() {
    let server = Server::start();
    let disk = disk();
    let length = disk.len();
    let mut client = server.connect();
    for (field, range) in [
        ("0-0", 0..1),
        ("699990-1700010", 699_990..1_700_011),
        ("2000000-", 2_000_000..length),
        ("-5", length - 5..length),
        ("0-", 0..length),
        ("100-18446744073709551615", 100..length),
    ] {
        let found = client.request("GET", "/disk.img", &format!("Range: bytes={field}\r\n"));
        assert_eq!(found.status, 206, "{field}");
        let stated = format!("bytes {}-{}/{length}", range.start, range.end - 1);
        assert_eq!(found.field("Content-Range"), Some(stated.as_str()));
        assert!(found.body == disk[range], "{field}");
    }
    for field in ["18446744073709551615-", "99999999999999999999-", "-0"] {
        let found = client.request("GET", "/disk.img", &format!("Range: bytes={field}\r\n"));
        assert_eq!(found.status, 416, "{field}");
        assert_eq!(
            found.field("Content-Range"),
            Some(format!("bytes */{length}").as_str())
        );
    }
    let many = ["0-1"; 1000].join(",");
    for field in [many.as_str(), "0-1,5-6", "5-4", "x"] {
        let found = client.request("GET", "/disk.img", &format!("Range: bytes={field}\r\n"));
        assert_eq!(found.status, 200);
        assert_eq!(found.body.len(), length);
    }
    let entry = client.request(
        "GET",
        "/tree/dir/data.bin",
        "Range: bytes=150000-150009\r\n",
    );
    assert_eq!(entry.status, 206);
    assert!(entry.body == refrain_testkit::data::text(200_000, 3)[150_000..150_010]);
}

#[test]
fn a_head_request_has_the_fields_and_no_body() {
    let server = Server::start();
    let mut client = server.connect();
    for path in [
        "/disk.img",
        "/tree/hello.txt",
        "/tree/",
        "/",
        "/tree.tar",
        "/nothing",
    ] {
        let head = client.request("HEAD", path, "");
        let get = client.request("GET", path, "");
        assert_eq!(head.status, get.status, "{path}");
        for name in ["Content-Length", "ETag", "Last-Modified", "Content-Type"] {
            assert_eq!(head.field(name), get.field(name), "{path} {name}");
        }
    }
    // A HEAD request does not produce a page of unknown length.
    let head = client.request("HEAD", "/tree/many/", "");
    assert_eq!(head.field("Content-Length"), None);
    assert_eq!(client.request("GET", "/empty", "").status, 200);
}

#[test]
fn conditions_save_the_bytes_that_a_client_has() {
    let server = Server::start();
    let mut client = server.connect();
    let etag = client
        .request("HEAD", "/disk.img", "")
        .field("ETag")
        .unwrap()
        .to_owned();
    let range = "Range: bytes=5-9\r\n";
    for (fields, status) in [
        (format!("If-None-Match: {etag}\r\n"), 304),
        (format!("If-None-Match: \"x\", {etag}\r\n{range}"), 304),
        (format!("If-Modified-Since: {DATE}\r\n"), 304),
        ("If-None-Match: \"x\"\r\n".to_owned(), 200),
        (format!("If-Match: {etag}\r\n{range}"), 206),
        ("If-Match: \"x\"\r\n".to_owned(), 412),
        (format!("If-Unmodified-Since: {DATE}\r\n"), 200),
        (format!("If-Range: {etag}\r\n{range}"), 206),
        (format!("If-Range: {DATE}\r\n{range}"), 206),
        (format!("If-Range: \"x\"\r\n{range}"), 200),
        (
            "If-Range: \"x\"\r\nRange: bytes=99999999-\r\n".to_owned(),
            200,
        ),
    ] {
        let found = client.request("GET", "/disk.img", &fields);
        assert_eq!(found.status, status, "{fields}");
        if status == 304 {
            assert_eq!(found.field("ETag"), Some(etag.as_str()));
        }
    }
}

#[test]
fn a_directory_is_downloaded_as_tar() {
    let server = Server::start();
    let bytes = archive();
    let source = std::sync::Arc::new(refrain::storage::MemorySource::new(bytes));
    let opened = refrain::Archive::open(source, &refrain::ReadOptions::default()).unwrap();
    let view_of = |name: &str| {
        let number = opened.find_member(name.as_bytes()).unwrap().unwrap();
        let mut view = vec![0; opened.member(number).unwrap().content_bytes as usize];
        assert_eq!(opened.read_at(number, 0, &mut view).unwrap(), view.len());
        view
    };
    let view = view_of("tree");
    let mut client = server.connect();
    for path in ["/tree.tar", "/tree?tar", "/tree/?tar"] {
        let found = client.request("GET", path, "");
        assert_eq!(found.status, 200, "{path}");
        assert_eq!(found.field("Content-Type"), Some("application/x-tar"));
        assert!(found.body == view);
    }
    let whole = client.request("GET", "/tree.tar", "");
    let part = client.request("GET", "/tree.tar", "Range: bytes=1000-300000\r\n");
    assert_eq!(part.status, 206);
    assert!(part.body == whole.body[1000..=300_000]);
    let found = client.request("GET", "/sub/old.tar", "");
    assert!(found.body == view_of("sub/old.tar"));
    assert!(found.field("ETag").is_some());
}

#[test]
fn links_lead_on_or_say_why_not() {
    let server = Server::start();
    let mut client = server.connect();
    for (path, location) in [
        ("/tree/dir/soft", "/tree/hello.txt"),
        ("/tree/dir/through", "/tree/dir/inner"),
        ("/tree/dir/through/x", "/tree/dir/inner/x"),
        ("/tree/dir/through/?a=1", "/tree/dir/inner/?a=1"),
    ] {
        let found = client.request("GET", path, "");
        assert_eq!(
            (found.status, found.field("Location")),
            (302, Some(location)),
            "{path}"
        );
    }
    for (path, location) in [
        ("/tree", "/tree/"),
        ("/tree/dir/inner", "/tree/dir/inner/"),
        ("/sub", "/sub/"),
        ("/sub/old.tar/deep", "/sub/old.tar/deep/"),
        ("//tree", "/%2Ftree/"),
    ] {
        let found = client.request("GET", path, "");
        assert_eq!(
            (found.status, found.field("Location")),
            (301, Some(location)),
            "{path}"
        );
    }
    for (path, status) in [
        ("/tree/dir/absolute", 404),
        ("/tree/dir/outside", 404),
        ("/tree/nothing", 404),
        ("/disk.img/", 404),
        ("/disk.img/x", 404),
        ("/disk.img.tar", 404),
        ("/tree/pipe", 403),
        ("/tree/../disk.img", 400),
        ("/%2e%2e/x", 400),
        ("/%00", 400),
        ("/%4", 400),
    ] {
        let found = client.request("GET", path, "");
        assert_eq!(found.status, status, "{path}");
        assert!(found.text().len() > 5, "{path}: {}", found.text());
    }
}

#[test]
fn an_archive_of_an_unnamed_stream_has_a_name() {
    let mut sink = refrain::storage::MemorySink::new();
    let output = sink.output();
    let member = refrain::MemberInput {
        name: String::new().into(),
        mode: None,
        modified: None,
        content: refrain::Content::Stream(Box::new(&b"piped"[..])),
    };
    let options = refrain::CompressOptions::default();
    refrain::compress(vec![member], &mut sink, &options, &refrain::Unwatched).unwrap();
    let settings = HttpSettings {
        tree: TreeOptions {
            unnamed: b"stream".to_vec(),
            ..TreeOptions::default()
        },
        ..HttpSettings::default()
    };
    let server = Server::with(output.published().unwrap(), settings);
    assert_eq!(server.get("/stream", "").text(), "piped");
    assert!(server.get("/", "").text().contains("stream"));
}
