//! [`GrowingSink`]: something that holds bytes and takes more behind them.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::sink::Sink;
use crate::source::Source;

/// A sink that appends to what is there already: a [`GrowingFile`](crate::GrowingFile), or files in
/// a folder. What was there stays readable, and stays as it is, until the sink is published; if it
/// is dropped before, everything is as it was.
pub trait GrowingSink: Sink {
    /// The bytes that are there now.
    ///
    /// # Errors
    /// Of finding out how many there are.
    fn source(&self) -> io::Result<Arc<dyn Source>>;

    /// Starts to append behind the first `end` bytes. Call it before the first write, and again
    /// before what is written after something was published.
    ///
    /// # Errors
    /// There are fewer bytes, or more that cannot be cut off.
    fn append_behind(&mut self, end: u64) -> io::Result<()>;

    /// Whether more can be appended after something was published.
    fn grows_again(&self) -> bool {
        true
    }
}

/// A growing sink that can give back parts of what is there.
pub trait GivesBack: GrowingSink {
    /// Checks that parts can be given back. Changes nothing.
    ///
    /// # Errors
    /// `Unsupported` if they cannot.
    fn check_holes(&self) -> io::Result<()>;

    /// How many bytes of a range take space.
    ///
    /// # Errors
    /// From the system.
    fn data_bytes(&self, range: &Range<u64>) -> io::Result<u64>;

    /// Gives a range back, at the latest with [`sync_holes`](Self::sync_holes): it then reads as
    /// zeros, or stays as it was if giving it back would cost too much.
    ///
    /// # Errors
    /// From the system.
    fn punch(&mut self, range: Range<u64>) -> io::Result<()>;

    /// Waits until all that was given back is.
    ///
    /// # Errors
    /// From the system.
    fn sync_holes(&mut self) -> io::Result<()>;

    /// The bytes that are taken.
    ///
    /// # Errors
    /// From the system.
    fn allocated_bytes(&self) -> io::Result<u64>;
}
