//! `refrain map`: its numbers compared with `info` and with a naive count, the page in a browser.

use std::collections::BTreeMap;

use refrain_testkit::chromium::open_page;
use serde_json::Value;

use crate::support::{Case, incompressible, json, mixture};

/// The map and the description of an archive.
fn numbers(case: &Case, archive: &str) -> (Value, Value) {
    let result = |line: &str| json(&case.ok(line).stdout)["results"][0].clone();
    (
        result(&format!("map --json {archive}")),
        result(&format!("info --json {archive}")),
    )
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn sum(values: &Value) -> u64 {
    values.as_array().unwrap().iter().map(number).sum()
}

fn sum_of(rows: &Value, name: &str) -> u64 {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| number(&row[name])).sum()
}

/// The sums that must agree for any archive.
fn check_sums(map: &Value, info: &Value) {
    assert_eq!(map["is_exact"], true);
    for name in ["archive_bytes", "store_bytes"] {
        assert_eq!(map[name], info[name], "{name}");
    }
    assert_eq!(map["view_bytes"], info["content_bytes"]);
    let (view, content) = (number(&map["view_bytes"]), number(&map["content_bytes"]));
    let (first, repeated, runs) = (
        number(&map["first_bytes"]),
        number(&map["repeated_bytes"]),
        number(&map["run_bytes"]),
    );
    assert_eq!(first, number(&info["store_bytes"]));
    assert_eq!(runs, number(&info["run_bytes"]));
    assert_eq!(repeated + view - content, number(&info["matched_bytes"]));
    assert_eq!(first + repeated + runs, content);
    let columns = &map["columns"];
    assert_eq!(sum(&columns["first_bytes"]), first);
    assert_eq!(sum(&columns["repeated_bytes"]), repeated);
    assert_eq!(sum(&columns["run_bytes"]), runs);
    let stored = sum_of(&info["codecs"], "stored_bytes");
    assert_eq!(number(&map["block_frame_bytes"]), stored);
    assert_eq!(sum(&columns["stored_bytes"]), stored);
    assert_eq!(sum_of(&map["distances"], "repeated_bytes"), repeated);
    let cells = map["matrix"]["cells"].as_array().unwrap().iter();
    assert_eq!(cells.map(|cell| number(&cell[2])).sum::<u64>(), repeated);
    let store = map["store_columns"]["rows"].as_array().unwrap();
    assert_eq!(store.iter().map(|row| number(&row[1])).sum::<u64>(), first);
    assert_eq!(store.iter().map(|row| number(&row[2])).sum::<u64>(), stored);
    let root = &map["folder_tree"][0];
    assert_eq!(number(&root["stored_bytes"]), stored);
    assert_eq!(number(&root["first_bytes"]), first);
}

/// A directory whose files share content, some as a whole and some in part.
fn tree(case: &Case) {
    let shared = incompressible(3, 200_000);
    case.write("d/a/one", &shared);
    case.write("d/a/deep/two", &incompressible(4, 90_000));
    case.write("d/b/same as one", &shared);
    let part = [&incompressible(5, 30_000)[..], &shared[50_000..150_000]].concat();
    case.write("d/b/part of one", &part);
    case.write("d/<img src=x onerror=alert(1)>/zeros & more", &[0; 400_000]);
    case.write("d/c", b"text");
}

#[test]
fn sums_agree_with_info_and_with_each_other() {
    let case = Case::new();
    tree(&case);
    case.write("x", &mixture(600_000));
    case.write(
        "y",
        &[&mixture(300_000)[..], &incompressible(9, 100_000)].concat(),
    );
    case.write("empty", b"");
    case.ok("compress d -o d.rfn");
    case.ok("compress x y d empty -o all.rfn");
    case.ok("compress x");
    case.ok("compress empty");
    let both = [case.read("all.rfn"), case.read("d.rfn"), case.read("x.rfn")].concat();
    case.write("both.rfn", &both);
    for archive in ["d.rfn", "all.rfn", "x.rfn", "empty.rfn", "both.rfn"] {
        let (map, info) = numbers(&case, archive);
        check_sums(&map, &info);
    }
}

#[test]
fn a_folder_costs_what_occurs_there_for_the_first_time() {
    let case = Case::new();
    tree(&case);
    case.ok("compress d -o d.rfn");
    let (map, _) = numbers(&case, "d.rfn");
    let rows = map["folders"].as_array().unwrap();
    let found: BTreeMap<&str, &Value> = rows
        .iter()
        .map(|row| (row["path"].as_str().unwrap(), row))
        .collect();
    let (a, b) = (found["a"], found["b"]);
    assert_eq!(number(&a["file_bytes"]), 290_000);
    assert_eq!(number(&b["file_bytes"]), 330_000);
    // Shared content is paid for once, by whoever has it first.
    let first = number(&a["first_bytes"]) + number(&b["first_bytes"]);
    assert!((320_000..322_000).contains(&first), "{first}");
    let zeros = found["<img src=x onerror=alert(1)>"];
    assert_eq!(number(&zeros["file_bytes"]), 400_000);
    assert!(number(&zeros["stored_bytes"]) < 100);
    assert_eq!(number(&found["a/deep"]["first_bytes"]), 90_000);
}

