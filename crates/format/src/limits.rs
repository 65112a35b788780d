//! The largest sizes and counts of an archive, and the reasons for them.
//!
//! The constants are the format's own limits: no archive of version 1 exceeds them. A reader with
//! less memory passes smaller ones in [`Limits`]. It cannot raise them, because checks take the
//! smaller of the two.

/// The end of any range of content, store or archive: the sum of two addresses fits in 63 bits, and
/// a difference in an `i64`.
pub const ADDRESS_BYTES_MAX: u64 = 1 << 61;

/// Archives concatenated in one file.
pub const ARCHIVES_MAX: usize = 1024;

/// Raw bytes of a block. A block is decoded as a whole, so this bounds the reader's memory. 1 GiB
/// fits a 32-bit address space and exceeds the window of every codec here.
pub const BLOCK_RAW_BYTES_MAX: u64 = 1 << 30;

/// Raw bytes of a packed section (the extents of an epoch, a batch of entries). Sixteen million
/// extents take about 80 MB.
pub const PACKED_RAW_BYTES_MAX: u64 = 1 << 28;

/// Extents in one frame.
pub const EXTENTS_PER_FRAME_MAX: u64 = 1 << 24;

/// The latest extents to which references may refer: a reader that cannot seek retains them, in
/// about 13 bytes each.
pub const REFERENCE_WINDOW_MAX: u64 = 1 << 20;

/// The depth of references to references. A random read decodes at most this many more Extents
/// frames.
pub const REFERENCE_DEPTH_MAX: u8 = 16;

/// Content bytes of an epoch. A hole costs nothing, whatever its length, so this is far more than
/// memory could hold.
pub const EPOCH_BYTES_MAX: u64 = 1 << 50;

/// Bytes of a repeated pattern. Longer periods are stored as copies of their first repetition.
pub const PATTERN_BYTES_MAX: usize = 64;

/// Bytes of a member's name: the longest path that common systems accept.
pub const NAME_BYTES_MAX: usize = 4096;

/// Members of an archive. Each has two frames; small files are better off in one tree member, where
/// a name costs a few bytes.
pub const MEMBERS_MAX: u64 = 1 << 31;

/// Members that have started and not ended. A reader from front to back retains their starts.
pub const OPEN_MEMBERS_MAX: usize = 1 << 20;

/// Further digests of one member, besides BLAKE3.
pub const DIGESTS_MAX: usize = 8;

/// Bytes of one further digest (SHA-512 and BLAKE2b have 64).
pub const DIGEST_BYTES_MAX: usize = 64;

/// Entries in one frame. It bounds the memory for listing.
pub const ENTRIES_PER_FRAME_MAX: u64 = 65_536;

/// Bytes of an entry's path or link target. Tar has no limit; this is 16 times the limit of Linux.
pub const PATH_BYTES_MAX: usize = 65_535;

/// Bytes of a path that the header and the index row of an Entries frame repeat.
pub const FIRST_PATH_BYTES_MAX: usize = 255;

/// Unpacked bytes of the entries of one frame: paths, link targets, header recipes, names and
/// values of attributes, plus 48 for each attribute and 16 for each data range. Entries share
/// these, so without this limit a frame of one megabyte could unpack to four gigabytes.
pub const ENTRY_BYTES_PER_FRAME_MAX: usize = 1 << 26;

/// Bytes of the data of an Index frame (a node of the index) and of the End frame (its roots). A
/// lookup reads one node per level.
pub const INDEX_BYTES_MAX: u64 = 1 << 20;

/// Levels of the index below a node. Nodes of 16 KiB hold more than 500 rows of most lists, so
/// eight levels are never needed.
pub const INDEX_DEPTH_MAX: u8 = 8;

/// Bytes of frames, headers included, that a reader from front to back must hold back until the
/// blocks of an earlier epoch have come. The extents of 64 epochs of 16 MiB rarely take more than
/// 10 MiB.
pub const HELD_BYTES_MAX: u64 = 1 << 26;

/// Filters before a codec.
pub const FILTERS_MAX: usize = 2;

