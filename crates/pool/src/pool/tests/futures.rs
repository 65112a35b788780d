use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use super::*;

#[test]
fn a_future_awaits_jobs_of_other_flows() {
    let pool = pool(2);
    let (one, two) = (normal(&pool), normal(&pool));
    let worker = two.clone();
    let task = one.spawn_future(async move {
        let mut sum = 0;
        for number in 0..1000 {
            sum += worker.spawn(move || number).await.unwrap();
        }
        sum
    });
    assert_eq!(task.wait(), Ok(499_500));
    let nested = two.spawn_future(async move { one.spawn_future(async { 3 }).await });
    assert_eq!(nested.wait(), Ok(Ok(3)));
}

#[test]
fn a_panic_in_a_future_reaches_its_handle() {
    let pool = pool(1);
    let flow = normal(&pool);
    let task = flow.spawn_future(async { panic!("polled") });
    assert_eq!(
        task.wait(),
        Err::<(), _>(JobError::Panicked("polled".into()))
    );
    let inner = flow.clone();
    let outer = flow.spawn_future(async move { inner.spawn(|| panic!("awaited")).await });
    let awaited = Ok(Err::<(), _>(JobError::Panicked("awaited".into())));
    assert_eq!(outer.wait(), awaited);
}

/// A future that is pending until it is opened. Stores its waker for the test.
#[derive(Clone, Default)]
struct Gate {
    is_open: Arc<AtomicBool>,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Future for Gate {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        *self.waker.lock().unwrap() = Some(context.waker().clone());
        if self.is_open.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[test]
fn a_waker_works_on_any_thread_and_any_number_of_times() {
    let pool = pool(2);
    let gate = Gate::default();
    let task = normal(&pool).spawn_future(gate.clone());
    eventually(|| gate.waker.lock().unwrap().is_some());
    let waker = gate.waker.lock().unwrap().take().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..500).for_each(|_| waker.wake_by_ref()));
        }
    });
    assert!(!task.is_done());
    gate.is_open.store(true, SeqCst);
    waker.wake_by_ref();
    assert_eq!(task.wait(), Ok(()));
    waker.wake();
}

#[test]
fn a_future_without_wakers_is_freed() {
    let pool = pool(1);
    let alive = Arc::new(());
    let (gate, held) = (Gate::default(), Arc::clone(&alive));
    let waiting = gate.clone();
    let task = normal(&pool).spawn_future(async move {
        waiting.await;
        drop(held);
    });
    eventually(|| gate.waker.lock().unwrap().is_some());
    assert_eq!(Arc::strong_count(&alive), 2);
    // After the last waker is dropped, nothing can wake the future.
    eventually(|| {
        gate.waker.lock().unwrap().take();
        Arc::strong_count(&alive) == 1
    });
    assert_eq!(task.wait(), Err(JobError::Cancelled));
}
