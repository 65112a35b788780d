//! Generated data for tests and fuzz targets.

/// Deterministic incompressible bytes: SplitMix64 (Steele, Lea, Flood 2014).
#[must_use]
pub fn random_bytes(length_bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(length_bytes + 8);
    while bytes.len() < length_bytes {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(length_bytes);
    bytes
}

/// Text-like data: words of a small vocabulary with a skewed distribution.
#[must_use]
pub fn text(length_bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let words: Vec<Vec<u8>> = (0..500)
        .map(|_| {
            let length = 2 + random.below(8) as usize;
            (0..length).map(|_| b'a' + random.below(26) as u8).collect()
        })
        .collect();
    let mut bytes = Vec::with_capacity(length_bytes + 16);
    while bytes.len() < length_bytes {
        let bound = 1 + random.below(words.len() as u64);
        bytes.extend_from_slice(&words[random.below(bound) as usize]);
        bytes.push(if random.below(12) == 0 { b'\n' } else { b' ' });
    }
    bytes.truncate(length_bytes);
    bytes
}

/// Lines of coordinates on a coarse grid, as drawings and tables hold them.
#[must_use]
pub fn coordinates(length_bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(length_bytes + 32);
    while bytes.len() < length_bytes {
        let [x, y] = [random.below(4000) * 25, random.below(4000) * 25];
        let line = format!(
            "at {}.{:03} {}.{:03}\n",
            x / 1000,
            x % 1000,
            y / 1000,
            y % 1000
        );
        bytes.extend_from_slice(line.as_bytes());
    }
    bytes.truncate(length_bytes);
    bytes
}

/// A table of records: an address that grows, a number that is often the same, and zeros.
#[cfg(test)]
#[must_use]
pub fn records(length_bytes: usize, record_bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(length_bytes + record_bytes);
    let mut address = 0x0040_0000_u32;
    while bytes.len() < length_bytes {
        address += random.below(64) as u32 * 8;
        bytes.extend_from_slice(&address.to_le_bytes());
        bytes.extend_from_slice(&(random.below(8) as u32 + 0x0400).to_le_bytes());
        bytes.resize(bytes.len() + record_bytes - 8, 0);
    }
    bytes.truncate(length_bytes);
    bytes
}

/// Samples of `sample_bytes` (1 to 4) bytes, little-endian, of a slow random walk.
#[must_use]
pub fn wave(length_bytes: usize, sample_bytes: usize) -> Vec<u8> {
    let mut random = Random(sample_bytes as u64);
    let mut bytes = Vec::with_capacity(length_bytes + 8);
    let mut value = 0_u64;
    // Slopes that change the low byte often and the others rarely.
    let slope = 1 << (8 * (sample_bytes - 1));
    while bytes.len() < length_bytes {
        value = value.wrapping_add(slope * 3 + random.below(5));
        bytes.extend_from_slice(&value.to_le_bytes()[..sample_bytes]);
    }
    bytes.truncate(length_bytes);
    bytes
}

/// Filler with calls of a few functions at x86 relative addresses.
#[must_use]
pub fn x86_code(length_bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(length_bytes + 32);
    while bytes.len() < length_bytes {
        for _ in 0..4 + random.below(12) {
            bytes.push([0x48, 0x8B, 0x89, 0x0F, 0xC3, 0x55, 0x90][random.below(7) as usize]);
        }
        bytes.push(0xE8);
        let target = random.below(64) * 1000;
        let relative = (target as i64 - bytes.len() as i64 - 4) as i32;
        bytes.extend_from_slice(&relative.to_le_bytes());
    }
    bytes.truncate(length_bytes);
    bytes
}

/// Whole x86-64 instructions, with calls of a few functions and loads of a few constants, which are
/// farther than 16 MiB away.
#[must_use]
#[cfg(test)]
pub fn x86_64_code(length_bytes: usize, seed: u64) -> Vec<u8> {
    const PLAIN: [&[u8]; 6] = [
        &[0x48, 0x89, 0xE5],
        &[0x55],
        &[0x0F, 0xB6, 0x44, 0x24, 0x0F],
        &[0x66, 0x0F, 0x6F, 0xC1],
        &[0xC5, 0xF8, 0x77],
        &[0x81, 0xC3, 0x00, 0xE8, 0x00, 0x00],
    ];
    const RELATIVE: [&[u8]; 3] = [&[0xE8], &[0xE9], &[0x48, 0x8B, 0x05]];
    const DISTANCE_BYTES: u32 = 100 << 20;
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(length_bytes + 128);
    while bytes.len() < length_bytes {
        for _ in 0..1 + random.below(8) {
            bytes.extend_from_slice(PLAIN[random.below(PLAIN.len() as u64) as usize]);
        }
        bytes.extend_from_slice(RELATIVE[random.below(RELATIVE.len() as u64) as usize]);
        let target = DISTANCE_BYTES + random.below(64) as u32 * 1000;
        let next = bytes.len() as u32 + 4;
        bytes.extend_from_slice(&target.wrapping_sub(next).to_le_bytes());
    }
    bytes.truncate(length_bytes);
    bytes
}

/// Instruction words with calls of a few functions at ARM64 relative addresses.
#[must_use]
pub fn arm64_code(length_bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(length_bytes + 32);
    while bytes.len() < length_bytes {
        for _ in 0..1 + random.below(8) {
            let word = 0xAA00_03E0 | (random.below(4) as u32) << 16;
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        let words = (random.below(64) as i32 * 1000) - (bytes.len() / 4) as i32;
        let call = 0x9400_0000 | (words as u32 & 0x03FF_FFFF);
        bytes.extend_from_slice(&call.to_le_bytes());
    }
    bytes.truncate(length_bytes);
    bytes
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Bytes with many opcodes that branch filters convert.
#[cfg(test)]
pub(crate) fn many_branches() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    use proptest::prelude::*;
    let byte = prop_oneof![
        3 => Just(0xE8_u8),
        1 => Just(0xE9),
        4 => Just(0x00),
        4 => Just(0xFF),
        2 => Just(0x94),
        2 => Just(0x90),
        2 => prop_oneof![Just(0x0F_u8), Just(0x48), Just(0x66), Just(0x8D), Just(0x05)],
        6 => any::<u8>(),
    ];
    proptest::collection::vec(byte, 1..600)
}

/// The numbers and parameters of up to three filters, mostly valid.
#[cfg(test)]
pub(crate) fn filter_ids() -> impl proptest::strategy::Strategy<Value = Vec<(u8, u8)>> {
    use proptest::prelude::*;
    let id = prop_oneof![
        Just((1_u8, 0_u8)),
        (Just(2_u8), 0_u8..5),
        (Just(3_u8), 0_u8..18),
        Just((4_u8, 0_u8)),
        (Just(5_u8), 1_u8..18),
        (Just(6_u8), 0_u8..20),
    ];
    proptest::collection::vec(id, 0..4)
}
