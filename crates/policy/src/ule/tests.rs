use proptest::prelude::*;

use super::*;
use crate::entity::Nice;
use crate::test_support::{FixedView, MS, run_cpu_bound, sixteen_cpus};
use crate::topology::Topology;

const S: u64 = 1000 * MS;

fn history(ran_ns: u64, slept_ns: u64) -> History {
    History {
        ran_ns,
        slept_ns,
        asleep_since_ns: 0,
    }
}

fn flow(ran_ns: u64, slept_ns: u64) -> Entity {
    let mut flow = Entity::new(Class::Normal);
    flow.history = history(ran_ns, slept_ns);
    flow
}

#[test]
fn scores_match_the_table() {
    let table = [
        ((0, 0), 0),
        ((S, S), 50),
        ((0, S), 0),
        ((S, 0), 100),
        ((S, 2 * S), 25),
        ((2 * S, S), 75),
        ((3 * S, 5 * S), 30), // sleeps 1.67 times its run time: just not interactive
        ((10 * S, 17 * S), 29),
        ((1, 0), 100),
        ((0, 1), 0),
    ];
    for ((ran, slept), score) in table {
        assert_eq!(
            interactivity(&history(ran, slept)),
            score,
            "ran {ran}, slept {slept}"
        );
    }
}

#[test]
fn interactive_flows_come_first_and_preempt_others() {
    let policy = Ule::default();
    let mut view = FixedView::new(&policy, Topology::flat(2));
    view.now_ns = 10 * S;
    let (mut busy, mut editor) = (flow(4 * S, 0), flow(S / 10, 4 * S));
    policy.set_priority(&mut busy, &view);
    view.idle = CpuMask::EMPTY;
    view.running = vec![policy.key(&busy, &view); 2];
    assert_eq!(
        policy.wake(&mut editor, None, false, &view),
        Placement::Preempt(CpuId::FIRST)
    );
    // An interactive flow does not preempt another one, and a CPU-bound one does not preempt on
    // another CPU.
    view.running = vec![policy.key(&editor, &view); 2];
    let mut other = flow(S / 10, 4 * S);
    assert!(matches!(
        policy.wake(&mut other, None, false, &view),
        Placement::Queue(_)
    ));
    view.running = vec![Key::new(Class::Normal, TenantId::default(), u64::MAX); 2];
    assert!(matches!(
        policy.wake(&mut busy, None, false, &view),
        Placement::Queue(_)
    ));
}

#[test]
fn slices_shrink_with_the_sum_of_scores() {
    let policy = Ule::default();
    let mut view = FixedView::new(&policy, Topology::flat(1));
    let slice_ms = |view: &FixedView| policy.run(&mut flow(0, 0), CpuId::FIRST, view).slice_ns / MS;
    let mut slices_ms = |score: u64| {
        [0, 1, 2, 3, 6, 60].map(|waiting| {
            (view.score, view.queues[0].1) = (score, waiting);
            slice_ms(&view)
        })
    };
    assert_eq!(slices_ms(100), [94, 94, 47, 31, 15, 15]);
    assert_eq!(slices_ms(50), [94, 94, 94, 62, 31, 15]);
    assert_eq!(slices_ms(5), [94, 94, 94, 94, 94, 31]);
}

#[test]
fn the_balancer_pairs_the_fullest_with_the_emptiest_cpus() {
    let policy = Ule::default();
    let mut view = FixedView::new(&policy, Topology::flat(5));
    let key = Key::new(Class::Normal, TenantId::default(), 0);
    view.running = vec![key, key, key, key, Key::NONE];
    view.queues = [0, 2, 5, 0, 0].map(|waiting| (key, waiting)).to_vec();
    let mut moved = CpuMask::EMPTY;
    let mut pairs = Vec::new();
    while let Some((from, to)) = policy.balance(&moved, &view) {
        pairs.push((from.index(), to.index()));
        moved.insert(from);
        moved.insert(to);
    }
    assert_eq!(pairs, [(2, 4), (1, 0)]);
}

