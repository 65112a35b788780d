//! What a plug-in keeps while its library may be replaced.

use std::sync::Arc;

use refrain_sync::{Mutex, lock};

/// The version of a library in use.
#[derive(Debug)]
pub(crate) struct Current<L>(Mutex<Arc<L>>);

impl<L> Current<L> {
    pub(crate) fn new(loaded: L) -> Current<L> {
        Current(Mutex::new(Arc::new(loaded)))
    }

    pub(crate) fn get(&self) -> Arc<L> {
        Arc::clone(&lock(&self.0))
    }

    /// Unloads the old one, after the last call in it.
    pub(crate) fn set(&self, new: L) {
        let old = std::mem::replace(&mut *lock(&self.0), Arc::new(new));
        // Without the lock.
        drop(old);
    }
}

/// A name for the rest of the process, as a plug-in's number is: there are few.
pub(crate) fn kept(name: &str) -> &'static str {
    Box::leak(name.to_owned().into_boxed_str())
}
