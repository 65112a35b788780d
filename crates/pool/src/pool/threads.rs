//! Starting and ending the threads of a domain.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use refrain_policy::topology::{CpuId, CpuMask};
use refrain_sync::lock;

use super::job::JobBody;
use super::state::domain::{Domain, Flow};
use super::state::spares::SpareCall;
use super::state::worker_status::WorkerStatus;
use crate::error::Error;
use crate::thread::settings::ThreadSettings;
use crate::thread::start::start;

impl Domain {
    /// Starts the thread of a worker. If the system refuses, the worker stays out of the idle set,
    /// so nothing starts it again, and the others do the work. Returns whether there is a thread
    /// now.
    pub(crate) fn start_worker(self: &Arc<Self>, cpu: CpuId) -> bool {
        let mut threads = lock(&self.threads);
        if self.is_closing() || threads.has_started.get(cpu.index()) != Some(&false) {
            // The thread has been started, and finds what was queued when it looks.
            return true;
        }
        let domain = Arc::clone(self);
        let name = format!("{}-{}", self.name, cpu.index());
        let run = move || (domain.run_worker)(domain, cpu);
        let Ok(handle) = start(&self.worker_settings(cpu), &name, run) else {
            return false;
        };
        threads.has_started[cpu.index()] = true;
        threads.handles.push(handle);
        true
    }

    fn worker_settings(&self, cpu: CpuId) -> ThreadSettings {
        let cache = self.topology.cache_of(cpu);
        if !self.binds_workers || cache == self.topology.all() {
            return self.settings.clone();
        }
        let cpus = cache
            .iter()
            .filter_map(|cpu| self.topology.cpus().get(cpu.index()));
        self.settings.on_processors(cpus.map(|cpu| cpu.os_number))
    }

    /// Starts one worker, with nothing to do.
    pub(crate) fn start_first(self: &Arc<Self>) -> Result<(), Error> {
        let has_started = self
            .idle
            .claim_any(&CpuMask::ALL)
            .is_some_and(|cpu| self.start_worker(cpu));
        has_started.then_some(()).ok_or(Error::ThreadUnavailable)
    }

    /// Has a spare thread call and drop `body`, and then wake `caller`; starts one if none waits.
    /// Returns false, with `body` dropped, if the system refuses the thread or the domain is
    /// closing.
    pub(crate) fn call_spare(self: &Arc<Self>, body: JobBody, caller: &Arc<WorkerStatus>) -> bool {
        let Err(body) = self.spares.call(body, caller) else {
            return true;
        };
        let mut threads = lock(&self.threads);
        if self.is_closing() {
            return false;
        }
        let (spare, calls) = channel();
        let first = SpareCall {
            body,
            caller: Arc::clone(caller),
            spare,
        };
        let domain = Arc::clone(self);
        let run = move || serve_calls(&domain, first, &calls);
        let Ok(handle) = start(&self.settings, "spare", run) else {
            return false;
        };
        threads.handles.push(handle);
        true
    }

    /// Closes the domain: running jobs are finished, others dropped, threads joined.
    pub(crate) fn close(&self) {
        self.begin_closing();
        for stripe in &self.stripes {
            stripe.close().iter().for_each(Flow::abandon);
        }
        self.spares.close();
        let handles = std::mem::take(&mut lock(&self.threads).handles);
        for worker in &self.workers {
            worker.sleeper.wake();
        }
        let this_thread = std::thread::current().id();
        for handle in handles {
            // A pool that is dropped by its own job cannot wait for that job's worker.
            if handle.thread().id() != this_thread {
                // Workers catch the panics of jobs.
                let _ = handle.join();
            }
        }
        self.drop_timers();
    }
}

/// The life of a spare thread: calls, until the domain closes.
fn serve_calls(domain: &Domain, first: SpareCall, calls: &Receiver<SpareCall>) {
    let mut next = Some(first);
    while let Some(call) = next {
        let SpareCall {
            body,
            caller,
            spare,
        } = call;
        // What it borrows belongs to the caller, which may return as soon as the call has ended.
        body();
        caller.sleeper.wake();
        domain.spares.add(spare, || domain.is_closing());
        next = calls.recv().ok();
    }
}
