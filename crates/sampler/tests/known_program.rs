//! A program with known behavior: two threads spend their time in two functions, three to one.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
// Helpers of tests may panic.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use refrain_sampler::{Error, Options, Profile, Sampler, StageChange};

/// One round of work takes a few µs.
const STEPS: u64 = 4096;

#[inline(never)]
fn steps(count: u64, from: u64) -> u64 {
    (0..count).fold(from, |sum, step| black_box(sum.rotate_left(7) ^ step))
}

#[inline(never)]
fn spends_three_quarters(from: u64) -> u64 {
    steps(3 * STEPS, from).wrapping_add(1)
}

#[inline(never)]
fn spends_one_quarter(from: u64) -> u64 {
    steps(STEPS, from).wrapping_add(2)
}

#[inline(never)]
fn touches_pages(count: usize) -> usize {
    let pages = black_box(vec![1_u8; count * 4096]);
    pages.len()
}

#[inline(never)]
fn works_for(time: Duration) -> u64 {
    let start = Instant::now();
    let mut sum = 0;
    while start.elapsed() < time {
        for _ in 0..100 {
            sum = spends_one_quarter(spends_three_quarters(sum));
        }
    }
    sum
}

/// Processor time samples with this function on their stack.
fn samples_in(profile: &Profile, name: &str) -> u64 {
    let is_named = |function: u32| profile.functions[function as usize].name.contains(name);
    let rows = profile.rows.iter();
    rows.filter(|row| profile.functions_of(row.path).any(is_named))
        .map(|row| row.count.cpu)
        .sum()
}

#[test]
fn shares_stages_and_faults_are_those_of_the_program() {
    let now_ns = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    let changes: Arc<Mutex<Vec<StageChange>>> = Arc::default();
    let given = Arc::clone(&changes);
    let take = move |each: &mut dyn FnMut(StageChange)| {
        given.lock().unwrap().drain(..).for_each(each);
        0
    };
    let sampler = match Sampler::start(Options::default(), Box::new(take)) {
        Ok(sampler) => sampler,
        Err(error @ Error::Forbidden { .. }) => {
            let text = error.to_string();
            assert!(text.contains("perf_event_paranoid"), "{text}");
            eprintln!("NOT TESTED: {text}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let sum = AtomicU64::new(0);
    thread::scope(|scope| {
        for name in ["first", "second"] {
            let (sum, changes) = (&sum, &changes);
            let thread = thread::Builder::new().name(name.into());
            let run = move || {
                let thread_id = rustix::thread::gettid().as_raw_nonzero().get() as u32;
                let change = |stage| {
                    let at_ns = now_ns();
                    changes.lock().unwrap().push(StageChange {
                        thread_id,
                        at_ns,
                        stage,
                    });
                };
                change(Some("work"));
                sum.fetch_add(works_for(Duration::from_millis(1_500)), Ordering::Relaxed);
                change(None);
                if name == "second" {
                    assert_eq!(touches_pages(20_000), 20_000 * 4096);
                }
            };
            thread.spawn_scoped(scope, run).unwrap();
        }
    });
    let profile = sampler.finish().unwrap();

    let total = profile.total();
    // None, unless the reader gets no processor time.
    assert!(profile.lost * 10 < total.cpu, "{} lost", profile.lost);
    // The kernel's clock and the samples agree, unless a virtual machine was stopped.
    let sampled_ns = (total.cpu + profile.lost) * profile.cpu_ns_per_sample;
    let share = sampled_ns as f64 / profile.cpu_ns as f64;
    assert!(
        total.cpu > 300 && (0.8..1.2).contains(&share),
        "{share} of {total:?}"
    );
    let long = samples_in(&profile, "spends_three_quarters");
    let short = samples_in(&profile, "spends_one_quarter");
    // With 300 samples the standard deviation of the share is 0.025.
    let share = long as f64 / (long + short) as f64;
    assert!((0.62..0.88).contains(&share), "{long} to {short}");
    assert!(
        long + short > total.cpu / 2,
        "{long} + {short} of {total:?}"
    );
    // Both threads, by name, and nearly all the work in the stage.
    for name in ["first", "second"] {
        let (id, _) = profile.threads.iter().find(|(_, of)| of == name).unwrap();
        let rows = profile.rows.iter().filter(|row| row.thread_id == *id);
        let staged: u64 = rows
            .filter(|row| row.stage == Some("work"))
            .map(|row| row.count.cpu)
            .sum();
        assert!(staged > 100, "{name}: {staged}");
    }
    // Stacks reach the start of the thread.
    assert!(profile.cut * 20 < total.cpu, "{} of {total:?}", profile.cut);
    assert!(samples_in(&profile, "works_for") >= long + short);
    let is_here = |function: &&refrain_sampler::Function| function.origin == "known_program";
    assert!(profile.functions.iter().any(|function| is_here(&function)));
    // Page faults of the pages that one function touched.
    assert!(profile.faults > 20_000 / 512, "{}", profile.faults);
    let sampled_faults = total.faults * profile.faults_per_sample;
    assert!(sampled_faults <= profile.faults);
    if profile.faults > 20_000 {
        assert!(sampled_faults * 10 > profile.faults * 8, "{sampled_faults}");
        let touching = |function: u32| {
            let function = &profile.functions[function as usize];
            function.name.contains("touches_pages")
        };
        let rows = profile.rows.iter();
        let faults: u64 = rows
            .filter(|row| profile.functions_of(row.path).any(touching))
            .map(|row| row.count.faults)
            .sum();
        assert!(faults * 10 > total.faults * 8, "{faults} of {total:?}");
    }
}
