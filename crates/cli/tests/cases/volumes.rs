//! Archives in volumes: folders of files that are created and deleted, never changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use refrain_testkit::http_server::{HttpServer, Object};
use refrain_testkit::{Rng, scaled};

use crate::mount::{Mounted, can_mount};
use crate::support::{Case, REFRAIN, expect, incompressible, json, json_lines, names_in, snapshot};

/// Three nights of a directory and a file in a file and in volumes.
fn case() -> Case {
    let case = Case::new();
    for night in 0..3 {
        add_night(&case, night, "a.rfn", "");
        add_night(&case, night, "vol", "--volume 64K");
    }
    case
}

fn add_night(case: &Case, night: usize, archive: &str, options: &str) {
    if !case.exists(&format!("tree/file{night}")) {
        let disk = incompressible(1, 500_000);
        case.write(
            &format!("tree/file{night}"),
            format!("night {night}").as_bytes(),
        );
        if night == 0 {
            case.write("tree/same", &disk[..100_000]);
        }
        let mut changed = disk.clone();
        changed[200_000..200_010].fill(night as u8);
        case.write("disk", &changed);
        // What changed just now is read again, in one archive or the other.
        thread::sleep(Duration::from_millis(10));
    }
    case.ok(&format!(
        "add -q --force-read {archive} tree disk {options} --time 2026-11-2{night}T03:00:00 --host h"
    ));
}

/// The names of the volumes that an archive needs, in their order.
fn volumes(case: &Case, archive: &str) -> Vec<String> {
    let listed = case.ok(&format!("list --volumes {archive}")).stdout;
    let listed = String::from_utf8(listed).unwrap();
    let names = listed.lines().filter(|name| name.starts_with("data-"));
    names.map(str::to_owned).collect()
}

fn joined(case: &Case, archive: &str) -> Vec<u8> {
    let names = volumes(case, archive);
    let parts = names
        .iter()
        .map(|name| case.read(&format!("{archive}/{name}")));
    parts.collect::<Vec<_>>().concat()
}

/// The identity of every file, which changes if somebody writes to one.
fn states(case: &Case, folder: &str) -> BTreeMap<String, (u64, u64, i64, i64)> {
    let names = names_in(&case.path(folder)).into_iter();
    names
        .map(|name| {
            let found = fs::metadata(case.path(&format!("{folder}/{name}"))).unwrap();
            let times = (found.mtime(), found.mtime_nsec());
            (name, (found.ino(), found.len(), times.0, times.1))
        })
        .collect()
}

#[test]
fn a_folder_holds_the_bytes_of_a_file_and_nothing_in_it_changes() {
    let case = Case::new();
    let mut before = BTreeMap::new();
    for night in 0..3 {
        add_night(&case, night, "a.rfn", "");
        // The size counts for new volumes only.
        let size = ["64K", "100K", "4K"][night];
        add_night(&case, night, "vol", &format!("--volume {size}"));
        assert!(joined(&case, "vol") == case.read("a.rfn"), "{night}");
        let after = states(&case, "vol");
        let is_kept = |(name, state): (&String, _)| after.get(name) == Some(state);
        assert!(before.iter().all(is_kept), "{night}");
        before = after;
    }
    case.ok("forget -q a.rfn 2");
    case.ok("forget -q vol 2");
    assert!(joined(&case, "vol") == case.read("a.rfn"));
    let after = states(&case, "vol");
    assert!(
        before
            .iter()
            .all(|(name, state)| after.get(name) == Some(state))
    );
    // One head for each run, and every file is needed or an earlier head.
    let heads: Vec<_> = after
        .keys()
        .filter(|name| name.starts_with("head-"))
        .collect();
    assert_eq!(heads.len(), 4);
    assert_eq!(after.len(), 4 + volumes(&case, "vol").len());
    assert!(after.values().all(|(_, length, ..)| *length <= 100 << 10));
    // The list has digests.
    let listed = json_lines(&case.ok("list --volumes --json vol").stdout);
    assert_eq!(listed[0]["name"], *heads[0]);
    for line in &listed[1..] {
        let name = line["name"].as_str().unwrap();
        let hash = case.ok(&format!("hash vol/{name}")).stdout;
        let hash = String::from_utf8(hash).unwrap();
        assert!(
            hash.contains(line["blake3"].as_str().unwrap()),
            "{line}: {hash}"
        );
        assert_eq!(line["bytes"], case.read(&format!("vol/{name}")).len());
    }
}

