//! `add`, `forget`, `--generation`: archives that grow.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use crate::mount::{Mounted, can_mount};
use crate::support::{Case, REFRAIN, expect, incompressible, json, json_lines, names_in};

const TIMES: [&str; 3] = [
    "2026-11-20T03:00:00",
    "2026-11-21T03:00:00",
    "2026-12-02T03:00:00",
];

/// The archive `a.rfn` with three generations of the directory `tree` and the file `disk`.
fn case() -> Case {
    let case = Case::new();
    fs::create_dir(case.path("tree")).unwrap();
    let disk = incompressible(1, 500_000);
    for (night, time) in TIMES.iter().enumerate() {
        case.write(
            &format!("tree/file{night}"),
            format!("night {night}").as_bytes(),
        );
        case.write("tree/same", &disk[..100_000]);
        let mut changed = disk.clone();
        changed[200_000..200_010].fill(night as u8);
        case.write("disk", &changed);
        let line = format!("add -q a.rfn tree disk --time {time} --host h --comment n{night}");
        let line = if night == 1 { format!("{line} --tag keep") } else { line };
        case.ok(&line);
    }
    case
}

fn generations(case: &Case) -> Vec<(u64, u64)> {
    let lines = json_lines(&case.ok("list --generations --json a.rfn").stdout);
    let pair = |line: &serde_json::Value| {
        let number = |name: &str| line[name].as_u64().unwrap();
        (number("generation"), number("members"))
    };
    lines.iter().map(pair).collect()
}

#[test]
fn every_generation_is_read_like_an_archive() {
    let case = case();
    assert_eq!(generations(&case), [(1, 2), (2, 2), (3, 2)]);
    let table = String::from_utf8(case.ok("list --generations a.rfn").stdout).unwrap();
    assert!(
        table.contains("2  2026-11-21T03:00:00Z") && table.contains("keep  n1"),
        "{table}"
    );
    // Nights after the first cost what changed.
    let size = fs::metadata(case.path("a.rfn")).unwrap().len();
    assert!(size < 560_000, "{size}");
    for (choice, night) in [
        ("1", 0),
        ("keep", 1),
        ("2026-11-20", 0),
        ("2026-11-30", 1),
        ("2026-11-21T02:59", 0),
        ("latest", 2),
    ] {
        let listed = case.ok(&format!("list a.rfn --generation {choice}")).stdout;
        let listed = String::from_utf8(listed).unwrap();
        assert_eq!(
            listed.matches("file").count(),
            night + 1,
            "{choice}: {listed}"
        );
        let read = case.ok(&format!(
            "cat a.rfn disk --range 199999..200011 --generation {choice}"
        ));
        assert_eq!(read.stdout[1..11], [night as u8; 10], "{choice}");
        case.ok(&format!(
            "decompress -q a.rfn --generation {choice} -o out-{choice}/"
        ));
        let restored = case.read(&format!("out-{choice}/tree/file{night}"));
        assert_eq!(restored, format!("night {night}").as_bytes());
        case.ok(&format!("test -q a.rfn --generation {choice}"));
        case.ok(&format!("info a.rfn --generation {choice}"));
    }
    case.ok("test a.rfn");
    case.ok("test --fast a.rfn");
    assert!(
        case.fails("cat a.rfn disk --generation 9", 1)
            .contains("no generation 9")
    );
    assert!(
        case.fails("list a.rfn --generation other", 1)
            .contains("'other'")
    );
}

#[test]
fn differences_of_generations_are_told() {
    let case = case();
    let told = String::from_utf8(case.ok("diff a.rfn 1 keep").stdout).unwrap();
    let lines: Vec<_> = told.lines().collect();
    assert!(
        lines.contains(&"+ tree/file1") && !told.contains("file0"),
        "{told}"
    );
    assert!(
        lines.iter().any(|line| line.starts_with("M disk (content")),
        "{told}"
    );
    let back = String::from_utf8(case.ok("diff a.rfn keep 1").stdout).unwrap();
    assert!(back.contains("- tree/file1"), "{back}");
    assert!(case.ok("diff a.rfn 2 2").stdout.is_empty());
    let lines = json_lines(&case.ok("diff a.rfn 1 --json").stdout);
    assert!(
        lines
            .iter()
            .any(|line| line["path"] == "tree/file2" && line["change"] == "added")
    );
    // The directory of the last generation alone.
    fs::remove_file(case.path("tree/file0")).unwrap();
    case.ok("add -q a.rfn tree");
    let told = String::from_utf8(case.ok("diff a.rfn 3").stdout).unwrap();
    assert!(
        told.contains("- disk") && told.contains("- tree/file0"),
        "{told}"
    );
}

