//! Generated blocks of many kinds, the same on every machine.
#![allow(dead_code, reason = "each test uses some of them")]

use refrain_testkit::{Rng, data};

/// Random numbers below a length.
struct Random(Rng);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.any()
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }
}

/// Calls `part`, which appends bytes, until there are `length` bytes.
fn fill(length: usize, mut part: impl FnMut(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 64);
    while bytes.len() < length {
        part(&mut bytes);
    }
    bytes.truncate(length);
    bytes
}

pub fn random_bytes(length: usize, seed: u64) -> Vec<u8> {
    data::random(length, seed)
}

/// Random bytes of few values, small ones more often.
pub fn skewed_bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(Rng::new(seed));
    fill(length, |bytes| {
        let bound = 1 + random.below(200);
        bytes.push(random.below(bound) as u8);
    })
}

/// Words of a small vocabulary, in lines.
pub fn text(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(Rng::new(seed));
    let vocabulary: Vec<Vec<u8>> = (0..400)
        .map(|_| {
            let letters = 2 + random.below(8);
            (0..letters)
                .map(|_| b'a' + random.below(26) as u8)
                .collect()
        })
        .collect();
    fill(length, |bytes| {
        let bound = 1 + random.below(vocabulary.len());
        bytes.extend(&vocabulary[random.below(bound)]);
        bytes.extend([&b" "[..], b" ", b" ", b", ", b".\n"][random.below(5)]);
    })
}

/// Bytes similar to source code: indented lines, keys, numbers, brackets.
pub fn code(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(Rng::new(seed));
    let mut depth = 0_usize;
    fill(length, |bytes| {
        bytes.extend(vec![b' '; 4 * depth]);
        let (name, number) = (random.below(30), random.below(1000));
        let line = match random.below(5) {
            0 => format!("if (field_{name} == {number}) {{\n"),
            1 => format!("let field_{name}: u32 = {number};\n"),
            2 => format!("key_{name}=\"{number}\" // {}\n", random.below(9)),
            3 => format!("call(field_{name}, field_{});\n", random.below(30)),
            _ => "}\n".to_string(),
        };
        depth = match line.as_bytes() {
            [.., b'{', _] => (depth + 1).min(5),
            [b'}', ..] => depth.saturating_sub(1),
            _ => depth,
        };
        bytes.extend(line.as_bytes());
    })
}

/// Records of `stride` bytes: constants, counters, small numbers and some random bytes.
pub fn records(length: usize, stride: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(Rng::new(seed));
    let mut count = 0_usize;
    let mut slow = vec![0_u8; stride];
    fill(length, |bytes| {
        count += 1;
        for (column, before) in slow.iter_mut().enumerate() {
            *before = match column % 5 {
                0 => 200 + column as u8,
                1 => (count >> (column % 7)) as u8,
                2 => random.below(4) as u8,
                3 if random.below(9) > 0 => *before,
                _ => random.next() as u8,
            };
            bytes.push(*before);
        }
    })
}

/// Bytes similar to machine code: frequent bytes, four-byte numbers, calls.
pub fn machine_code(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(Rng::new(seed));
    fill(length, |bytes| {
        for _ in 0..1 + random.below(6) {
            bytes.push([0x48, 0x8B, 0x89, 0x0F, 0xC3, 0x55, 0x90, 0][random.below(8)]);
        }
        match random.below(3) {
            0 => bytes.extend((random.below(64) as u32 * 1000).to_le_bytes()),
            1 => bytes.push(random.next() as u8),
            _ => {
                bytes.push(0xE8);
                let target = random.below(64) as u32 * 4096;
                bytes.extend(target.wrapping_sub(bytes.len() as u32).to_le_bytes());
            }
        }
    })
}

pub fn period(length: usize, period: usize) -> Vec<u8> {
    data::periodic(length, period, 2)
}

pub fn fibonacci(length: usize) -> Vec<u8> {
    let (mut shorter, mut longer) = (b"a".to_vec(), b"ab".to_vec());
    while longer.len() < length {
        let next = [&longer[..], &shorter[..]].concat();
        shorter = std::mem::replace(&mut longer, next);
    }
    longer.truncate(length);
    longer
}

/// `bytes` repeated, with some bytes changed and passages moved.
pub fn repeated(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random(Rng::new(seed));
    let mut all = bytes.to_vec();
    for _ in 0..12 {
        let start = random.below(bytes.len());
        let end = start + random.below(bytes.len() - start);
        all.extend(&bytes[start..end]);
        if let Some(byte) = all.last_mut() {
            *byte ^= 1;
        }
    }
    for _ in 0..20 {
        let place = random.below(all.len());
        all[place] = all[place].wrapping_add(1);
    }
    all
}
