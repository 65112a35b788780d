//! Limits what a verb or a random read decodes.
//!
//! Extents may refer to blocks in any order. If a cache holds too few of them, blocks are decoded
//! repeatedly, and alternating copies of single bytes from two large blocks would cost gigabytes of
//! work per byte. So the decoded bytes are counted and compared with the bytes delivered from
//! blocks and with the size of these blocks in the archive.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use refrain_pool::Lock;

use crate::error::{Error, Result, mebibytes};
use crate::options::ReadOptions;
use crate::read::read_control::ReadControl;

/// How much may be decoded regardless of delivery, in bytes, unless the memory is larger: a block
/// of the largest size, or those that are decoded ahead.
const FREE_BYTES_MIN: u64 = 1 << 30;

/// Counts what one verb or one random read decodes.
pub(crate) struct WorkMeter {
    /// The maximum bytes decoded per delivered byte, and per byte of the frames used.
    per_byte_max: u64,
    free_bytes: u64,
    decoded_bytes: AtomicU64,
    delivered_bytes: AtomicU64,
    /// The offsets of decoded frames, and their total size.
    frames: Lock<HashSet<u64>>,
    frames_bytes: AtomicU64,
    control: ReadControl,
}

impl WorkMeter {
    pub(crate) fn new(options: &ReadOptions) -> WorkMeter {
        WorkMeter {
            per_byte_max: options.work_max,
            free_bytes: options.memory_bytes.max(FREE_BYTES_MIN),
            decoded_bytes: AtomicU64::new(0),
            delivered_bytes: AtomicU64::new(0),
            frames: Lock::default(),
            frames_bytes: AtomicU64::new(0),
            control: ReadControl::default(),
        }
    }

    pub(crate) fn with_control(self, control: &ReadControl) -> WorkMeter {
        WorkMeter {
            control: control.clone(),
            ..self
        }
    }

    /// Called before something is read from the source, or waited for.
    ///
    /// # Errors
    /// As [`ReadControl::before_waiting`].
    pub(crate) fn before_waiting(&self) -> Result<()> {
        self.control.before_waiting()
    }

    /// Called before the work of the read begins, after waiting for a processor.
    ///
    /// # Errors
    /// As [`ReadControl::go_on`].
    pub(crate) fn go_on(&self) -> Result<()> {
        self.control.go_on()
    }

    /// Counts bytes about to be delivered from blocks.
    pub(crate) fn deliver(&self, bytes: u64) {
        self.delivered_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts the decoding of `raw_bytes` from the frame at `frame_offset` with `frame_bytes`,
    /// which are read and checked however little is decoded.
    ///
    /// # Errors
    /// `Limit`; then it must not be decoded.
    pub(crate) fn decode(&self, raw_bytes: u64, frame_offset: u64, frame_bytes: u64) -> Result<()> {
        if self.frames.lock().insert(frame_offset) {
            self.frames_bytes.fetch_add(frame_bytes, Ordering::Relaxed);
        }
        self.count(raw_bytes.max(frame_bytes))
    }

    /// Counts bytes decoded from a copy in memory.
    ///
    /// # Errors
    /// `Limit`.
    pub(crate) fn count(&self, bytes: u64) -> Result<()> {
        let before = self.decoded_bytes.fetch_add(bytes, Ordering::Relaxed);
        let decoded_bytes = before.saturating_add(bytes);
        let read_bytes = self.frames_bytes.load(Ordering::Relaxed);
        let delivered_bytes = self.delivered_bytes.load(Ordering::Relaxed);
        let allowed_bytes = delivered_bytes
            .saturating_add(read_bytes)
            .saturating_mul(self.per_byte_max)
            .saturating_add(self.free_bytes);
        if decoded_bytes <= allowed_bytes {
            return Ok(());
        }
        Err(Error::limit(format!(
            "{} are to be decoded to deliver {delivered_bytes} bytes from blocks of {read_bytes} bytes; the work \
             limit of {} bytes for each of them allows {}: raise the memory limit, so that blocks are decoded less \
             often, or the work limit",
            mebibytes(decoded_bytes),
            self.per_byte_max,
            mebibytes(allowed_bytes),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    const GIB: u64 = 1 << 30;

    fn meter(work_max: u64, memory_bytes: u64) -> WorkMeter {
        WorkMeter::new(&ReadOptions {
            work_max,
            memory_bytes,
            ..ReadOptions::default()
        })
    }

    #[test]
    fn the_limit_counts_delivered_bytes_and_each_frame_once() {
        let meter = meter(3, 1);
        meter.decode(GIB, 5, 100).unwrap();
        meter.decode(100, 5, 100).unwrap();
        meter.deliver(50);
        meter.decode(350, 5, 100).unwrap();
        let error = meter.decode(1, 5, 100).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Limit);
        // Refused decoding counts, and so does reading a frame of which little is decoded. The
        // second frame allows 300 bytes more.
        meter.decode(1, 9, 100).unwrap();
        meter.decode(100, 9, 100).unwrap();
        meter.decode(1, 9, 100).unwrap_err();
    }

    #[test]
    fn the_memory_and_an_unlimited_factor_raise_it() {
        let meter_of_memory = meter(0, 4 * GIB);
        meter_of_memory.decode(4 * GIB, 0, 0).unwrap();
        meter_of_memory.decode(1, 0, 0).unwrap_err();
        let unlimited = meter(u64::MAX, 1);
        unlimited.decode(u64::MAX, 0, 1).unwrap();
        unlimited.decode(u64::MAX, 0, 1).unwrap();
    }
}
