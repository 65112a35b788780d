//! What is below `/.refrain/`.

use super::support::{Server, archive};
use refrain_server::Operation;

#[test]
fn frames_are_found_under_their_hash_and_make_up_the_archive() {
    let bytes = archive();
    let server = Server::with(bytes.clone(), Default::default());
    let mut client = server.connect();
    let mut query = "?count=2".to_owned();
    let mut covered = 8;
    let mut first_url = None;
    loop {
        let list = client.request("GET", &format!("/.refrain/frames{query}"), "");
        assert_eq!(list.status, 200, "{}", list.text());
        let list: serde_json::Value = serde_json::from_slice(&list.body).unwrap();
        for row in list["frames"].as_array().unwrap() {
            let url = row["url"].as_str().unwrap();
            let frame = client.request("GET", url, "");
            assert_eq!(frame.status, 200);
            let offset = row["offset"].as_u64().unwrap() as usize;
            assert_eq!(offset, covered);
            assert!(frame.body == bytes[offset..offset + frame.body.len()]);
            covered += frame.body.len();
            let caching = frame.field("Cache-Control").unwrap();
            assert_eq!(caching, "public, max-age=31536000, immutable");
            let etag = frame.field("ETag").unwrap().to_owned();
            let again = client.request("GET", url, &format!("If-None-Match: {etag}\r\n"));
            assert_eq!(again.status, 304);
            first_url.get_or_insert((url.to_owned(), offset));
        }
        match list["next"].as_u64() {
            Some(next) => query = format!("?count=2&from={next}"),
            None => break,
        }
    }
    // Magic bytes before, the tail behind.
    assert_eq!(covered + 8, bytes.len());
    let (url, offset) = first_url.unwrap();
    let found = client.request("GET", &format!("/.refrain/frames/{offset}"), "");
    assert_eq!(
        (found.status, found.field("Location")),
        (302, Some(url.as_str()))
    );
    let part = client.request("GET", &url, "Range: bytes=4-7\r\n");
    assert!(part.status == 206 && part.body == bytes[offset + 4..offset + 8]);
    for name in [
        &url[..url.len() - 1],
        "/.refrain/frames/9-00",
        "/.refrain/frames/x",
    ] {
        assert_eq!(client.request("GET", name, "").status, 404, "{name}");
    }
    let beyond = format!("/.refrain/frames/{}", u64::MAX);
    assert_eq!(client.request("GET", &beyond, "").status, 404);
}

#[test]
fn statistics_count_what_was_served_until_they_are_reset() {
    let server = Server::start();
    let mut client = server.connect();
    client.request("GET", "/tree/hello.txt", "");
    client.request("GET", "/nothing", "");
    client.request("HEAD", "/disk.img", "");
    let found = client.request("GET", "/.refrain/statistics", "");
    let document: serde_json::Value = serde_json::from_slice(&found.body).unwrap();
    let row = |operation: Operation| &document["operations"][operation as usize];
    assert_eq!(row(Operation::HttpGet)["operation"], "http_get");
    assert_eq!(row(Operation::HttpGet)["calls"], 1);
    assert_eq!(row(Operation::HttpGet)["bytes"], 6);
    assert_eq!(row(Operation::HttpHead)["calls"], 1);
    assert_eq!(row(Operation::HttpPage)["errors"], 1);
    assert_eq!(document["metrics"]["http_requests_in_flight"], 1.0);
    for path in ["/metrics", "/.refrain/metrics"] {
        let text = client.request("GET", path, "").text();
        let line = "refrain_operation_calls_total{operation=\"http_get\"} 1\n";
        assert!(text.contains(line), "{text}");
    }
    let get = client.request("GET", "/.refrain/statistics/reset", "");
    assert_eq!((get.status, get.field("Allow")), (405, Some("POST")));
    let reset = client.request(
        "POST",
        "/.refrain/statistics/reset",
        "Content-Length: 0\r\n",
    );
    assert_eq!(reset.status, 200);
    // What a page of another site sends from a browser on this machine.
    let page = client.request("POST", "/.refrain/statistics/reset", "Origin: http://x\r\n");
    assert_eq!(page.status, 403);
    let found = client.request("GET", "/.refrain/statistics", "").text();
    let document: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!(
        document["operations"][Operation::HttpGet as usize]["calls"],
        0
    );
    let post = client.request("POST", "/disk.img", "");
    assert_eq!((post.status, post.field("Allow")), (405, Some("GET, HEAD")));
    assert!(
        client
            .request("GET", "/.refrain", "")
            .text()
            .contains("frames")
    );
    assert_eq!(client.request("GET", "/.refrain/x", "").status, 404);
}