#[test]
fn passages_and_distances_are_where_the_data_has_them() {
    let case = Case::new();
    let passage = incompressible(1, 300_000);
    let between = incompressible(2, 3_000_000);
    let content = [&passage[..], &between, &passage].concat();
    case.write("x", &content);
    case.ok("compress x");
    let (map, _) = numbers(&case, "x.rfn");
    let largest = &map["passages"][0];
    let is_about = |value: &Value, expected: u64| number(value).abs_diff(expected) < 1000;
    assert!(is_about(&largest["repeated_bytes"], 300_000), "{largest}");
    assert!(is_about(&largest["content_offset"], 3_300_000), "{largest}");
    assert!(is_about(&largest["source_offset"], 0), "{largest}");
    let median = number(&map["median_distance"]);
    assert!((2_500_000..=3_300_000).contains(&median), "{median}");
    assert_eq!(map["distances"].as_array().unwrap().len(), 1);
    let text = String::from_utf8(case.ok("map x.rfn").stdout).unwrap();
    assert!(text.contains("300 kB repeat"), "{text}");
}

#[test]
fn pages_open_in_a_browser_and_names_in_them_are_text() {
    let case = Case::new();
    tree(&case);
    case.write("x", &mixture(600_000));
    case.ok("compress x d -o all.rfn");
    case.ok("map all.rfn -o map.html");
    let page = case.path("map.html");
    for window in [(1400, 900), (400, 800)] {
        let Some(opened) = open_page(&page, window, None) else {
            eprintln!("NOT TESTED: there is no Chromium");
            return;
        };
        assert_eq!(opened.console, Vec::<String>::new());
        let has = |text: &str| assert!(opened.elements.contains(text), "{text}");
        has("<path class=\"arc d0");
        has("occurs for the first time");
        has("data-folder=\"2\"");
        has("&lt;img src=x onerror=alert(1)&gt;");
        assert!(!opened.elements.contains("<img"));
        assert!(opened.elements.matches("<tr>").count() > 10);
    }
}

#[test]
fn outputs_are_written_by_their_suffix_and_not_overwritten() {
    let case = Case::new();
    case.write("x", &mixture(200_000));
    case.ok("compress x");
    for name in ["m.html", "m.svg", "m.json"] {
        case.ok(&format!("map x.rfn -o {name}"));
        let text = String::from_utf8(case.read(name)).unwrap();
        let start = match name {
            "m.html" => "<!doctype html>",
            "m.svg" => "<svg xmlns=\"http://www.w3.org/2000/svg\"",
            _ => "{",
        };
        assert!(text.starts_with(start), "{name}");
        let error = case.fails(&format!("map x.rfn -o {name}"), 6);
        assert!(error.contains("already exists"), "{error}");
        assert_eq!(case.read(name), text.as_bytes());
        case.ok(&format!("map x.rfn -o {name} -f"));
    }
    let (mut map, _) = numbers(&case, "x.rfn");
    // The course of the run is not in the file.
    let of_run = ["complete", "losses", "problems"];
    map.as_object_mut()
        .unwrap()
        .retain(|key, _| !of_run.contains(&key.as_str()));
    assert!(json(&case.read("m.json")) == map);
    let error = case.fails("map x.rfn -o m.png", 1);
    assert!(error.contains(".html"), "{error}");
}

#[test]
fn what_has_no_extents_is_an_error() {
    let case = Case::new();
    case.write("x", b"plain text");
    case.write("d/y", b"plain text");
    let error = case.fails("map x", 2);
    assert!(error.contains("x"), "{error}");
    #[cfg(feature = "lrzip")]
    {
        case.ok("compress x --format lrz");
        let error = case.fails("map x.lrz", 3);
        assert!(error.contains("no extents"), "{error}");
    }
    case.ok("compress x");
    let mut bytes = case.read("x.rfn");
    bytes.truncate(bytes.len() / 2);
    case.write("half.rfn", &bytes);
    case.fails("map half.rfn -o half.html", 2);
    assert!(!case.exists("half.html"));
}

#[test]
fn two_archives_share_what_both_hold() {
    let case = Case::new();
    let shared = incompressible(1, 2_000_000);
    case.write("a", &[&incompressible(2, 1_000_003)[..], &shared].concat());
    case.write(
        "b",
        &[&shared[..], &[0; 500_000], &incompressible(3, 100_001)].concat(),
    );
    case.write("c", &incompressible(4, 300_000));
    for name in ["a", "b", "c"] {
        case.ok(&format!("compress {name}"));
    }
    let compared = |line: &str| json(&case.ok(line).stdout)["results"][0].clone();
    let both = compared("map --json a.rfn b.rfn");
    for side in both["archives"].as_array().unwrap() {
        let found = number(&side["shared_bytes"]);
        // All except the first and last piece.
        assert!((1_950_000..=2_000_000).contains(&found), "{found}");
        assert_eq!(sum(&side["columns"]), found);
        assert!(number(&side["stored_bytes"]).abs_diff(found) < 50_000);
    }
    let none = compared("map --json a.rfn c.rfn");
    assert_eq!(sum_of(&none["archives"], "shared_bytes"), 0);
    let all = compared("map --json a.rfn a.rfn");
    assert_eq!(sum_of(&all["archives"], "shared_bytes"), 2 * 3_000_003);
    let text = String::from_utf8(case.ok("map a.rfn b.rfn").stdout).unwrap();
    assert!(text.contains("4 KiB") && text.contains("b.rfn"), "{text}");
    case.ok("map a.rfn b.rfn -o s.svg");
    case.ok("map a.rfn b.rfn -o s.html");
    if let Some(opened) = open_page(&case.path("s.html"), (1400, 900), None) {
        assert_eq!(opened.console, Vec::<String>::new());
        assert!(opened.elements.contains("<td>b.rfn</td>"));
    }
    case.fails("map a.rfn b.rfn c.rfn", 1);
}
