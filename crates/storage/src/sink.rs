//! Bytes written strictly forward.

use std::io;
use std::sync::Arc;

use crate::source::Source;

/// Bytes written strictly forward. Nothing is visible under its final name before
/// [`Sink::publish`]; dropping an unpublished sink removes what it made.
pub trait Sink: Send {
    /// Appends all of `bytes`.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Appends `length_bytes` zero bytes, as a hole where the target can hold one.
    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()>;

    /// A view that reads back what was already written, where the target can (a regular file);
    /// `None` for pipes and terminals. The view follows: it also sees what is written later.
    fn read_back(&self) -> Option<Arc<dyn Source>> {
        None
    }

    /// Makes the output whole and visible (flush, set final size, rename). Called once, last.
    fn publish(&mut self) -> io::Result<()>;
}

macro_rules! sink_by_reference {
    ($($reference:ty),*) => {$(
        impl<K: Sink + ?Sized> Sink for $reference {
            fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
                (**self).write_all(bytes)
            }

            fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
                (**self).write_zeros(length_bytes)
            }

            fn read_back(&self) -> Option<Arc<dyn Source>> {
                (**self).read_back()
            }

            fn publish(&mut self) -> io::Result<()> {
                (**self).publish()
            }
        }
    )*};
}

sink_by_reference!(&mut K, Box<K>);
