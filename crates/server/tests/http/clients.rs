//! Other programs as clients.

use std::process::{Command, Output};

use super::support::{Server, disk};

/// Runs a program, which must be installed.
fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
    output
}

#[test]
fn curl_reads_ranges_heads_and_continues() {
    let server = Server::start();
    let disk = disk();
    let url = server.url("/disk.img");
    let curl =
        |arguments: &[&str]| run("curl", &[&["-sS", "--max-time", "30"], arguments].concat());
    assert!(curl(&["-r", "100-199", &url]).stdout == disk[100..200]);
    assert!(curl(&["-r", "-7", &url]).stdout == disk[disk.len() - 7..]);
    assert!(curl(&["--compressed", &url]).stdout == disk);
    let head = String::from_utf8(curl(&["-I", &url]).stdout).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains(&format!("Content-Length: {}\r\n", disk.len())),
        "{head}"
    );
    let code = ["-o", "/dev/null", "-w", "%{http_code}"];
    let since = [&code[..], &["-z", "Mon, 07 Nov 1994 08:49:37 GMT", &url]].concat();
    assert_eq!(curl(&since).stdout, b"304");
    let with_range = [&code[..], &["-r", "0-9", "-H", "If-Range: \"other\"", &url]].concat();
    assert_eq!(curl(&with_range).stdout, b"200");
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("disk");
    std::fs::write(&target, &disk[..1_234_567]).unwrap();
    curl(&["-C", "-", "-o", target.to_str().unwrap(), &url]);
    assert!(std::fs::read(&target).unwrap() == disk);
    // Redirects of links and directories.
    assert_eq!(
        curl(&["-L", &server.url("/tree/dir/soft")]).stdout,
        b"hello\n"
    );
    let page = curl(&["-L", &server.url("/tree")]).stdout;
    assert!(String::from_utf8(page).unwrap().contains("hello.txt"));
    // Several requests over one connection.
    let hello = server.url("/tree/hello.txt");
    let connections = ["-w", "%{num_connects}\n", &hello, &hello];
    assert_eq!(curl(&connections).stdout, b"hello\n1\nhello\n0\n");
}

#[test]
fn tar_unpacks_what_curl_downloads() {
    let server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    let tar = directory.path().join("tree.tar");
    run(
        "curl",
        &["-sS", "-o", tar.to_str().unwrap(), &server.url("/tree.tar")],
    );
    let listed = run("tar", &["tf", tar.to_str().unwrap()]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.lines().any(|line| line.ends_with("dir/data.bin")),
        "{listed}"
    );
    assert_eq!(
        listed
            .lines()
            .filter(|line| line.contains("many/file-"))
            .count(),
        2000
    );
}

#[test]
fn python_keeps_a_connection_alive() {
    let server = Server::start();
    let script = "\
import http.client, sys
connection = http.client.HTTPConnection(sys.argv[1], timeout=20)
for method, path, fields, status in [
    ('GET', '/disk.img', {'Range': 'bytes=0-4095'}, 206),
    ('HEAD', '/disk.img', {}, 200),
    ('GET', '/tree/many/', {'Accept': 'application/json'}, 200),
    ('GET', '/tree/hello.txt', {}, 200),
]:
    connection.request(method, path, headers=fields)
    local = connection.sock.getsockname()
    response = connection.getresponse()
    body = response.read()
    assert response.status == status, (path, response.status)
    print(local[1], len(body))
";
    let output = run("python3", &["-c", script, &server.address.to_string()]);
    let output = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<(&str, &str)> = output
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .collect();
    assert!(
        rows.iter().all(|row| row.0 == rows[0].0),
        "one connection: {output}"
    );
    let sizes: Vec<&str> = rows.iter().map(|row| row.1).collect();
    assert_eq!((sizes[0], sizes[1], sizes[3]), ("4096", "0", "6"));
}
