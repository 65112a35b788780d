use proptest::prelude::*;

use super::*;
use crate::class::TenantId;
use crate::entity::{Latency, Nice};
use crate::test_support::{FixedView, MS, run_cpu_bound, sixteen_cpus};
use crate::topology::Topology;

fn normal(nice: i32) -> Entity {
    Entity::new(Class::Normal).with_nice(Nice::new(nice))
}

fn carried(interval_ns: u64) -> Bfs {
    Bfs {
        interval_ns,
        ..Bfs::default()
    }
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len() as f64
}

/// The CPU time of one of `count` flows of `nice_a` relative to one flow of `nice_b`.
fn ratio(policy: &Bfs, count: usize, nice_a: i32, nice_b: i32) -> f64 {
    let mut flows = vec![normal(nice_a); count];
    flows.push(normal(nice_b));
    let rounds = 400 * (count as u64 + 1);
    let used_ns = run_cpu_bound(policy, flows, rounds * policy.interval_ns, 0);
    mean(&used_ns[..count]) / used_ns[count] as f64
}

#[test]
fn offsets_equal_the_published_values() {
    let offset_us = |nice| Bfs::published().offset_ns(&normal(nice)) / 1000;
    assert_eq!(
        [offset_us(-20), offset_us(0), offset_us(19)],
        [6_000, 39_187, 238_546]
    );
}

#[test]
fn the_carried_base_has_exact_nice_ratios_at_any_load() {
    for count in [1, 5, 10, 100] {
        let ratio = ratio(&carried(MS), count, 0, 19);
        let exact = 5089.0 / 836.0; // 6.09
        assert!((ratio / exact - 1.0).abs() < 0.05, "{ratio} with {count}");
    }
}

#[test]
fn the_published_base_follows_its_closed_form() {
    let policy = Bfs::published();
    let (a, b, slice) = (
        policy.offset_ns(&normal(0)),
        policy.offset_ns(&normal(19)),
        policy.interval_ns,
    );
    for count in [1, 5, 10, 50] {
        let n_slices = count as f64 * slice as f64;
        let form = ((b - a) as f64 + n_slices) / n_slices;
        let ratio = ratio(&policy, count, 0, 19);
        assert!(
            (ratio / form - 1.0).abs() < 0.05,
            "{ratio}, form {form}, with {count}"
        );
    }
}

#[test]
fn latnice_has_the_published_numbers() {
    let offset_us = |latnice: u8| {
        let flow = normal(0).with_latency(Latency::from_latnice(latnice));
        Bfs::published().offset_ns(&flow) / 1000
    };
    assert_eq!(
        [0, 1, 2, 3].map(offset_us),
        [156_750, 39_187, 19_593, 9_796]
    );
    assert_eq!(Latency::default() as u8, 1);
}

#[test]
fn interactive_gives_sensitive_flows_the_stated_shares() {
    for (interactive, shares) in [
        (Interactive::EqualShares, [1.0, 1.0, 1.0, 1.0]),
        (Interactive::MoreTime, [1.0, 1.0, 1.5, 2.0]),
        (Interactive::MostTime, [1.0, 1.0, 2.0, 3.0]),
    ] {
        let policy = Bfs {
            interactive,
            ..carried(MS)
        };
        let flow = |latnice: u8| normal(0).with_latency(Latency::from_latnice(latnice));
        // Some usual flows more, so that the shares do not depend on a small number of flows.
        let mut flows: Vec<Entity> = (0..4).map(flow).collect();
        flows.extend(vec![flow(1); 12]);
        let used_ns = run_cpu_bound(&policy, flows, 50_000 * MS, 0);
        let usual_ns = mean(&used_ns[4..]);
        for (used, share) in used_ns.iter().zip(shares) {
            let ratio = *used as f64 / usual_ns;
            assert!(
                (ratio / share - 1.0).abs() < 0.02,
                "{ratio}, stated {share}, {interactive:?}"
            );
        }
    }
}

#[test]
fn overrunning_slices_gains_nothing() {
    // Slices of 1 ms that end only 9 ms later: the shares do not change.
    let mut flows = vec![normal(0); 4];
    flows.push(normal(10));
    let policy = carried(MS);
    let used_ns = run_cpu_bound(&policy, flows, 20_000 * MS, 9 * MS);
    let exact = policy.offset_ns(&normal(10)) as f64 / policy.offset_ns(&normal(0)) as f64;
    let ratio = mean(&used_ns[..4]) / used_ns[4] as f64;
    assert!((ratio / exact - 1.0).abs() < 0.03, "{ratio}, exact {exact}");
}

