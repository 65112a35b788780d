//! A function of the caller's that is told of the progress, and may end the work.
//!
//! The file is unsafe: it calls a pointer to a function, with a pointer that only its owner knows.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use refrain::{Progress, Watch};
use refrain_sync::clock::monotonic_ns;

use crate::numbers::REFRAIN_UNKNOWN;
use crate::types::{RefrainProgress, RefrainProgressCallback};

/// A function and its context.
#[derive(Clone, Copy)]
pub(crate) struct Callback {
    pub function: unsafe extern "C" fn(*mut c_void, *const RefrainProgress) -> i32,
    pub context: *mut c_void,
}

// SAFETY: the pointer is only passed on. The header says that the function is called on the thread
// that makes the call, so a context that several threads may not use belongs to calls of one.
unsafe impl Send for Callback {}

impl Callback {
    pub(crate) fn new(function: RefrainProgressCallback, context: *mut c_void) -> Option<Callback> {
        function.map(|function| Callback { function, context })
    }
}

/// Tells a callback of the progress of one call.
pub(crate) struct CallbackWatch {
    callback: Option<Callback>,
    is_cancelled: AtomicBool,
    told: Cell<Progress>,
    told_at_ns: Cell<Option<u64>>,
}

/// How long a callback is not called after a call.
const INTERVAL_NS: u64 = 25_000_000;

impl CallbackWatch {
    pub(crate) fn new(callback: Option<Callback>) -> CallbackWatch {
        CallbackWatch {
            callback,
            is_cancelled: AtomicBool::new(false),
            told: Cell::default(),
            told_at_ns: Cell::new(None),
        }
    }

    /// A call may read an archive twice, and tells of its content only the first time.
    fn ahead(&self, progress: &Progress) -> Progress {
        let told = self.told.get();
        Progress {
            content_bytes_done: progress.content_bytes_done.max(told.content_bytes_done),
            content_bytes_total: progress.content_bytes_total.or(told.content_bytes_total),
            archive_bytes: progress.archive_bytes.max(told.archive_bytes),
        }
    }
}

impl Watch for CallbackWatch {
    fn progress(&self, progress: &Progress) {
        let Some(callback) = &self.callback else {
            return;
        };
        let progress = self.ahead(progress);
        let is_end = progress.content_bytes_total == Some(progress.content_bytes_done);
        let now_ns = monotonic_ns();
        let is_recent = |told_ns| now_ns.saturating_sub(told_ns) < INTERVAL_NS;
        if !is_end && self.told_at_ns.get().is_some_and(is_recent) {
            return;
        }
        self.told.set(progress);
        self.told_at_ns.set(Some(now_ns));
        let progress = as_structure(&progress);
        // SAFETY: whoever set the callback promises that it may be called with its context.
        let answer = unsafe { (callback.function)(callback.context, &raw const progress) };
        if answer != 0 {
            self.is_cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn cancel_flag(&self) -> Option<&AtomicBool> {
        Some(&self.is_cancelled)
    }
}

pub(crate) fn as_structure(progress: &Progress) -> RefrainProgress {
    RefrainProgress {
        struct_bytes: size_of::<RefrainProgress>(),
        content_bytes_done: progress.content_bytes_done,
        content_bytes_total: progress.content_bytes_total.unwrap_or(REFRAIN_UNKNOWN),
        archive_bytes: progress.archive_bytes,
    }
}
