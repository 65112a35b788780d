//! Archives behind caches.

use std::fs;

use crate::support::{Case, incompressible};

/// All that a directory of the disk tier has of content.
fn kept(case: &Case, directory: &str) -> Vec<u8> {
    let files = fs::read_dir(case.path(directory)).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let data = files.filter(|path| path.extension().is_some_and(|suffix| suffix == "data"));
    data.flat_map(|path| fs::read(path).unwrap()).collect()
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn what_was_read_is_kept_as_it_is_stored() {
    let case = Case::new();
    let content = incompressible(3, 1 << 20);
    case.write("x", &content);
    case.write("password", b"secret\n");
    case.ok("compress --for serve x -o plain.rfn");
    case.ok("compress --for serve x -o secret.rfn --encrypt --password-file password");
    let part = &content[500_000..500_064];
    for (archive, directory, is_plain) in [
        ("plain.rfn", "one", true),
        ("secret.rfn --password-file password", "two", false),
    ] {
        for _ in 0..2 {
            let output = case.ok(&format!(
                "cat {archive} --cache-disk {directory} --cache-disk-size 16M"
            ));
            assert!(output.stdout == content);
        }
        let kept = kept(&case, directory);
        assert!(kept.len() > content.len() / 2);
        assert_eq!(has(&kept, part), is_plain, "{archive}");
    }
}

#[test]
fn nodes_that_are_not_there_make_no_read_fail() {
    let case = Case::new();
    let content = incompressible(4, 300_000);
    case.write("x", &content);
    case.ok("compress --for serve x");
    for nodes in [
        "memcached://127.0.0.1:1,127.0.0.1:2",
        "redis://127.0.0.1:1",
        "memcached://@no-such-file",
        "memcached://no-such-host.invalid",
    ] {
        let output = case.ok(&format!("cat x.rfn --cache {nodes}"));
        assert!(output.stdout == content, "{nodes}");
    }
}

#[test]
fn lists_of_nodes_and_sizes_that_mean_nothing_are_refused() {
    let case = Case::new();
    case.write("x", b"content");
    case.ok("compress x");
    case.write("file", b"");
    for (line, part) in [
        ("--cache http://a", "memcached://"),
        ("--cache memcached://a,,b", "HOST:PORT"),
        ("--cache memcached://a --cache-value-max 10", "at least 1K"),
        ("--cache-disk d --cache-disk-size 10K", "at least 1M"),
        ("--cache-disk file/d", "--cache-disk"),
    ] {
        let told = case.fails(&format!("cat x.rfn {line}"), 1);
        let told = if told.contains(part) { told } else { panic!("{line}: {told}") };
        assert!(told.lines().count() < 10, "{told}");
    }
}
