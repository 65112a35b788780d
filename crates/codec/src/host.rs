//! What the caller does while a codec works, so that its thread remains available.

/// How many bytes our own loops process between two check-ins where a byte takes about a
/// nanosecond.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// What a codec calls while it works. Has no effect on the results.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Called about every 100 to 500 µs by our own code: may do other work before it returns, also
    /// with other workspaces.
    pub check_in: fn(),
    /// Calls the closure once before it returns, on any thread: work of a library, which takes a
    /// millisecond or more without checking in.
    pub aside: fn(&mut (dyn FnMut() + Send)),
    /// Calls both closures once before it returns: the first on any thread, at the same time if
    /// there is a thread to spare, the second on the calling thread.
    pub beside: fn(&mut (dyn FnMut() + Send), &mut dyn FnMut()),
}

impl Default for Host {
    /// Does nothing else.
    fn default() -> Self {
        Self {
            check_in: || (),
            aside: |work| work(),
            beside: |work, own| {
                own();
                work();
            },
        }
    }
}

/// Shorter calls of libraries are not worth another thread.
const ASIDE_FROM_US: usize = 1000;

impl Host {
    /// Makes a call of a library that processes `bytes` bytes, at roughly this speed.
    pub fn call<R: Send>(
        self,
        bytes: usize,
        megabytes_per_second: usize,
        work: impl FnOnce() -> R + Send,
    ) -> R {
        if bytes / megabytes_per_second < ASIDE_FROM_US {
            return work();
        }
        let (mut work, mut result) = (Some(work), None);
        (self.aside)(&mut || result = work.take().map(|work| work()));
        match (result, work) {
            (Some(result), _) => result,
            (None, Some(work)) => work(),
            (None, None) => unreachable!("the work was called and left its result"),
        }
    }

    /// Makes two calls, at the same time if there is a thread to spare.
    pub(crate) fn both<A: Send, B>(
        self,
        work: impl FnOnce() -> A + Send,
        own: impl FnOnce() -> B,
    ) -> (A, B) {
        let (mut work, mut own) = (Some(work), Some(own));
        let (mut a, mut b) = (None, None);
        (self.beside)(&mut || a = work.take().map(|work| work()), &mut || {
            b = own.take().map(|own| own())
        });
        let b = b.or_else(|| own.take().map(|own| own()));
        let a = a.or_else(|| work.take().map(|work| work()));
        match (a, b) {
            (Some(a), Some(b)) => (a, b),
            _ => unreachable!("both were called and left their results"),
        }
    }

    /// Appends `bytes` to `out`.
    pub(crate) fn append(self, out: &mut Vec<u8>, bytes: &[u8]) {
        // Growing step by step would copy all of it at once.
        out.reserve(bytes.len());
        for piece in bytes.chunks(PIECE_BYTES) {
            out.extend_from_slice(piece);
            (self.check_in)();
        }
    }

    /// Sets the length of `list`, whose capacity is sufficient, and clears what is new.
    pub(crate) fn resize<T: Copy + Default>(self, list: &mut Vec<T>, length: usize) {
        while list.len() + PIECE_BYTES < length {
            list.resize(list.len() + PIECE_BYTES, T::default());
            (self.check_in)();
        }
        list.resize(length, T::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Host {
        /// A host whose `beside` starts a thread for each call.
        pub(crate) fn with_threads() -> Host {
            Host {
                beside: |work, own| {
                    std::thread::scope(|scope| {
                        scope.spawn(work);
                        own();
                    });
                },
                ..Host::default()
            }
        }
    }

    #[test]
    fn only_long_calls_are_made_aside() {
        let host = Host {
            aside: |work| std::thread::scope(|scope| scope.spawn(work).join().unwrap()),
            ..Host::default()
        };
        let is_here = |bytes| {
            let this = std::thread::current().id();
            host.call(bytes, 10, || std::thread::current().id() == this)
        };
        assert!(is_here(9_999) && !is_here(10_000));
        // A host that makes no call does not prevent it.
        let forgetful = Host {
            aside: |_| (),
            ..Host::default()
        };
        assert_eq!(forgetful.call(1 << 20, 1, || 5), 5);
    }

    #[test]
    fn two_calls_are_both_made() {
        let forgetful = Host {
            beside: |_, _| (),
            ..Host::default()
        };
        for host in [Host::default(), forgetful, Host::with_threads()] {
            assert_eq!(host.both(|| 1, || 2), (1, 2));
        }
    }

    #[test]
    fn pieces_add_up() {
        let host = Host::default();
        let bytes: Vec<u8> = (0..=255).cycle().take(2 * PIECE_BYTES + 5).collect();
        let mut out = vec![7];
        host.append(&mut out, &bytes);
        assert!(out[0] == 7 && out[1..] == bytes);
        for length in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES] {
            let mut list = vec![9_u16; PIECE_BYTES / 2];
            host.resize(&mut list, length);
            assert_eq!(list.len(), length);
            assert!(list.iter().skip(PIECE_BYTES / 2).all(|&value| value == 0));
        }
    }
}
