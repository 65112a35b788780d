//! What the model says of cases whose result is known.

use refrain_cache::policy::Rules;

use super::{CacheExperiment, NodeTrouble, Trouble, simulate};
use crate::random::Distribution;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

fn experiment() -> CacheExperiment {
    CacheExperiment {
        nodes: 5,
        processes: 1,
        readers: 120,
        rate: 480,
        values: 400,
        span_ns: 9 * SECOND,
        rules: Rules::default(),
        reply: Distribution::Skewed {
            median_ns: 250_000,
            p99_ns: 2 * MS,
        },
        origin: Distribution::Fixed(300_000),
        troubles: vec![],
        seed: 1,
    }
}

fn trouble(nodes: std::ops::Range<usize>, trouble: Trouble) -> NodeTrouble {
    NodeTrouble {
        nodes,
        time_ns: 2 * SECOND..7 * SECOND,
        trouble,
    }
}

#[test]
fn nothing_happens_to_a_cache_that_is_well() {
    let experiment = experiment();
    let report = simulate(&experiment);
    assert_eq!(report.well.latencies_ns.len(), 9 * 480);
    assert_eq!(
        (report.well.by_origin, report.sick.latencies_ns.len()),
        (0, 0)
    );
    let p50_ns = report.well.quantile_ns(500);
    assert!((200_000..300_000).contains(&p50_ns), "{p50_ns}");
    assert!(report.added * 50 <= report.requests, "{}", report.added);
    assert_eq!(report, simulate(&experiment));
}

#[test]
fn one_stopped_node_costs_milliseconds_and_a_patient_client_all_of_the_time() {
    let sick = CacheExperiment {
        troubles: vec![trouble(0..1, Trouble::Stopped)],
        ..experiment()
    };
    let report = simulate(&sick);
    assert_eq!(report.sick.latencies_ns.len(), 5 * 480);
    let max_ns = report.sick.quantile_ns(1000);
    assert!(max_ns < 50 * MS, "{max_ns}");
    assert!(report.sick.quantile_ns(990) < 5 * MS);
    assert!(report.added <= 16 + report.requests / 50);
    let patient = CacheExperiment {
        rules: Rules::patient(3600 * SECOND),
        ..sick
    };
    // Known from measurements: nearly all readers wait for the node in the end.
    let p99_ns = simulate(&patient).sick.quantile_ns(990);
    assert!((4 * SECOND..5 * SECOND).contains(&p99_ns), "{p99_ns}");
}

#[test]
fn a_killed_node_is_filled_again_from_the_second_homes() {
    let sick = CacheExperiment {
        troubles: vec![trouble(1..2, Trouble::Killed)],
        ..experiment()
    };
    let report = simulate(&sick);
    assert_eq!(report.well.by_origin, 0);
    assert!(report.sick.by_origin <= 20, "{}", report.sick.by_origin);
    assert!(report.sick.quantile_ns(990) < 10 * MS);
    let two = CacheExperiment {
        troubles: vec![trouble(0..2, Trouble::Killed)],
        ..experiment()
    };
    // A tenth of the values has both homes among two of five nodes: 1/5 * 1/4 * 2.
    let by_origin = simulate(&two).sick.by_origin;
    assert!((120..400).contains(&by_origin), "{by_origin}");
}

#[test]
fn a_thousand_nodes_are_restarted_one_by_one_while_a_rack_is_slow() {
    let restarted = (0..20_usize).map(|node| NodeTrouble {
        nodes: node * 40..node * 40 + 1,
        time_ns: (500 + node as u64 * 100) * MS..(600 + node as u64 * 100) * MS,
        trouble: Trouble::Killed,
    });
    let slow = NodeTrouble {
        nodes: 900..940,
        time_ns: SECOND..2 * SECOND,
        trouble: Trouble::Slow(20),
    };
    let large = CacheExperiment {
        nodes: 1000,
        processes: 20,
        readers: 10_000,
        rate: 20_000,
        values: 50_000,
        span_ns: 3 * SECOND,
        troubles: restarted.chain([slow]).collect(),
        ..experiment()
    };
    let report = simulate(&large);
    let reads = report.well.latencies_ns.len() + report.sick.latencies_ns.len();
    assert_eq!(reads, 60_000);
    assert!(report.sick.quantile_ns(999) < 50 * MS);
    assert!(
        report.added <= 20 * 16 + report.requests / 50,
        "{}",
        report.added
    );
}
