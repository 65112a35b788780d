//! Anchors: positions chosen by their content alone.
//!
//! A position is an anchor when the hash of the eight bytes at it is below a threshold. The scan
//! carries no state along, so any thread finds the same anchors in the same bytes wherever it
//! starts, and many positions can be tested at once in vector registers. (A rolling gear hash, as
//! in zstd's long-distance mode or FastCDC, is a serial chain: measured at 1.5 to 1.8 GB/s per
//! core, against 5 GB/s and more for this one.)
//! core, against 5 GB/s and more for this one.)
//!
//! The test is a signed comparison with a negative threshold, and the hash of eight zero bytes is
//! 0. So zeros are never anchors, and sparse data cannot flood the index.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;
mod select;
mod window_hash;

pub(crate) use select::find;
