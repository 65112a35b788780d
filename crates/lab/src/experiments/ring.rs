//! Threads that pass a token around, by how they wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use refrain_policy::{SpinLimits, SpinPolicy};
use refrain_pool::idle::{MachineLoad, Sleeper};

use crate::context::Context;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::gang;
use crate::outcome::{Cell, Measured, Outcome, Section, Unit};
use crate::units::value_text;

/// The numbers of threads.
const THREADS: [usize; 3] = [2, 3, 4];

/// Fewer hops are not meaningful, however long they take,
const HOPS_MIN: u64 = 64;
/// but this many times the intended time is the limit.
const PATIENCE: u64 = 20;

/// How a thread waits for the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Idling {
    /// Polls.
    Spin,
    /// Like the pool's workers: spins if it was woken often lately, then parks.
    Adaptive,
    /// Sleeps in the kernel at once.
    Park,
}

impl Idling {
    const ALL: [Idling; 3] = [Idling::Spin, Idling::Adaptive, Idling::Park];

    fn name(self) -> &'static str {
        match self {
            Idling::Spin => "spin",
            Idling::Adaptive => "adaptive",
            Idling::Park => "park",
        }
    }
}

pub(super) struct Ring;

impl Experiment for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn measures(&self) -> &'static str {
        "how long threads take to pass a token around, by how they wait for it"
    }

    fn explains(&self) -> &'static str {
        "Spinning threads see the token as soon as a line of memory has moved; parked ones are \
         woken by the kernel, which takes two system calls and often waits for a processor to wake \
         up. Spinning burns a processor, so the pool spins only while work comes often (adaptive). \
         Waiting for a thread pays as long as it is shorter than a wake-up."
    }

    fn seconds(&self, is_quick: bool) -> f64 {
        if is_quick { 0.7 } else { 3.5 }
    }

    fn run(&self, context: &Context) -> Result<Outcome> {
        let columns = [
            ("threads", Unit::Count),
            ("waiting", Unit::Text),
            ("per hop", Unit::Nanoseconds),
            ("hops", Unit::Count),
            ("by the kernel", Unit::Count),
        ];
        let mut section = Section::new("Time of a hop from thread to thread", &columns).with_chart(
            0,
            2,
            Some(1),
            true,
        );
        let mut of_two = [f64::NAN; 3];
        for threads in THREADS {
            for (index, idling) in Idling::ALL.into_iter().enumerate() {
                if idling == Idling::Spin && threads > context.processors {
                    let reason = || {
                        let text = format!(
                            "{} processors for {threads} threads that spin",
                            context.processors
                        );
                        Cell::not_available(text)
                    };
                    section.push([
                        threads.into(),
                        idling.name().into(),
                        reason(),
                        reason(),
                        reason(),
                    ]);
                    continue;
                }
                let lap = pass(context, threads, idling)?;
                if threads == 2 {
                    of_two[index] = lap.hop_ns();
                }
                section.push([
                    threads.into(),
                    idling.name().into(),
                    lap.hop_ns().into(),
                    lap.hops.into(),
                    lap.kernel_wakes.into(),
                ]);
            }
        }
        Ok(Outcome {
            findings: findings(of_two),
            sections: vec![section],
            measured: Measured {
                park_hop_ns: Some(of_two[2]).filter(|ns| ns.is_finite()),
                ..Measured::default()
            },
        })
    }
}

fn findings([spin, adaptive, park]: [f64; 3]) -> Vec<String> {
    let text = |ns: f64| value_text(ns, Unit::Nanoseconds);
    if !park.is_finite() || !adaptive.is_finite() {
        return vec!["The machine was too busy for a single hop.".into()];
    }
    let mut findings = vec![format!(
        "Two threads that park take {} per hop, two workers of the pool {}.",
        text(park),
        text(adaptive)
    )];
    if spin.is_finite() {
        findings.push(format!(
            "Threads that spin take {}: a wake-up through the kernel costs {:.0} times as much.",
            text(spin),
            park / spin
        ));
    }
    findings
}

