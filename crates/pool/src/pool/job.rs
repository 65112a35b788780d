//! Jobs, and the handles for their results.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use refrain_sync::{Condvar, Mutex, lock, wait};

/// A job without a lifetime, as flows store it.
pub(crate) type JobBody = Box<dyn FnOnce() + Send + 'static>;

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

/// What a job has left for its handle.
struct Completion<T> {
    /// `None` until the job has ended.
    result: Mutex<Option<Result<T, JobError>>>,
    ended: Condvar,
}

pub(crate) struct Promise<T> {
    completion: Arc<Completion<T>>,
    is_complete: bool,
}

impl<T> Promise<T> {
    pub(crate) fn new() -> (Promise<T>, JobHandle<T>) {
        let completion = Arc::new(Completion {
            result: Mutex::new(None),
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
        *lock(&self.completion.result) = Some(result);
        self.completion.ended.notify_all();
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
        let mut result = lock(&self.completion.result);
        loop {
            if let Some(result) = result.take() {
                return result;
            }
            result = wait(&self.completion.ended, result);
        }
    }

    /// Whether the job has ended.
    pub fn is_done(&self) -> bool {
        lock(&self.completion.result).is_some()
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

pub(crate) fn once<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> (JobBody, JobHandle<T>) {
    let (promise, handle) = Promise::new();
    (Box::new(move || promise.complete(catch(job))), handle)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_end_reaches_the_handle() {
        let (body, handle) = once(|| 3);
        assert!(!handle.is_done());
        body();
        assert_eq!(handle.wait(), Ok(3));

        let (body, handle) = once(|| -> u8 { panic!("number {}", 7) });
        body();
        assert_eq!(handle.wait(), Err(JobError::Panicked("number 7".into())));

        let (body, handle) = once(|| 3);
        drop(body);
        assert!(handle.is_done());
        assert_eq!(handle.wait(), Err(JobError::Cancelled));
    }

    #[test]
    fn a_waiting_thread_is_woken() {
        let (body, handle) = once(|| "done");
        let waiter = std::thread::spawn(|| handle.wait());
        std::thread::sleep(std::time::Duration::from_millis(5));
        body();
        assert_eq!(waiter.join().unwrap(), Ok("done"));
    }
}
