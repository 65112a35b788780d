//! Small contents of the kinds that long-range compressors meet, generated from a seed. Lengths are
//! in bytes.

use crate::rng::Rng;

/// Random bytes.
#[must_use]
pub fn random(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Rng::new(seed).fill(&mut bytes);
    bytes
}

/// Zeros.
#[must_use]
pub fn zeros(length: usize) -> Vec<u8> {
    vec![0; length]
}

/// A repeated period of random bytes.
#[must_use]
pub fn periodic(length: usize, period: usize, seed: u64) -> Vec<u8> {
    let pattern = random(period.max(1), seed);
    pattern.iter().copied().cycle().take(length).collect()
}

const SYLLABLES: [&str; 24] = [
    "re", "fra", "in", "ar", "chive", "long", "ma", "tch", "sto", "re", "ex", "tent", "block",
    "seg", "ment", "e", "poch", "read", "write", "num", "ber", "con", "tent", "s",
];

/// Words and sentences of random syllables, with uneven frequencies as in natural language.
#[must_use]
pub fn text(length: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = Vec::with_capacity(length + 32);
    while out.len() < length {
        for _ in 0..rng.length(1, 3) {
            // The product of two random numbers prefers the front of the list.
            let rank = rng.below(SYLLABLES.len() as u64) * rng.below(24) / 24;
            out.extend(SYLLABLES[rank as usize].bytes());
        }
        out.extend(
            match rng.below(12) {
                0 => ". ",
                1 => ",\n",
                _ => " ",
            }
            .bytes(),
        );
    }
    out.truncate(length);
    out
}

/// Lines that look like source code.
#[must_use]
pub fn source_code(length: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = Vec::with_capacity(length + 64);
    let mut depth = 0_usize;
    while out.len() < length {
        out.extend(std::iter::repeat_n(b' ', 4 * depth));
        let name = format!("{}_{}", rng.choose(&SYLLABLES), rng.choose(&SYLLABLES));
        let line = match rng.below(6) {
            0 if depth < 6 => {
                depth += 1;
                format!("if {name} > {} {{\n", rng.below(1000))
            }
            1 if depth > 0 => {
                depth -= 1;
                "}\n".to_owned()
            }
            2 => format!("// {name}: see the comment above\n"),
            _ => format!(
                "let {name} = {}({});\n",
                rng.choose(&SYLLABLES),
                rng.below(100)
            ),
        };
        out.extend(line.bytes());
    }
    out.truncate(length);
    out
}

/// A tree of source files: (path, content) by ascending path.
#[must_use]
pub fn source_tree(file_count: usize, seed: u64) -> Vec<(String, Vec<u8>)> {
    let mut rng = Rng::new(seed);
    (0..file_count)
        .map(|index| {
            let length = rng.length(0, 1 << rng.clone().length(6, 15));
            let path = format!("src/part-{:02}/file-{index:05}.rs", index / 20);
            (path, source_code(length, rng.any()))
        })
        .collect()
}

/// The next version of a tree: some files are edited, a few are added and a few removed.
#[must_use]
pub fn next_version(tree: &[(String, Vec<u8>)], seed: u64) -> Vec<(String, Vec<u8>)> {
    let mut rng = Rng::new(seed);
    let mut next = Vec::with_capacity(tree.len() + 2);
    for (path, content) in tree {
        match rng.below(50) {
            0 => {}
            1 => {
                next.push((format!("{path}.new"), source_code(500, rng.any())));
                next.push((path.clone(), content.clone()));
            }
            2..=9 => next.push((path.clone(), edited(content, 3, rng.any()))),
            _ => next.push((path.clone(), content.clone())),
        }
    }
    next
}

/// The contents of all files of a tree, concatenated.
#[must_use]
pub fn joined(tree: &[(String, Vec<u8>)]) -> Vec<u8> {
    tree.iter()
        .flat_map(|(_, content)| content.clone())
        .collect()
}

/// `bytes` with `edit_count` small edits (changed, inserted or removed bytes) at random positions.
#[must_use]
pub fn edited(bytes: &[u8], edit_count: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = bytes.to_vec();
    for _ in 0..edit_count {
        let at = rng.below(out.len() as u64 + 1) as usize;
        let removed = rng.length(0, 12).min(out.len() - at);
        let mut inserted = vec![0; rng.length(0, 12)];
        rng.fill(&mut inserted);
        out.splice(at..at + removed, inserted);
    }
    out
}

/// `count` versions of one file, concatenated. Each is an edit of the previous one.
#[must_use]
pub fn versions(length: usize, count: usize, edits_each: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut version = random(length, rng.any());
    let mut out = version.clone();
    for _ in 1..count {
        version = edited(&version, edits_each, rng.any());
        out.extend_from_slice(&version);
    }
    out
}

/// Incompressible bytes in which passages of `passage` bytes recur far away.
#[must_use]
pub fn far_duplicates(length: usize, passage: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = random(length / 2, rng.any());
    while out.len() < length {
        if out.len() > passage && rng.once_in(2) {
            let at = rng.below((out.len() - passage) as u64) as usize;
            out.extend_from_within(at..at + passage);
        } else {
            let mut fresh = vec![0; rng.length(1, passage.max(1))];
            rng.fill(&mut fresh);
            out.extend_from_slice(&fresh);
        }
    }
    out.truncate(length);
    out
}