#[test]
fn all_verbs_read_volumes_as_they_read_a_file() {
    let case = case();
    let head = names_in(&case.path("vol")).pop().unwrap();
    for line in [
        "list A",
        "list -l A --generation 1",
        "list --generations A",
        "list --json A tree/file1",
        "info A --table",
        "cat A disk --range 199999..200011",
        "cat A disk --generation 1",
        "diff A 1 2",
    ] {
        let same = |archive: &str| {
            let output = case.ok(&line.replace('A', archive)).stdout;
            String::from_utf8_lossy(&output).replace(archive, "A")
        };
        assert!(same("vol") == same("a.rfn"), "{line}");
        assert!(same("vol/") == same("a.rfn"), "{line}");
    }
    case.ok("map vol --json");
    case.ok("test -q vol");
    case.ok("test -q --fast vol");
    let told = case.ok("test vol").stderr;
    assert!(
        String::from_utf8_lossy(&told).contains("3 generations"),
        "{told:?}"
    );
    case.ok("decompress -q vol --generation 2 -o out/");
    case.ok("decompress -q a.rfn --generation 2 -o expected/");
    assert_eq!(case.read("out/disk"), case.read("expected/disk"));
    assert_eq!(
        names_in(&case.path("out/tree")),
        names_in(&case.path("expected/tree"))
    );
    let said = case.fails("decompress -q --rm vol -o again/", 1);
    assert!(said.contains("cannot be removed"), "{said}");
    // An earlier head is the archive as it was.
    assert!(head.starts_with("head-"), "{head}");
    let listed = case.ok(&format!("list --generations vol/{head}")).stdout;
    assert_eq!(String::from_utf8_lossy(&listed).lines().count(), 1);
    let listed = case.ok("list vol a.rfn").stdout;
    assert_eq!(String::from_utf8_lossy(&listed).matches("file1").count(), 2);
}

#[test]
fn volumes_are_mounted() {
    if !can_mount() {
        return;
    }
    let case = case();
    let _mounted = Mounted::new(&case, "mount vol --generations");
    assert!(case.read("mnt/latest/disk") == case.read("disk"));
    assert_eq!(case.read("mnt/2/tree/file1"), b"night 1");
}

/// A server that shows the names of a folder on a page.
#[test]
fn a_folder_on_a_server_is_read() {
    let case = case();
    let server = HttpServer::start().unwrap();
    let mut page = String::from("<h1>Index</h1>");
    for name in names_in(&case.path("vol")) {
        page.push_str(&format!("<a href=\"{name}\">{name}</a>\n"));
        let object = Object::new(case.read(&format!("vol/{name}")), "\"1\"");
        server.put(&format!("/vol/{name}"), object);
    }
    server.put("/vol/", Object::new(page, "\"2\""));
    let url = server.url("/vol/");
    let before = server.request_count();
    let listed = case.ok(&format!("list {url}")).stdout;
    assert_eq!(listed, case.ok("list vol").stdout);
    // The page, twice, the head, and what is at the end of the archive, in volumes of a page each.
    let requests = server.request_count() - before;
    assert!((4..=10).contains(&requests), "{requests}");
    case.ok(&format!("test -q {url}"));
    let head = &names_in(&case.path("vol")).pop().unwrap();
    let listed = case.ok(&format!("list --generations {url}{head}")).stdout;
    assert_eq!(String::from_utf8_lossy(&listed).lines().count(), 1);
    let names = volumes(&case, "vol");
    assert_eq!(
        case.ok(&format!("list --volumes {url}")).stdout,
        case.ok("list --volumes vol").stdout
    );
    server.put(&format!("/vol/{}", names[3]), Object::new("short", "\"3\""));
    let said = case.fails(&format!("test {url}"), 6);
    assert!(
        said.contains(&format!("the volume {} has 5 bytes instead of", names[3])),
        "{said}"
    );
    let said = case.fails(&format!("add {url} disk"), 1);
    assert!(said.contains("cannot be written to"), "{said}");
}

