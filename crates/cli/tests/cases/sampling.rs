//! `--profile=FILE.svg`, `.html`, `.pb.gz`: what is sampled, in a browser, and what is refused.
//!
//! If the kernel forbids sampling, the cases check that this is reported and nothing is done.

use std::fs;

use refrain_testkit::chromium::open_page;
use serde_json::Value;

use crate::support::{Case, REFRAIN, expect, mixture};

/// Compresses with samples into a file with this name. `None` if they are refused.
#[allow(clippy::print_stderr, reason = "a case that cannot run says so")]
fn sampled(case: &Case, name: &str) -> Option<Vec<u8>> {
    case.write("x", &mixture(24_000_000));
    let output = case.run(&format!("compress x --force --profile={name}"));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(1) {
        assert!(message.contains("perf_event_paranoid"), "{message}");
        assert!(!case.exists("x.rfn"), "it was refused before the run");
        eprintln!("NOT TESTED: {message}");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{message}");
    case.ok("test x.rfn");
    Some(case.read(name))
}

/// What a page writes on the console, as JSON, if it is one line.
fn console(lines: &[String]) -> Value {
    let [line] = lines else {
        panic!("{lines:?}");
    };
    // `... "text", source: file (3)`, in which quotes are as they are.
    let text = line.split_once('"').unwrap().1;
    let text = &text[..text.rfind("\", source").unwrap()];
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Uses the flame graph as a person would: a click on a stage, a search, the whole again.
const USE: &str = r#"
const all = [...document.querySelectorAll(".box")];
const shown = () => all.filter((box) => box.style.display !== "none").length;
const widths = () => all.slice(0, 2).map((box) => parseFloat(box.getAttribute("width")));
const stage = all.find((box) => box.querySelector("title").textContent.startsWith("stage: "));
const found = { boxes: all.length, before: shown(), stage: stage.querySelector("text").textContent };
found.width = parseFloat(stage.getAttribute("width"));
stage.dispatchEvent(new MouseEvent("click", { bubbles: true }));
found.zoomed = shown();
found.zoomedWidth = parseFloat(stage.getAttribute("width"));
document.querySelector(".reset").dispatchEvent(new MouseEvent("click", { bubbles: true }));
found.after = shown();
const input = document.querySelector(".search");
input.value = "stage: " + found.stage + ":";
input.dispatchEvent(new Event("input", { bubbles: true }));
found.hits = document.querySelectorAll(".box.hit").length;
found.words = document.querySelector(".found").textContent;
input.value = "no such function";
input.dispatchEvent(new Event("input", { bubbles: true }));
found.none = document.querySelector(".found").textContent;
console.log(JSON.stringify(found));
"#;

fn check_use(found: &Value) {
    let number = |name: &str| found[name].as_f64().unwrap();
    assert!(number("boxes") > 20.0, "{found}");
    assert_eq!(number("before"), number("boxes"), "{found}");
    assert!(number("zoomed") < number("before"), "{found}");
    assert!(
        number("width") < 99.0 && number("zoomedWidth") > 99.9,
        "{found}"
    );
    assert_eq!(number("after"), number("boxes"), "{found}");
    assert!(number("hits") == 1.0, "{found}");
    // The page rounds a sum of samples, the box has the rounded width: 28.75 shows as 28.7 or 28.8.
    let words = found["words"].as_str().unwrap();
    let share = words
        .strip_prefix("1 found: ")
        .and_then(|words| words.strip_suffix(" %"))
        .and_then(|share| share.parse::<f64>().ok())
        .expect(words);
    assert!((share - number("width")).abs() < 0.11, "{found}");
    assert_eq!(found["none"], "0 found: 0.0 %", "{found}");
}

#[test]
fn a_flame_graph_zooms_and_searches() {
    let case = Case::new();
    let Some(svg) = sampled(&case, "p.svg") else {
        return;
    };
    let svg = String::from_utf8(svg).unwrap();
    assert!(svg.contains(">stage: encode: "), "{svg}");
    assert!(svg.contains("(zstd): "), "{svg}");
    let outside = svg.replace("http://www.w3.org/", "");
    assert!(!outside.contains("http:") && !outside.contains("https:"));
    let used = svg.replace("</svg>\n", "</svg>");
    let end = used.rfind("</svg>").unwrap();
    let used = format!("{}<script><![CDATA[{USE}]]></script></svg>", &used[..end]);
    let path = case.write("used.svg", used.as_bytes());
    let Some(page) = open_page(&path, (1000, 700), None) else {
        eprintln!("NOT TESTED: there is no Chromium");
        return;
    };
    check_use(&console(&page.console));
}

#[test]
fn a_page_has_the_graph_and_tables() {
    let case = Case::new();
    let Some(html) = sampled(&case, "p.html") else {
        return;
    };
    let html = String::from_utf8(html).unwrap();
    let end = html.rfind("</script>").unwrap();
    let used = format!("{}\n{{{USE}}}\n{}", &html[..end], &html[end..]);
    let path = case.write("used.html", used.as_bytes());
    let Some(page) = open_page(&path, (400, 800), None) else {
        eprintln!("NOT TESTED: there is no Chromium");
        return;
    };
    check_use(&console(&page.console));
    for expected in [
        "<td>zstd</td>",
        "<td>encode</td>",
        "<td>whole program</td>",
        "Of the CPU time, ",
    ] {
        assert!(page.elements.contains(expected), "{expected}");
    }
}

#[test]
fn samples_for_pprof_are_compressed_messages() {
    let case = Case::new();
    let Some(file) = sampled(&case, "p.pb.gz") else {
        return;
    };
    // What is in it is checked where it is written; here, that all of it comes out of gzip.
    let unpacked = expect(case.pipe("gzip", "-dc", &file), 0, "gzip").stdout;
    let contains = |text: &[u8]| unpacked.windows(text.len()).any(|found| found == text);
    assert!(contains(b"page_faults") && contains(b"encode") && contains(b"ZSTD_"));
}

#[test]
fn what_cannot_be_done_is_said_before_the_run() {
    let case = Case::new();
    case.write("x", &mixture(100_000));
    for name in ["p.txt", "p", "p.pb", ".svg"] {
        let message = case.fails(&format!("compress x --profile={name}"), 1);
        assert!(
            message.contains(".json, .svg, .html or .pb.gz"),
            "{message}"
        );
        assert!(!case.exists("x.rfn") && !case.exists(name));
    }
    // Events are files.
    let mut command = case.command("sh", "-c");
    let line = format!("ulimit -n 8; exec {REFRAIN} compress x --profile=p.svg");
    let output = command.arg(line).output().unwrap();
    let message = expect(output, 1, "too few files").stderr;
    let message = String::from_utf8(message).unwrap();
    assert!(message.contains("--profile=p.svg: "), "{message}");
    assert!(!case.exists("x.rfn") && !case.exists("p.svg"));
    // A file that cannot be written is a failure, of the run too.
    let Some(_) = sampled(&case, "p.svg") else {
        return;
    };
    let message = case.fails("test x.rfn --profile=missing/p.svg", 4);
    assert!(message.contains("missing/p.svg"), "{message}");
    fs::remove_file(case.path("p.svg")).unwrap();
}
