//! The level table. A level is a row of it; no other code of the engine depends on the level's
//! number.

use refrain_codec::CodecId;

use crate::options::{Level, Purpose};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A level.
#[derive(Debug, Clone, Copy)]
pub struct LevelRow {
    /// 1 to 9.
    pub number: u8,
    /// Codec of the store's blocks.
    pub codec: CodecId,
    /// The level on the codec's own scale.
    pub codec_level: i32,
    /// Codecs and levels that compete with the codec on a part of each block.
    pub rivals: [Option<(CodecId, i32)>; 2],
    /// The maximum store bytes in one block: what the codec compresses at once and what a random
    /// read may have to decode.
    pub block_bytes: u64,
    /// One position in `2^anchor_bits` is an anchor.
    pub anchor_bits: u32,
    /// Shortest far repeat that becomes an extent, in bytes.
    pub far_min: u32,
    /// The default memory budget in bytes.
    pub memory_bytes: u64,
}

const fn row(
    number: u8,
    codec: CodecId,
    codec_level: i32,
    block_bytes: u64,
    anchor_bits: u32,
    far_min: u32,
    memory_mib: u64,
) -> LevelRow {
    LevelRow {
        number,
        codec,
        codec_level,
        rivals: [None; 2],
        block_bytes,
        anchor_bits,
        far_min,
        memory_bytes: memory_mib * MIB,
    }
}

const fn serve(number: u8, zstd_level: i32) -> LevelRow {
    row(number, CodecId::ZSTD, zstd_level, 128 * KIB, 7, 128, 1024)
}

/// The levels of archives for storage, fastest first: large blocks.
///
/// `anchor_bits` and `far_min` were chosen by measurement, compared with 2^7 and 192 bytes. Level 3
/// with 128 bytes: text 25.02 -> 24.76 MB, logs 4.40 -> 4.30, programs 127.4 -> 126.4, disk images
/// 353.3 -> 352.1, but kernel trees 193.9 -> 194.6. Level 2 the same: logs 4.39 -> 4.24, less than
/// level 1's 4.30, text 26.48 -> 26.25, but 700 MB of kernel trees 73.5 -> 74.0. The fastest level
/// has 192, because its archives then decode faster (kern2: 1.97 s to test, 2.15 with 128). Twice
/// the anchors (2^6) make text 1.0 to 1.4 % smaller, kernel trees at levels 4 and 5 0.2 %, at level
/// 6 0.1 %, logs and JSON less than 0.5 %, and programs at level 6 0.3 % larger; they cost level 4
/// an eighth and level 6 a twelfth of its time on kernel trees and disk images, so only the slow
/// levels have them.
///
/// Level 6 with blocks of 32 MiB instead of 16 is 0.4 % smaller on kernel trees and text, no
/// smaller on logs, and takes 1.07 (trees) to 1.45 (logs: too few blocks for two threads) times the
/// time and a quarter more memory.
static ARCHIVE: [LevelRow; 9] = [
    row(1, CodecId::ZSTD, 1, 4 * MIB, 7, 192, 1024),
    row(2, CodecId::ZSTD, 2, 4 * MIB, 7, 128, 1024),
    row(3, CodecId::ZSTD, 3, 4 * MIB, 7, 128, 1024),
    row(4, CodecId::ZSTD, 5, 8 * MIB, 7, 128, 1024),
    row(5, CodecId::ZSTD, 6, 16 * MIB, 7, 128, 1024),
    row(6, CodecId::ZSTD, 8, 16 * MIB, 7, 128, 1024),
    LevelRow {
        // lz alone makes logs 32 % smaller than zstd, programs 10 %, JSON 5 %, and text 1 %, in 5
        // to 8 times the time, so it takes the blocks of which it saves a thirteenth.
        rivals: [Some((CodecId::LZ, 1)), None],
        ..row(7, CodecId::ZSTD, 12, 32 * MIB, 6, 128, 1536)
    },
    LevelRow {
        // With bwt, which is 0.3 to 1.8 % smaller than bwt2 and takes two to three times as long to
        // decode: bwt with lzma only for machine code, and repeats of at least 512 bytes; then with
        // lzma where a part of a block shows that it is smaller, and repeats of at least 128 bytes:
        // 224 MB of two versions of a library 24.59 and 22.76 MB, Python's library as a tar 17.04
        // and 16.44, 126 MB of two kernel trees 9.18 and 9.24. With 512, versions that differ in
        // single bytes are larger than at level 7.
        // lz wins on logs: 40 MB 1.90 -> 1.65 MB.
        rivals: [Some((CodecId::LZMA, 6)), Some((CodecId::LZ, 1))],
        ..row(8, CodecId::BWT2, 1, 16 * MIB, 7, 128, 1024)
    },
    row(9, CodecId::CM, 1, 64 * MIB, 7, 192, 2048),
];

/// The levels of archives for frequent random access: small blocks of a codec that decodes quickly.
///
/// Blocks of 128 KiB read 4 KiB in 0.3 ms where 256 KiB take 0.5 ms and 1 MiB 1.1 ms; they make
/// archives 4 % and 10 % larger (two kernel trees, zstd 3). More and shorter extents make them
/// smaller, but lead a read to more blocks: with 2^6 and 96 bytes 900 MB of kernel trees take 111.2
/// MB and a read 0.72 ms, with 2^7 and 128 117.0 MB and 0.41 ms, with 192 117.8 MB and 0.35 ms.
///
/// Archives with LZ4 are half as large again as with zstd 3, and reads are not reliably faster:
/// 0.43, 0.38 and 0.34 ms against 0.56, 0.33 and 0.34 in three runs, blocks of 256 KiB.
static SERVE: [LevelRow; 9] = [
    serve(1, 1),
    serve(2, 3),
    serve(3, 5),
    serve(4, 6),
    serve(5, 8),
    serve(6, 10),
    serve(7, 11),
    serve(8, 15),
    serve(9, 16),
];

/// All levels for a purpose, fastest first.
pub fn levels(purpose: Purpose) -> &'static [LevelRow] {
    match purpose {
        Purpose::Archive => &ARCHIVE,
        Purpose::Serve => &SERVE,
    }
}

pub(crate) fn level_row(purpose: Purpose, level: Level) -> Option<&'static LevelRow> {
    levels(purpose).iter().find(|row| row.number == level.0)
}
