//! Archives behind URLs: every reading verb says and writes the same as for a file.

use std::process::Output;

use refrain_testkit::http_server::{Fault, HttpServer, Object};

use crate::support::{Case, REFRAIN, expect, incompressible, json, mixture};

/// A directory with the archive `x.rfn`, and a server that has the same file.
fn served(build: impl Fn(&Case)) -> (Case, HttpServer, String) {
    let case = Case::new();
    build(&case);
    let server = HttpServer::start().unwrap();
    server.put("/dir/x.rfn", Object::new(case.read("x.rfn"), "\"1\""));
    let url = server.url("/dir/x.rfn");
    (case, server, url)
}

fn tree(case: &Case) {
    case.write("tree/a.txt", b"a text\n");
    case.write("tree/sub/big", &mixture(3 << 20));
    case.write("tree/sub/other", &incompressible(5, 200_000));
    case.ok("compress -q -o x.rfn tree");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command for the file and for the URL, and expects the same except for the name.
fn same(case: &Case, line: &str, url: &str) -> Output {
    let local = case.ok(&line.replace("URL", "x.rfn"));
    let remote = case.ok(&line.replace("URL", url));
    let shown = text(&remote.stdout).replace(url, "x.rfn");
    assert!(shown == text(&local.stdout), "{line}: {shown}");
    remote
}

#[test]
fn verbs_that_read_do_the_same_for_a_url() {
    let (case, _server, url) = served(tree);
    for line in [
        "list URL",
        "list -l URL sub",
        "list --json URL",
        "info URL",
        "info -v URL",
        "info --table URL",
        "info --json URL",
        "cat URL a.txt",
        "cat --range 1000..70000 URL sub/big",
    ] {
        same(&case, line, &url);
    }
    let whole = case.ok(&format!("cat {url} sub/big")).stdout;
    assert!(whole == case.read("tree/sub/big"));
    case.ok(&format!("test -q {url}"));
    let stream = case.ok(&format!("cat {url}")).stdout;
    assert!(stream == case.ok("cat x.rfn").stdout);
    let tested = json(&case.ok(&format!("test --json {url}")).stdout);
    assert_eq!(tested["results"][0]["file"], url.as_str());
    assert_eq!(
        tested["results"][0]["archive_bytes"],
        case.read("x.rfn").len()
    );
}

#[test]
fn what_is_restored_goes_to_the_current_directory() {
    let (case, server, url) = served(tree);
    case.ok(&format!("decompress -q -o copy {url}"));
    for name in ["a.txt", "sub/big", "sub/other"] {
        let (one, other) = (format!("tree/{name}"), format!("copy/{name}"));
        assert!(case.read(&one) == case.read(&other), "{name}");
    }
    std::fs::remove_dir_all(case.path("tree")).unwrap();
    case.ok(&format!("decompress -q {url} a.txt"));
    assert_eq!(case.read("tree/a.txt"), b"a text\n");
    // A single file gets the name of the URL, without a query.
    let data = mixture(1 << 20);
    case.write("single", &data);
    case.ok("compress -q single");
    server.put(
        "/a/my%20file.rfn",
        Object::new(case.read("single.rfn"), "\"2\""),
    );
    let url = server.url("/a/my%20file.rfn?signature=hush");
    case.ok(&format!("decompress -q {url}"));
    assert!(case.read("my file") == data);
    let out = case.ok(&format!("decompress -q -o - {url}")).stdout;
    assert!(out == data);
    // A second time it exists.
    let told = case.fails(&format!("decompress -q {url}"), 6);
    assert!(told.contains("my file") && !told.contains("hush"), "{told}");
}

#[test]
fn files_of_other_formats_are_read() {
    let case = Case::new();
    let data = mixture(1 << 20);
    case.write("x", &data);
    let packed = case.pipe("gzip", "-c", &data).stdout;
    let server = HttpServer::start().unwrap();
    server.put("/x.gz", Object::new(packed, "\"1\""));
    let url = server.url("/x.gz");
    case.ok(&format!("test -q {url}"));
    assert!(case.ok(&format!("cat {url}")).stdout == data);
    let listed = case.ok(&format!("list {url}")).stdout;
    assert_eq!(text(&listed), "x\n");
    std::fs::remove_file(case.path("x")).unwrap();
    case.ok(&format!("decompress -q {url}"));
    assert!(case.read("x") == data);
    let rfn = case.program_link("rfn");
    server.put("/plain", Object::new(data.clone(), "\"2\""));
    let line = format!("-dcf {}", server.url("/plain"));
    let copied = expect(case.command(rfn, &line).output().unwrap(), 0, &line);
    assert!(copied.stdout == data);
}

#[test]
fn opening_and_small_reads_take_few_requests() {
    let (case, server, url) = served(|case| {
        case.write("x", &incompressible(3, 30 << 20));
        case.ok("compress -q -1 x");
    });
    let requests = |line: &str| {
        let (count, bytes) = (server.request_count(), server.sent_bytes());
        case.ok(&line.replace("URL", &url));
        (server.request_count() - count, server.sent_bytes() - bytes)
    };
    let (count, bytes) = requests("list URL");
    assert!(
        count <= 2 && bytes <= 256 << 10,
        "{count} requests, {bytes} bytes"
    );
    let (count, _) = requests("cat --range 12000000..12004096 URL");
    assert!(count <= 5, "{count} requests");
    let (count, bytes) = requests("test -q URL");
    assert!(count <= 40, "{count} requests");
    assert!(
        bytes <= case.read("x.rfn").len() as u64 + (256 << 10),
        "{bytes}"
    );
}

#[test]
fn a_replaced_archive_is_an_error_and_leaves_nothing() {
    let (case, server, url) = served(|case| {
        case.write("x", &incompressible(4, 20 << 20));
        case.ok("compress -q -1 x");
    });
    std::fs::remove_file(case.path("x")).unwrap();
    // The object is replaced at the third request.
    for number in 3..200 {
        server.fault_at(number, Fault::OtherTag);
    }
    let told = case.fails(&format!("decompress -q {url}"), 6);
    let change = "the object changed while it was read: ETag \"1\" before, \"other\" now";
    assert!(told.contains(change) && told.contains(&url), "{told}");
    assert_eq!(case.names(), ["x.rfn"]);
}

#[test]
fn refusals_are_clear() {
    let (case, server, url) = served(tree);
    let gone = server.url("/gone.rfn");
    let told = case.fails(&format!("list {gone}"), 6);
    assert!(
        told.contains(&format!("cannot open {gone}: status 404 Not Found")),
        "{told}"
    );
    let hidden = url.replace("http://", "http://me:hush@");
    let told = case.fails(&format!("decompress -q --rm {hidden}"), 1);
    assert!(
        told.contains("--rm removes files") && !told.contains("hush"),
        "{told}"
    );
    let told = case.fails(&format!("compress -q {url}"), 1);
    assert!(told.contains("only verbs that read archives"), "{told}");
    let told = case.fails(&format!("compress -q -o {url} tree"), 1);
    assert!(told.contains("cannot be written to"), "{told}");
    let told = case.fails(&format!("decompress -q -o {url} x.rfn"), 1);
    assert!(told.contains("cannot be written to"), "{told}");
    server.fault_always(Some(Fault::IgnoreRange));
    let told = case.fails(&format!("test -q {url}"), 6);
    assert!(told.contains("does not send ranges"), "{told}");
    // A file with the name of a URL.
    case.write("https:/y.rfn", &case.read("x.rfn"));
    case.ok("test -q ./https://y.rfn");
    let told = case.fails("list s3://bucket", 1);
    assert!(told.contains("the key of an object is missing"), "{told}");
}

#[test]
fn half_of_a_pair_of_keys_is_refused() {
    let case = Case::new();
    let mut command = case.command(REFRAIN, "list s3://bucket/key");
    command.env_clear().env("AWS_ACCESS_KEY_ID", "id");
    let told = expect(command.output().unwrap(), 1, "half").stderr;
    assert!(
        text(&told).contains("AWS_SECRET_ACCESS_KEY is not"),
        "{}",
        text(&told)
    );
}
