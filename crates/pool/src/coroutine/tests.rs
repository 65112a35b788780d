//! Coroutines of both backends, alone and in thousands.
//!
//! `unsafe` here: movable coroutines; each says why it may be moved.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use super::*;
use crate::lock::Lock;

const BACKENDS: [Backend; 2] = [Backend::Assembly, Backend::Threads];

/// Tests that compare counts of the whole process run one at a time, without other tests that
/// create coroutines. So each joins its threads, which return their stacks when they end.
static ALONE: Mutex<()> = Mutex::new(());

pub(crate) fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn settings(backend: Backend, stack_size: StackSize) -> Settings {
    Settings {
        backend,
        stack_size,
    }
}

fn coroutine<R: Send + 'static>(
    backend: Backend,
    body: impl FnOnce(&Yielder<'_>) -> R + Send + 'static,
) -> Coroutine<R> {
    Coroutine::new(settings(backend, StackSize::Medium), body).unwrap()
}

struct CountsDrops(Arc<AtomicUsize>);

impl Drop for CountsDrops {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn turns_alternate_and_the_end_is_an_error_and_no_crash() {
    let _alone = alone();
    for backend in BACKENDS {
        let log = Arc::new(Lock::new(Vec::new()));
        let inner = log.clone();
        let turns = coroutine(backend, move |yielder| {
            for turn in 0..3 {
                inner.lock().push(format!("inside {turn}"));
                yielder.suspend().unwrap();
            }
            "value"
        });
        for turn in 0..3 {
            assert_eq!(turns.enter(), Ok(Entered::Suspended));
            log.lock().push(format!("outside {turn}"));
        }
        assert!(!turns.is_finished());
        assert_eq!(turns.enter(), Ok(Entered::Finished("value")));
        assert!(turns.is_finished());
        assert_eq!(turns.enter(), Err(EnterError::Finished));
        assert_eq!(turns.entries(), 4);
        let expected: Vec<_> = (0..3)
            .flat_map(|turn| [format!("inside {turn}"), format!("outside {turn}")])
            .collect();
        assert_eq!(*log.lock(), expected);
    }
}

#[test]
fn panics_reach_whoever_entered() {
    let _alone = alone();
    for backend in BACKENDS {
        let drops = Arc::new(AtomicUsize::new(0));
        let held = CountsDrops(drops.clone());
        let failing = coroutine(backend, move |yielder| {
            let _held = held;
            yielder.suspend().unwrap();
            assert_eq!(1, 2, "on purpose");
        });
        assert_eq!(failing.enter(), Ok(Entered::Suspended));
        let payload = catch_unwind(AssertUnwindSafe(|| failing.enter())).unwrap_err();
        let message = payload.downcast_ref::<String>().unwrap();
        assert!(message.contains("on purpose"), "{message}");
        assert_eq!(drops.load(SeqCst), 1);
        assert!(failing.is_finished());
        assert_eq!(failing.enter(), Err(EnterError::Finished));
    }
}

#[test]
fn dropping_unwinds_the_stack() {
    let _alone = alone();
    for backend in BACKENDS {
        let drops = Arc::new(AtomicUsize::new(0));
        let make = || {
            let (one, two) = (CountsDrops(drops.clone()), CountsDrops(drops.clone()));
            coroutine(backend, move |yielder| {
                let _one = one;
                // On the stack of a nested call.
                let nested = |two: CountsDrops| {
                    let _two = two;
                    yielder.suspend().unwrap();
                    unreachable!("is never entered again");
                };
                nested(two);
            })
        };
        drop(make());
        assert_eq!(drops.swap(0, SeqCst), 2, "never entered");
        let suspended = make();
        assert_eq!(suspended.enter(), Ok(Entered::Suspended));
        drop(suspended);
        assert_eq!(drops.swap(0, SeqCst), 2, "suspended");
        // Dropped while the one who owns it panics.
        let suspended = make();
        assert_eq!(suspended.enter(), Ok(Entered::Suspended));
        let panicked = catch_unwind(AssertUnwindSafe(move || {
            let _suspended = suspended;
            panic!("outside");
        }));
        assert!(panicked.is_err());
        assert_eq!(drops.swap(0, SeqCst), 2, "dropped by a panic");
    }
}

#[test]
fn entering_a_running_coroutine_is_an_error() {
    thread_local! {
        static ITSELF: Cell<Option<&'static Coroutine<EnterError>>> = const { Cell::new(None) };
    }
    let _alone = alone();
    let again = |_: &Yielder<'_>| ITSELF.get().unwrap().enter().unwrap_err();
    let recursive: &'static _ = Box::leak(Box::new(coroutine(Backend::Assembly, again)));
    ITSELF.set(Some(recursive));
    let entered = recursive.enter();
    assert_eq!(entered, Ok(Entered::Finished(EnterError::Running)));
}

#[test]
fn coroutines_enter_others() {
    let _alone = alone();
    for backend in BACKENDS {
        let sum = coroutine(backend, move |outer| {
            let inner = coroutine(backend, |yielder| {
                (0..5).for_each(|_| yielder.suspend().unwrap());
                5
            });
            let mut turns = 0;
            loop {
                outer.suspend().unwrap();
                turns += 1;
                if let Entered::Finished(value) = inner.enter().unwrap() {
                    return turns + value;
                }
            }
        });
        let mut entries = 0;
        let value = loop {
            entries += 1;
            if let Entered::Finished(value) = sum.enter().unwrap() {
                break value;
            }
        };
        assert_eq!((value, entries), (11, 7));
    }
}

#[test]
fn a_held_lock_refuses_a_suspension() {
    let _alone = alone();
    for backend in BACKENDS {
        let outside = Lock::new(());
        // A lock of the entering code does not belong to the coroutine.
        let _held_outside = outside.lock();
        let holder = coroutine(backend, |yielder| {
            yielder.suspend().unwrap();
            let lock = Lock::new(());
            let held = lock.lock();
            assert_eq!(yielder.suspend(), Err(HoldsLock));
            drop(held);
            yielder.suspend().unwrap();
        });
        assert_eq!(holder.enter(), Ok(Entered::Suspended));
        assert_eq!(holder.enter(), Ok(Entered::Suspended));
        assert_eq!(holder.enter(), Ok(Entered::Finished(())));
    }
}

/// Uses some stack, and checks it after a suspension.
fn sum_on_stack(yielder: &Yielder<'_>, seed: u64, depth: u64) -> u64 {
    let numbers: [u64; 16] = std::array::from_fn(|at| seed.wrapping_mul(at as u64 + depth));
    if depth.is_multiple_of(2) {
        yielder.suspend().unwrap();
    }
    let below = match depth {
        0 => 0,
        _ => sum_on_stack(yielder, seed, depth - 1),
    };
    let again: [u64; 16] = std::array::from_fn(|at| seed.wrapping_mul(at as u64 + depth));
    assert_eq!(numbers, again);
    below.wrapping_add(
        numbers
            .iter()
            .fold(0, |sum, number| sum.wrapping_add(*number)),
    )
}

/// Thousands of coroutines, each with its turns on any of the threads, in an order from a seed.
#[test]
fn thousands_move_between_threads() {
    let _alone = alone();
    const COROUTINES: u64 = 2_000;
    for seed in 1..3u64 {
        let before = coroutine_statistics();
        let ready = Lock::new(Vec::new());
        let expected = AtomicU64::new(0);
        let found = AtomicU64::new(0);
        for number in 0..COROUTINES {
            let depth = (number * seed) % 7;
            let body = move |yielder: &Yielder<'_>| sum_on_stack(yielder, number, depth);
            // SAFETY: the body has only numbers and the yielder on its stack, and uses no
            // thread-local variables.
            let made = unsafe { MovableCoroutine::new(Settings::default(), body) };
            ready.lock().push(made.unwrap());
            let sum = (0..=depth).flat_map(|depth| (0..16).map(move |at| at + depth));
            let sum = sum.fold(0u64, |sum, k| sum.wrapping_add(number.wrapping_mul(k)));
            expected.fetch_add(sum, SeqCst);
        }
        std::thread::scope(|scope| {
            let threads = [0, 1, 2, 3u64].map(|thread| {
                let (ready, found) = (&ready, &found);
                scope.spawn(move || {
                    let mut random = seed * 1000 + thread;
                    loop {
                        random = random
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        let taken = {
                            let mut ready = ready.lock();
                            let length = ready.len();
                            if length == 0 {
                                break;
                            }
                            ready.swap_remove((random >> 33) as usize % length)
                        };
                        let mut taken: MovableCoroutine<u64> = taken;
                        match taken.enter().unwrap() {
                            Entered::Suspended => ready.lock().push(taken),
                            Entered::Finished(sum) => _ = found.fetch_add(sum, SeqCst),
                        }
                    }
                })
            });
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        });
        assert_eq!(found.load(SeqCst), expected.load(SeqCst), "seed {seed}");
        let after = coroutine_statistics();
        assert_eq!(after.live, before.live);
        assert_eq!(after.created - before.created, COROUTINES);
        assert!(after.peak >= before.live + COROUTINES - 512, "{after:?}");
        assert!(after.entries - before.entries >= COROUTINES);
    }
}

#[test]
fn stacks_are_used_again_and_given_back() {
    let _alone = alone();
    let small = settings(Backend::Assembly, StackSize::Small);
    let make = |count| -> Vec<_> {
        let one = |_| Coroutine::new(small, |_: &Yielder<'_>| ()).unwrap();
        (0..count).map(one).collect()
    };
    drop(make(1_000));
    let first = coroutine_statistics();
    drop(make(1_000));
    let second = coroutine_statistics();
    assert_eq!(second.stacks, first.stacks, "{second:?}");
    assert_eq!(second.stacks_reused - first.stacks_reused, 1_000);
    // Created here, ended elsewhere: the stacks come back in batches.
    let made: Vec<_> = (0..1_000)
        // SAFETY: the body has nothing on its stack.
        .map(|_| unsafe { MovableCoroutine::new(small, |_: &Yielder<'_>| ()) }.unwrap())
        .collect();
    // Joining a thread waits for what it drops last, its stacks; the end of a scope does not.
    let elsewhere = std::thread::spawn(move || drop(made));
    elsewhere.join().unwrap();
    drop(make(1_000));
    let third = coroutine_statistics();
    assert_eq!(third.stacks, first.stacks, "{third:?}");
    let released = release_idle_stacks();
    assert!(released >= 1_000, "{released}");
    assert_eq!(coroutine_statistics().stacks, third.stacks - released);
}

#[test]
fn a_hundred_thousand_live_coroutines_work_or_are_refused_with_the_limit() {
    let _alone = alone();
    let small = settings(Backend::Assembly, StackSize::Small);
    let mut live = Vec::new();
    let refusal = loop {
        if live.len() == 100_000 {
            break None;
        }
        let number = live.len();
        let made = Coroutine::new(small, move |yielder: &Yielder<'_>| {
            yielder.suspend().unwrap();
            number
        });
        match made {
            Ok(coroutine) => {
                assert_eq!(coroutine.enter(), Ok(Entered::Suspended));
                live.push(coroutine);
            }
            Err(error) => break Some(error),
        }
    };
    let statistics = coroutine_statistics();
    assert!(statistics.live >= live.len() as u64);
    match refusal {
        None => assert!(statistics.stacks >= 100_000),
        Some(CreateError::TooManyStacks { stacks, limit }) => {
            assert_eq!((stacks, limit), (statistics.stacks, statistics.stacks_max));
            assert!(stacks >= limit, "{stacks} of {limit}");
            let text = CreateError::TooManyStacks { stacks, limit }.to_string();
            assert!(text.contains("vm.max_map_count"), "{text}");
        }
        Some(CreateError::Refused { reason, .. }) => panic!("{reason} after {}", live.len()),
    }
    for (number, coroutine) in live.iter().enumerate() {
        assert_eq!(coroutine.enter(), Ok(Entered::Finished(number)));
    }
    drop(live);
    release_idle_stacks();
    assert!(Coroutine::new(small, |_: &Yielder<'_>| ()).is_ok());
}

/// Enters every woken coroutine, on this thread, until none is woken.
fn run_all(coroutines: Vec<MovableCoroutine<()>>) -> usize {
    let (sender, woken) = channel();
    struct Wake(usize, Mutex<std::sync::mpsc::Sender<usize>>);
    impl std::task::Wake for Wake {
        fn wake(self: Arc<Self>) {
            let _ = self.1.lock().unwrap().send(self.0);
        }
    }
    let mut slots: Vec<_> = coroutines.into_iter().map(Some).collect();
    (0..slots.len()).for_each(|number| sender.send(number).unwrap());
    while let Ok(number) = woken.try_recv() {
        let waker = Arc::new(Wake(number, Mutex::new(sender.clone()))).into();
        let Some(coroutine) = &mut slots[number] else {
            continue;
        };
        if coroutine.enter_with(Some(&waker)).unwrap() == Entered::Finished(()) {
            slots[number] = None;
        }
    }
    slots.iter().filter(|slot| slot.is_some()).count()
}

fn pass(yielder: &Yielder<'_>) {
    if let Some(waker) = yielder.waker() {
        waker.wake();
    }
    yielder.suspend().unwrap();
}

fn movable(body: impl FnOnce(&Yielder<'_>) + Send + 'static) -> MovableCoroutine<()> {
    // SAFETY: the bodies of these tests have shared pointers that are `Send` on their stacks, and
    // use no thread-local variables themselves.
    unsafe { MovableCoroutine::new(Settings::default(), body) }.unwrap()
}

#[test]
fn a_mutex_is_handed_on_in_order_across_suspensions() {
    let _alone = alone();
    let mutex = Arc::new(CoMutex::new(Vec::new()));
    let entrants = (0..50).map(|number| {
        let mutex = mutex.clone();
        movable(move |yielder| {
            let mut order = mutex.lock(yielder).unwrap();
            assert!(mutex.try_lock().is_none());
            let length = order.len();
            pass(yielder);
            assert_eq!(order.len(), length, "someone else was inside");
            order.push(number);
        })
    });
    assert_eq!(run_all(entrants.collect()), 0);
    let order = Arc::into_inner(mutex).unwrap().into_inner();
    assert_eq!(order, (0..50).collect::<Vec<_>>());
}

#[test]
fn who_is_dropped_while_it_waits_hands_on_the_mutex() {
    let _alone = alone();
    let mutex = Arc::new(CoMutex::new(0));
    let held = mutex.try_lock().unwrap();
    let make = || {
        let mutex = mutex.clone();
        movable(move |yielder| *mutex.lock(yielder).unwrap() += 1)
    };
    let (mut first, mut second, mut third) = (make(), make(), make());
    for waiting in [&mut first, &mut second, &mut third] {
        assert_eq!(waiting.enter(), Ok(Entered::Suspended));
    }
    drop(second); // still waits
    drop(held); // the first now holds it
    drop(first); // does not take it
    assert_eq!(third.enter(), Ok(Entered::Finished(())));
    assert_eq!(*mutex.try_lock().unwrap(), 1);
}

#[test]
fn a_queue_wakes_in_order_and_misses_no_wake() {
    let _alone = alone();
    let queue = Arc::new(CoQueue::new());
    let state = Arc::new(CoMutex::new((0, Vec::new())));
    let mut all: Vec<_> = (0..20)
        .map(|number| {
            let (queue, state) = (queue.clone(), state.clone());
            movable(move |yielder| {
                let mut held = state.lock(yielder).unwrap();
                while held.0 == 0 {
                    queue.wait_unlocked(yielder, held).unwrap();
                    held = state.lock(yielder).unwrap();
                }
                held.0 -= 1;
                held.1.push(number);
            })
        })
        .collect();
    let (waker, shared) = (queue.clone(), state.clone());
    all.push(movable(move |yielder| {
        for _ in 0..20 {
            shared.lock(yielder).unwrap().0 += 1;
            assert!(waker.wake_one());
            pass(yielder);
            pass(yielder);
        }
    }));
    assert_eq!(run_all(all), 0);
    assert_eq!(state.try_lock().unwrap().1, (0..20).collect::<Vec<_>>());
    assert_eq!(
        (queue.waiting(), queue.wake_one(), queue.wake_all()),
        (0, false, 0)
    );
}

#[test]
fn mutexes_work_between_threads() {
    let _alone = alone();
    let total = Arc::new(CoMutex::new(0u64));
    std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| {
            let total = total.clone();
            scope.spawn(move || {
                let adders = (0..25).map(|_| {
                    let total = total.clone();
                    movable(move |yielder| {
                        for _ in 0..5 {
                            let mut total = total.lock(yielder).unwrap();
                            let before = *total;
                            pass(yielder);
                            *total = before + 1;
                        }
                    })
                });
                // Entered again and again, without wakers.
                let mut waiting: Vec<_> = adders.collect();
                while !waiting.is_empty() {
                    waiting.retain_mut(|adder| adder.enter() == Ok(Entered::Suspended));
                }
            })
        });
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(*total.try_lock().unwrap(), 500);
}

/// Code that reads as if it blocked, with its position on the stack: a header, then that many
/// bytes, like a reader of tar streams.
fn read_records(read: &mut dyn FnMut(&mut [u8])) -> u64 {
    let mut sum = 0;
    loop {
        let mut length = [0];
        read(&mut length);
        if length[0] == 0 {
            return sum;
        }
        let mut record = vec![0; usize::from(length[0])];
        read(&mut record);
        sum += record.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    }
}

/// A reader of a pipe that suspends while the pipe is empty, and leaves a waker.
fn read_pipe(
    yielder: &Yielder<'_>,
    pipe: &mut std::io::PipeReader,
    available: &AtomicUsize,
    buffer: &mut [u8],
) {
    use std::io::Read;
    let mut done = 0;
    while done < buffer.len() {
        let ready = available.load(SeqCst).min(buffer.len() - done);
        if ready == 0 {
            yielder.suspend().unwrap();
            continue;
        }
        pipe.read_exact(&mut buffer[done..done + ready]).unwrap();
        available.fetch_sub(ready, SeqCst);
        done += ready;
    }
}

/// Inputs most of which stall in the middle of a record, on this thread alone.
#[test]
fn a_stalled_pipe_stops_no_other_input() {
    use std::io::Write;
    const INPUTS: usize = 200;
    let _alone = alone();
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let before = threads();
    let mut writers = Vec::new();
    let mut readers: Vec<_> = (0..INPUTS)
        .map(|_| {
            let (mut pipe, writer) = std::io::pipe().unwrap();
            let available = Arc::new(AtomicUsize::new(0));
            writers.push((writer, available.clone()));
            let body = move |yielder: &Yielder<'_>| {
                read_records(&mut |buffer| read_pipe(yielder, &mut pipe, &available, buffer))
            };
            // SAFETY: a pipe, numbers and a shared counter, all of them `Send`, are on the stack;
            // no thread-local variable is used.
            Some(unsafe { MovableCoroutine::new(Settings::default(), body) }.unwrap())
        })
        .collect();
    let send =
        |writers: &mut Vec<(std::io::PipeWriter, Arc<AtomicUsize>)>, at: usize, bytes: &[u8]| {
            let (writer, available) = &mut writers[at];
            writer.write_all(bytes).unwrap();
            available.fetch_add(bytes.len(), SeqCst);
        };
    // All begin a record of three bytes and stall.
    (0..INPUTS).for_each(|at| send(&mut writers, at, &[3, 10]));
    let enter_all = |readers: &mut Vec<Option<MovableCoroutine<u64>>>| {
        let mut finished = Vec::new();
        for (at, slot) in readers.iter_mut().enumerate() {
            let Some(reader) = slot else { continue };
            if let Entered::Finished(sum) = reader.enter().unwrap() {
                finished.push((at, sum));
                *slot = None;
            }
        }
        finished
    };
    assert_eq!(enter_all(&mut readers), []);
    // Every tenth continues; the others stay where they are.
    for at in (0..INPUTS).step_by(10) {
        send(&mut writers, at, &[20, 30, 2, 1, 1]);
    }
    assert_eq!(enter_all(&mut readers), []);
    for at in (0..INPUTS).step_by(10) {
        send(&mut writers, at, &[0]);
    }
    let expected: Vec<_> = (0..INPUTS).step_by(10).map(|at| (at, 62)).collect();
    assert_eq!(enter_all(&mut readers), expected);
    assert!(threads() < before + INPUTS / 10, "a thread for each input");
    // The stalled ones are dropped in the middle of a record.
    drop(readers);
}
