//! Reports each read failure once.

use std::collections::BTreeSet;
use std::sync::Arc;

use refrain_pool::Lock;

use crate::service::Reporter;

/// How many messages are remembered. With more kinds of damage, some are repeated.
const REMEMBERED_MAX: usize = 10_000;

/// Forwards messages, but none twice: the kernel retries what it could not read.
pub(super) struct Reports {
    reporter: Arc<Reporter>,
    told: Lock<BTreeSet<String>>,
}

impl Reports {
    pub(super) fn new(reporter: Arc<Reporter>) -> Reports {
        Reports {
            reporter,
            told: Lock::default(),
        }
    }

    /// Forwards a message unless one with this key was forwarded before.
    pub(super) fn tell(&self, key: String, message: &str) {
        let mut told = self.told.lock();
        if told.contains(&key) {
            return;
        }
        if told.len() >= REMEMBERED_MAX {
            told.clear();
        }
        told.insert(key);
        drop(told);
        (self.reporter)(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_passed_on_once() {
        let told = Arc::new(Lock::new(vec![]));
        let own = Arc::clone(&told);
        let reports = Reports::new(Arc::new(move |text: &str| own.lock().push(text.to_owned())));
        for (number, key) in ["a", "b", "a", "b", "a"].into_iter().enumerate() {
            reports.tell(key.into(), &format!("{key}{number}"));
        }
        assert_eq!(*told.lock(), ["a0", "b1"]);
    }
}