/// What was forgotten is given back: volumes without it take the place of others.
#[test]
fn compacting_a_folder_replaces_volumes() {
    let case = Case::new();
    for night in 0..4 {
        case.write("dump", &incompressible(night, 2 << 20));
        case.ok(&format!(
            "add -q vol dump --volume 256K --time 2026-11-2{night}T03:00:00"
        ));
    }
    let size = |case: &Case| {
        states(case, "vol")
            .values()
            .map(|state| state.1)
            .sum::<u64>()
    };
    let before = size(&case);
    let untouched = states(&case, "vol");
    case.ok("forget -q vol 1 2");
    let planned = json(&case.ok("compact vol --dry-run --json").stdout)["results"][0].clone();
    let done = json(&case.ok("compact vol --json").stdout)["results"][0].clone();
    assert_eq!(planned["hole_bytes"], done["hole_bytes"]);
    let freed = done["freed_bytes"].as_i64().unwrap();
    assert!(freed > 3_900_000, "{done}");
    assert!(size(&case) + 3_900_000 < before + 10_000, "{before}");
    // What stays was not touched, and everything is read as before.
    for (name, state) in states(&case, "vol") {
        assert!(
            untouched.get(&name).is_none_or(|before| *before == state),
            "{name}"
        );
    }
    let needed: BTreeSet<_> = volumes(&case, "vol").into_iter().collect();
    let there: BTreeSet<_> = names_in(&case.path("vol")).into_iter().collect();
    assert!(
        there
            .iter()
            .filter(|name| name.starts_with("data-"))
            .all(|name| needed.contains(name))
    );
    for night in 2..4 {
        let read = case
            .ok(&format!("cat vol dump --generation {}", night + 1))
            .stdout;
        assert!(read == incompressible(night, 2 << 20));
    }
    case.ok("test -q vol");
    case.ok("test -q --fast vol");
    let told = case.ok("compact vol").stderr;
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(told.contains("nothing to give back"), "{told}");
    case.write("dump", &incompressible(0, 2 << 20));
    case.ok("add -q vol dump");
    assert!(case.ok("cat vol dump").stdout == case.read("dump"));
    case.ok("test -q vol");
}

#[test]
fn volumes_are_merged_with_others() {
    let case = case();
    case.write("other", b"another content");
    case.ok("add -q b.rfn other --time 2026-11-20T12:00:00 --host h");
    case.ok("merge -q vol b.rfn -o merged.rfn");
    let listed = json_lines(&case.ok("list --generations --json merged.rfn").stdout);
    assert_eq!(listed.len(), 4);
    assert!(case.ok("cat merged.rfn disk").stdout == case.read("disk"));
}

#[test]
fn encrypted_archives_take_volumes_too() {
    let case = Case::new();
    case.write("password", b"a b");
    let disk = incompressible(3, 300_000);
    case.write("disk", &disk);
    let add = "add -q vol disk --volume 64K --encrypt --password-file password";
    case.ok(add);
    case.write("more", &disk[50_000..250_000]);
    case.ok("add -q vol more --password-file password");
    let read = |line: &str| case.ok(&format!("{line} --password-file password")).stdout;
    assert!(read("cat vol more") == disk[50_000..250_000]);
    assert!(read("cat vol disk --generation 1") == disk);
    read("test -q vol");
    assert!(joined(&case, "vol").len() < 340_000);
    case.ok("forget -q vol 1 --password-file password");
    assert!(!case.run("cat vol more").status.success());
}

#[test]
fn what_is_missing_is_named() {
    let case = case();
    let names = volumes(&case, "vol");
    let last = names.last().unwrap();
    let bytes = case.read(&format!("vol/{last}"));
    fs::remove_file(case.path(&format!("vol/{last}"))).unwrap();
    let told = format!("the volume {last} of {} bytes is missing", bytes.len());
    for line in [
        "list vol",
        "test vol",
        "cat vol disk",
        "add vol disk",
        "info vol",
    ] {
        let said = case.fails(line, 6);
        assert!(said.contains(&told), "{line}: {said}");
    }
    // The archive before it is whole.
    let heads: Vec<_> = names_in(&case.path("vol"))
        .into_iter()
        .filter(|name| name.starts_with("head-"))
        .collect();
    case.ok(&format!("test -q vol/{}", heads[1]));
    case.write(&format!("vol/{last}"), &bytes[1..]);
    let told = format!(
        "the volume {last} has {} bytes instead of {}",
        bytes.len() - 1,
        bytes.len()
    );
    assert!(case.fails("list vol", 6).contains(&told));
    case.write(&format!("vol/{last}"), &bytes);
    case.ok("test -q vol");
    // One in the middle is missed by whoever needs it.
    fs::remove_file(case.path(&format!("vol/{}", names[2]))).unwrap();
    case.ok("list vol");
    let said = case.fails("test vol", 6);
    assert!(
        said.contains(&format!("the volume {} of", names[2])),
        "{said}"
    );
    // A head that is cut off.
    let head = case.read(&format!("vol/{}", heads[0]));
    case.write(&format!("vol/{}", heads[0]), &head[..head.len() / 2]);
    let said = case.fails("list vol", 2);
    assert!(
        said.contains(&heads[0]) && said.contains(&heads[1]),
        "{said}"
    );
}

