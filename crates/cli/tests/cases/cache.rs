//! `refrain cache bench`, with nodes of memcached. No times are tested.

use std::process::Command;

use crate::support::{Case, json};

/// The last part of the name of what the run of a client did.
fn run(line: &str) -> serde_json::Value {
    let case = Case::new();
    let output = case.ok(&format!(
        "cache bench --json --client policy --well 1s --for 1s {line}"
    ));
    json(&output.stdout)["runs"][0].clone()
}

fn sum(run: &serde_json::Value, name: &str) -> u64 {
    let parts = run["parts"].as_array().unwrap().iter();
    parts.map(|part| part[name].as_u64().unwrap()).sum()
}

/// Whether there is a program. CI has all.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    assert!(
        found || std::env::var_os("CI").is_none(),
        "CI installs {program}"
    );
    found
}

#[test]
fn no_read_is_lost_or_wrong_whatever_happens_to_nodes() {
    for (trouble, program) in [
        ("--stop 1", "memcached"),
        ("--stop 1 --kill 1", "memcached"),
        ("--slow 2 --slow-delay 5ms --slow-rate 20M", "memcached"),
        ("--flip", "memcached"),
        ("--engine redis --stop 1 --kill 1", "redis-server"),
        ("--engine redis --flip", "redis-server"),
    ] {
        if !has(program) {
            continue;
        }
        let run = run(&format!(
            "--nodes 4 --readers 30 --rate 300 --value 20000 --values 50 {trouble}"
        ));
        assert_eq!(sum(&run, "wrong"), 0, "{trouble}: {run}");
        assert!(sum(&run, "reads") > 800, "{trouble}: {run}");
        let is_flipped = trouble.ends_with("--flip");
        assert_eq!(
            run["corrupt"].as_u64().unwrap() > 0,
            is_flipped,
            "{trouble}: {run}"
        );
    }
}

#[test]
fn one_of_many_readers_reads_the_origin() {
    if !has("memcached") {
        return;
    }
    // A machine that stalls for a quarter of a second lets readers give up: not three times.
    let is_as_promised = |_| {
        let run = run("--cold --values 1 --readers 200 --rate 3000 --value 4K");
        assert_eq!(sum(&run, "wrong"), 0, "{run}");
        let origin_reads = sum(&run, "origin_reads");
        assert!(origin_reads > 0, "{run}");
        origin_reads <= 3
    };
    assert!((0..3).any(is_as_promised));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let case = Case::new();
    for (line, part) in [
        ("cache bench --value 5M", "4M"),
        (
            "cache bench --nodes 2 --stop 2 --kill 1",
            "more than the 2 nodes",
        ),
        ("cache bench --nodes 0", "--nodes"),
        ("cache bench --nodes 500", "at most 200"),
        (
            "cache simulate --slow-rate 1M",
            "--slow-rate is for `bench`",
        ),
        ("cache simulate --flip", "--flip is for `bench`"),
        ("cache bench --at memcached://a --stop 1", "--stop"),
        ("cache bench --at memcached://127.0.0.1:1", "127.0.0.1:1"),
        (
            "cache simulate --nodes 10 --slow 8 --restart 3",
            "more than the 10 nodes",
        ),
    ] {
        let told = case.fails(line, 1);
        assert!(told.contains(part), "{line}: {told}");
    }
}

#[test]
fn the_model_says_the_same_each_time_and_reads_what_was_measured() {
    let case = Case::new();
    let line = "cache simulate --nodes 50 --readers 2000 --rate 2000 --processes 4 --json \
                --stop 1 --restart 5 --slow 3 --well 1s --for 1s";
    let first = json(&case.ok(line).stdout);
    assert_eq!(first, json(&case.ok(line).stdout));
    assert_eq!(first["well"]["reads"], 4000);
    assert_eq!(first["trouble"]["reads"], 2000);
    assert!(first["trouble"]["latency_ms_max"].as_f64().unwrap() < 100.0);
    let reply = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|ms| ms * 1_000_000);
    let parts = ["before", "during"].map(|part| {
        serde_json::json!({
            "part": part, "latency_ms_p50": 4, "latency_ms_p99": 7,
            "latency_ms_p999": 8, "latency_ms_max": 9,
        })
    });
    let measured = serde_json::json!({
        "settings": {
            "at": false, "nodes": 50, "readers": 2000, "rate": 2000, "values": 400, "stop": 1, "kill": 0,
            "slow": 0, "restart": 0, "processes": 1, "flip": false, "cold": false,
            "well_seconds": 1.0, "for_seconds": 1.0,
        },
        "runs": [{ "client": "policy", "reply_ns": reply, "origin_ns": null, "parts": parts }]
    });
    case.write("measured", measured.to_string().as_bytes());
    let calibrated = json(&case.ok(&format!("{line} --calibration measured")).stdout);
    let p50 = calibrated["well"]["latency_ms_p50"].as_f64().unwrap();
    assert!((3.0..5.0).contains(&p50), "{p50}");
    // Something else was measured.
    assert!(calibrated["trouble"]["measured_ms_p99"].is_null());
    let same = "cache simulate --nodes 50 --readers 2000 --rate 2000 --stop 1 --well 1s --for 1s \
                --calibration measured";
    let same_json = json(&case.ok(&format!("{same} --json")).stdout);
    assert_eq!(same_json["trouble"]["measured_ms_p99"], 7.0);
    let text = String::from_utf8(case.ok(same).stdout).unwrap();
    assert_eq!(text.matches("measured").count(), 2, "{text}");
    let told = case.fails(&format!("{same} --client naive"), 1);
    assert!(told.contains("'naive'"), "{told}");
    case.write("other", b"{}");
    let told = case.fails(&format!("{line} --calibration other"), 1);
    assert!(told.contains("cache bench --json"), "{told}");
}
