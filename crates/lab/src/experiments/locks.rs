//! The cost of locks, uncontended and contended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use refrain_pool::Lock;
use refrain_sync::{set_spins_max, spins_max};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::gang;
use crate::outcome::{Cell, Measured, Outcome, Section, Unit};
use crate::units::value_text;

/// How often a thread tries a lock before it waits like the standard library, which spins about a
/// hundred times and then sleeps in the kernel.
const SPIN_LIMITS: [u32; 4] = [0, 10, 100, 1000];

/// The limits tried for the pool's lock, which learns how often spinning pays, up to a limit.
const LEARNED_LIMITS: [u32; 5] = [0, 30, 100, 300, 1000];

/// A limit that reaches this fraction of the best rate is enough.
const ENOUGH: f64 = 0.97;

/// Acquisitions between two clock readings.
const ACQUISITIONS: u64 = 256;

/// The words that a holder changes.
const WORDS: usize = 16;

type Data = [u64; WORDS];

pub(super) struct Locks;

impl Experiment for Locks {
    fn name(&self) -> &'static str {
        "locks"
    }

    fn measures(&self) -> &'static str {
        "what taking a lock costs, alone and against another thread, by how long a thread spins for it"
    }

    fn explains(&self) -> &'static str {
        "Each thread takes the lock, changes two lines of memory, releases it, and does as much \
         work on its own. Alone, a lock costs one atomic instruction. Against another thread the \
         lines of memory move between processors, and a thread that does not get the lock spins or \
         sleeps: sleeping leaves the processor to others, and costs a wake-up."
    }

    fn seconds(&self, is_quick: bool) -> f64 {
        if is_quick { 0.6 } else { 3.5 }
    }

    fn run(&self, context: &Context) -> Result<Outcome> {
        let columns = [
            ("lock", Unit::Text),
            ("threads", Unit::Count),
            ("per acquisition", Unit::Nanoseconds),
            ("in all", Unit::PerSecond),
        ];
        let mut section = Section::new(
            "Time from acquisition to acquisition of a thread",
            &columns,
        )
        .with_chart(0, 2, Some(1), true);
        let mut best: Option<(String, f64)> = None;
        let mut learned = Vec::new();
        for threads in [1, 2] {
            for kind in kinds(threads) {
                let name = kind.name(threads);
                if threads > context.processors {
                    let reason = || Cell::not_available("needs two processors");
                    section.push([name.into(), threads.into(), reason(), reason()]);
                    continue;
                }
                let ns = acquisition_ns(context, kind, threads)?;
                if threads == 2 && best.as_ref().is_none_or(|(_, least)| ns < *least) {
                    best = Some((name.clone(), ns));
                }
                if let (2, Kind::Ours { spins_max }) = (threads, kind) {
                    learned.push((spins_max, ns));
                }
                let all = threads as f64 / ns * 1e9;
                section.push([name.into(), threads.into(), ns.into(), all.into()]);
            }
        }
        let mut findings = Vec::new();
        if let Some(alone) = section.rows[0][2].number() {
            findings.push(format!(
                "Alone, the standard library's mutex takes {} with the work under it.",
                value_text(alone, Unit::Nanoseconds)
            ));
        }
        if let Some((name, ns)) = best {
            findings.push(format!(
                "Against another thread, \"{name}\" was fastest: {}. With sections this short, \
                 what counts is that the holder is not slept on.",
                value_text(ns, Unit::Nanoseconds)
            ));
        }
        Ok(Outcome {
            sections: vec![section],
            findings,
            measured: Measured {
                lock_spins_max: enough(&learned),
                ..Measured::default()
            },
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Standard { spins: u32 },
    Ours { spins_max: u32 },
}

impl Kind {
    fn name(self, threads: usize) -> String {
        match self {
            Kind::Standard { spins: 0 } => "std mutex".into(),
            Kind::Standard { spins } => format!("std mutex after {spins} looks"),
            Kind::Ours { .. } if threads == 1 => "the pool's lock".into(),
            Kind::Ours { spins_max } => format!("the pool's lock, at most {spins_max} looks"),
        }
    }
}

/// Spinning does not matter to a thread that is alone.
fn kinds(threads: usize) -> Vec<Kind> {
    let limits = |all: &[u32]| -> Vec<u32> {
        let used = all.iter().filter(|spins| threads > 1 || **spins == 0);
        used.copied().collect()
    };
    let standard = limits(&SPIN_LIMITS).into_iter();
    let ours = limits(&LEARNED_LIMITS).into_iter();
    standard
        .map(|spins| Kind::Standard { spins })
        .chain(ours.map(|spins_max| Kind::Ours { spins_max }))
        .collect()
}

/// The smallest limit that is about as good as the best. Less spinning frees the processor sooner.
fn enough(learned: &[(u32, f64)]) -> Option<u32> {
    let best = learned.iter().map(|(_, ns)| *ns).reduce(f64::min)?;
    let enough = learned.iter().filter(|(_, ns)| best >= ENOUGH * ns);
    enough.map(|(limit, _)| *limit).min()
}

/// Acquisitions per second of the pool's lock by two contending threads, with this limit.
pub(super) fn contended_rate(context: &Context, spins_max: u32) -> Result<f64> {
    Ok(2e9 / acquisition_ns(context, Kind::Ours { spins_max }, 2)?)
}

/// Sets the limit of all locks of the process until dropped.
struct WithSpins {
    before: u32,
}

impl WithSpins {
    fn set(kind: Kind) -> WithSpins {
        let before = spins_max();
        if let Kind::Ours { spins_max } = kind {
            set_spins_max(spins_max);
        }
        WithSpins { before }
    }
}

impl Drop for WithSpins {
    fn drop(&mut self) {
        set_spins_max(self.before);
    }
}

fn acquisition_ns(context: &Context, kind: Kind, threads: usize) -> Result<f64> {
    context.check()?;
    let _limit = WithSpins::set(kind);
    let standard = Mutex::new([0; WORDS]);
    let ours = Lock::new([0; WORDS]);
    let shared = Arc::new((standard, ours));
    let has_ended = Arc::new(AtomicBool::new(false));
    let (time, caller) = (context.time(60, 350), context);
    let context = context.clone();
    let compete = move |_: usize| {
        let mut own = [0; WORDS];
        let (mut acquisitions, start_ns) = (0, context.now_ns());
        let ended = context.repeat(time, || {
            for _ in 0..ACQUISITIONS {
                match kind {
                    Kind::Standard { spins } => with_standard(&shared.0, spins),
                    Kind::Ours { .. } => change(&mut shared.1.lock()),
                }
                change(&mut own);
            }
            acquisitions += ACQUISITIONS;
            // Threads that remained alone would be faster, so all end with the first.
            if has_ended.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
        });
        has_ended.store(true, Ordering::Relaxed);
        let taken_ns = (context.now_ns() - start_ns).max(1);
        // All but the first end that way; a cancelled run is detected below.
        drop(ended);
        acquisitions as f64 / taken_ns as f64
    };
    let rates = gang::run(threads, compete)?;
    caller.check()?;
    Ok(threads as f64 / rates.iter().sum::<f64>())
}

fn with_standard(lock: &Mutex<Data>, spins: u32) {
    for _ in 0..spins {
        match lock.try_lock() {
            Ok(mut held) => return change(&mut held),
            Err(TryLockError::Poisoned(poisoned)) => return change(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
        }
    }
    change(&mut lock.lock().unwrap_or_else(PoisonError::into_inner));
}

fn change(data: &mut Data) {
    for word in std::hint::black_box(data) {
        *word = word.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_that_is_enough_is_chosen() {
        assert_eq!(enough(&[]), None);
        assert_eq!(enough(&[(0, 500.0), (30, 102.0), (100, 100.0)]), Some(30));
        assert_eq!(enough(&[(0, 500.0), (30, 120.0), (100, 100.0)]), Some(100));
    }

    #[test]
    fn the_limit_of_the_process_is_restored() {
        let before = spins_max();
        drop(WithSpins::set(Kind::Ours { spins_max: 7 }));
        assert_eq!(spins_max(), before);
    }
}
