//! What was published about these policies, found again. Each test says the claim, the model, and how near they come.

use refrain_policy::topology::{CpuId, CpuMask, Sharing, StripeId};
use refrain_policy::{
    Bfs, Charge, Class, Entity, Fifo, Grant, Interactive, Key, Ledger, Nice, Placement, Rank, Stop,
    TenantId, Ule, View,
};

use super::*;

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;

fn normal(nice: i32) -> Entity {
    Entity::new(Class::Normal).with_nice(Nice::new(nice))
}

fn simulation(spec: &str, groups: Vec<Group>, span_ns: u64) -> Simulation {
    Simulation {
        topology: Topology::from_spec(spec).unwrap(),
        costs: Costs::none(),
        groups,
        span_ns,
        seed: 1,
    }
}

fn run(simulation: &Simulation, policy: &impl Policy) -> Report {
    simulation.run(policy).unwrap()
}

/// CPU time per flow of the first group for each unit that a flow of the second gets.
fn ratio(report: &Report) -> f64 {
    let per_flow =
        |index: usize| report.groups[index].cpu_ns as f64 / report.groups[index].flows as f64;
    per_flow(0) / per_flow(1)
}

/// BFS: the offset decides the share; with n flows of nice a and one of nice b per CPU the closed form is
/// (D_b − D_a + n·S) / (n·S): 34 times at n = 1, 1.35 times at n = 100. The carried base keeps D_b / D_a = 6.09.
#[test]
fn shares_by_nice_value() {
    for (cpus, count) in [(1, 1), (1, 10), (2, 20), (4, 40), (4, 400)] {
        let groups = vec![
            Group::hog("a", normal(0)).times(count),
            Group::hog("b", normal(19)).times(cpus),
        ];
        let policy = Bfs::published();
        let (a, b) = (policy.offset_ns(&normal(0)), policy.offset_ns(&normal(19)));
        let slices = (count / cpus) as f64 * policy.interval_ns as f64;
        let form = ((b - a) as f64 + slices) / slices;
        let simulation = simulation(&format!("{cpus}c"), groups, 200 * S);
        let published = ratio(&run(&simulation, &policy));
        assert!(
            (published / form - 1.0).abs() < 0.06,
            "{published} for {form} at {cpus}, {count}"
        );
        let carried = ratio(&run(&simulation, &Bfs::default()));
        assert!(
            (carried / (b as f64 / a as f64) - 1.0).abs() < 0.02,
            "{carried} at {cpus}, {count}"
        );
    }
}

/// How BFS placed flows before it learned better.
#[derive(PartialEq)]
enum Habit {
    /// An idle sibling is as good as the CPU itself for who wakes: before 0.360.
    AnySibling,
    /// Who stops moves on to the next idle CPU, as from a single queue that nothing binds: before 0.400.
    Bouncing,
}

/// BFS with a former habit.
struct Former(Habit, Bfs);

