//! Archives of lrzip made of random records, and a reference decoder that replays every record on
//! the output.
//!
//! The blocks are uncompressed and of random size, and the blocks of both streams are interleaved.
//! The archives contain everything that a writer may produce and a reader must accept: runs and
//! periods, matches of matches, matches into earlier chunks, records that cross block borders.

use crate::rng::Rng;

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleRecord {
    /// This many literals.
    Literals(usize),
    /// Length and distance.
    Match(usize, usize),
}

/// The version and options of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleDialect {
    /// 4 to 7, or 8 to 14 for lrzip-next.
    pub minor: u8,
    /// Chunks name a filter (0.7.1).
    pub names_filter: bool,
    /// Written to a pipe, so without a length in the header.
    pub to_pipe: bool,
}

/// All dialects that can be generated.
pub const DIALECTS: [SampleDialect; 11] = [
    SampleDialect {
        minor: 4,
        names_filter: false,
        to_pipe: false,
    },
    SampleDialect {
        minor: 5,
        names_filter: false,
        to_pipe: false,
    },
    SampleDialect {
        minor: 6,
        names_filter: false,
        to_pipe: false,
    },
    SampleDialect {
        minor: 6,
        names_filter: false,
        to_pipe: true,
    },
    SampleDialect {
        minor: 7,
        names_filter: false,
        to_pipe: false,
    },
    SampleDialect {
        minor: 7,
        names_filter: true,
        to_pipe: false,
    },
    SampleDialect {
        minor: 7,
        names_filter: true,
        to_pipe: true,
    },
    SampleDialect {
        minor: 14,
        names_filter: false,
        to_pipe: false,
    },
    SampleDialect {
        minor: 8,
        names_filter: false,
        to_pipe: false,
    },
    SampleDialect {
        minor: 10,
        names_filter: false,
        to_pipe: false,
    },
    SampleDialect {
        minor: 12,
        names_filter: false,
        to_pipe: true,
    },
];

/// One chunk.
#[derive(Debug, Clone, Default)]
pub struct SampleChunk {
    /// Its records.
    pub records: Vec<SampleRecord>,
    /// Its literals.
    pub literals: Vec<u8>,
    /// The filter that 0.7.1 applied to its content: 0 none, 1 x86, 2 ARM64.
    pub filter: u8,
    /// Whether it is marked as the last one; `None`: truthfully.
    pub is_marked_last: Option<bool>,
}

/// Returns chunks of random records with about `content_bytes` of content in total.
#[must_use]
pub fn sample_chunks(content_bytes: usize, chunk_count: usize, seed: u64) -> Vec<SampleChunk> {
    let mut rng = Rng::new(seed);
    let mut at = 0;
    let chunk = |rng: &mut Rng, at: &mut usize| {
        let mut chunk = SampleChunk::default();
        let end = *at + content_bytes / chunk_count;
        while *at < end {
            let record = sample_record(rng, *at);
            let length = match record {
                SampleRecord::Literals(length) => {
                    let start = chunk.literals.len();
                    chunk.literals.resize(start + length, 0);
                    // Few values, so that the literals contain periods.
                    match rng.below(3) {
                        0 => chunk.literals[start..].fill(rng.below(256) as u8),
                        1 => {
                            let byte = |rng: &mut Rng| rng.below(2) as u8;
                            chunk.literals[start..]
                                .iter_mut()
                                .for_each(|to| *to = byte(rng));
                        }
                        _ => rng.fill(&mut chunk.literals[start..]),
                    }
                    length
                }
                SampleRecord::Match(length, _) => length,
            };
            chunk.records.push(record);
            *at += length;
        }
        chunk
    };
    (0..chunk_count).map(|_| chunk(&mut rng, &mut at)).collect()
}

fn sample_record(rng: &mut Rng, at: usize) -> SampleRecord {
    if at == 0 || rng.once_in(3) {
        return SampleRecord::Literals(rng.length(1, 300));
    }
    let distance = match rng.below(4) {
        0 => rng.length(1, 8.min(at)),
        1 => rng.length(1, 5000.min(at)),
        _ => rng.length(1, at),
    };
    let length = match rng.below(4) {
        0 => rng.length(1, 40),
        1 => rng.length(1, 65535),
        _ => rng.length(31, 3000),
    };
    SampleRecord::Match(length, distance)
}

/// Returns the content, decoded byte by byte.
#[must_use]
pub fn replay(chunks: &[SampleChunk]) -> Vec<u8> {
    let mut content = Vec::new();
    for chunk in chunks {
        let mut literals = chunk.literals.iter();
        for record in &chunk.records {
            match *record {
                SampleRecord::Literals(length) => content.extend(literals.by_ref().take(length)),
                SampleRecord::Match(length, distance) => {
                    for _ in 0..length {
                        content.push(content[content.len() - distance]);
                    }
                }
            }
        }
    }
    content
}

/// The CRC-32 of a chunk's content: initial value 0, not inverted.
fn chunk_crc(bytes: &[u8]) -> u32 {
    static OF_BYTE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < table.len() {
            let (mut crc, mut bit) = (byte as u32, 0);
            while bit < 8 {
                crc = (crc >> 1) ^ (0xEDB8_8320 * (crc & 1));
                bit += 1;
            }
            table[byte] = crc;
            byte += 1;
        }
        table
    };
    bytes.iter().fold(0, |crc: u32, &byte| {
        crc >> 8 ^ OF_BYTE[usize::from(crc as u8 ^ byte)]
    })
}