#[test]
fn what_was_forgotten_is_gone_from_lists_only() {
    let case = case();
    let before = case.read("a.rfn");
    let said = case.ok("forget a.rfn --keep-monthly 2 --dry-run").stderr;
    assert!(String::from_utf8_lossy(&said).contains("would forget 1 of 3"));
    assert_eq!(case.read("a.rfn"), before);
    case.ok("forget -q a.rfn --keep-last 1 --keep-tag keep");
    assert_eq!(generations(&case), [(2, 2), (3, 2)]);
    assert!(case.read("a.rfn").starts_with(&before));
    case.fails("cat a.rfn disk --generation 1", 1);
    assert!(
        case.fails("forget a.rfn 2 3", 1)
            .contains("one generation must be kept")
    );
    assert!(case.fails("forget a.rfn 1", 1).contains("no generation 1"));
    assert!(case.fails("forget a.rfn", 1).contains("--keep-daily"));
    case.ok("forget -q a.rfn keep");
    assert_eq!(generations(&case), [(3, 2)]);
    case.ok("add -q a.rfn disk");
    assert_eq!(generations(&case), [(3, 2), (6, 1)]);
    case.ok("test -q a.rfn");
}

#[test]
fn pipes_and_archives_of_compress_grow() {
    let case = Case::new();
    let content = incompressible(3, 700_000);
    case.write("x", &content);
    case.ok("compress -q x");
    let added = case.pipe(REFRAIN, "add x.rfn - --name x --json", &content);
    let summary = &json(&expect(added, 0, "a pipe").stdout)["results"][0];
    assert_eq!(
        (&summary["generation"], &summary["store_bytes"]),
        (&1.into(), &0.into())
    );
    assert_eq!(generations_of(&case, "x.rfn"), [0, 1]);
    assert_eq!(case.ok("cat x.rfn x --generation 0").stdout, content);
    assert_eq!(case.ok("cat x.rfn x").stdout, content);
    // Small enough for a single frame.
    case.write("y", b"a small file");
    case.ok("compress -q y");
    case.ok("add -q y.rfn x y");
    assert_eq!(generations_of(&case, "y.rfn"), [0, 1]);
    assert_eq!(
        case.ok("cat y.rfn y --generation 0").stdout,
        b"a small file"
    );
}

fn generations_of(case: &Case, archive: &str) -> Vec<u64> {
    let lines = json_lines(
        &case
            .ok(&format!("list --generations --json {archive}"))
            .stdout,
    );
    lines
        .iter()
        .map(|line| line["generation"].as_u64().unwrap())
        .collect()
}

#[test]
fn what_cannot_be_added_to_says_why_and_stays() {
    let case = case();
    let before = case.read("a.rfn");
    for (line, exit, words) in [
        ("add a.rfn missing", 6, "missing"),
        ("add - disk", 1, "a file"),
        ("add a.rfn disk --tag 12", 1, "cannot be a tag"),
        ("add a.rfn disk --time tomorrow", 1, "UTC"),
        ("add disk tree", 2, "disk"),
        ("add tree disk", 1, "a folder without an archive"),
    ] {
        let said = case.fails(line, exit);
        assert!(said.contains(words), "{line}: {said}");
    }
    assert_eq!(case.read("a.rfn"), before);
    fs::copy(case.path("a.rfn"), case.path("p.rfn")).unwrap();
    case.ok("protect -q p.rfn");
    case.ok("add -q p.rfn disk");
    let said = case.fails("compact p.rfn", 3);
    assert!(said.contains("recovery data"), "{said}");
    let said = case.fails("add v disk --volume 1M --recovery 10%", 1);
    assert!(said.contains("--recovery") && !case.exists("v"), "{said}");
    // From a pipe only `test` reads all generations.
    let piped = case.pipe(REFRAIN, "decompress - -o piped", &before);
    assert!(String::from_utf8_lossy(&expect(piped, 3, "a pipe").stderr).contains("must be a file"));
    expect(case.pipe(REFRAIN, "test -", &before), 0, "a pipe");
}

