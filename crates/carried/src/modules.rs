//! The modules of our codecs and filters.

/// What a decoder undoes. The numbers are those of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Role {
    /// A codec.
    Codec = 1,
    /// A filter, whose only parameter is one byte.
    Filter = 2,
}

/// A module for one codec or filter, and what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoder {
    /// Whether it is for a codec or a filter.
    pub role: Role,
    /// The number of the codec or filter in archives.
    pub number: u16,
    /// The module.
    pub module: &'static [u8],
    /// An upper bound on instructions for each raw byte. Those that do not depend on the raw bytes
    /// are counted apart ([`STEPS_FIXED`](Self::STEPS_FIXED)).
    pub steps_per_byte_max: u64,
    /// Memory that it needs for any block, in bytes.
    fixed_bytes: u64,
    /// Memory that it needs for each raw byte, in bytes.
    bytes_per_byte: u64,
}

const PAGE_BYTES: u64 = 64 << 10;
/// A module addresses 4 GiB.
const PAGES_MAX: u64 = 1 << 16;

impl Decoder {
    /// The instructions that a module may need for a block of any size: it fills its tables.
    pub const STEPS_FIXED: u64 = 1 << 28;

    /// The memory that it needs at most for a block of `raw_bytes`, in pages of 64 KiB.
    #[must_use]
    pub fn memory_pages_max(&self, raw_bytes: u64) -> u64 {
        let bytes = raw_bytes.saturating_mul(self.bytes_per_byte);
        let pages = bytes.saturating_add(self.fixed_bytes).div_ceil(PAGE_BYTES);
        pages.min(PAGES_MAX)
    }
}

macro_rules! decoders {
    ($($role:ident $number:literal $file:literal: $steps:literal, $fixed_mib:literal, $per_byte:literal;)*) => {
        /// By role and number.
        static DECODERS: &[Decoder] = &[$(Decoder {
            role: Role::$role,
            number: $number,
            module: include_bytes!(concat!("../modules/", $file, ".wasm")),
            steps_per_byte_max: $steps,
            fixed_bytes: $fixed_mib << 20,
            bytes_per_byte: $per_byte,
        }),*];
    };
}

// Measured with wasmi on text and noise, and at least four times as much.
// Role, number, file: instructions for each raw byte, MiB of memory, and bytes for each raw byte.
// The last includes the data and the raw bytes themselves, which the allocator rounds up.
decoders! {
    Codec 1 "lz4": 1024, 4, 4;
    Codec 2 "zstd": 4096, 8, 8;
    Codec 3 "lzma": 16384, 8, 8;
    Codec 4 "bzip2": 16384, 16, 4;
    Codec 5 "deflate": 4096, 4, 4;
    Codec 6 "ppmd": 65536, 260, 4;
    Codec 7 "bwt": 32768, 32, 12;
    Codec 8 "cm": 1048576, 600, 4;
    Codec 9 "lz": 16384, 32, 4;
    Codec 10 "bwt2": 32768, 32, 12;
    Filter 1 "filter_x86": 1024, 4, 4;
    Filter 2 "filter_arm64": 1024, 4, 4;
    Filter 3 "filter_delta": 1024, 4, 4;
    Filter 4 "filter_x86_64": 4096, 4, 4;
    Filter 5 "filter_transpose": 1024, 4, 4;
    Filter 6 "filter_xor": 1024, 4, 4;
}

/// All decoders, by role and number.
pub fn decoders() -> impl Iterator<Item = &'static Decoder> {
    DECODERS.iter()
}

/// The decoder for a codec or filter; `None` if there is none, or none is needed.
#[must_use]
pub fn decoder(role: Role, number: u16) -> Option<&'static Decoder> {
    decoders().find(|decoder| (decoder.role, decoder.number) == (role, number))
}