#[test]
fn one_flow_of_a_tenant_against_a_hundred_of_another_gets_half() {
    let (one, many) = (TenantId::new(1), TenantId::new(2));
    let flows = |first: TenantId| {
        let mut flows = vec![normal(0).with_tenant(first)];
        flows.extend(vec![normal(0).with_tenant(many); 100]);
        flows
    };
    let share = |policy: &Bfs, flows: Vec<Entity>| {
        let used_ns = run_cpu_bound(policy, flows, 1000 * MS, 0);
        used_ns[0] as f64 / used_ns.iter().sum::<u64>() as f64
    };
    let fair = share(&carried(MS), flows(one));
    assert!((fair - 0.5).abs() < 0.005, "{fair}");
    let without_tenants = Bfs {
        tenants: Tenants::Ignored,
        ..carried(MS)
    };
    let unfair = share(&without_tenants, flows(one));
    assert!((unfair - 1.0 / 101.0).abs() < 0.005, "{unfair}");
}

#[test]
fn a_sleep_changes_neither_deadline_nor_slice() {
    for policy in [Bfs::published(), Bfs::default()] {
        let mut view = FixedView::new(&policy, Topology::flat(1));
        let mut flow = normal(0);
        policy.admit(&mut flow, None, &view);
        let grant = policy.run(&mut flow, CpuId::FIRST, &view);
        view.ledger.dispatched(&grant);
        view.now_ns = 100_000;
        let before = flow.deadline_ns;
        let charge = policy.stop(&mut flow, CpuId::FIRST, 100_000, Stop::Blocked, &view);
        assert_eq!(charge.ran_ns, 100_000);
        view.now_ns = 1000 * MS;
        let _ = policy.wake(&mut flow, None, false, &view);
        assert_eq!(flow.deadline_ns, before);
        assert_eq!(flow.slice_left_ns as u64, policy.interval_ns - 100_000);
    }
}

#[test]
fn a_fork_shares_the_slice_and_the_deadline() {
    let policy = Bfs::published();
    let mut view = FixedView::new(&policy, Topology::flat(1));
    let (mut parent, mut child, mut late) = (normal(0), normal(0), normal(0));
    policy.admit(&mut parent, None, &view);
    view.now_ns = 5 * MS;
    policy.admit(&mut child, Some(&mut parent), &view);
    assert_eq!(child.deadline_ns, parent.deadline_ns);
    assert_eq!(
        (child.slice_left_ns, parent.slice_left_ns),
        (3_000_000, 3_000_000)
    );
    // 150 us is less than twice the least slice: nothing is shared, and the old deadline is not
    // inherited either.
    parent.slice_left_ns = 150_000;
    policy.admit(&mut late, Some(&mut parent), &view);
    assert_eq!(
        (late.slice_left_ns, parent.slice_left_ns),
        (6_000_000, 150_000)
    );
    assert_eq!(late.deadline_ns, view.now_ns + policy.offset_ns(&late));
}

/// The order in which idle CPUs are chosen if each chosen one becomes busy.
fn idle_order(view: &mut FixedView, policy: &Bfs, last: usize) -> Vec<usize> {
    let mut order = Vec::new();
    loop {
        let mut flow = normal(0);
        flow.last_cpu = CpuId::new(last);
        let Placement::Idle(cpu) = policy.wake(&mut flow, None, false, view) else {
            return order;
        };
        view.idle.remove(cpu);
        order.push(cpu.index());
    }
}

#[test]
fn idle_cpus_are_chosen_from_near_to_far() {
    let policy = Bfs::default();
    let mut view = FixedView::new(&policy, sixteen_cpus());
    // The same CPU; another core of its cache; the idle cache of the node, then its other core;
    // then siblings, starting in the own cache; then the same on the other node.
    let order = idle_order(&mut view, &policy, 5);
    assert_eq!(
        order,
        [5, 6, 0, 2, 4, 7, 1, 3, 8, 12, 10, 14, 9, 11, 13, 15]
    );
    // A slow core comes after the sibling of a busy core and before another node.
    let mut view = FixedView::new(&policy, sixteen_cpus());
    view.idle = [4, 6, 7, 9].into_iter().map(CpuId::new).collect();
    view.scaled_down = [6, 7].into_iter().map(CpuId::new).collect();
    assert_eq!(idle_order(&mut view, &policy, 5), [4, 6, 7, 9]);
}

