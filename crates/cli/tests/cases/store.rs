//! Archives in an S3-compatible store: moto's server.
//!
//! `REFRAIN_STORE_PYTHON` names a Python that has the packages of `tools/store/requirements.txt`
//! (as in CI); without it, the tests are skipped if `python3` lacks them.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use refrain_testkit::http_server::{Fault, HttpServer, Object};

use crate::support::{Case, REFRAIN, expect, incompressible, mixture};

/// A Python with moto; `None` if there is none here.
fn python() -> Option<OsString> {
    let named = std::env::var_os("REFRAIN_STORE_PYTHON");
    let python = named.clone().unwrap_or_else(|| "python3".into());
    let mut command = Command::new(&python);
    command.args(["-c", "import moto.server, flask_cors, botocore"]);
    let works = command
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    assert!(works || named.is_none(), "{python:?} cannot run moto");
    if !works {
        // Not captured by the test harness, so that it is seen.
        let text = "SKIPPED: no S3-compatible store, python3 has not the packages of \
                    tools/store/requirements.txt\n";
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    works.then_some(python)
}

pub struct Store {
    process: Child,
    port: u16,
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Store {
    /// A store with the bucket `bucket`.
    pub fn start() -> Option<Store> {
        let store = Store::start_with(&[])?;
        store.put("/bucket", b"");
        Some(store)
    }

    /// A store with further arguments for moto.
    fn start_with(arguments: &[&str]) -> Option<Store> {
        let python = python()?;
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = Command::new(python);
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p"]);
        command.arg(port.to_string()).args(arguments);
        let process = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let store = Store { process, port };
        let is_up = (0..600).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        assert!(is_up, "moto does not answer");
        Some(store)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The body of what is at a path.
    pub fn get(&self, path: &str) -> Vec<u8> {
        let answer = self.ask("GET", path, b"");
        let at = answer.windows(4).position(|four| four == b"\r\n\r\n");
        answer[at.unwrap() + 4..].to_vec()
    }

    /// The keys that begin with a prefix.
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        let document = self.get(&format!("/bucket?list-type=2&prefix={prefix}"));
        let document = String::from_utf8(document).unwrap();
        let keys = document.split("<Key>").skip(1);
        keys.map(|rest| rest.split("</Key>").next().unwrap().to_owned())
            .collect()
    }

    /// Stores an object. (moto wants to see that the request is signed, and believes it.)
    fn put(&self, path: &str, bytes: &[u8]) {
        let answer = self.ask("PUT", path, bytes);
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.contains(" 200 "), "{answer}");
    }

    fn ask(&self, method: &str, path: &str, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\nContent-Length: {}\r\n\
             Content-Type: application/octet-stream\r\nConnection: close\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=id/20200101/us-east-1/s3/aws4_request, \
             SignedHeaders=host, Signature=0\r\n\r\n",
            self.port,
            bytes.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }

    /// A command with keys for the store.
    pub fn command(&self, case: &Case, line: &str) -> Command {
        let mut command = self.anonymous(case, line);
        command
            .env("AWS_ACCESS_KEY_ID", "id")
            .env("AWS_SECRET_ACCESS_KEY", "hush");
        command
    }

    fn anonymous(&self, case: &Case, line: &str) -> Command {
        let mut command = case.command(REFRAIN, line);
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        command.env_clear().env("AWS_ENDPOINT_URL_S3", endpoint);
        command
    }

    pub fn ok(&self, case: &Case, line: &str) -> Output {
        expect(self.command(case, line).output().unwrap(), 0, line)
    }
}

fn told(output: Output, exit: i32) -> String {
    String::from_utf8_lossy(&expect(output, exit, "refused").stderr).into_owned()
}

#[test]
fn objects_of_a_store_are_read() {
    let Some(store) = Store::start() else { return };
    let case = Case::new();
    let data = mixture(4 << 20);
    case.write("my data", &data);
    case.pipe(REFRAIN, "compress -q -o x.rfn", &data);
    store.put("/bucket/a%20key/x%2B1.rfn", &case.read("x.rfn"));
    // Split at spaces by the helper, so without one in the line.
    let url = "s3://bucket/a key/x+1.rfn";
    let run = |verb: &str, tail: &[&str]| {
        let mut command = store.command(&case, verb);
        command.arg(url).args(tail);
        expect(command.output().unwrap(), 0, verb).stdout
    };
    assert_eq!(run("list", &[]), case.ok("list x.rfn").stdout);
    assert!(run("cat", &[]) == data);
    assert!(run("cat --range 700000..704096", &[]) == data[700_000..704_096]);
    run("test -q", &[]);
    run("decompress -q", &[]);
    assert!(case.read("x+1") == data);
}

#[test]
fn refusals_of_a_store_are_clear() {
    let Some(store) = Store::start() else { return };
    let case = Case::new();
    case.write("x", b"content");
    case.ok("compress -q x");
    store.put("/bucket/x.rfn", &case.read("x.rfn"));
    let run = |mut command: Command| told(command.output().unwrap(), 6);
    let text = run(store.command(&case, "list s3://bucket/gone.rfn"));
    assert!(
        text.contains("s3://bucket/gone.rfn: status 404 Not Found, NoSuchKey"),
        "{text}"
    );
    let text = run(store.command(&case, "list s3://nowhere/x.rfn"));
    assert!(text.contains("NoSuchBucket"), "{text}");
    let text = run(store.anonymous(&case, "list s3://bucket/x.rfn"));
    let hint = "status 403 Forbidden; the request was not signed, because there are no credentials";
    assert!(text.contains(hint), "{text}");
    store.ok(&case, "list s3://bucket/x.rfn");
}

#[test]
fn an_object_that_is_replaced_while_it_is_read_is_an_error() {
    let Some(store) = Store::start() else { return };
    let case = Case::new();
    case.write("x", &incompressible(1, 40 << 20));
    case.ok("compress -q -1 x");
    case.write("y", &incompressible(2, 40 << 20));
    case.ok("compress -q -1 y");
    store.put("/bucket/x.rfn", &case.read("x.rfn"));
    // The reader stops at the full pipe, in the middle of the object.
    let mut command = store.command(&case, "cat s3://bucket/x.rfn");
    let mut reader = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = reader.stdout.take().unwrap();
    let mut first = [0; 4096];
    stdout.read_exact(&mut first).unwrap();
    store.put("/bucket/x.rfn", &case.read("y.rfn"));
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    let text = told(reader.wait_with_output().unwrap(), 6);
    let change = "cannot read s3://bucket/x.rfn: the object changed while it was read: ETag ";
    assert!(text.contains(change), "{text}");
    // What was written before is from the first object.
    let written = [&first[..], &rest].concat();
    assert!(case.read("x").starts_with(&written));
}

#[test]
fn signatures_are_those_of_amazons_library() {
    let Some(python) = python() else { return };
    let case = Case::new();
    case.write("x", b"content");
    case.ok("compress -q x");
    let server = HttpServer::start().unwrap();
    server.fault_always(Some(Fault::Status(403, String::new(), String::new())));
    server.put("/", Object::default());
    for token in ["", "a/token+="] {
        let mut command = case.command(REFRAIN, "list");
        command
            .arg("s3://bucket/a key/ü+1.rfn")
            .env_clear()
            .env("AWS_ENDPOINT_URL", server.url(""))
            .env("AWS_REGION", "eu-south-2")
            .env("AWS_ACCESS_KEY_ID", "KEYID")
            .env("AWS_SECRET_ACCESS_KEY", "se/cret+key");
        if !token.is_empty() {
            command.env("AWS_SESSION_TOKEN", token);
        }
        let text = told(command.output().unwrap(), 6);
        assert!(
            !text.contains("Signature") && !text.contains("token"),
            "{text}"
        );
        let target = server.requests().pop().unwrap().target;
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/store/signature.py");
        let output = Command::new(&python)
            .arg(tool)
            .args([&server.url(&target), "KEYID", "se/cret+key", token])
            .output()
            .unwrap();
        let output = expect(output, 0, "signature.py");
        let signature = String::from_utf8(output.stdout).unwrap();
        let expected = format!("X-Amz-Signature={}", signature.trim());
        assert!(
            signature.len() > 60 && target.contains(&expected),
            "{expected}: {target}"
        );
        assert!(
            target.starts_with("/bucket/a%20key/%C3%BC%2B1.rfn?"),
            "{target}"
        );
        assert!(target.contains("eu-south-2"), "{target}");
    }
}

/// Creates an authority (`ca.pem`), and its certificate for 127.0.0.1 (`server.pem`, `server.key`).
fn make_certificates(case: &Case) {
    case.write("names", b"subjectAltName=IP:127.0.0.1");
    for line in [
        "req -x509 -newkey rsa:2048 -nodes -subj /CN=authority -keyout ca.key -out ca.pem",
        "req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key -out request.pem",
        "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names \
         -days 1 -out server.pem",
    ] {
        expect(case.command("openssl", line).output().unwrap(), 0, line);
    }
}

#[test]
fn servers_with_tls_are_read_if_their_authority_is_trusted() {
    let case = Case::new();
    make_certificates(&case);
    let (certificate, key) = (case.path("server.pem"), case.path("server.key"));
    let arguments = [
        "-s",
        "-c",
        certificate.to_str().unwrap(),
        "-k",
        key.to_str().unwrap(),
    ];
    let Some(store) = Store::start_with(&arguments) else {
        return;
    };
    let run = |trusted: Option<&str>| {
        let mut command = store.command(&case, "list s3://bucket/gone.rfn");
        let endpoint = format!("https://127.0.0.1:{}", store.port);
        command.env("AWS_ENDPOINT_URL_S3", endpoint);
        trusted.map(|name| command.env("SSL_CERT_FILE", case.path(name)));
        told(command.output().unwrap(), 6)
    };
    // The store has no such bucket, and says so over a trusted connection.
    let text = run(Some("ca.pem"));
    assert!(
        text.contains("status 404 Not Found, NoSuchBucket"),
        "{text}"
    );
    let text = run(None);
    let is_refused = ["no trusted connection", "no certificates of authorities"];
    assert!(is_refused.iter().any(|part| text.contains(part)), "{text}");
    let text = run(Some("server.key"));
    assert!(
        text.contains("no certificates of authorities were found"),
        "{text}"
    );
    let text = run(Some("absent.pem"));
    assert!(
        text.contains("cannot read") && text.contains("absent.pem"),
        "{text}"
    );
}