#[test]
fn two_writers_never_and_readers_always() {
    let case = case();
    let begin = || {
        let mut first = case.command(REFRAIN, "add a.rfn - --name slow");
        let first = first.stdin(Stdio::piped()).stderr(Stdio::piped());
        first.spawn().unwrap()
    };
    let mut first = begin();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let second = case.run("forget a.rfn 1 --dry-run");
        if !second.status.success() {
            let said = String::from_utf8_lossy(&second.stderr).into_owned();
            assert!(said.contains("another program is appending"), "{said}");
            break;
        }
        // The second may have had the lock when the first one tried.
        if first.try_wait().unwrap().is_some() {
            first = begin();
        }
        assert!(
            std::time::Instant::now() < deadline,
            "the first never locked"
        );
        std::thread::yield_now();
    }
    case.ok("test -q a.rfn");
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(generations(&case), [(1, 2), (2, 2), (3, 2)]);
    case.ok("add -q a.rfn disk");
    assert_eq!(generations(&case).len(), 4);
}

#[test]
fn generations_are_mounted_as_directories() {
    if !can_mount() {
        return;
    }
    let case = case();
    case.ok("forget -q a.rfn 2");
    case.write("tree/late/file", b"late");
    case.ok("add -q a.rfn tree --time 2026-12-03T03:00:00 --tag last");
    let _mounted = Mounted::new(&case, "mount a.rfn --generations");
    let names = [
        "00001-2026-11-20T03-00-00Z",
        "00003-2026-12-02T03-00-00Z",
        "00005-2026-12-03T03-00-00Z",
    ];
    let listed: BTreeSet<_> = names_in(&case.path("mnt")).into_iter().collect();
    let expected = names.iter().copied().chain(["latest"]).map(str::to_owned);
    assert_eq!(listed, expected.collect());
    // What --generation takes is a link, listed or not.
    for (name, to) in [
        ("1", 0),
        ("00003", 1),
        ("2026-12-01", 0),
        ("2026-12-02", 1),
        ("last", 2),
        ("latest", 2),
    ] {
        let target = fs::read_link(case.path(&format!("mnt/{name}"))).unwrap();
        assert_eq!(target.to_str(), Some(names[to]), "{name}");
    }
    for forgotten in ["2", "keep", "2026-11-19", names[0].trim_end_matches('Z')] {
        assert!(!case.exists(&format!("mnt/{forgotten}")), "{forgotten}");
    }
    let at = |path: &str| fs::metadata(case.path(&format!("mnt/{path}"))).unwrap();
    assert_eq!(at(names[0]).mtime(), 1_795_143_600);
    assert!(case.read("mnt/1/disk") != case.read("mnt/3/disk"));
    assert!(case.read("mnt/3/disk") == case.read("disk"));
    assert_eq!(case.read("mnt/latest/tree/late/file"), b"late");
    assert!(!case.exists("mnt/3/tree/late"));
    let inodes: BTreeSet<u64> = [
        "",
        "1",
        "1/tree",
        "1/tree/same",
        "3",
        "3/tree",
        "3/tree/same",
    ]
    .map(|path| at(path).ino())
    .into();
    assert_eq!(inodes.len(), 7);
}

#[test]
fn one_folder_of_each_generation_is_mounted() {
    if !can_mount() {
        return;
    }
    let case = case();
    case.write("tree/late/file", b"late");
    case.ok("add -q a.rfn tree");
    let message = case.fails("mount a.rfn . --generations --root tree/none", 1);
    assert!(
        message.contains("no generation of the archive has"),
        "{message}"
    );
    let message = case.fails("mount a.rfn . --generations --generation 1", 1);
    assert!(message.contains("cannot be used with"), "{message}");
    let _mounted = Mounted::new(&case, "mount a.rfn --generations --root tree/late");
    assert_eq!(case.read("mnt/4/file"), b"late");
    assert!(!case.exists("mnt/3/"), "a generation without the folder");
    assert!(!case.exists("mnt/4/late"));
}

#[test]
fn an_archive_to_which_nothing_was_added_has_one_generation() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    case.write("file", b"content");
    case.ok("compress -q file");
    let _mounted = Mounted::new(&case, "mount file.rfn --generations");
    assert_eq!(names_in(&case.path("mnt")), ["00000", "latest"]);
    assert_eq!(case.read("mnt/0/file"), b"content");
    assert_eq!(case.read("mnt/latest/file"), b"content");
}

