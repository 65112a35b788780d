//! The rules of the match stage, in one place.

/// Bytes hashed into an anchor's fingerprint, from the anchor's position on.
///
/// 64 as in zstd's long-distance mode: shorter windows find shorter repeats, but those belong to the codec.
pub const FINGERPRINT_BYTES: usize = 64;

/// Bytes whose hash decides whether a position is an anchor.
pub const ANCHOR_WINDOW_BYTES: usize = 8;

/// Longest period that is stored as a fill extent, in bytes.
pub const PERIOD_MAX: usize = 64;

/// Largest [`Rules::anchor_bits`]: an anchor's hash has 16 bits.
pub const ANCHOR_BITS_MAX: u32 = i16::BITS;

/// In a segment of noise one position in `2^NOISE_ANCHOR_BITS` times as many is an anchor.
///
/// What is compressed or encrypted already repeats as a whole or not at all, so few anchors find its repeats, and the
/// others would only crowd the index: without this rule 1 GiB of random bytes cost as many entries as 1 GiB of text.
pub const NOISE_ANCHOR_BITS: u32 = 2;

/// Anchors in one segment are at least this far apart, so that hostile data cannot flood the index:
/// a segment has at most `length / ANCHOR_SPACING_MIN + 1` of them.
pub const ANCHOR_SPACING_MIN: usize = 32;

/// After a repeat ends, it may go on behind a gap of at most this many bytes, in which as many others stand in its source.
///
/// Long gaps pay in programs, in which addresses move, and cost in text. (490 MB of programs and two kernel trees, level 3:
/// without resuming 140.6 and 196.1 MB; over gaps of 16 bytes 137.4 and 195.4; of 48, 131.9 and 196.3; of 112, 127.8 and
/// 199.5; of 112 and in text of 16, 127.7 and 195.6.)
pub const RESUME_GAP_MAX: usize = 112;

/// The same in text.
pub const RESUME_GAP_IN_TEXT_MAX: usize = 16;

/// Shortest piece of a repeat behind such a gap, in bytes.
///
/// It costs less than other extents: its source begins where a decoder expects it.
pub const RESUME_MIN: usize = 16;

/// Every how many bytes the start of a run or a short period is looked for.
pub const RUN_PROBE_STRIDE: usize = 4096;

/// Largest epoch, in bytes: positions in an epoch are `u32`.
pub const EPOCH_BYTES_MAX: usize = 1 << 30;

/// What the match stage looks for and what it accepts. The same rules give the same extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// One position in `2^anchor_bits` is an anchor, on average. 4 to 16.
    pub anchor_bits: u32,
    /// Shortest repeat, in bytes, that is worth an extent when its source is out of the codec's sight.
    ///
    /// An extent costs about 20 bits (two kernel trees: 385,510 in 922 kB) and cuts the codec's context; measured on the same
    /// trees, a floor between 128 and 256 gave the smallest archives, and 48 the largest.
    pub far_min: u32,
    /// Shortest repeat, in bytes, that is worth an extent when the codec sees the source itself.
    pub near_min: u32,
    /// How far back the codec sees inside its block, in bytes of the store.
    pub near_window: u64,
    /// Bytes of the store in one block: what lies in another block is never near.
    pub block_bytes: u64,
    /// Shortest run or short period, in bytes, that becomes a fill extent.
    pub run_min: u32,
    /// In a segment at most one repeat in so many bytes may go on behind a short gap: hostile data must not flood the extents.
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