#[test]
fn folders_of_other_things_are_left_alone() {
    let case = Case::new();
    case.write("x", b"content");
    case.write("other/file", b"something");
    fs::create_dir(case.path("empty")).unwrap();
    for (line, part) in [
        ("add other x", "--volume SIZE begins one"),
        ("add empty x", "--volume SIZE begins one"),
        ("add other x --volume 64K", "has other files"),
        ("add x x --volume 64K", "is a file"),
        ("add empty x --volume 1K", "at least 4096 bytes"),
        ("list other", "is a directory, not an archive"),
        ("list --volumes x", "is one file"),
        ("forget empty 1", "directory"),
    ] {
        let output = case.run(line);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains(part),
            "{line}: {said}"
        );
    }
    assert_eq!(names_in(&case.path("other")), ["file"]);
    assert!(names_in(&case.path("empty")).is_empty());
    case.ok("add -q empty x --volume 64K");
    case.ok("add -q empty x");
    for verb in ["protect empty", "key list empty"] {
        let said = case.fails(verb, 1);
        assert!(said.contains("archive in volumes"), "{verb}: {said}");
    }
}

#[test]
fn two_writers_never_and_readers_always() {
    let case = case();
    let before = joined(&case, "vol");
    let mut first = case.command(REFRAIN, "add vol - --name slow");
    let first = first.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut first = first.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let second = case.run("forget vol 1 --dry-run");
        let said = String::from_utf8_lossy(&second.stderr).into_owned();
        if !second.status.success() {
            assert!(said.contains("another program is writing to it"), "{said}");
            break;
        }
        assert!(Instant::now() < deadline, "the first never locked");
        assert!(first.try_wait().unwrap().is_none(), "the first lost");
        thread::yield_now();
    }
    case.ok("test -q vol");
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(joined(&case, "vol") == before);
    case.ok("add -q vol disk");
}

#[test]
fn a_killed_run_leaves_the_archive_as_it_was_and_the_next_goes_on() {
    let case = case();
    case.write("new", &incompressible(9, 3 << 20));
    let add = "add -q vol new --volume 64K --time 2026-11-25T03:00:00";
    let start = Instant::now();
    case.ok(add);
    let whole = start.elapsed();
    let mut length = joined(&case, "vol").len();
    for seed in 0..u64::from(scaled(6)) {
        case.write("new", &incompressible(100 + seed, 3 << 20));
        let before = snapshot(&case.path("vol"));
        let moment = Rng::new(seed).below(whole.as_micros() as u64 * 9 / 8);
        let mut child = case.command(REFRAIN, add).spawn().unwrap();
        thread::sleep(Duration::from_micros(moment));
        let _ = child.kill();
        child.wait().unwrap();
        let after = snapshot(&case.path("vol"));
        let is_there =
            |entry: &&crate::support::EntryState| entry.path.is_empty() || after.contains(entry);
        assert!(before.iter().all(|entry| is_there(&entry)), "{seed}");
        case.ok("test -q vol");
        let now = joined(&case, "vol").len();
        assert!(now == length || now > length + (3 << 20), "{seed}: {now}");
        expect(case.run(add), 0, add);
        length = joined(&case, "vol").len();
        assert!(case.ok("cat vol new").stdout == case.read("new"), "{seed}");
    }
}

#[test]
fn the_own_folder_is_not_added() {
    let case = Case::new();
    case.write("home/file", b"content");
    for _ in 0..2 {
        let output = case.run("add home/vol home --volume 64K");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains("left out: it is the output of this run"),
            "{said}"
        );
        let listed = case.ok("list home/vol").stdout;
        let listed = String::from_utf8(listed).unwrap();
        assert!(
            listed.contains("file") && !listed.contains("head-"),
            "{listed}"
        );
    }
}
