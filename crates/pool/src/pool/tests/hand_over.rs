//! Flows that are handed over.

use std::sync::{Arc, Mutex};

use super::*;

/// A flow of a pool with one worker, and a log that its jobs share with other flows' jobs.
#[derive(Clone)]
struct Writer {
    flow: Flow,
    written: Arc<Mutex<Vec<&'static str>>>,
}

impl Writer {
    fn pair(pool: &Pool) -> (Writer, Writer) {
        let writer = Writer {
            flow: normal(pool),
            written: Arc::default(),
        };
        let other = Writer {
            flow: normal(pool),
            written: Arc::clone(&writer.written),
        };
        (writer, other)
    }

    fn note(&self, what: &'static str) -> impl FnOnce() + Send + 'static {
        let written = Arc::clone(&self.written);
        move || written.lock().unwrap().push(what)
    }

    /// The log once both flows have no jobs left.
    fn written(&self, other: &Writer) -> Vec<&'static str> {
        self.flow.run(|| ()).unwrap();
        other.flow.run(|| ()).unwrap();
        self.written.lock().unwrap().clone()
    }
}

#[test]
fn a_flow_that_is_handed_over_runs_next_and_in_order() {
    let pool = pool(1);
    let (from, to) = Writer::pair(&pool);
    let (caller, called) = (from.clone(), to.clone());
    from.flow.submit(move || {
        called.flow.hand_over(called.note("handed over"));
        called.flow.submit(called.note("submitted after"));
        caller.note("the caller's end")();
    });
    let expected = ["the caller's end", "handed over", "submitted after"];
    assert_eq!(from.written(&to), expected);
}

#[test]
fn a_flow_is_queued_if_the_job_that_handed_it_over_goes_on() {
    let pool = pool(1);
    let (from, to) = Writer::pair(&pool);
    let called = to.clone();
    from.flow.submit(move || {
        called.flow.hand_over(called.note("first"));
        // Another hand-over and a checkpoint follow, so the flow is queued in a stripe each time.
        called.flow.submit(called.note("second"));
        for _ in 0..3 {
            called.flow.hand_over(called.note("more"));
            checkpoint();
        }
    });
    from.flow.submit(from.note("own"));
    let mut written = from.written(&to);
    let own = written.iter().position(|&what| what == "own").unwrap();
    written.remove(own);
    assert_eq!(written, ["first", "second", "more", "more", "more"]);
}

#[test]
fn two_flows_that_are_handed_over_both_run() {
    let pool = pool(1);
    let (from, to) = Writer::pair(&pool);
    let third = normal(&pool);
    let (called, beside) = (to.clone(), third.clone());
    from.flow.submit(move || {
        called.flow.hand_over(called.note("x"));
        beside.hand_over(called.note("x"));
    });
    third.run(|| ()).unwrap();
    assert_eq!(from.written(&to), ["x", "x"]);
}

#[test]
fn a_job_that_was_handed_over_cannot_be_cancelled() {
    let pool = pool(1);
    let (from, to) = Writer::pair(&pool);
    let called = to.clone();
    let cancelled = from.flow.spawn(move || {
        called.flow.hand_over(called.note("begun"));
        called.flow.submit(called.note("never"));
        called.flow.cancel()
    });
    assert_eq!(cancelled.wait(), Ok(1));
    assert_eq!(from.written(&to), ["begun"]);
}

#[test]
fn a_flow_without_handles_is_freed_once_its_worker_is_idle() {
    let pool = pool(1);
    let (from, to) = Writer::pair(&pool);
    let freed = Arc::downgrade(&to.flow.shared);
    let called = to.clone();
    from.flow
        .submit(move || called.flow.hand_over(called.note("ran")));
    assert_eq!(from.written(&to), ["ran"]);
    drop(to);
    eventually(|| freed.upgrade().is_none());
}

#[test]
fn a_dropped_pool_drops_a_flow_that_was_handed_over() {
    let pool = pool(1);
    let (from, to) = Writer::pair(&pool);
    let owned = Arc::new(());
    let (called, moved) = (to.flow.clone(), Arc::clone(&owned));
    from.flow.submit(move || {
        called.hand_over(move || drop(moved));
        // Until the pool is closing.
        std::thread::sleep(Duration::from_millis(30));
    });
    drop(pool);
    assert_eq!(Arc::strong_count(&owned), 1);
}