/// Returns an archive of `chunks` with blocks of at most `block_bytes`. It has CRC-32s where the
/// dialect has them, otherwise no digest.
#[must_use]
pub fn sample_lrzip_archive(
    chunks: &[SampleChunk],
    dialect: SampleDialect,
    block_bytes: usize,
    seed: u64,
) -> Vec<u8> {
    let stored = |block: &[u8]| (3, block.to_vec());
    encoded_lrzip_archive(chunks, dialect, (block_bytes, &stored), seed)
}

/// Encodes a block; also returns its type.
pub type EncodeBlock<'a> = &'a dyn Fn(&[u8]) -> (u8, Vec<u8>);

/// Like [`sample_lrzip_archive`], with encoded blocks.
#[must_use]
pub fn encoded_lrzip_archive(
    chunks: &[SampleChunk],
    dialect: SampleDialect,
    blocks: (usize, EncodeBlock),
    seed: u64,
) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let content = replay(chunks);
    let stated = if dialect.to_pipe { 0 } else { content.len() as u64 };
    let mut archive = b"LRZI\0".to_vec();
    archive.push(dialect.minor);
    archive.extend(stated.to_le_bytes());
    match dialect.minor {
        8 => archive.extend([0, 0, 0, 0]),
        9 | 10 => archive.extend([0, 0, 0, 0, 0x77, 2, b'a', b'b']),
        11.. => archive.extend([0, 0, 0, 0, 0, 0x77, 3, b'a', b'b', b'c']),
        _ => {
            let is_streaming = u8::from(dialect.minor == 7 && dialect.to_pipe);
            archive.extend([is_streaming, 0, 0x5D, 0, 0, 1, 0, 0, 0, 1 - is_streaming]);
        }
    }
    let mut from = 0;
    for (index, chunk) in chunks.iter().enumerate() {
        let length = chunk.records.iter().map(|record| match record {
            SampleRecord::Literals(length) | SampleRecord::Match(length, _) => length,
        });
        let to = from + length.sum::<usize>();
        if index > 0 && dialect.minor == 7 && dialect.to_pipe {
            archive.extend(b"LRZC");
            archive.extend([0; 20]);
        }
        let is_last = chunk.is_marked_last.unwrap_or(index + 1 == chunks.len());
        let crc = chunk_crc(&content[from..to]);
        put_chunk(
            &mut archive,
            chunk,
            dialect,
            (is_last, crc),
            blocks,
            &mut rng,
        );
        from = to;
    }
    archive
}

fn put_chunk(
    archive: &mut Vec<u8>,
    chunk: &SampleChunk,
    dialect: SampleDialect,
    (is_last, crc): (bool, u32),
    (block_bytes, encode): (usize, EncodeBlock),
    rng: &mut Rng,
) {
    let width = match dialect.minor {
        4 => 8,
        _ => rng.length(4, 8),
    };
    let header_width = if dialect.minor < 6 { 8 } else { width };
    match dialect.minor {
        4 => {}
        5 => archive.push(width as u8),
        _ => {
            archive.push(width as u8);
            archive.extend(dialect.names_filter.then_some(chunk.filter));
            archive.push(u8::from(is_last));
            // A length on which no reader may rely.
            archive.extend(vec![7; width]);
        }
    }
    let records = record_bytes(&chunk.records, dialect, width, crc);
    let base = archive.len();
    // The offsets at which to write the position of each stream's next block.
    let mut patch = [0; 2];
    for offset in &mut patch {
        put_block_header(archive, header_width, 3, [0; 2]);
        *offset = archive.len() - header_width;
    }
    let mut remaining = [&records[..], &chunk.literals[..]];
    let mut has_empty_tail = rng.once_in(2);
    while remaining.iter().any(|part| !part.is_empty()) || has_empty_tail {
        let mut stream = rng.below(2) as usize;
        if remaining[stream].is_empty() {
            stream = 1 - stream;
        }
        if remaining[stream].is_empty() {
            has_empty_tail = false;
            stream = 1;
        }
        let count = remaining[stream].len().min(rng.length(1, block_bytes));
        let (block, after) = remaining[stream].split_at(count);
        remaining[stream] = after;
        let position = (archive.len() - base) as u64;
        archive[patch[stream]..patch[stream] + header_width]
            .copy_from_slice(&position.to_le_bytes()[..header_width]);
        let (kind, coded) = if block.is_empty() { (3, Vec::new()) } else { encode(block) };
        let lengths = [coded.len(), count];
        put_block_header(archive, header_width, kind, lengths);
        patch[stream] = archive.len() - header_width;
        archive.extend(coded);
    }
}

/// Appends the header of a block whose successor is not known yet.
fn put_block_header(archive: &mut Vec<u8>, width: usize, kind: u8, lengths: [usize; 2]) {
    archive.push(kind);
    for field in [lengths[0], lengths[1], 0] {
        archive.extend(&field.to_le_bytes()[..width]);
    }
}

fn record_bytes(
    records: &[SampleRecord],
    dialect: SampleDialect,
    width: usize,
    crc: u32,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (length_width, length_max) = if dialect.minor == 4 { (8, usize::MAX) } else { (2, 65535) };
    for record in records {
        let (is_match, mut left, distance) = match *record {
            SampleRecord::Literals(length) => (0, length, 0),
            SampleRecord::Match(length, distance) => (1, length, distance as u64),
        };
        while left > 0 {
            let length = left.min(length_max);
            bytes.push(is_match);
            bytes.extend(&(length as u64).to_le_bytes()[..length_width]);
            if is_match == 1 {
                bytes.extend(&distance.to_le_bytes()[..width]);
            }
            left -= length;
        }
    }
    bytes.push(0);
    bytes.extend(vec![0; length_width]);
    if dialect.minor != 7 {
        bytes.extend(crc.to_le_bytes());
    }
    bytes
}
