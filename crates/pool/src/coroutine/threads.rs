//! The backend for debugging: each coroutine is a thread, and the entering code waits until it
//! suspends. Debuggers, sanitizers and valgrind see ordinary threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::entry::TurnStart;
use super::error::CreateError;
use super::handoff::{Handoff, ThreadYielder, Turn};
use super::stack::StackSize;
use super::stack_pool::{count_created, count_ended};
use super::yielder::{WayBack, Yielder};
use crate::thread::class::KernelClass;
use crate::thread::settings::ThreadSettings;
use crate::thread::start::start;

pub(super) struct ThreadCoroutine<R> {
    handoff: Arc<Handoff>,
    result: Arc<Mutex<Option<thread::Result<R>>>>,
    /// `None` when it has ended.
    thread: Option<JoinHandle<()>>,
}

impl<R: Send + 'static> ThreadCoroutine<R> {
    pub(super) fn new(
        size: StackSize,
        body: impl FnOnce(&Yielder<'_>) -> R + Send + 'static,
    ) -> Result<Self, CreateError> {
        let handoff = Arc::new(Handoff::default());
        let result = Arc::new(Mutex::new(None));
        let run = {
            let (handoff, result) = (handoff.clone(), result.clone());
            move || {
                if let Some(first) = handoff.wait_inside() {
                    let yielder = ThreadYielder(handoff.clone());
                    let yielder = Yielder::new(WayBack::Thread(&yielder), first);
                    let outcome = catch_unwind(AssertUnwindSafe(|| body(&yielder)));
                    *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
                } else {
                    drop(body);
                }
                handoff.set(Turn::Ended);
            }
        };
        let settings = ThreadSettings::of_process(KernelClass::Normal);
        let thread = start(&settings, "coroutine", run).map_err(|reason| CreateError::Refused {
            stack_bytes: size.bytes(),
            reason,
        })?;
        count_created();
        Ok(ThreadCoroutine {
            handoff,
            result,
            thread: Some(thread),
        })
    }
}

impl<R> ThreadCoroutine<R> {
    pub(super) fn is_finished(&self) -> bool {
        self.thread.is_none()
    }

    pub(super) fn enter(&mut self, entry: TurnStart) -> Option<R> {
        self.handoff.set(Turn::Entered(entry));
        if !self.handoff.wait_outside() {
            return None;
        }
        self.join();
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        match { result }.take()? {
            Ok(value) => Some(value),
            Err(payload) => resume_unwind(payload),
        }
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // Its panics are caught inside.
            let _ = thread.join();
            count_ended();
        }
    }
}

impl<R> Drop for ThreadCoroutine<R> {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.handoff.set(Turn::Unwinding);
            self.join();
        }
    }
}
