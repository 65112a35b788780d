//! The spare threads of a domain, which make calls for its workers.

use std::sync::Arc;
use std::sync::mpsc::{SendError, Sender};

use refrain_sync::{Mutex, lock};

use super::worker_status::WorkerStatus;
use crate::pool::job::JobBody;

/// A call on a spare thread.
pub(crate) struct SpareCall {
    pub(crate) body: JobBody,
    /// The worker to wake when `body` has been called and dropped.
    pub(crate) caller: Arc<WorkerStatus>,
    /// The way to the spare thread, which it returns when it is free again.
    pub(crate) spare: Sender<SpareCall>,
}

/// The spare threads that wait for a call.
#[derive(Default)]
pub(crate) struct Spares {
    waiting: Mutex<Vec<Sender<SpareCall>>>,
}

impl Spares {
    /// Gives a call to a waiting spare thread.
    ///
    /// # Errors
    /// There is none: returns the body.
    pub(crate) fn call(&self, body: JobBody, caller: &Arc<WorkerStatus>) -> Result<(), JobBody> {
        let Some(spare) = lock(&self.waiting).pop() else {
            return Err(body);
        };
        let call = SpareCall {
            body,
            caller: Arc::clone(caller),
            spare: spare.clone(),
        };
        spare.send(call).map_err(|SendError(call)| call.body)
    }

    /// A spare thread waits from now on, unless the domain is closing.
    pub(crate) fn add(&self, spare: Sender<SpareCall>, is_closing: impl FnOnce() -> bool) {
        let mut waiting = lock(&self.waiting);
        if !is_closing() {
            waiting.push(spare);
        }
    }

    /// Ends the spare threads that wait. The domain is closing.
    pub(crate) fn close(&self) {
        lock(&self.waiting).clear();
    }
}