#[test]
fn a_wake_up_preempts_the_latest_deadline_if_it_is_later() {
    let policy = Bfs::default();
    let view =
        FixedView::new(&policy, Topology::flat(4)).busy(&[10 * MS, 40 * MS, 30 * MS, 40 * MS]);
    let wake = |deadline_ns: u64, waker: Option<usize>, is_sync: bool, latency: Latency| {
        let mut flow = normal(0).with_latency(latency);
        flow.deadline_ns = deadline_ns;
        policy.wake(&mut flow, waker.map(CpuId::new), is_sync, &view)
    };
    let home = Placement::Queue(StripeId::default());
    assert_eq!(
        wake(20 * MS, None, false, Latency::Usual),
        Placement::Preempt(CpuId::new(1))
    );
    assert_eq!(
        wake(20 * MS, Some(3), false, Latency::Usual),
        Placement::Preempt(CpuId::new(3))
    );
    assert_eq!(
        wake(20 * MS, Some(0), false, Latency::Usual),
        Placement::Preempt(CpuId::new(1))
    );
    assert_eq!(wake(40 * MS, None, false, Latency::Usual), home);
    assert_eq!(wake(20 * MS, None, true, Latency::Usual), home);
    assert_eq!(wake(20 * MS, None, false, Latency::Insensitive), home);
    let mut idle_class = Entity::new(Class::Idle);
    assert_eq!(policy.wake(&mut idle_class, None, false, &view), home);
    // An inherited key counts like the flow's own.
    idle_class.inherit(Key::new(Class::Normal, TenantId::default(), 5 * MS));
    assert_eq!(
        policy.wake(&mut idle_class, None, false, &view),
        Placement::Preempt(CpuId::new(1))
    );
}

#[test]
fn affinity_is_respected_and_a_mask_without_cpus_of_the_machine_ignored() {
    let policy = Bfs::default();
    let mut view = FixedView::new(&policy, sixteen_cpus());
    let only = |cpus: &[usize]| {
        cpus.iter()
            .map(|&index| CpuId::new(index))
            .collect::<CpuMask>()
    };
    let mut flow = normal(0);
    flow.allowed = only(&[9, 11]);
    assert_eq!(
        policy.wake(&mut flow, None, false, &view),
        Placement::Idle(CpuId::new(9))
    );
    view.idle = only(&[0, 1, 2]);
    assert_eq!(
        policy.wake(&mut flow, Some(CpuId::new(1)), false, &view),
        Placement::Preempt(CpuId::new(9))
    );
    assert!(
        policy.may_take(&flow, CpuId::new(11), &view)
            && !policy.may_take(&flow, CpuId::FIRST, &view)
    );
    flow.allowed = only(&[100]);
    assert_eq!(
        policy.wake(&mut flow, None, false, &view),
        Placement::Idle(CpuId::FIRST)
    );
}

#[test]
fn a_stopped_flow_moves_only_if_another_is_next_and_a_cpu_is_idle() {
    let policy = Bfs::default();
    let mut view = FixedView::new(&policy, Topology::flat(2));
    let mut flow = normal(0);
    policy.admit(&mut flow, None, &view);
    let here = Placement::Queue(StripeId::default());
    let requeue = |flow: &mut Entity, view: &FixedView| policy.requeue(flow, CpuId::FIRST, view);
    view.idle.remove(CpuId::FIRST);
    assert_eq!(requeue(&mut flow, &view), here, "nothing else waits");
    let key = |deadline_ns: u64| Key::new(Class::Normal, TenantId::default(), deadline_ns);
    view.queues[0] = (key(flow.deadline_ns + MS), 1);
    assert_eq!(requeue(&mut flow, &view), here, "the waiting flow is later");
    view.queues[0] = (key(flow.deadline_ns), 1);
    assert_eq!(requeue(&mut flow, &view), Placement::Idle(CpuId::new(1)));
    view.idle = CpuMask::EMPTY;
    assert_eq!(requeue(&mut flow, &view), here);
}

