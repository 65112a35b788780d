//! Jobs, and the handles for their results.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use refrain_sync::{Condvar, Mutex, lock, wait};

/// The result of one step of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The job has more steps. It is called again in this or the next turn of its flow.
    Again,
    /// The job has ended.
    Done,
}

/// A job without a lifetime, as flows store it. Called until it returns [`Step::Done`].
pub(crate) type JobBody = Box<dyn FnMut() -> Step + Send + 'static>;

/// Why a job has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobError {
    /// It panicked with this message. Its worker continues; what the job owned was dropped during
    /// unwinding.
    Panicked(String),
    /// It was dropped before its end: it was cancelled, or its pool was dropped.
    Cancelled,
}

impl fmt::Display for JobError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobError::Panicked(message) => write!(formatter, "a job panicked: {message}"),
            JobError::Cancelled => write!(formatter, "a job was cancelled"),
        }
    }
}

impl std::error::Error for JobError {}

/// The message of a panic, or a placeholder when the payload was not a string.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&'static str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(panic payload is not a string)".to_owned())
}

/// Runs `body`; turns a panic into an error.
// AssertUnwindSafe: a job owns what it touches or borrows it shared. The unwinding drops what the
// job owned, so nothing sees it half changed except through the job's own shared state.
pub(crate) fn catch<T>(body: impl FnOnce() -> T) -> Result<T, JobError> {
    catch_unwind(AssertUnwindSafe(body))
        .map_err(|payload| JobError::Panicked(panic_message(&*payload)))
}

enum Progress<T> {
    /// It has not ended. The waker belongs to the future that waits for it.
    Pending(Option<Waker>),
    Ended(Result<T, JobError>),
    /// The result was taken.
    Taken,
}

struct Completion<T> {
    progress: Mutex<Progress<T>>,
    ended: Condvar,
}

/// The job's side of a result: stores the result once, at the latest when it is dropped.
pub(crate) struct Promise<T> {
    completion: Arc<Completion<T>>,
    is_complete: bool,
}

impl<T> Promise<T> {
    pub(crate) fn new() -> (Promise<T>, JobHandle<T>) {
        let completion = Arc::new(Completion {
            progress: Mutex::new(Progress::Pending(None)),
            ended: Condvar::new(),
        });
        let handle = JobHandle {
            completion: Arc::clone(&completion),
        };
        let promise = Promise {
            completion,
            is_complete: false,
        };
        (promise, handle)
    }

    pub(crate) fn complete(mut self, result: Result<T, JobError>) {
        self.end(result);
    }

    fn end(&mut self, result: Result<T, JobError>) {
        self.is_complete = true;
        let before = std::mem::replace(
            &mut *lock(&self.completion.progress),
            Progress::Ended(result),
        );
        self.completion.ended.notify_all();
        if let Progress::Pending(Some(waker)) = before {
            waker.wake();
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        if !self.is_complete {
            self.end(Err(JobError::Cancelled));
        }
    }
}

/// The owner's side of a job's result. Dropping it does not cancel the job.
///
/// It is a future that other jobs can await. Threads outside of the pool call [`JobHandle::wait`].
#[must_use = "only the handle reports a panic of the job"]
pub struct JobHandle<T> {
    completion: Arc<Completion<T>>,
}

impl<T> JobHandle<T> {
    /// Waits until the job has ended. For threads outside the pool: a job that waits for another
    /// one this way blocks its worker, and blocks it forever if the other job needs that worker.
    ///
    /// # Errors
    /// The job's panic; [`JobError::Cancelled`] if it was dropped before its end.
    pub fn wait(self) -> Result<T, JobError> {
        let mut progress = lock(&self.completion.progress);
        loop {
            if let Some(result) = take(&mut progress) {
                return result;
            }
            progress = wait(&self.completion.ended, progress);
        }
    }

    /// Whether the job has ended.
    pub fn is_done(&self) -> bool {
        !matches!(*lock(&self.completion.progress), Progress::Pending(_))
    }
}

fn take<T>(progress: &mut Progress<T>) -> Option<Result<T, JobError>> {
    match progress {
        Progress::Pending(_) => None,
        _ => match std::mem::replace(progress, Progress::Taken) {
            Progress::Ended(result) => Some(result),
            // `wait` consumes the handle. A future that is polled after its end gets an error
            // instead of waiting forever.
            _ => Some(Err(JobError::Cancelled)),
        },
    }
}

impl<T> Future for JobHandle<T> {
    type Output = Result<T, JobError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut progress = lock(&self.completion.progress);
        match take(&mut progress) {
            Some(result) => Poll::Ready(result),
            None => {
                *progress = Progress::Pending(Some(context.waker().clone()));
                Poll::Pending
            }
        }
    }
}

impl<T> fmt::Debug for JobHandle<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JobHandle")
            .field("is_done", &self.is_done())
            .finish()
    }
}

pub(crate) fn body_of(job: impl FnOnce() + Send + 'static) -> JobBody {
    let mut job = Some(job);
    Box::new(move || {
        if let Some(job) = job.take() {
            job();
        }
        Step::Done
    })
}

pub(crate) fn once<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> (JobBody, JobHandle<T>) {
    let (promise, handle) = Promise::new();
    let mut job = Some((job, promise));
    let body = move || {
        if let Some((job, promise)) = job.take() {
            promise.complete(catch(job));
        }
        Step::Done
    };
    (Box::new(body), handle)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_end_reaches_the_handle() {
        let (mut body, handle) = once(|| 3);
        assert!(!handle.is_done());
        assert_eq!(body(), Step::Done);
        assert_eq!(body(), Step::Done, "another call does nothing");
        assert_eq!(handle.wait(), Ok(3));

        let (mut body, handle) = once(|| -> u8 { panic!("number {}", 7) });
        assert_eq!(body(), Step::Done);
        assert_eq!(handle.wait(), Err(JobError::Panicked("number 7".into())));

        let (body, handle) = once(|| 3);
        drop(body);
        assert!(handle.is_done());
        assert_eq!(handle.wait(), Err(JobError::Cancelled));
    }

    #[test]
    fn a_waiting_thread_is_woken() {
        let (mut body, handle) = once(|| "done");
        let waiter = std::thread::spawn(|| handle.wait());
        std::thread::sleep(std::time::Duration::from_millis(5));
        body();
        assert_eq!(waiter.join().unwrap(), Ok("done"));
    }

    #[test]
    fn a_future_that_is_polled_after_its_end_returns_an_error() {
        let (mut body, mut handle) = once(|| 5);
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(Pin::new(&mut handle).poll(&mut context), Poll::Pending);
        body();
        assert_eq!(Pin::new(&mut handle).poll(&mut context), Poll::Ready(Ok(5)));
        let after = Pin::new(&mut handle).poll(&mut context);
        assert_eq!(after, Poll::Ready(Err(JobError::Cancelled)));
    }
}
