//! The parameters of the match stage.

/// The number of bytes at an anchor's position that are hashed into its fingerprint.
///
/// 64 as in zstd's long-distance mode: shorter windows find shorter repeats, but those are left to
/// the codec.
pub const FINGERPRINT_BYTES: usize = 64;

/// The number of bytes whose hash decides whether a position is an anchor.
pub const ANCHOR_WINDOW_BYTES: usize = 8;

/// The longest period that is stored as a fill extent, in bytes.
pub const PERIOD_MAX: usize = 64;

/// The largest [`Rules::anchor_bits`]: an anchor's hash has 16 bits.
pub const ANCHOR_BITS_MAX: u32 = i16::BITS;

/// In a segment of incompressible data the distance between anchors grows by a factor of
/// `2^INCOMPRESSIBLE_ANCHOR_BITS`.
///
/// Data that is already compressed or encrypted repeats as a whole or not at all, so a few anchors
/// find its repeats, and others would only fill the index. Without this rule 1 GiB of random bytes
/// took as many entries as 1 GiB of text.
pub const INCOMPRESSIBLE_ANCHOR_BITS: u32 = 2;

/// The smallest distance between anchors of one segment, so that hostile data cannot flood the
/// index: a segment has at most `length / ANCHOR_SPACING_MIN + 1` of them.
pub const ANCHOR_SPACING_MIN: usize = 32;

/// After a repeat ends, it may resume after a gap of at most this many bytes. The gap has the same
/// length in the source.
///
/// Long gaps pay in programs, where addresses move, and cost in text. (490 MB of programs and two
/// kernel trees, level 3: without resuming 140.6 and 196.1 MB; with gaps of up to 16 bytes 137.4
/// and 195.4; up to 48, 131.9 and 196.3; up to 112, 127.8 and 199.5; up to 112, but 16 in text,
/// 127.7 and 195.6.)
pub const RESUME_GAP_MAX: usize = 112;

/// The longest such gap in text.
pub const RESUME_GAP_IN_TEXT_MAX: usize = 16;

/// The shortest part of a repeat after such a gap, in bytes.
///
/// Its extent costs less than others, because its source begins where a decoder expects it.
pub const RESUME_MIN: usize = 16;

/// The shortest part of a repeat after such a gap in text, in bytes.
///
/// Where many short passages differ, as in versions of generated code, the extents of short parts
/// cost more than they save, and time. (24 releases of typescript at level 1: 7.09 MB and 1.88 s of
/// processor time without this rule, 7.08 and 1.76 with 32, 7.03 and 1.60 with 48, 7.10 and 1.48
/// with 96; at level 8 4.15, 4.04 with 48 and 4.02 with 96. Two kernel trees at level 3: 189.99,
/// 189.28 and 189.21.)
pub const RESUME_MIN_IN_TEXT: usize = 48;

/// The distance in bytes between the positions that are tested for a run or a short period.
pub const RUN_PROBE_STRIDE: usize = 4096;

/// The largest epoch in bytes: positions in an epoch are `u32`.
pub const EPOCH_BYTES_MAX: usize = 1 << 30;

/// The rules by which the match stage finds and accepts repeats. The same rules give the same
/// extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// On average one position in `2^anchor_bits` is an anchor. From 4 to 16.
    pub anchor_bits: u32,
    /// The shortest repeat, in bytes, that becomes an extent when its source is outside the codec's
    /// window.
    ///
    /// An extent costs about 20 bits (two kernel trees: 385,510 in 922 kB) and interrupts the
    /// codec's context. On the same trees a minimum between 128 and 256 gave the smallest archives,
    /// and 48 the largest.
    pub far_min: u32,
    /// The shortest repeat, in bytes, that becomes an extent when its source is inside the codec's
    /// window.
    pub near_min: u32,
    /// The codec's window inside its block, in bytes of the store.
    pub near_window: u64,
    /// The number of store bytes in one block. A source in another block is never near.
    pub block_bytes: u64,
    /// The shortest run or short period, in bytes, that becomes a fill extent.
    pub run_min: u32,
    /// In a segment at most one repeat per this many bytes may resume after a short gap, so that
    /// hostile data cannot flood the list of extents.
    pub resume_spacing: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            anchor_bits: 7,
            far_min: 192,
            near_min: 4096,
            near_window: 2 << 20,
            block_bytes: 4 << 20,
            run_min: 1024,
            resume_spacing: 64,
        }
    }
}
