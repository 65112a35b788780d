//! Rows about timers: the cost of adding and cancelling with many pending timers.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use refrain_timer::{TimerId, TimerSystem};
use tokio::time::Sleep;

use super::random::Random;
use super::row::{Row, Target};

/// The number of pending timers while additions and cancellations are measured.
const PENDING: usize = 1_000_000;
/// The number of timers that are then added and cancelled.
const MEASURED: usize = 100_000;
/// The latest deadline; the range covers a lost packet as well as an idle connection.
const LATEST_NS: u64 = 60_000_000_000;

pub fn rows() -> Vec<Row> {
    vec![insert(), cancel(Order::Added), cancel(Order::Random)]
}

fn ns_each(start: Instant, count: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / count as f64
}

fn deadlines(count: usize) -> Vec<u64> {
    let mut random = Random(1);
    (0..count).map(|_| 1 + random.next() % LATEST_NS).collect()
}

fn filled() -> (TimerSystem<u64>, Vec<TimerId>) {
    let system = TimerSystem::new(2, ());
    let add = |(payload, deadline_ns)| system.add(0, deadline_ns, payload);
    let ids = (0..).zip(deadlines(PENDING)).map(add).collect();
    (system, ids)
}

fn insert() -> Row {
    Row::new(
        "timer-insert",
        "add a timer, 1 M pending (tokio: 100,000)",
        "ns",
        Target::AtMost(40.0),
    )
    .with("refrain", || {
        let (system, _) = filled();
        let deadlines = deadlines(MEASURED);
        let start = Instant::now();
        for &deadline_ns in &deadlines {
            black_box(system.add(0, deadline_ns, 0));
        }
        ns_each(start, MEASURED)
    })
    .with("tokio", || tokio_timers(|insert_ns, _| insert_ns))
}

enum Order {
    Added,
    Random,
}

fn cancel(order: Order) -> Row {
    let is_random = matches!(order, Order::Random);
    let (id, what) = if is_random {
        (
            "timer-cancel-random",
            "cancel a timer, 1 M pending, in random order, one by one",
        )
    } else {
        (
            "timer-cancel",
            "cancel a timer, 1 M pending, in the order of addition (tokio: 100,000)",
        )
    };
    let row = Row::new(id, what, "ns", Target::AtMost(30.0)).with("refrain", move || {
        let (system, mut ids) = filled();
        if is_random {
            Random(2).shuffle(&mut ids);
        }
        let start = Instant::now();
        for &id in &ids[..MEASURED] {
            black_box(system.cancel(id));
        }
        ns_each(start, MEASURED)
    });
    if is_random {
        return row;
    }
    row.with("tokio", || tokio_timers(|_, cancel_ns| cancel_ns))
}

/// Registers and drops 100,000 sleeps. Passes the times per timer to `choose`, in nanoseconds.
fn tokio_timers(choose: impl Fn(f64, f64) -> f64) -> f64 {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build();
    let Ok(runtime) = runtime else {
        return f64::NAN;
    };
    let _inside = runtime.enter();
    let deadlines = deadlines(MEASURED);
    let mut context = Context::from_waker(Waker::noop());
    let start = Instant::now();
    // A sleep is registered when it is first polled.
    let register = |&deadline_ns: &u64| {
        let mut sleep = Box::pin(tokio::time::sleep(Duration::from_nanos(
            LATEST_NS + deadline_ns,
        )));
        let _ = Pin::new(&mut sleep).poll(&mut context);
        sleep
    };
    let sleeps: Vec<Pin<Box<Sleep>>> = deadlines.iter().map(register).collect();
    let insert_ns = ns_each(start, MEASURED);
    let middle = Instant::now();
    drop(sleeps);
    let cancel_ns = ns_each(middle, MEASURED);
    choose(insert_ns, cancel_ns)
}