/// Bytes of a codec's parameters.
pub const PARAMS_BYTES_MAX: usize = 64;

/// Bytes of the head of a payload, excluding its size.
pub const HEAD_BYTES_MAX: usize = 1 << 17;

/// Bytes of the data of a Catalog frame: 65,535 generations with long comments.
pub const CATALOG_BYTES_MAX: u64 = 1 << 26;

/// Tags of a generation.
pub const TAGS_MAX: usize = 64;

/// The maximum number of earlier members of which a layered tree consists.
pub const TREE_LAYERS_MAX: usize = 32;

/// Bytes of the data of a Whole frame.
pub const WHOLE_BYTES_MAX: usize = 1 << 16;

/// Frames of an archive: sequence numbers have 32 bits.
pub const FRAMES_MAX: u64 = u32::MAX as u64;

const _: () = assert!(BLOCK_RAW_BYTES_MAX <= ADDRESS_BYTES_MAX);
const _: () = assert!(EPOCH_BYTES_MAX <= ADDRESS_BYTES_MAX);
const _: () = assert!(BLOCK_RAW_BYTES_MAX <= u32::MAX as u64);
const _: () = assert!(PACKED_RAW_BYTES_MAX <= u32::MAX as u64);
const _: () = assert!(INDEX_BYTES_MAX <= u32::MAX as u64);
const _: () = assert!(NAME_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(PATH_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(FIRST_PATH_BYTES_MAX <= u8::MAX as usize);
const _: () = assert!(PATTERN_BYTES_MAX <= u8::MAX as usize);
const _: () = assert!(DIGEST_BYTES_MAX <= u8::MAX as usize);
// A frame must have room for an entry with the longest path and link target.
const _: () = assert!(ENTRY_BYTES_PER_FRAME_MAX > 2 * PATH_BYTES_MAX);

/// The limits of a reader; by default the format's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Raw bytes of a block.
    pub block_raw_bytes_max: u64,
    /// Raw (and coded) bytes of a packed section: extents or entries.
    pub packed_raw_bytes_max: u64,
    /// Extents in one frame. In memory each takes `size_of::<Extent>()` bytes (80 on 64-bit
    /// machines).
    pub extents_per_frame_max: u64,
    /// Unpacked bytes of the entries of one frame.
    pub entry_bytes_per_frame_max: u64,
    /// Members of the archive.
    pub members_max: u64,
    /// Bytes of the frames that are held back.
    pub held_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            block_raw_bytes_max: BLOCK_RAW_BYTES_MAX,
            packed_raw_bytes_max: PACKED_RAW_BYTES_MAX,
            extents_per_frame_max: EXTENTS_PER_FRAME_MAX,
            entry_bytes_per_frame_max: ENTRY_BYTES_PER_FRAME_MAX as u64,
            members_max: MEMBERS_MAX,
            held_bytes_max: HELD_BYTES_MAX,
        }
    }
}

impl Limits {
    /// Returns these limits, lowered to the format's own where they exceed them.
    #[must_use]
    pub fn capped(self) -> Self {
        let cap = Self::default();
        Self {
            block_raw_bytes_max: self.block_raw_bytes_max.min(cap.block_raw_bytes_max),
            packed_raw_bytes_max: self.packed_raw_bytes_max.min(cap.packed_raw_bytes_max),
            extents_per_frame_max: self.extents_per_frame_max.min(cap.extents_per_frame_max),
            entry_bytes_per_frame_max: (self.entry_bytes_per_frame_max)
                .min(cap.entry_bytes_per_frame_max),
            members_max: self.members_max.min(cap.members_max),
            held_bytes_max: self.held_bytes_max.min(cap.held_bytes_max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_cannot_raise_the_limits() {
        let raised = Limits {
            block_raw_bytes_max: u64::MAX,
            packed_raw_bytes_max: 7,
            ..Limits::default()
        };
        assert_eq!(raised.capped().block_raw_bytes_max, BLOCK_RAW_BYTES_MAX);
        assert_eq!(raised.capped().packed_raw_bytes_max, 7);
    }
}
