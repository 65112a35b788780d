//! `refrain serve --http` and `refrain top`, with curl as a client.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::serve_nbd::make_certificate;
use crate::support::{Case, REFRAIN};

/// A running service; killed at the end if it has not ended.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a service and returns it with its address.
fn start(case: &Case, line: &str) -> (Service, String) {
    start_command(case.command(REFRAIN, line))
}

fn start_command(mut command: Command) -> (Service, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut ready).unwrap();
    let address = ready.trim().rsplit_once("http ").unwrap().1.to_owned();
    // Further output must go somewhere.
    std::thread::spawn(move || output.read_to_end(&mut vec![]));
    (Service(child), address)
}

fn curl(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("curl")
        .args(["-sSf", "--max-time", "30"])
        .args(arguments)
        .output();
    let output = output.unwrap();
    assert!(
        output.status.success(),
        "{arguments:?} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

#[test]
fn what_is_served_is_what_cat_prints_and_top_counts_it() {
    let case = Case::new();
    let content: Vec<u8> = (0..300_000_u32)
        .flat_map(|i| (i / 3).to_le_bytes())
        .collect();
    case.write("tree/dir/data", &content);
    case.write("tree/hello", b"hello\n");
    case.ok("compress tree -o a.rfn");
    let (mut service, address) = start(&case, "serve a.rfn --http 127.0.0.1:0");
    let url = format!("http://{address}");
    assert!(curl(&[&format!("{url}/tree/dir/data")]) == content);
    let part = curl(&["-r", "1000-70000", &format!("{url}/tree/dir/data")]);
    assert!(part == case.ok("cat a.rfn dir/data --range 1000..70001").stdout);
    let tar = curl(&[&format!("{url}/tree.tar")]);
    assert!(tar == case.ok("cat a.rfn tree").stdout);
    assert!(
        String::from_utf8(curl(&["-L", &format!("{url}/tree")]))
            .unwrap()
            .contains("hello")
    );

    let table = String::from_utf8(case.ok(&format!("top {address} --once")).stdout).unwrap();
    let row = table
        .lines()
        .find(|line| line.ends_with("http_get"))
        .unwrap();
    assert_eq!(row.split_whitespace().nth(2), Some("3"), "{table}");
    assert!(
        table.contains("bytes decoded for each byte served"),
        "{table}"
    );
    let json = case
        .ok(&format!("top http://{address}/ --once --json --reset"))
        .stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(
        json["operations"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["calls"] != 0)
            .count(),
        2
    );
    let table = String::from_utf8(case.ok(&format!("top {address} --once")).stdout).unwrap();
    assert!(!table.contains("http_get"), "{table}");

    let id = rustix::process::Pid::from_child(&service.0);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert!(service.0.wait().unwrap().success());
    let gone = case.run(&format!("top {address} --once"));
    assert_eq!(
        gone.status.code(),
        Some(6),
        "{}",
        String::from_utf8_lossy(&gone.stderr)
    );
}

#[test]
fn a_loopback_address_answers_only_to_names_of_this_machine() {
    let case = Case::new();
    case.write("a", b"content of a\n");
    case.ok("compress a");
    let line = "serve a.rfn --http 127.0.0.1:0 --allow-host archive.example";
    let (_service, address) = start(&case, line);
    let status = |url: &str, host: &str| {
        let output = Command::new("curl")
            .args(["-s", "-o", "answer", "-w", "%{http_code}", "-H", host, url])
            .current_dir(case.path("."))
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let port = address.rsplit_once(':').unwrap().1;
    let urls = ["a", "", ".refrain/statistics", "metrics", "missing"];
    for path in urls {
        let url = format!("http://{address}/{path}");
        assert_eq!(status(&url, "Host: evil.example"), "421", "{path}");
        let answer = String::from_utf8(case.read("answer")).unwrap();
        assert!(
            answer.contains("--allow-host") && !answer.contains("content of a"),
            "{answer}"
        );
    }
    let url = format!("http://{address}/a");
    for host in [
        "Host: localhost".to_owned(),
        format!("Host: 127.0.0.1:{port}"),
        format!("Host: Archive.example:{port}"),
    ] {
        assert_eq!(status(&url, &host), "200", "{host}");
    }
    let reset = format!("http://{address}/.refrain/statistics/reset");
    let output = Command::new("curl")
        .args(["-s", "-X", "POST", "-H", "Host: evil.example", &reset])
        .output();
    assert!(
        String::from_utf8(output.unwrap().stdout)
            .unwrap()
            .contains("localhost")
    );
    case.ok(&format!("top {address} --once"));
    // A server that listens on all addresses is called by any name.
    let (_open, address) = start(&case, "serve a.rfn --http 0.0.0.0:0");
    let port = address.rsplit_once(':').unwrap().1;
    let url = format!("http://127.0.0.1:{port}/a");
    assert_eq!(status(&url, "Host: www.example"), "200");
}

#[test]
fn a_socket_of_this_machine_serves_http_as_well() {
    let case = Case::new();
    case.write("a", b"content of a\n");
    case.ok("compress a");
    let socket = case.path("s");
    let (_service, address) = start(&case, "serve a.rfn --http unix:s");
    assert_eq!(address, "unix:s");
    let socket = socket.to_str().unwrap();
    assert_eq!(
        curl(&["--unix-socket", socket, "http://x/a"]),
        b"content of a\n"
    );
    let table = case.ok("top unix:s --once");
    assert!(
        String::from_utf8(table.stdout)
            .unwrap()
            .contains("http_get")
    );
    let wrong = case.run("top a:b");
    assert_eq!(wrong.status.code(), Some(1));
}

#[test]
fn a_service_with_a_certificate_answers_nothing_in_the_clear() {
    let case = Case::new();
    case.write("a", b"content of a\n");
    case.ok("compress a");
    make_certificate(&case);
    let line = "serve a.rfn --http 127.0.0.1:0 --tls-certificate pki/ca-cert.pem --tls-key key.pem";
    let (_service, address) = start(&case, line);
    let port = address.rsplit_once(':').unwrap().1;
    let authority = case.path("pki/ca-cert.pem");
    let trust = ["--cacert", authority.to_str().unwrap()];
    let secure = format!("https://localhost:{port}/a");
    assert_eq!(curl(&[&trust[..], &[&secure]].concat()), b"content of a\n");
    let plain = format!("http://localhost:{port}/a");
    let output = Command::new("curl")
        .args(["-s", "--http0.9", "--max-time", "30", &plain])
        .output()
        .unwrap();
    // An alert of TLS at most.
    assert!(output.stdout.len() < 16, "{output:?}");
    // Nobody who trusts others is served.
    let stranger = Command::new("curl").args(["-s", &secure]).output().unwrap();
    assert!(!stranger.status.success() && stranger.stdout.is_empty());
}

/// The commands of docs/http.md run unchanged, except for the port and the end of the service.
#[test]
fn the_commands_of_the_document_work() {
    let document = include_str!("../../../../docs/http.md");
    let after = document.split("<!-- commands begin").nth(1).unwrap();
    let commands = after
        .split("```sh\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let case = Case::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let script = commands
        .replace("127.0.0.1:8080", &address)
        .replace("--daemon", "--daemon --idle-exit 2s");
    assert_eq!(script.matches("--idle-exit").count(), 1);
    let directory = std::path::Path::new(REFRAIN)
        .parent()
        .unwrap()
        .to_str()
        .unwrap();
    let path = format!("{directory}:{}", std::env::var("PATH").unwrap());
    let mut command = case.command("bash", "-euo pipefail -c");
    let output = command.arg(script).env("PATH", path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for expected in [
        "<a href=\"project/\">",
        "\"name\":\"docs\"",
        "hello\n",
        "-rw-r--r-- ",
        "Accept-Ranges: bytes",
        "http_head",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    // The range of a member, and the file through the link.
    assert!(
        text.contains("158731\n158732\n") && text.matches("hello\n").count() >= 2,
        "{text}"
    );
}

#[test]
fn sockets_of_systemd_are_served_by_their_names() {
    let case = Case::new();
    case.write("data", b"content");
    case.ok("compress data -o a.rfn");
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let expected = socket.local_addr().unwrap().to_string();
    // The shell moves the socket to where systemd puts it, and knows the process.
    let mut command = case.command("sh", "-c");
    command.arg(format!(
        "exec 3<&0 0</dev/null; LISTEN_FDNAMES=http LISTEN_FDS=1 LISTEN_PID=$$ \
         exec {REFRAIN} serve a.rfn"
    ));
    command.stdin(Stdio::from(std::os::fd::OwnedFd::from(socket)));
    let (_service, address) = start_command(command);
    assert_eq!(address, expected);
    assert_eq!(curl(&[&format!("http://{address}/data")]), b"content");
    // Those of another process are none.
    let mut command = case.command(REFRAIN, "serve a.rfn");
    command.env("LISTEN_FDS", "1").env("LISTEN_PID", "1");
    let output = crate::support::expect(command.output().unwrap(), 1, "serve");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("say where clients connect"), "{text}");
}
