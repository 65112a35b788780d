//! Archives of lrzip made of random records, and the slow way to their content: every record replayed on the output.
//!
//! Blocks are stored as they are, in pieces of random size, both streams mixed. Everything that a writer may do and a reader must
//! bear is in it: runs and periods, matches of matches, matches into earlier chunks, records cut by blocks.

use crate::rng::Rng;

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleRecord {
    /// So many literals.
    Literals(usize),
    /// Length and distance.
    Match(usize, usize),
}

/// The rules of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleDialect {
    /// 4 to 7, or 14 for lrzip-next.
    pub minor: u8,
    /// Chunks name a filter (0.7.1).
    pub names_filter: bool,
    /// Written to a pipe: no length in the header.
    pub to_pipe: bool,
}

/// Every dialect that can be made here.
pub const DIALECTS: [SampleDialect; 8] = [
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
];

/// One chunk.
#[derive(Debug, Clone, Default)]
pub struct SampleChunk {
    /// Its records.
    pub records: Vec<SampleRecord>,
    /// Its literals.
    pub literals: Vec<u8>,
    /// What 0.7.1 did to its content before: 0 nothing, 1 x86, 2 ARM64.
    pub filter: u8,
}

/// Chunks of random records, with about so many bytes of content in all.
#[must_use]
pub fn sample_chunks(content_bytes: usize, chunk_count: usize, seed: u64) -> Vec<SampleChunk> {
    let mut numbers = Rng::new(seed);
    let mut at = 0;
    let chunk = |numbers: &mut Rng, at: &mut usize| {
        let mut chunk = SampleChunk::default();
        let end = *at + content_bytes / chunk_count;
        while *at < end {
            let record = made_record(numbers, *at);
            let length = match record {
                SampleRecord::Literals(length) => {
                    let start = chunk.literals.len();
                    chunk.literals.resize(start + length, 0);
                    // Few values, so that periods hide in the literals.
                    match numbers.below(3) {
                        0 => chunk.literals[start..].fill(numbers.below(256) as u8),
                        1 => {
                            let byte = |numbers: &mut Rng| numbers.below(2) as u8;
                            chunk.literals[start..]
                                .iter_mut()
                                .for_each(|to| *to = byte(numbers));
                        }
                        _ => numbers.fill(&mut chunk.literals[start..]),
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
    (0..chunk_count)
        .map(|_| chunk(&mut numbers, &mut at))
        .collect()
}

fn made_record(numbers: &mut Rng, at: usize) -> SampleRecord {
    if at == 0 || numbers.once_in(3) {
        return SampleRecord::Literals(numbers.length(1, 300));
    }
    let distance = match numbers.below(4) {
        0 => numbers.length(1, 8.min(at)),
        1 => numbers.length(1, 5000.min(at)),
        _ => numbers.length(1, at),
    };
    let length = match numbers.below(4) {
        0 => numbers.length(1, 40),
        1 => numbers.length(1, 65535),
        _ => numbers.length(31, 3000),
    };
    SampleRecord::Match(length, distance)
}

/// The content, byte by byte.
#[must_use]
pub fn replayed(chunks: &[SampleChunk]) -> Vec<u8> {
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

/// CRC-32 of a chunk's content, bit by bit: from 0 and not inverted.
fn chunk_crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc: u32, _| {
            (crc >> 1) ^ (0xEDB8_8320 * (crc & 1))
        })
    })
}

/// An archive of `chunks`, checked by CRC-32 where the dialect has it (else by nothing), with blocks of at most
/// `block_bytes`.
#[must_use]
pub fn sample_lrzip_archive(
    chunks: &[SampleChunk],
    dialect: SampleDialect,
    block_bytes: usize,
    seed: u64,
) -> Vec<u8> {
    let mut numbers = Rng::new(seed);
    let content = replayed(chunks);
    let stated = if dialect.to_pipe {
        0
    } else {
        content.len() as u64
    };
    let mut archive = b"LRZI\0".to_vec();
    archive.push(dialect.minor);
    archive.extend(stated.to_le_bytes());
    match dialect.minor {
        14 => archive.extend([0, 0, 0, 0, 0, 0x77, 3, b'a', b'b', b'c']),
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
        let is_last = index + 1 == chunks.len();
        let crc = chunk_crc(&content[from..to]);
        put_chunk(
            &mut archive,
            chunk,
            dialect,
            is_last,
            crc,
            block_bytes,
            &mut numbers,
        );
        from = to;
    }
    archive
}

fn put_chunk(
    archive: &mut Vec<u8>,
    chunk: &SampleChunk,
    dialect: SampleDialect,
    is_last: bool,
    crc: u32,
    block_bytes: usize,
    numbers: &mut Rng,
) {
    let width = match dialect.minor {
        4 => 8,
        _ => numbers.length(4, 8),
    };
    let head_width = if dialect.minor < 6 { 8 } else { width };
    match dialect.minor {
        4 => {}
        5 => archive.push(width as u8),
        _ => {
            archive.push(width as u8);
            archive.extend(dialect.names_filter.then_some(chunk.filter));
            archive.push(u8::from(is_last));
            // A length that nobody may believe.
            archive.extend(vec![7; width]);
        }
    }
    let records = record_bytes(&chunk.records, dialect, width, crc);
    let base = archive.len();
    // Where the place of each stream's next block is to be written.
    let mut patch = [0; 2];
    for place in &mut patch {
        put_head(archive, head_width, 0);
        *place = archive.len() - head_width;
    }
    let mut rest = [&records[..], &chunk.literals[..]];
    let mut has_empty_tail = numbers.once_in(2);
    while rest.iter().any(|rest| !rest.is_empty()) || has_empty_tail {
        let mut stream = numbers.below(2) as usize;
        if rest[stream].is_empty() {
            stream = 1 - stream;
        }
        if rest[stream].is_empty() {
            has_empty_tail = false;
            stream = 1;
        }
        let count = rest[stream].len().min(numbers.length(1, block_bytes));
        let (block, after) = rest[stream].split_at(count);
        rest[stream] = after;
        let place = (archive.len() - base) as u64;
        archive[patch[stream]..patch[stream] + head_width]
            .copy_from_slice(&place.to_le_bytes()[..head_width]);
        put_head(archive, head_width, count as u64);
        patch[stream] = archive.len() - head_width;
        archive.extend(block);
    }
}

/// A head of a stored block whose next one is not known yet.
fn put_head(archive: &mut Vec<u8>, width: usize, length: u64) {
    archive.push(3);
    for field in [length, length, 0] {
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
    let (length_width, length_max) = if dialect.minor == 4 {
        (8, usize::MAX)
    } else {
        (2, 65535)
    };
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
