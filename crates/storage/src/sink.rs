//! Bytes written strictly forward.

use std::io;
use std::sync::Arc;

use crate::read_back::ReadBack;
use crate::source::Source;

/// Bytes written strictly forward. Nothing is visible under its final name before
/// [`Sink::publish`]. Dropping an unpublished sink removes everything it created.
pub trait Sink: Send {
    /// Appends all of `bytes`.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Appends `length_bytes` zero bytes, as a hole where the target supports it.
    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()>;

    /// Returns a view of the written bytes if the target supports it (a regular file); `None` for
    /// pipes and terminals. The view includes bytes written later.
    fn read_back(&self) -> Option<Arc<dyn Source>> {
        None
    }

    /// Whether published output persists: in a regular file that the sink creates, as opposed to a
    /// pipe, a device, or whatever an inherited descriptor leads to.
    fn is_stored(&self) -> bool {
        false
    }

    /// What was read back from the disk and compared when the output was published. `None` if
    /// nobody asked for it.
    fn read_back_result(&self) -> Option<ReadBack> {
        None
    }

    /// The device and inode of the file being written, if it is one, so that a walk of its
    /// directory can leave it out.
    fn file_id(&self) -> Option<(u64, u64)> {
        None
    }

    /// Completes the output and makes it visible (flush, set the final size, rename). Called once,
    /// as the last operation.
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

            fn is_stored(&self) -> bool {
                (**self).is_stored()
            }

            fn read_back_result(&self) -> Option<ReadBack> {
                (**self).read_back_result()
            }

            fn file_id(&self) -> Option<(u64, u64)> {
                (**self).file_id()
            }

            fn publish(&mut self) -> io::Result<()> {
                (**self).publish()
            }
        }
    )*};
}

sink_by_reference!(&mut K, Box<K>);