#[test]
fn stripes_are_chosen_by_deadline_or_by_length() {
    let key = |deadline_ms: u64| Key::new(Class::Normal, TenantId::default(), deadline_ms * MS);
    let pick = |preferred_stripe: PreferredStripe, queues: [(u64, usize); 4], tried: &[usize]| {
        let policy = Bfs {
            preferred_stripe,
            ..Bfs::default()
        };
        let mut view = FixedView::new(&policy, sixteen_cpus());
        assert_eq!(view.queues.len(), 4);
        view.queues = queues
            .map(|(deadline, length)| (if length > 0 { key(deadline) } else { Key::NONE }, length))
            .to_vec();
        let tried = tried.iter().map(|&index| CpuId::new(index)).collect();
        policy
            .pick(CpuId::new(5), &tried, &view)
            .map(StripeId::index)
    };
    let queues = [(10, 1), (20, 2), (5, 2), (7, 3)];
    assert_eq!(pick(PreferredStripe::Earliest, queues, &[]), Some(2));
    assert_eq!(pick(PreferredStripe::Earliest, queues, &[2]), Some(3));
    assert_eq!(pick(PreferredStripe::Earliest, queues, &[0, 1, 2, 3]), None);
    assert_eq!(pick(PreferredStripe::Own, queues, &[]), Some(3));
    assert_eq!(
        pick(
            PreferredStripe::Own,
            [(10, 1), (20, 2), (5, 2), (30, 3)],
            &[]
        ),
        Some(1)
    );
    assert_eq!(
        pick(PreferredStripe::Own, [(10, 1), (0, 0), (0, 0), (0, 0)], &[]),
        Some(0)
    );
}

#[test]
fn a_preempted_flow_is_sticky_only_if_own_stripes_are_preferred_and_against_a_slow_cpu() {
    for (preferred_stripe, slow, may) in [
        (PreferredStripe::Own, true, false),
        (PreferredStripe::Own, false, true),
        (PreferredStripe::Earliest, true, true),
    ] {
        let policy = Bfs {
            preferred_stripe,
            ..Bfs::default()
        };
        let mut view = FixedView::new(&policy, Topology::flat(2));
        let mut flow = normal(0);
        policy.admit(&mut flow, None, &view);
        let _ = policy.stop(&mut flow, CpuId::FIRST, 1, Stop::Preempted, &view);
        if slow {
            view.scaled_down = view.topology.all();
        }
        assert_eq!(
            policy.may_take(&flow, CpuId::new(1), &view),
            may,
            "{preferred_stripe:?} {slow}"
        );
        assert!(policy.may_take(&flow, CpuId::FIRST, &view));
    }
}

#[test]
fn classes_order_before_deadlines_and_a_refractory_class_is_normal() {
    let policy = Bfs::default();
    let view = FixedView::new(&policy, Topology::flat(1));
    let key = |class, deadline_ms: u64| Key::new(class, TenantId::default(), deadline_ms * MS);
    let rank = |class, deadline_ms| policy.rank(key(class, deadline_ms), &view);
    assert!(rank(Class::Iso, 100) < rank(Class::Normal, 1));
    assert!(rank(Class::Normal, 100) < rank(Class::Idle, 1));
    let mut flow = Entity::new(Class::Iso);
    policy.admit(&mut flow, None, &view);
    view.ledger
        .ran(&policy.stop(&mut flow, CpuId::FIRST, 4_000 * MS, Stop::Expired, &view));
    assert!(view.is_iso_refractory());
    assert!(policy.rank(key(Class::Iso, 100), &view) > policy.rank(key(Class::Normal, 1), &view));
    assert!(policy.rank(key(Class::Iso, 100), &view) < policy.rank(key(Class::Idle, 1), &view));
}

proptest! {

    #![proptest_config(ProptestConfig::with_cases(refrain_testkit::scaled(256)))]

    /// No sequence of runs makes the state of a flow invalid.
    #[test]
    fn any_run_history_leaves_a_valid_entity(
        runs in proptest::collection::vec((any::<u64>(), 0u8..4, any::<u64>()), 1..30),
        nice in -20i32..20, latnice in 0u8..4, interval_ns: u64, is_published: bool,
    ) {
        let mut policy = carried(interval_ns);
        if is_published {
            policy.base = Base::Now;
        }
        let mut view = FixedView::new(&policy, Topology::flat(2));
        let mut flow = normal(nice).with_latency(Latency::from_latnice(latnice));
        policy.admit(&mut flow, None, &view);
        for (ran_ns, why, now_ns) in runs {
            let grant = policy.run(&mut flow, CpuId::FIRST, &view);
            prop_assert!(grant.slice_ns > 0);
            view.ledger.dispatched(&grant);
            view.now_ns = view.now_ns.saturating_add(now_ns);
            let why = [Stop::Expired, Stop::Yielded, Stop::Preempted, Stop::Blocked][usize::from(why)];
            let before_ns = flow.deadline_ns;
            view.ledger.ran(&policy.stop(&mut flow, CpuId::FIRST, ran_ns, why, &view));
            prop_assert!(flow.deadline_ns >= before_ns);
            prop_assert!(flow.slice_left_ns > 0);
            prop_assert!(policy.key(&flow, &view).is_some());
        }
    }
}
