//! Pages of directories, for people and for programs.

use super::support::Server;

#[test]
fn a_person_can_click_through() {
    let server = Server::start();
    let root = server.get("/", "");
    assert_eq!(root.status, 200);
    assert_eq!(root.field("Content-Type"), Some("text/html; charset=utf-8"));
    let text = root.text();
    assert!(text.contains("<a href=\"disk.img\">disk.img</a>"), "{text}");
    assert!(text.contains("<a href=\"tree/\">tree/</a>"), "{text}");
    assert!(
        text.contains("1994-11-06 08:49:37") && text.contains("title=\"2100001 bytes\">2.10 MB<"),
        "{text}"
    );
    assert!(!text.contains(">..</a>"));
    assert!(text.contains("name=\"viewport\"") && text.contains("prefers-color-scheme: dark"));
    assert!(
        text.contains("<nav><strong>archive</strong></nav>"),
        "{text}"
    );
    assert!(text.contains("<a href=\"tree/?tar\">tar</a>"), "{text}");
    let (directory, file) = (
        text.find("\"tree/\"").unwrap(),
        text.find("\"disk.img\"").unwrap(),
    );
    assert!(directory < file, "directories are first");
    let page = server.get("/tree/dir/", "").text();
    assert!(page.contains("<a href=\"../\">..</a>"), "{page}");
    let way = "<nav><a href=\"../../\">archive</a> / <a href=\"../\">tree</a> / <strong>dir</strong></nav>";
    assert!(page.contains(way), "{page}");
    assert!(
        page.contains("<a href=\"../?tar\">all of tree as tar</a>"),
        "{page}"
    );
    let tar = server.get("/tree/?tar", "");
    assert_eq!(tar.field("Content-Type"), Some("application/x-tar"));
    assert!(
        page.contains("<a href=\"a%20b%2520c\">a b%20c</a>"),
        "{page}"
    );
    assert!(page.contains("soft</a> \u{2192} ../hello.txt"), "{page}");
    let inner = server.get("/tree/dir/inner/", "").text();
    let link = "<a href=\"%3Cb%3E%26%22.html\">&lt;b&gt;&amp;&quot;.html</a>";
    assert!(inner.contains(link), "{inner}");
    assert!(!inner.contains("<b>"), "{inner}");
    let found = server.get("/tree/dir/inner/%3Cb%3E%26%22.html", "");
    assert_eq!(
        found.field("Content-Type"),
        Some("text/plain; charset=utf-8")
    );
    // Every link of the pages leads somewhere.
    let mut client = server.connect();
    let mut pending = vec!["/".to_owned()];
    let mut visited = 0;
    while let Some(path) = pending.pop() {
        let page = client.request("GET", &path, "");
        assert_eq!(page.status, 200, "{path}");
        visited += 1;
        let text = page.text();
        for link in text
            .split("href=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap())
        {
            match link {
                "data:," => {}
                _ if link.starts_with("../") || link.ends_with("?tar") => {}
                _ if path.contains("many/") => {}
                _ if link.ends_with('/') => pending.push(format!("{path}{link}")),
                _ => {
                    let found = client.request("HEAD", &format!("{path}{link}"), "");
                    let is_special = ["absolute", "outside", "pipe"].contains(&link);
                    let expected = if is_special { 403..=404 } else { 200..=302 };
                    assert!(
                        expected.contains(&found.status),
                        "{path}{link} {}",
                        found.status
                    );
                }
            }
        }
    }
    // `/`, tree, dir, inner, many, sub, old.tar, deep, er.
    assert_eq!(visited, 9);
}

#[test]
fn a_long_directory_is_sent_in_chunks_and_as_json() {
    let server = Server::start();
    let mut client = server.connect();
    let page = client.request("GET", "/tree/many/", "");
    assert_eq!(page.field("Transfer-Encoding"), Some("chunked"));
    assert_eq!(page.text().matches("<tr>").count(), 2002);
    let found = client.request("GET", "/tree/many/", "Accept: application/json\r\n");
    assert_eq!(found.field("Content-Type"), Some("application/json"));
    assert_eq!(found.field("Vary"), Some("Accept"));
    let list: serde_json::Value = serde_json::from_slice(&found.body).unwrap();
    assert_eq!(list["path"], "/tree/many/");
    let entries = list["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2000);
    assert_eq!(entries[42]["name"], "file-00042");
    assert_eq!(
        (entries[42]["type"].as_str(), entries[42]["size"].as_u64()),
        (Some("file"), Some(2))
    );
    // HTTP/1.0 has no chunks: the connection ends with the page.
    let mut old = server.connect();
    old.send(b"GET /tree/many/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let old = String::from_utf8(old.rest()).unwrap();
    assert!(old.contains("Connection: close") && old.ends_with("</html>\n"));
    assert_eq!(old.matches("<tr>").count(), 2002);
}

#[test]
fn implied_directories_of_tar_streams_are_listed() {
    let server = Server::start();
    let fields = "Accept: application/json\r\n";
    let names = |path: &str| -> Vec<String> {
        let list: serde_json::Value =
            serde_json::from_slice(&server.get(path, fields).body).unwrap();
        let entries = list["entries"].as_array().unwrap();
        entries
            .iter()
            .map(|entry| entry["url"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names("/"), ["disk.img", "empty", "sub/", "tree/"]);
    assert_eq!(names("/sub/"), ["old.tar/"]);
    assert_eq!(names("/sub/old.tar/"), ["a.txt", "deep/"]);
    assert_eq!(names("/sub/old.tar/deep/"), ["er/"]);
}