impl Policy for Former {
    fn ledger(&self, cpus: usize) -> Ledger {
        self.1.ledger(cpus)
    }
    fn sharing(&self) -> Sharing {
        self.1.sharing()
    }
    fn admit(&self, entity: &mut Entity, parent: Option<&mut Entity>, view: &impl View) {
        self.1.admit(entity, parent, view);
    }
    fn key(&self, entity: &Entity, view: &impl View) -> Key {
        self.1.key(entity, view)
    }
    fn rank(&self, key: Key, view: &impl View) -> Rank {
        self.1.rank(key, view)
    }
    fn wake(
        &self,
        entity: &mut Entity,
        waker: Option<CpuId>,
        is_sync: bool,
        view: &impl View,
    ) -> Placement {
        let core = view.topology().core_of(entity.last_cpu);
        let sibling = core
            .and(&view.idle())
            .iter()
            .find(|&cpu| cpu != entity.last_cpu);
        let placed = self.1.wake(entity, waker, is_sync, view);
        match (placed, sibling) {
            (Placement::Idle(cpu), Some(sibling))
                if self.0 == Habit::AnySibling && cpu == entity.last_cpu =>
            {
                Placement::Idle(sibling)
            }
            _ => placed,
        }
    }
    fn requeue(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Placement {
        let cpus = view.topology().len();
        let round = (1..cpus).map(|step| CpuId::new((cpu.index() + step) % cpus));
        let next = round.into_iter().find(|next| view.idle().contains(*next));
        let bounces = next.filter(|_| self.0 == Habit::Bouncing);
        bounces.map_or_else(|| self.1.requeue(entity, cpu, view), Placement::Idle)
    }
    fn pick(&self, cpu: CpuId, tried: &CpuMask, view: &impl View) -> Option<StripeId> {
        self.1.pick(cpu, tried, view)
    }
    fn may_take(&self, entity: &Entity, cpu: CpuId, view: &impl View) -> bool {
        // The CPU that a bouncing flow left does not take it back.
        let has_left = self.0 == Habit::Bouncing && entity.is_sticky && entity.last_cpu == cpu;
        self.1.may_take(entity, cpu, view) && !has_left
    }
    fn run(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Grant {
        self.1.run(entity, cpu, view)
    }
    fn stop(
        &self,
        entity: &mut Entity,
        cpu: CpuId,
        ran_ns: u64,
        why: Stop,
        view: &impl View,
    ) -> Charge {
        let charge = self.1.stop(entity, cpu, ran_ns, why, view);
        entity.is_sticky = why == Stop::Expired || why == Stop::Preempted;
        charge
    }
}

/// BFS 0.360: two jobs on four threads of two cores gained 8 % when a waking task stays on its logical CPU rather than take an
/// idle sibling. Why is not published in numbers; here it is what a job has to fetch again: 80 us of every millisecond it runs
/// between two waits (32 KiB L1 and part of the L2 at the default reload cost would be 20 us). So the test shows that the
/// policy wins exactly what moving costs, and never shares a core while another is free; the 8 % are put in.
#[test]
fn two_jobs_on_four_threads_stay_on_their_cpus() {
    let job = Arrivals::After(Distribution::Fixed(50_000));
    let groups = vec![
        Group::hog("job", normal(0))
            .times(2)
            .doing(job, Distribution::Fixed(MS)),
    ];
    let mut simulation = simulation("2c4t", groups, 10 * S);
    simulation.costs.sibling_permille = 620;
    simulation.costs.move_ns[1] = 84_000;
    let stays = run(&simulation, &Bfs::default());
    let wanders = run(&simulation, &Former(Habit::AnySibling, Bfs::default()));
    assert_eq!(stays.moves[1..], [0; 4], "{stays}");
    let gain = stays.groups[0].jobs as f64 / wanders.groups[0].jobs as f64;
    assert!((gain - 1.08).abs() < 0.005, "{gain}\n{stays}{wanders}");
    assert_eq!(
        stays.groups[0].work_ns, stays.groups[0].cpu_ns,
        "never two on a core"
    );
}

/// Erlang's C: the chance that all of `servers` are busy at load `load` (in servers).
fn erlang_c(servers: u32, load: f64) -> f64 {
    let blocking = (1..=servers).fold(1.0, |b, n| load * b / (f64::from(n) + load * b));
    let free = 1.0 - load / f64::from(servers);
    blocking / (free + load / f64::from(servers) * blocking)
}

/// One queue for eight CPUs against one for each, at 80 % load: queueing theory says mean waits of 0.28 and 4 service times
/// (M/M/8, M/M/1). With stripes that look at each other's best (MuQSS) many queues wait like one.
#[test]
fn waiting_times_of_one_queue_against_many() {
    let (service_ns, flows, load) = (MS, 800, 0.8);
    let gap_ns = (service_ns as f64 * flows as f64 / 8.0 / load) as u64;
    let clients = |entity: Entity, count: usize| {
        Group::hog("clients", entity)
            .times(count)
            .checking_each(u64::MAX)
            .doing(
                Arrivals::Every(Distribution::Exponential(gap_ns)),
                Distribution::Exponential(service_ns),
            )
    };
    let mean = |report: &Report| {
        let sums = report
            .groups
            .iter()
            .map(|group| group.waited.mean_ns() * group.waited.count() as f64);
        let counts = report
            .groups
            .iter()
            .map(|group| group.waited.count() as f64);
        sums.sum::<f64>() / counts.sum::<f64>() / service_ns as f64
    };
    let one = simulation("8-way", vec![clients(normal(0), flows)], 40 * S);
    let expected = erlang_c(8, 8.0 * load) / (8.0 * (1.0 - load));
    let measured = mean(&run(&one, &Fifo));
    assert!(
        (measured / expected - 1.0).abs() < 0.05,
        "{measured} for {expected}"
    );

    let pinned = |cpu: usize| normal(0).with_allowed([CpuId::new(cpu)].into_iter().collect());
    let apart = (0..8).map(|cpu| clients(pinned(cpu), flows / 8)).collect();
    let per_cpu = Bfs {
        sharing: Sharing::Cpu,
        ..Bfs::default()
    };
    let measured = mean(&run(&simulation("8-way", apart, 100 * S), &per_cpu));
    assert!(
        (measured / (load / (1.0 - load)) - 1.0).abs() < 0.1,
        "{measured} for 4"
    );

    let striped = mean(&run(&one, &per_cpu));
    assert!(
        (striped / expected - 1.0).abs() < 0.1,
        "{striped} for {expected}"
    );
}

/// BFS 0.400: with a governor that looks at each CPU, a busy thread that bounces between CPUs keeps all of them slow; sticking
/// to one gains up to the ratio of the frequencies: 30 % for one thread on a four-thread CPU in the limit. The thread is
/// interrupted 500 times a second by short work that wakes where it wants.
#[test]
fn a_busy_thread_that_stays_gets_the_full_frequency() {
    let ticks = Group::hog("ticks", normal(-20)).times(4).doing(
        Arrivals::Every(Distribution::Exponential(8 * MS)),
        Distribution::Fixed(100_000),
    );
    let groups = vec![Group::hog("busy", normal(0)), ticks];
    let mut simulation = simulation("4c", groups, 20 * S);
    simulation.costs.governor = Some(Governor {
        sample_ns: 10 * MS,
        busy_permille: 800,
        slow_permille: 769, // 1 / 1.3
    });
    let stays = run(&simulation, &Bfs::default());
    let bounces = run(&simulation, &Former(Habit::Bouncing, Bfs::default()));
    let gain = stays.groups[0].work_ns as f64 / bounces.groups[0].work_ns as f64;
    assert!((1.25..1.305).contains(&gain), "{gain}\n{stays}{bounces}");
}

/// BFS: isochronous tasks get at most 70 % of all CPUs over 5 s, then count as normal until they are below 90 % of that. Two of
/// them beside 200 normal flows on two CPUs: between 63 and 70 % as such, and next to nothing of the rest.
#[test]
fn isochronous_flows_are_capped() {
    let groups = |normals: usize| {
        vec![
            Group::hog("iso", Entity::new(Class::Iso)).times(2),
            Group::hog("normal", normal(0)).times(normals),
        ]
    };
    let report = run(&simulation("2c", groups(200), 120 * S), &Bfs::published());
    assert!((0.60..0.72).contains(&report.share(0)), "{report}");
    assert!((report.utilisation() - 1.0).abs() < 0.001);
    // Nobody else wants the CPUs: no cap.
    let alone = run(&simulation("2c", groups(0), 20 * S), &Bfs::published());
    assert!(alone.share(0) > 0.999, "{alone}");
}

/// Interactive work beside hogs. ULE serves those who sleep most of the time at once, and takes others for hogs: a program that
/// works 60 % of the time waits for whole slices (p99 54 ms). BFS asks for no history: 21 and 23 ms with its 6 ms and the published
/// base; 0.0 and 3.7 ms with 1 ms and the carried one.
#[test]
fn ule_against_bfs_under_interactive_load() {
    let user = |name: &str, think_ms: u64, work_ms: u64| {
        Group::hog(name, normal(0)).doing(
            Arrivals::After(Distribution::Exponential(think_ms * MS)),
            Distribution::Fixed(work_ms * MS),
        )
    };
    let groups = vec![
        Group::hog("hogs", normal(0)).times(8),
        user("editor", 50, 1),
        user("player", 4, 6),
    ];
    let simulation = simulation("2c", groups, 60 * S);
    let published = run(&simulation, &Bfs::published());
    let (ule, ours) = (
        run(&simulation, &Ule::default()),
        run(&simulation, &Bfs::default()),
    );
    let p99_ms = |report: &Report, group: usize| {
        report.groups[group].waited.quantile_ns(990) as f64 / MS as f64
    };
    // The editor: ULE at once; BFS too, except after a new slice, when all others have their turn: 4 slices of 6 ms.
    assert!(
        p99_ms(&ule, 1) < 0.1 && (6.0..24.0).contains(&p99_ms(&published, 1)),
        "{ule}{published}"
    );
    // The player: under ULE it waits twice as long.
    assert!(
        p99_ms(&ule, 2) > 2.0 * p99_ms(&published, 2),
        "{ule}{published}"
    );
    // Short slices and carried deadlines are good for both.
    assert!(p99_ms(&ours, 1) < 0.1 && p99_ms(&ours, 2) < 5.0, "{ours}");
}

/// Tenants: one flow against a hundred gets 50 ± 2 %, on one CPU and, two against a hundred, on two.
#[test]
fn tenants_share_whatever_their_number_of_flows() {
    for (spec, few) in [("1c", 1), ("2c", 2)] {
        let groups = vec![
            Group::hog("few", normal(0).with_tenant(TenantId::new(1))).times(few),
            Group::hog("many", normal(0).with_tenant(TenantId::new(2))).times(100),
        ];
        let report = run(&simulation(spec, groups, S), &Bfs::default());
        assert!((report.share(0) - 0.5).abs() < 0.02, "{report}");
    }
}

/// The finding that shaped the design: an urgent job beside CPU-bound flows waits for one checkpoint when it carries its
/// deadline, and like everybody else when it is queued first come, first served.
#[test]
fn urgent_work_waits_for_a_checkpoint_only() {
    let groups = vec![
        Group::hog("background", normal(0))
            .times(16)
            .checking_each(50_000),
        Group::hog("urgent", normal(-10)).doing(
            Arrivals::Every(Distribution::Exponential(5 * MS)),
            Distribution::Fixed(5_000),
        ),
    ];
    let simulation = simulation("2c", groups, 20 * S);
    let p99_ns = |report: &Report| report.groups[1].waited.quantile_ns(990);
    let carried = run(&simulation, &Bfs::default());
    assert!(p99_ns(&carried) <= 50_000, "{carried}");
    let first_come = run(&simulation, &Fifo);
    assert_eq!(
        first_come.groups[1].jobs, 0,
        "hogs never stop: {first_come}"
    );
    let batch = Bfs {
        interactive: Interactive::Strict,
        ..Bfs::default()
    };
    assert!(p99_ns(&run(&simulation, &batch)) <= 50_000);
}
