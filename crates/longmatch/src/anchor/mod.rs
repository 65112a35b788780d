//! Anchors: positions chosen by their content alone.
//!
//! A position is an anchor when the hash of the eight bytes from it on falls below a threshold. No state is
//! carried along, so any thread finds the same anchors in the same bytes wherever it starts, and the test of
//! many positions at once fits vector registers. (A rolling gear hash, as in zstd's long-distance mode or
//! FastCDC, is a serial chain: measured at 1.5 to 1.8 GB/s a core against 5 and more for this one.)
//!
//! The test is a signed compare with a negative threshold, and the hash of eight zero bytes is 0: zeros are
//! never anchors, so that sparse data cannot flood the index.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;
mod select;
mod window_hash;

pub(crate) use select::find;