/// A disk image: ranges of random data between long ranges of zeros.
#[must_use]
pub fn sparse(length: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = zeros(length);
    let mut at = 0;
    while at < length {
        let data_bytes = rng.length(1, 4096).min(length - at);
        rng.fill(&mut out[at..at + data_bytes]);
        at += data_bytes + rng.length(1, 65_536);
    }
    out
}

/// Machine code as branch filters expect it: an ELF header, then instructions with relative calls
/// to a few targets.
#[must_use]
pub fn executable(length: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    // ELF64, little endian, x86-64 executable.
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
    let targets: Vec<u32> = (0..16)
        .map(|_| rng.below(length as u64 + 1) as u32)
        .collect();
    while out.len() < length {
        match rng.below(5) {
            0 => {
                let target = *rng.choose(&targets);
                let after = out.len() as u32 + 5;
                out.push(0xe8);
                out.extend(target.wrapping_sub(after).to_le_bytes());
            }
            1 => out.extend([0x48, 0x89, 0xe5]),
            2 => out.extend([
                0x48,
                0x8b,
                0x45,
                0xf8u8.wrapping_sub(rng.below(8) as u8 * 8),
            ]),
            3 => out.extend([0x83, 0xc0, rng.below(16) as u8]),
            _ => out.extend([0x55, 0xc3]),
        }
    }
    out.truncate(length);
    out
}

/// A program for x86-64: an ELF header, `code_bytes` of code that calls a few functions everywhere
/// in the file, and zeros.
#[must_use]
pub fn program(length: usize, code_bytes: usize, seed: u64) -> Vec<u8> {
    const HEADER_BYTES: usize = 4096;
    const PLAIN: [&[u8]; 4] = [
        &[0x48, 0x89, 0xE5],
        &[0x55],
        &[0x31, 0xC0],
        &[0x48, 0x83, 0xEC, 8],
    ];
    let mut rng = Rng::new(seed);
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(HEADER_BYTES, 0);
    bytes[0x12] = 62;
    bytes[0x20] = 0x40;
    bytes[0x36] = 56;
    bytes[0x38] = 1;
    bytes[0x40..0x48].copy_from_slice(&[1, 0, 0, 0, 5, 0, 0, 0]);
    bytes[0x48..0x50].copy_from_slice(&(HEADER_BYTES as u64).to_le_bytes());
    bytes[0x60..0x68].copy_from_slice(&(code_bytes as u64).to_le_bytes());
    while bytes.len() < HEADER_BYTES + code_bytes {
        for _ in 0..1 + rng.below(9) {
            bytes.extend_from_slice(PLAIN[rng.below(PLAIN.len() as u64) as usize]);
        }
        let function = (length as u64 / 50 * rng.below(50)) as u32;
        let next = bytes.len() as u32 + 5;
        bytes.push(0xE8);
        bytes.extend_from_slice(&function.wrapping_sub(next).to_le_bytes());
    }
    bytes.truncate(HEADER_BYTES + code_bytes);
    bytes.resize(length, 0);
    bytes
}

/// All kinds of data above, each of about `length` bytes, with their names.
#[must_use]
pub fn all_kinds(length: usize, seed: u64) -> Vec<(&'static str, Vec<u8>)> {
    let quarter = length / 4;
    let tree = source_tree(20, seed);
    let mut two_trees = joined(&tree);
    two_trees.extend(joined(&next_version(&tree, seed + 1)));
    two_trees.truncate(length);
    vec![
        ("empty", Vec::new()),
        ("one byte", vec![seed as u8]),
        ("random", random(length, seed)),
        ("zeros", zeros(length)),
        ("period 1", periodic(length, 1, seed)),
        ("period 7", periodic(length, 7, seed)),
        ("period 64", periodic(length, 64, seed)),
        ("period 1000", periodic(length, 1000, seed)),
        ("text", text(length, seed)),
        ("source code", source_code(length, seed)),
        ("two trees", two_trees),
        ("versions", versions(quarter, 4, 5, seed)),
        ("far duplicates", far_duplicates(length, 300, seed)),
        ("sparse", sparse(length, seed)),
        ("executable", executable(length, seed)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_data() {
        assert_eq!(all_kinds(20_000, 5), all_kinds(20_000, 5));
        assert_ne!(random(100, 1), random(100, 2));
    }

    #[test]
    fn data_has_the_stated_properties() {
        assert_eq!(text(1000, 1).len(), 1000);
        assert!(text(1000, 1).is_ascii());
        let image = sparse(1 << 20, 3);
        assert!(image.iter().filter(|&&byte| byte == 0).count() > image.len() / 2);
        let period = periodic(1000, 7, 2);
        assert!(period.windows(8).all(|window| window[0] == window[7]));
        let tree = source_tree(30, 4);
        let next = next_version(&tree, 5);
        let unchanged = next.iter().filter(|file| tree.contains(file)).count();
        assert!(unchanged > 15 && unchanged < next.len());
        let calls = executable(10_000, 6)
            .iter()
            .filter(|&&byte| byte == 0xe8)
            .count();
        assert!(calls > 200);
    }
}
