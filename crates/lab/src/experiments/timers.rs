//! Clocks and timers: their cost, and how late they are.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use refrain_policy::{Class, Entity};
use refrain_pool::Lock;
use refrain_pool::pool::{Options, Pool};
use refrain_timer::{Expired, TimerSystem};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::outcome::{Outcome, Section, Unit};
use crate::statistics::{median, quantile};
use crate::units::value_text;

const DELAYS_US: [u64; 4] = [50, 500, 2000, 10_000];

/// Timers between two clock readings.
const BATCH: u64 = 1024;

pub(super) struct Timers;

impl Experiment for Timers {
    fn name(&self) -> &'static str {
        "timers"
    }

    fn measures(&self) -> &'static str {
        "how many timers a thread sets per second, and how late sleeps and timers end"
    }

    fn explains(&self) -> &'static str {
        "Most timers are timeouts that are cancelled, so setting and cancelling must be cheap. No \
         timer is early; how late it is, is the kernel's slack for ordinary threads (50 µs by \
         default on Linux), the time to wake a processor, and whoever runs on it."
    }

    fn seconds(&self, is_quick: bool) -> f64 {
        if is_quick { 0.8 } else { 3.0 }
    }

    fn run(&self, context: &Context) -> Result<Outcome> {
        let mut rates = Section::new(
            "Rates of one thread",
            &[("what", Unit::Text), ("rate", Unit::PerSecond)],
        )
        .with_chart(0, 1, None, true);
        for (name, rate) in [
            ("reading the clock", clock_rate(context)?),
            ("setting and cancelling a timer", cancel_rate(context)?),
            ("setting a timer that fires", fire_rate(context)?),
        ] {
            rates.push([name.into(), rate.into()]);
        }
        let columns = [
            ("asked for", Unit::Nanoseconds),
            ("by", Unit::Text),
            ("late, median", Unit::Nanoseconds),
            ("late, 9 of 10", Unit::Nanoseconds),
            ("times", Unit::Count),
        ];
        let mut lateness =
            Section::new("How late a wait ends", &columns).with_chart(0, 2, Some(1), true);
        let mut sleep_late = None;
        for delay_us in DELAYS_US {
            let delay = Duration::from_micros(delay_us);
            let sleeps = lateness_of_sleeps(context, delay)?;
            let timers = lateness_of_timers(context, delay)?;
            for (by, mut late) in [("sleep", sleeps), ("timer", timers)] {
                let middle = median(&mut late).unwrap_or(f64::NAN);
                if by == "sleep" {
                    sleep_late.get_or_insert(middle);
                }
                lateness.push([
                    (delay_us * 1000).into(),
                    by.into(),
                    middle.into(),
                    quantile(&mut late, 0.9).unwrap_or(f64::NAN).into(),
                    late.len().into(),
                ]);
            }
        }
        let findings = sleep_late.map(|late| {
            format!(
                "A sleep of {} µs ends {} late in the median: shorter waits are better spent spinning.",
                DELAYS_US[0],
                value_text(late, Unit::Nanoseconds)
            )
        });
        Ok(Outcome {
            sections: vec![rates, lateness],
            findings: findings.into_iter().collect(),
            ..Outcome::default()
        })
    }
}

fn clock_rate(context: &Context) -> Result<f64> {
    let (rounds, taken_ns) = context.repeat(context.time(20, 100), || {
        (0..BATCH).for_each(|_| {
            black_box(context.now_ns());
        });
        Ok(())
    })?;
    Ok((rounds * BATCH) as f64 / taken_ns as f64 * 1e9)
}

fn cancel_rate(context: &Context) -> Result<f64> {
    let timers = TimerSystem::new(1, ());
    let (rounds, taken_ns) = context.repeat(context.time(40, 200), || {
        for step in 0..BATCH {
            let id = timers.add(0, 1_000_000_000 + step * 1000, step);
            black_box(timers.cancel(id));
        }
        Ok(())
    })?;
    Ok((rounds * BATCH) as f64 / taken_ns as f64 * 1e9)
}

fn fire_rate(context: &Context) -> Result<f64> {
    let timers = TimerSystem::new(1, ());
    let ignore = |_: usize, event: Expired<u64>| {
        black_box(event.payload);
    };
    // The timers' own time, independent of the clock.
    let mut now_ns = 0;
    let (rounds, taken_ns) = context.repeat(context.time(40, 200), || {
        for step in 0..BATCH {
            timers.add(0, now_ns + step * 1000, step);
        }
        now_ns += BATCH * 1000;
        timers.expire(0, now_ns, &ignore);
        Ok(())
    })?;
    Ok((rounds * BATCH) as f64 / taken_ns as f64 * 1e9)
}

fn lateness_of_sleeps(context: &Context, delay: Duration) -> Result<Vec<f64>> {
    let mut late = Vec::new();
    context.repeat(context.time(60, 300), || {
        let start_ns = context.now_ns();
        std::thread::sleep(delay);
        let taken_ns = context.now_ns() - start_ns;
        late.push(taken_ns as f64 - delay.as_nanos() as f64);
        Ok(())
    })?;
    Ok(late)
}

fn lateness_of_timers(context: &Context, delay: Duration) -> Result<Vec<f64>> {
    let pool = Pool::start(Options::with_workers(1)).map_err(|_| Error::NoThread)?;
    let flow = pool.flow(Entity::new(Class::Iso));
    let late = Arc::new(Lock::new(Vec::new()));
    let mut asked = 0;
    context.repeat(context.time(60, 300), || {
        let (noted, clock, caller) = (late.clone(), context.clone(), std::thread::current());
        let deadline_ns = context.now_ns() + delay.as_nanos() as u64;
        pool.after(delay, &flow, move || {
            noted
                .lock()
                .push(clock.now_ns() as f64 - deadline_ns as f64);
            caller.unpark();
        });
        asked += 1;
        while late.lock().len() < asked {
            context.check()?;
            std::thread::park_timeout(Duration::from_millis(50));
        }
        Ok(())
    })?;
    Ok(std::mem::take(&mut *late.lock()))
}
