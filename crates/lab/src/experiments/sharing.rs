//! Two threads that count: in the same cache line, and apart.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::Context;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::gang;
use crate::outcome::{Cell, Outcome, Section, Unit};

/// The distances between the two counters.
const DISTANCES_BYTES: [usize; 5] = [8, 32, 64, 128, 256];

/// Additions between two clock readings.
const ADDITIONS: u64 = 4096;

pub(super) struct Sharing;

impl Experiment for Sharing {
    fn name(&self) -> &'static str {
        "sharing"
    }

    fn measures(&self) -> &'static str {
        "how long two threads take to count, by the distance of their counters in memory"
    }

    fn explains(&self) -> &'static str {
        "The threads have nothing in common but the place of their counters. Processors own whole \
         lines of memory, so neighbors on one line take it from each other at every addition \
         (false sharing). Data that different threads write belongs on lines of its own; some \
         processors fetch lines in pairs, hence 128 bytes."
    }

    fn seconds(&self, is_quick: bool) -> f64 {
        if is_quick { 0.4 } else { 2.0 }
    }

    fn run(&self, context: &Context) -> Result<Outcome> {
        let columns = [
            ("distance", Unit::Bytes),
            ("per addition", Unit::Nanoseconds),
        ];
        let mut section = Section::new("Time of an addition by one of two threads", &columns)
            .with_chart(0, 1, None, true);
        let mut times = Vec::new();
        for distance in DISTANCES_BYTES {
            let cell = match context.processors {
                0 | 1 => Cell::not_available("needs two processors"),
                _ => {
                    let ns = addition_ns(context, distance)?;
                    times.push(ns);
                    ns.into()
                }
            };
            section.push([distance.into(), cell]);
        }
        let findings = match (times.first(), times.get(3)) {
            (Some(near), Some(far)) => vec![format!(
                "An addition takes {near:.1} ns beside the other counter and {far:.1} ns at 128 \
                 bytes from it: {:.1} times as long.",
                near / far
            )],
            _ => vec!["Not measured: this process may use only one processor.".into()],
        };
        Ok(Outcome {
            sections: vec![section],
            findings,
            ..Outcome::default()
        })
    }
}

/// 512 bytes, aligned to a cache line.
#[repr(align(512))]
struct Counters([AtomicU64; 64]);

fn addition_ns(context: &Context, distance_bytes: usize) -> Result<f64> {
    context.check()?;
    let counters = Arc::new(Counters([const { AtomicU64::new(0) }; 64]));
    let (time, context) = (context.time(60, 350), context.clone());
    let count = move |thread: usize| {
        let counter = &counters.0[thread * distance_bytes / 8];
        let additions = context.repeat(time, || {
            for _ in 0..ADDITIONS {
                counter.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        additions.map(|(rounds, taken_ns)| taken_ns as f64 / (rounds * ADDITIONS) as f64)
    };
    let times: Result<Vec<f64>> = gang::run(2, count)?.into_iter().collect();
    let times = times?;
    Ok(times.iter().sum::<f64>() / times.len() as f64)
}
