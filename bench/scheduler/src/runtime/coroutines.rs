//! Rows about coroutines: a switch, and a whole short life.

use std::hint::black_box;
use std::time::Instant;

use corosensei::stack::DefaultStack;
use refrain_pool::coroutine::{Coroutine, Entered, StackSize, Yielder};

use super::row::{Row, Target};

const TURNS: u64 = 1_000_000;
const LIVES: u64 = 200_000;

pub fn rows() -> Vec<Row> {
    vec![switch(), create(), life()]
}

fn switch() -> Row {
    Row::new(
        "coroutine-switch",
        "one way of enter and suspend, with accounting",
        "ns",
        Target::AtMost(3.0),
    )
    .with("refrain", || switch_ns(TURNS))
    .with("corosensei alone", raw_switch_ns)
}

fn create() -> Row {
    Row::new(
        "coroutine-create",
        "create and free without a turn, with accounting",
        "ns",
        Target::AtMost(15.0),
    )
    .with("refrain, pooled stacks", create_ns)
}

fn life() -> Row {
    Row::new(
        "coroutine-life",
        "create, run to the end, free, with accounting",
        "ns",
        Target::OfSecond(2.0),
    )
    .with("refrain, pooled stacks", life_ns)
    .with("corosensei alone, one stack", || raw_life_ns(true))
    .with("corosensei alone, a new stack each", || raw_life_ns(false))
}

fn per(start: Instant, count: u64) -> f64 {
    start.elapsed().as_nanos() as f64 / count as f64
}

fn made<R: 'static>(body: impl FnOnce(&Yielder<'_>) -> R + 'static) -> Option<Coroutine<R>> {
    Coroutine::new(StackSize::Medium, body).ok()
}

fn switch_ns(turns: u64) -> f64 {
    let turning = made(move |yielder| {
        for _ in 0..turns {
            if yielder.suspend().is_err() {
                return false;
            }
        }
        true
    });
    let Some(turning) = turning else {
        return f64::NAN;
    };
    let start = Instant::now();
    while turning.enter() == Ok(Entered::Suspended) {}
    per(start, 2 * turns)
}

fn raw_switch_ns() -> f64 {
    let mut turning = corosensei::Coroutine::<(), (), ()>::new(|yielder, ()| {
        for _ in 0..TURNS {
            yielder.suspend(());
        }
    });
    let start = Instant::now();
    while turning.resume(()).as_yield().is_some() {}
    per(start, 2 * TURNS)
}

fn create_ns() -> f64 {
    let start = Instant::now();
    for number in 0..LIVES {
        if black_box(made(move |_| black_box(number))).is_none() {
            return f64::NAN;
        }
    }
    per(start, LIVES)
}

fn life_ns() -> f64 {
    let start = Instant::now();
    let mut sum = 0;
    for number in 0..LIVES {
        let Some(coroutine) = made(move |_| black_box(number)) else {
            return f64::NAN;
        };
        if let Ok(Entered::Finished(value)) = coroutine.enter() {
            sum += value;
        }
    }
    black_box(sum);
    per(start, LIVES)
}

fn raw_life_ns(is_reused: bool) -> f64 {
    let mut stack = DefaultStack::default();
    // Mapping a stack takes microseconds.
    let lives = if is_reused { LIVES } else { LIVES / 20 };
    let start = Instant::now();
    let mut sum = 0;
    for number in 0..lives {
        if !is_reused {
            stack = DefaultStack::default();
        }
        let mut coroutine = corosensei::Coroutine::<(), (), u64, _>::with_stack(
            stack,
            move |_: &corosensei::Yielder<(), ()>, ()| black_box(number),
        );
        sum += coroutine.resume(()).as_return().unwrap_or_default();
        stack = coroutine.into_stack();
    }
    black_box(sum);
    per(start, lives)
}
