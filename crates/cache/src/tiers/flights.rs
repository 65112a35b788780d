//! Several readers of one range in a process: one reads it, the others wait for that.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use refrain_pool::{Lock, OnceValue};

use crate::key::Key;

type Flight = Arc<OnceValue<Arc<Vec<u8>>>>;

/// The ranges that are being read.
#[derive(Default)]
pub(super) struct Flights {
    open: Lock<HashMap<Key, Flight>>,
}

impl Flights {
    /// The value of a key, by `read` unless another reader is reading it.
    ///
    /// # Errors
    /// From `read`. Who waited for a read that fails reads on its own.
    pub(super) fn get(
        &self,
        key: Key,
        read: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<Arc<Vec<u8>>> {
        let flight = Arc::clone(self.open.lock().entry(key).or_default());
        let value = flight.get_or_try_init(|| read().map(Arc::new)).cloned();
        let mut open = self.open.lock();
        if open
            .get(&key)
            .is_some_and(|found| Arc::ptr_eq(found, &flight))
        {
            open.remove(&key);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn readers_of_one_key_at_once_read_it_once_and_nothing_is_kept() {
        let (flights, reads) = (Flights::default(), AtomicUsize::new(0));
        let key = Key::of(b"x");
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    let read = || {
                        std::thread::sleep(Duration::from_millis(100));
                        reads.fetch_add(1, Ordering::Relaxed);
                        Ok(b"value".to_vec())
                    };
                    assert_eq!(*flights.get(key, read).unwrap(), b"value");
                });
            }
        });
        // A reader that begins when the first has ended reads again.
        assert!((1..10).contains(&reads.into_inner()));
        assert!(flights.open.lock().is_empty());
        assert!(
            flights
                .get(key, || Err(io::ErrorKind::Other.into()))
                .is_err()
        );
        assert_eq!(*flights.get(key, || Ok(b"2".to_vec())).unwrap(), b"2");
    }
}
