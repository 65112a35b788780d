use proptest::prelude::*;

use refrain_policy::topology::Sharing;
use refrain_policy::{Base, Bfs, Class, Interactive, Latency, PreferredStripe, Scheme, Tenants};

use super::experiment::{Contender, Experiment};
use crate::costs::Governor;
use crate::random::Distribution;
use crate::workload::Arrivals;

#[test]
fn every_setting_is_applied() {
    let text = "machine 2l2c4t ; policy bfs published interval=3ms base=carry lag=2ms interactive=2 prefer=own sharing=core tenants=on group_by_uid=4 iso=500\n\
        costs none switch=300ns spin=20us nap=50us doze=1ms napping=3us dozing=7us spinning=1ns/2ns/3ns/4ns/5ns/6ns/7ns/8us/9us park=8us~60us queue=60ns smt=620 move=3:2us reload=4:200ns governor=10ms/800/500\n\
        seed 7; run 2.5s # a comment\n\n\
        flows a 3 always work=1ms checkpoint=none nice=-10 latnice=3 class=iso tenant=5 cpus=0-1,3 confine=1s:2-3 cache=64 whole\n\
        flows b 1 every=exp:5ms work=1us..2us; flows c 2 after=1ms; flows d 4 ring=2";
    let experiment = Experiment::from_spec(text).unwrap();
    let Contender::Pool(Scheme::Bfs(bfs)) = &experiment.policy else {
        panic!("{:?}", experiment.policy)
    };
    let expected = Bfs {
        interval_ns: 3_000_000,
        base: Base::Carry {
            lag_max_ns: 2_000_000,
        },
        interactive: Interactive::MostTime,
        preferred_stripe: PreferredStripe::Own,
        sharing: Sharing::Core,
        tenants: Tenants::ByOffset { flows_min: 4 },
        iso_limit_permille: 500,
        ..Bfs::published()
    };
    assert_eq!(*bfs, expected);
    let simulation = &experiment.simulation;
    assert_eq!(
        (
            simulation.topology.len(),
            simulation.seed,
            simulation.span_ns
        ),
        (8, 7, 2_500_000_000)
    );
    let costs = &simulation.costs;
    assert_eq!(
        costs.governor,
        Some(Governor {
            sample_ns: 10_000_000,
            up_threshold_permille: 800,
            slowest_permille: 500,
        })
    );
    assert_eq!(
        (costs.move_ns, costs.reload_ns_per_kib),
        ([0, 0, 0, 2_000, 0], [0, 0, 0, 0, 200])
    );
    assert_eq!(
        (costs.spin_ns, costs.queue_ns, costs.sibling_permille),
        (20_000, 60, 620)
    );
    let [a, b, c, d] = &simulation.groups[..] else {
        panic!("{:?}", simulation.groups)
    };
    assert_eq!(
        (a.count, a.checkpoint_ns, a.working_set_kib),
        (3, u64::MAX, 64)
    );
    assert!(a.is_whole && !b.is_whole);
    assert_eq!((a.entity.class, a.entity.nice.value()), (Class::Iso, -10));
    assert_eq!(
        (a.entity.latency, a.entity.tenant.index()),
        (Latency::Exquisite, 5)
    );
    assert_eq!(a.entity.allowed.to_string(), "0-1,3");
    let [(at_ns, cpus)] = a.confinements[..] else {
        panic!("{:?}", a.confinements)
    };
    assert_eq!((at_ns, cpus.to_string().as_str()), (1_000_000_000, "2-3"));
    assert_eq!(
        b.arrivals,
        Arrivals::Every(Distribution::Exponential(5_000_000))
    );
    assert_eq!(b.work, Distribution::Uniform(1_000, 2_000));
    assert_eq!(
        (c.arrivals, d.arrivals),
        (
            Arrivals::After(Distribution::Fixed(1_000_000)),
            Arrivals::Ring(2)
        )
    );
    // The formatted costs parse back.
    let line = costs.to_spec();
    let again = Experiment::from_spec(&format!("{line}; flows a 1")).unwrap();
    assert_eq!(again.simulation.costs, *costs, "{line}");
}

#[test]
fn errors_name_the_line_and_the_setting() {
    for (text, line, word) in [
        ("", 0, "flows"),
        ("flows a 1\nmachine 3x", 2, "3x"),
        ("policy cfs", 1, "cfs"),
        ("policy bfs interval=6", 1, "interval"),
        ("policy bfs base=later", 1, "base"),
        ("policy bfs interactive=3", 1, "interactive"),
        ("policy ule slices=1ms", 1, "slices"),
        ("policy eevdf slices=1ms", 1, "slices"),
        ("costs free", 1, "free"),
        ("costs move=5:1ns", 1, "move"),
        ("run 1s now", 1, "now"),
        ("run 0s", 1, "run"),
        ("seed x", 1, "seed"),
        ("flows a", 1, "count"),
        ("flows a 0", 1, "count"),
        ("flows a 1 work=0ns", 1, "work"),
        ("flows a 1 latnice=4", 1, "latnice"),
        ("flows a 1 class=fast", 1, "class"),
        ("flows a 1 cpus=", 1, "cpus"),
        ("flows a 1 confine=1-2", 1, "confine"),
        ("nonsense", 1, "nonsense"),
    ] {
        let error = Experiment::from_spec(text).unwrap_err();
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.message.contains(word), "{text}: {error}");
    }
}

proptest! {

    #![proptest_config(ProptestConfig::with_cases(refrain_testkit::scaled(256)))]

    #[test]
    fn any_text_parses_or_fails_cleanly(text in "((machine|policy|costs|run|flows|seed)( [a-z0-9=:.~]{1,8}){0,4}[;\n]){0,4}") {
        let _ = Experiment::from_spec(&text);
    }
}