#[test]
fn nice_flows_wait_longer_but_do_not_starve() {
    let mut flows = vec![Entity::new(Class::Normal); 3];
    flows.push(Entity::new(Class::Normal).with_nice(Nice::new(19)));
    let used_ns = run_cpu_bound(&Ule::default(), flows, 100 * S, 0);
    assert!(used_ns[3] > S && used_ns[3] < used_ns[0], "{used_ns:?}");
}

#[test]
fn cpus_are_searched_by_load_and_cache() {
    let policy = Ule::default();
    let mut view = FixedView::new(&policy, sixteen_cpus());
    view.now_ns = S;
    let wake = |view: &FixedView, last: usize, away_ns: u64| {
        let mut flow = flow(S, S);
        flow.last_cpu = CpuId::new(last);
        flow.history.asleep_since_ns = view.now_ns - away_ns;
        policy.wake(&mut flow, None, false, view)
    };
    assert_eq!(wake(&view, 5, 0), Placement::Idle(CpuId::new(5)));
    // Its sibling is busy: another core of the cache while the cache is warm, afterwards the least
    // loaded CPU.
    let busy = Key::new(Class::Normal, TenantId::default(), 0);
    let make_busy = |view: &mut FixedView, cpu: usize| {
        view.idle.remove(CpuId::new(cpu));
        view.running[cpu] = busy;
    };
    make_busy(&mut view, 4);
    make_busy(&mut view, 5);
    assert_eq!(wake(&view, 5, MS), Placement::Idle(CpuId::new(6)));
    assert_eq!(wake(&view, 5, S / 2), Placement::Idle(CpuId::new(0)));
    for cpu in 0..16 {
        make_busy(&mut view, cpu);
        view.queues[cpu] = (busy, if cpu == 11 { 0 } else { 1 });
    }
    assert_eq!(wake(&view, 5, S / 2), Placement::Queue(StripeId::new(11)));
}

#[test]
fn idle_cpus_steal_from_near_cpus_first() {
    let policy = Ule::default();
    let mut view = FixedView::new(&policy, sixteen_cpus());
    let key = Key::new(Class::Normal, TenantId::default(), 0);
    let pick = |view: &FixedView, tried: &[usize]| {
        let tried = tried.iter().map(|&index| CpuId::new(index)).collect();
        policy
            .pick(CpuId::new(5), &tried, view)
            .map(StripeId::index)
    };
    assert_eq!(pick(&view, &[]), None);
    for (cpu, waiting) in [(9, 5), (0, 2), (6, 2), (7, 3)] {
        view.queues[cpu] = (key, waiting);
    }
    assert_eq!(pick(&view, &[]), Some(7));
    assert_eq!(pick(&view, &[7]), Some(6));
    assert_eq!(pick(&view, &[6, 7]), Some(0));
    view.queues[4] = (key, 1);
    assert_eq!(pick(&view, &[]), Some(4), "the only flow of a sibling");
    view.queues[5] = (key, 1);
    assert_eq!(pick(&view, &[]), Some(5));
}

#[test]
fn a_child_inherits_proportions_of_its_parents_history() {
    let policy = Ule::default();
    let view = FixedView::new(&policy, Topology::flat(1));
    let (mut parent, mut child) = (flow(S, 3 * S), Entity::new(Class::Normal));
    policy.admit(&mut child, Some(&mut parent), &view);
    assert_eq!(child.history, history(S / 8, 3 * S / 8));
}

proptest! {

    #![proptest_config(ProptestConfig::with_cases(refrain_testkit::scaled(256)))]

    #[test]
    fn scores_remain_in_range_and_histories_decay(
        steps in proptest::collection::vec((any::<u64>(), any::<bool>()), 0..40), nice in -20i32..20,
    ) {
        let mut flow = Entity::new(Class::Normal).with_nice(Nice::new(nice));
        for (time_ns, is_sleep) in steps {
            if is_sleep {
                flow.history.asleep_since_ns = 1;
                score::woke(&mut flow.history, time_ns);
            } else {
                score::ran(&mut flow.history, time_ns);
            }
            let sum_ns = flow.history.ran_ns + flow.history.slept_ns;
            prop_assert!(sum_ns <= 6 * S);
            prop_assert!(interactivity(&flow.history) <= 100 && score::score(&flow) <= 100);
            prop_assert!(score::timeshare_steps(&flow) < 64);
        }
    }
}