struct Lap {
    hops: u64,
    taken_ns: u64,
    kernel_wakes: u64,
}

impl Lap {
    fn hop_ns(&self) -> f64 {
        self.taken_ns as f64 / self.hops as f64
    }
}

struct Table {
    turn: AtomicU64,
    has_ended: AtomicBool,
    sleepers: Vec<Sleeper>,
    load: MachineLoad,
    time_ns: u64,
    /// Start of the first hop, to exclude starting the threads.
    start_ns: AtomicU64,
    /// The time of the hops.
    taken_ns: AtomicU64,
}

impl Table {
    /// Whether to end after `hops` hops.
    fn is_time_over(&self, hops: u64, now_ns: u64) -> bool {
        let taken_ns = now_ns.saturating_sub(self.start_ns.load(Ordering::Acquire));
        let is_enough = hops >= HOPS_MIN && taken_ns >= self.time_ns;
        is_enough || taken_ns >= self.time_ns * PATIENCE
    }
}

fn pass(context: &Context, threads: usize, idling: Idling) -> Result<Lap> {
    context.check()?;
    let time = context.time(80, 400);
    let table = Arc::new(Table {
        turn: AtomicU64::new(0),
        has_ended: AtomicBool::new(false),
        sleepers: (0..threads).map(|_| Sleeper::default()).collect(),
        load: MachineLoad::default(),
        time_ns: time.as_nanos() as u64,
        start_ns: AtomicU64::new(0),
        taken_ns: AtomicU64::new(0),
    });
    let (shared, clocked) = (table.clone(), context.clone());
    gang::run(threads, move |me| play(&clocked, &shared, me, idling))?;
    let taken_ns = table.taken_ns.load(Ordering::Acquire);
    context.check()?;
    let wakes = table.sleepers.iter().map(|sleeper| sleeper.wake_counts());
    Ok(Lap {
        hops: table.turn.load(Ordering::Acquire),
        taken_ns,
        kernel_wakes: wakes.map(|counts| counts.system_calls).sum(),
    })
}

fn play(context: &Context, table: &Table, me: usize, idling: Idling) {
    let threads = table.sleepers.len() as u64;
    let sleeper = &table.sleepers[me];
    sleeper.bind_to_current_thread();
    let mut spin_policy = SpinPolicy::default();
    let mut next = me as u64;
    let has_token = |next| table.turn.load(Ordering::Acquire) == next;
    let has_ended = || table.has_ended.load(Ordering::Acquire);
    loop {
        if idling == Idling::Spin {
            while !has_token(next) && !has_ended() {
                std::hint::spin_loop();
            }
        } else {
            sleeper.prepare_to_sleep();
            if !has_token(next) && !has_ended() {
                let now_ns = context.now_ns();
                let limits = match idling {
                    Idling::Adaptive => {
                        spin_policy.limits(now_ns, !table.load.is_overcommitted(now_ns))
                    }
                    _ => SpinLimits::default(),
                };
                sleeper.sleep(limits, u64::MAX, || context.now_ns());
                spin_policy.record_wake(context.now_ns());
                continue;
            }
            sleeper.cancel_sleep();
        }
        if has_ended() {
            return;
        }
        let now_ns = context.now_ns();
        if next == 0 {
            table.start_ns.store(now_ns, Ordering::Release);
        }
        if context.check().is_err() || table.is_time_over(next, now_ns) {
            let start_ns = table.start_ns.load(Ordering::Acquire);
            table
                .taken_ns
                .store(now_ns.saturating_sub(start_ns), Ordering::Release);
            table.has_ended.store(true, Ordering::Release);
            table.sleepers.iter().for_each(|other| {
                other.wake();
            });
            return;
        }
        table.turn.store(next + 1, Ordering::Release);
        if idling != Idling::Spin {
            table.sleepers[(me + 1) % threads as usize].wake();
        }
        next += threads;
    }
}