#[test]
fn a_map_says_what_each_generation_cost_and_where() {
    let case = case();
    case.write("tree/a/b/new", &incompressible(7, 300_000));
    case.write("tree/a/c/new", &incompressible(8, 150_000));
    case.ok("add -q a.rfn tree disk --time 2026-12-03T03:00:00");
    case.ok("forget -q a.rfn 2");
    let map = json(&case.ok("map --json a.rfn").stdout)["results"][0].clone();
    let rows = map["generations"].as_array().unwrap();
    let numbers: Vec<_> = rows
        .iter()
        .map(|row| row["generation"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 3, 4]);
    let bytes = |row: usize, name: &str| rows[row][name].as_u64().unwrap();
    // The file of random bytes, and the one with a part of them.
    assert_eq!(bytes(0, "first_bytes"), 500_007);
    assert!(bytes(1, "first_bytes") < 5000, "{map}");
    assert!((450_000..455_000).contains(&bytes(2, "first_bytes")));
    assert!((450_000..460_000).contains(&bytes(2, "stored_bytes")));
    for row in rows {
        let sum: u64 = ["first_bytes", "repeated_bytes", "run_bytes"]
            .map(|name| row[name].as_u64().unwrap())
            .iter()
            .sum();
        assert_eq!(sum, row["content_bytes"], "{row}");
    }
    let folders = rows[2]["folders"].as_array().unwrap();
    let paths: Vec<_> = folders
        .iter()
        .map(|row| row["path"].as_str().unwrap())
        .collect();
    let expected = ["tree/a", "tree/a/b", "tree/a/c", "disk"];
    assert_eq!(paths, expected, "tree is tree/a: {folders:?}");
    let table = String::from_utf8(case.ok("map a.rfn").stdout).unwrap();
    assert!(table.contains("\n  3 generations of "), "{table}");
    let line = table
        .lines()
        .find(|line| line.contains("2026-12-03T03:00:00Z"));
    assert!(line.unwrap().contains("tree/a/b 300 "), "{table}");
}

#[test]
fn a_test_tells_monitors_which_generations_there_are() {
    let case = case();
    case.ok("forget -q a.rfn 2");
    for line in ["test a.rfn", "test --fast a.rfn"] {
        let text = String::from_utf8(case.ok(line).stderr).unwrap();
        let end = "2 generations, the last 3 2026-12-02T03:00:00Z\n";
        assert!(text.ends_with(end) && text.lines().count() == 1, "{text}");
        let line = line.replace("test", "test --json");
        let found = json(&case.ok(&line).stdout)["results"][0].clone();
        let fields = ["generations", "generation", "created", "incomplete_bytes"];
        let fields = fields.map(|name| found[name].as_u64().unwrap());
        assert_eq!(fields, [2, 3, 1_796_180_400, 0]);
    }
    let text = String::from_utf8(case.ok("test a.rfn --generation 1").stderr).unwrap();
    assert!(text.contains("checked 1 2026-11-20"), "{text}");
    // A killed `add`.
    let bytes = case.read("a.rfn");
    case.ok("add -q a.rfn disk");
    let grown = case.read("a.rfn");
    case.write("a.rfn", &grown[..bytes.len() + 100]);
    let text = String::from_utf8(case.ok("test --fast a.rfn").stderr).unwrap();
    assert!(
        text.contains("an incomplete generation of 100 B follows"),
        "{text}"
    );
    assert!(text.contains("the last 3 "), "{text}");
    // The first one that was added: what remains looks like an archive that never had any.
    case.ok("compress -q disk -o b.rfn");
    let whole = case.read("b.rfn").len();
    case.ok("add -q b.rfn a.rfn");
    let grown = case.read("b.rfn");
    case.write("b.rfn", &grown[..whole + 100]);
    for line in ["test b.rfn", "decompress b.rfn -o out"] {
        let text = String::from_utf8(case.ok(line).stderr).unwrap();
        assert!(text.contains("of 100 B follows"), "{line}: {text}");
    }
}

#[test]
fn damage_in_a_generation_is_told_and_nothing_else() {
    let case = case();
    let mut bytes = case.read("a.rfn");
    bytes[200_000] ^= 1;
    case.write("a.rfn", &bytes);
    let text = case.fails("test a.rfn", 2);
    assert!(text.contains("block "), "{text}");
    assert!(
        !text.contains("belong to no frame"),
        "tails are no damage: {text}"
    );
}
