//! Codecs `bwt`, `bwt2`, `cm` and `lz` against the decoders of the second reader (`tools/reader`),
//! which were written from `docs/codec-bwt.md`, `docs/codec-bwt2.md`, `docs/codec-cm.md` and
//! `docs/codec-lz.md`.
//!
//! They need Python 3.11 without any packages: `REFRAIN_READER_PYTHON`, or else `python3`; without
//! one the tests are skipped. Python takes 0.2 ms per byte, so only the beginning of long blocks of
//! `cm`, which is coded bit by bit, is compared.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "helpers of tests may fail loudly, and a skipped test says so"
)]

mod data;
#[path = "second_reader/filter.rs"]
mod filter;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use data::{
    code, fibonacci, machine_code, period, random_bytes, records, repeated, skewed_bytes, text,
};
use refrain_codec::{
    BlockDescription, BlockPlan, CodecId, UntrustedBlockDescription, Workspace, decode,
    decode_prefix, encode_block,
};
use refrain_testkit::{Rng, scaled};

/// Decodes the cases of standard input, a line each. Only what the reader calls damaged is damaged;
/// any other exception ends the program.
const PROGRAM: &str = "
import sys
from refrain_reader import bwt, bwt2, cm, lz
from refrain_reader.arithmetic import Decoder
from refrain_reader.errors import ReaderError

def decode(codec, length, prefix, params, data):
    if codec == 'bwt':
        return bwt.decode(data, length, params)[:prefix]
    if codec == 'lz':
        return lz.decode(data, length, params)[:prefix]
    if codec == 'bwt2':
        return bwt2.decode(data, length, params)[:prefix]
    if prefix == length:
        return cm.decode(data, length, params)
    segments = cm.segments_data(data, len(cm.segment_sizes(length)))
    model, decoder = cm.Model(params[0], params[1], length), Decoder(segments[0])
    for _ in range(prefix):
        model.read_byte(decoder)
    return bytes(model.history)

for line in sys.stdin:
    codec, length, prefix, params, data = line.split(',')
    try:
        print(decode(codec, int(length), int(prefix), bytes.fromhex(params), bytes.fromhex(data)).hex())
    except ReaderError:
        print('damaged')
";

/// A block, and how much of it to compare.
struct Case {
    name: String,
    codec: CodecId,
    params: Vec<u8>,
    data: Vec<u8>,
    length: usize,
    prefix: usize,
}

impl Case {
    /// Encodes a block; `None` if another codec or storing was used.
    fn encoded(name: &str, codec: CodecId, level: i32, raw: &[u8], prefix: usize) -> Option<Case> {
        let mut data = Vec::new();
        let plan = BlockPlan::plain(codec, level);
        let block = encode_block(&mut Workspace::new(), raw, &plan, &mut data).unwrap();
        (block.codec == codec).then(|| Case {
            name: format!("{name}, level {level}"),
            codec,
            params: block.params.as_bytes().to_vec(),
            data,
            length: raw.len(),
            prefix: prefix.min(raw.len()),
        })
    }

    fn sorted(codec: CodecId, name: &str, raw: &[u8]) -> Case {
        Case::encoded(name, codec, 1, raw, raw.len()).expect(name)
    }

    /// The number of bytes without repeats (`bwt` and `bwt2`).
    fn reduced_bytes(&self) -> usize {
        u32::from_le_bytes(self.params[1..5].try_into().unwrap()) as usize
    }

    /// Decodes the block with the codec; an error is `None`.
    fn decoded(&self) -> Option<Vec<u8>> {
        let untrusted = UntrustedBlockDescription {
            codec: self.codec.0,
            filters: &[],
            params: &self.params,
            fallback: 0,
        };
        let length = self.length as u64;
        let block: BlockDescription = untrusted.check(length).ok()?;
        let (mut workspace, mut raw) = (Workspace::new(), Vec::new());
        if self.prefix == self.length {
            decode(&mut workspace, &block, &self.data, length, &mut raw).ok()?;
        } else {
            let prefix = self.prefix as u64;
            decode_prefix(&mut workspace, &block, &self.data, length, prefix, &mut raw).ok()?;
        }
        Some(raw)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Starts Python with `program`; `None` if it cannot import the decoders.
fn python(program: &str) -> Option<std::process::Child> {
    let named = std::env::var_os("REFRAIN_READER_PYTHON");
    let python = named.clone().unwrap_or_else(|| "python3".into());
    let start = |program: &str| {
        let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/reader");
        Command::new(&python)
            .args(["-c", program])
            .env("PYTHONPATH", reader)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    };
    let works = start("import sys, refrain_reader.cm; assert sys.version_info >= (3, 11)")
        .is_ok_and(|mut child| child.wait().unwrap().success());
    assert!(
        works || named.is_none(),
        "{python:?} cannot run the second reader"
    );
    if !works {
        eprintln!("skipped: python3 is not Python 3.11 or later");
    }
    works.then(|| start(program).unwrap())
}

/// Checks that both decoders return the same bytes or the same error for each case. Returns how
/// many cases are damaged.
fn compare(cases: &[Case]) -> usize {
    let expected: Vec<_> = cases.iter().map(Case::decoded).collect();
    let damaged = expected.iter().filter(|raw| raw.is_none()).count();
    let Some(mut child) = python(PROGRAM) else {
        return damaged;
    };
    let mut input = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            for case in cases {
                let codec = case.codec;
                let (params, data) = (hex(&case.params), hex(&case.data));
                let (length, prefix) = (case.length, case.prefix);
                writeln!(input, "{codec},{length},{prefix},{params},{data}").unwrap();
            }
        });
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success());
    let output = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.lines().count(), cases.len());
    for ((case, expected), found) in cases.iter().zip(expected).zip(output.lines()) {
        let expected = expected.map_or("damaged".into(), |raw| hex(&raw));
        assert!(
            found == expected,
            "{}: the second reader differs",
            case.name
        );
    }
    damaged
}

/// `bytes` twice, and six times with every 64th byte changed: many anchors with a source and no
/// repeat, and the escape byte at some of them.
fn changed_often(bytes: &[u8]) -> Vec<u8> {
    let mut all = bytes.repeat(2);
    for change in 1..7 {
        let changed = |(index, byte): (usize, &u8)| byte ^ [change, 0][usize::from(index % 64 > 0)];
        all.extend(bytes.iter().enumerate().map(changed));
    }
    all
}

/// Five runs of more than 2^16 zeros, of different lengths, and text: errors in long runs affect
/// the text.
fn long_runs() -> Vec<u8> {
    let run = |n: u8| [vec![0; 66_000 * usize::from(n)], vec![n]].concat();
    (1..6).flat_map(run).chain(text(5000, 14)).collect()
}

/// Each value is half as frequent as the previous one, with a few random bytes: deep leaves in the
/// tree.
fn halving(length: usize) -> Vec<u8> {
    let mut rng = Rng::new(12);
    let value = |_| match rng.below(500) {
        0 => rng.any() as u8,
        _ => rng.any().trailing_zeros() as u8,
    };
    (0..length).map(value).collect()
}

/// Random small values, then other random values: in incompressible data, some decisions become
/// certain.
fn random_bytes_of_two_ranges(length: usize) -> Vec<u8> {
    let mut bytes = random_bytes(length, 13);
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = *byte % 120 + 120 * u8::from(index > length / 2);
    }
    bytes
}

#[test]
fn bwt_decodes_blocks_of_all_kinds() {
    sorted_blocks_of_all_kinds(CodecId::BWT);
}

#[test]
fn bwt2_decodes_blocks_of_all_kinds() {
    sorted_blocks_of_all_kinds(CodecId::BWT2);
}

fn sorted_blocks_of_all_kinds(codec: CodecId) {
    let length = 20_011 * scaled(1) as usize;
    let mut sorted = random_bytes(length, 7);
    sorted.sort_unstable();
    let plain = [
        ("text", text(length, 1)),
        ("code", code(length, 2)),
        ("records", records(length, 28, 3)),
        ("machine code", machine_code(length, 4)),
        ("skewed bytes", skewed_bytes(length, 5)),
        ("long runs", long_runs()),
        ("halving", halving(2 * length)),
        (
            "random bytes of two ranges",
            random_bytes_of_two_ranges(length),
        ),
        ("sorted", sorted),
        ("equal", vec![0; length]),
        ("equal 255", vec![255; length]),
        ("period 2", period(length, 2)),
        ("period 31", period(length, 31)),
        ("period 1000", period(length, 1000)),
        ("fibonacci", fibonacci(length)),
        ("many runs", skewed_bytes(2 * length, 15)),
    ];
    let repeating = [
        ("random bytes twice", random_bytes(30_000, 6).repeat(2)),
        ("text repeated", repeated(&text(20_000, 8), 8)),
        (
            "random bytes repeated",
            repeated(&random_bytes(20_000, 9), 9),
        ),
        ("code repeated", repeated(&code(20_000, 10), 10)),
        ("escapes", changed_often(&random_bytes(20_000, 11))),
    ];
    let mut cases = Vec::new();
    cases.extend(plain.map(|(name, raw)| Case::sorted(codec, name, &raw)));
    cases.extend(repeating.map(|(name, raw)| {
        let case = Case::sorted(codec, name, &raw);
        assert!(case.reduced_bytes() < raw.len(), "{name}");
        case
    }));
    for length in (100..140).chain([255, 256, 257, 1000, 5000]) {
        for raw in [vec![7; length], text(length, 2), period(length, 3)] {
            cases.extend(Case::encoded("short", codec, 1, &raw, length));
        }
    }
    assert!(cases.len() > 70, "{}", cases.len());
    assert_eq!(compare(&cases), 0);
}

/// Where a block has several rows, they are further apart the longer it is.
#[test]
fn bwt_decodes_a_block_of_more_than_four_mib() {
    let mib = 1 << 20;
    let raw = [text(mib / 4, 1), vec![0; 5 * mib], code(mib / 4, 2)].concat();
    let cases = [CodecId::BWT, CodecId::BWT2].map(|codec| Case::sorted(codec, "long", &raw));
    for case in &cases {
        assert!(case.reduced_bytes() > 4 * mib, "{}", case.reduced_bytes());
    }
    assert_eq!(compare(&cases), 0);
}

/// Replaces most line feeds by spaces, so that lines are longer than the largest column.
fn long_lines(mut text: Vec<u8>) -> Vec<u8> {
    for (index, byte) in text.iter_mut().enumerate() {
        if *byte == b'\n' && index % 30 > 0 {
            *byte = b' ';
        }
    }
    text
}

/// Blocks of each profile at each level, as the encoder chooses it, and a part of each to compare.
#[test]
fn cm_decodes_blocks_of_all_kinds_at_every_level() {
    let prefix = 700 * scaled(1) as usize;
    let kinds = [
        ("text", 0, text(8000, 1)),
        ("code", 0, code(12_000, 2)),
        ("code repeated", 0, repeated(&code(1500, 3), 3)),
        ("long lines", 0, long_lines(code(8000, 5))),
        ("machine code", 1, machine_code(12_000, 4)),
        (
            "machine code repeated",
            1,
            repeated(&machine_code(1000, 5), 5),
        ),
        ("skewed bytes", 1, skewed_bytes(6000, 6)),
        (
            "random bytes repeated",
            1,
            repeated(&random_bytes(1000, 7), 7),
        ),
        ("records of 9 bytes", 9, records(65_536, 9, 8)),
        ("records of 16 bytes", 16, records(65_536, 16, 8)),
        ("records of 28 bytes", 28, records(65_536, 28, 8)),
    ];
    let mut cases = Vec::new();
    for (name, profile, raw) in &kinds {
        for level in 1..=3 {
            // Repeated bytes in full, at one level: matches, and the end of the code.
            let all = level == 2 && name.ends_with("repeated");
            let prefix = if all { raw.len() } else { prefix };
            let case = Case::encoded(name, CodecId::CM, level, raw, prefix).expect(name);
            assert_eq!(case.params[..2], [level as u8, *profile], "{name}");
            cases.push(case);
        }
    }
    assert_eq!(compare(&cases), 0);
}

#[test]
fn cm_decodes_regular_and_short_blocks() {
    let length = 100_003;
    let prefix = 3000 * scaled(1) as usize;
    let regular = [
        (1, vec![0; length]),
        (2, vec![0; length]),
        (3, vec![0; length]),
        (3, period(length, 1000)),
        (2, period(length, 2)),
        (2, fibonacci(2 * length)),
    ];
    let encoded = |(level, raw): (i32, Vec<u8>)| {
        Case::encoded("regular", CodecId::CM, level, &raw, prefix).unwrap()
    };
    let mut cases: Vec<_> = regular.map(encoded).into();
    for length in (1..40).chain([100, 255, 256, 257, 1000]) {
        for raw in [vec![7; length], text(length, 2), period(length, 3)] {
            cases.extend(Case::encoded("short", CodecId::CM, 2, &raw, length));
        }
    }
    assert!(cases.len() > 40, "{}", cases.len());
    assert_eq!(compare(&cases), 0);
}

/// The two segments of a long block have the same length, so either may be the first.
#[test]
fn cm_decodes_the_segments_of_a_long_block() {
    let half = 1 << 23;
    let prefix = 2000 * scaled(1) as usize;
    let first = code(12_000, 2).into_iter().cycle().take(half);
    let second = text(9000, 3).into_iter().cycle().take(half);
    let raw: Vec<u8> = first.chain(second).collect();
    let whole = Case::encoded("two segments", CodecId::CM, 1, &raw, prefix).unwrap();
    let (length, rest) = whole.data.split_first_chunk().unwrap();
    let (data, second_data) = rest.split_at(u32::from_le_bytes(*length) as usize);
    let length_bytes = (second_data.len() as u32).to_le_bytes();
    let swapped = Case {
        name: "two swapped segments".into(),
        params: whole.params.clone(),
        data: [&length_bytes[..], second_data, data].concat(),
        ..whole
    };
    assert_eq!(compare(&[whole, swapped]), 0);
}

/// Any sequence of decisions is valid, so random bytes decode to something, which must be the same
/// with every profile and level, and for each size of the tables.
#[test]
fn cm_decodes_random_bytes_to_the_same() {
    let mut cases = Vec::new();
    for (index, profile) in (0..8).chain([24, 100, 255]).enumerate() {
        for level in 1..=3 {
            let length = 20_000 << (index % 6);
            cases.push(Case {
                name: format!("random bytes, level {level}, profile {profile}"),
                codec: CodecId::CM,
                params: [&[level, profile][..], &(length as u32).to_le_bytes()].concat(),
                data: [random_bytes(40, u64::from(profile)), vec![profile; 4000]].concat(),
                length,
                prefix: 400 * scaled(1) as usize,
            });
        }
    }
    assert_eq!(compare(&cases), 0);
}

/// Blocks of all kinds at each level; two are longer than a chunk.
#[test]
fn lz_decodes_blocks_of_all_kinds_at_every_level() {
    let length = 40_000 * scaled(1) as usize;
    let chunk = 1 << 20;
    let kinds = [
        ("text", text(length, 1)),
        ("code repeated", repeated(&code(length / 8, 2), 3)),
        ("records", records(length, 28, 3)),
        ("machine code", machine_code(length, 4)),
        ("skewed bytes", skewed_bytes(length, 5)),
        ("random bytes twice", random_bytes(20_000, 6).repeat(2)),
        ("equal", vec![0; chunk + 9]),
        (
            "chunks",
            [text(3000, 7), period(chunk, 999), text(5000, 8)].concat(),
        ),
        ("fibonacci", fibonacci(length)),
    ];
    let mut cases = Vec::new();
    for (name, raw) in &kinds {
        for level in 1..=4 {
            cases.push(Case::encoded(name, CodecId::LZ, level, raw, raw.len()).expect(name));
        }
        let prefix = raw.len() * 2 / 3;
        cases.push(Case::encoded(name, CodecId::LZ, 2, raw, prefix).expect(name));
    }
    for length in (60..100).chain([255, 256, 257, 1000, 5000]) {
        for raw in [vec![7; length], text(length, 2), period(length, 3)] {
            cases.extend(Case::encoded("short", CodecId::LZ, 3, &raw, length));
        }
    }
    assert!(cases.len() > 100, "{}", cases.len());
    assert_eq!(compare(&cases), 0);
}

/// Random words that decode to something, or are damaged, for all sizes of contexts.
#[test]
fn lz_decodes_damaged_blocks_to_the_same() {
    let raw = repeated(&code(2000, 1), 2);
    let good = Case::encoded("", CodecId::LZ, 3, &raw, raw.len()).unwrap();
    let mut cases = Vec::new();
    for seed in 0..60_u8 {
        let mut data = good.data.clone();
        let at = usize::from(seed) * data.len() / 60;
        data[at] ^= 1 << (seed % 8);
        cases.push(Case {
            name: format!("changed at {at}"),
            codec: CodecId::LZ,
            params: vec![seed % 9, seed / 2 % 9, seed % 5],
            data: if seed % 3 > 0 { data } else { good.data.clone() },
            length: raw.len(),
            prefix: raw.len(),
        });
    }
    assert!(compare(&cases) > 30);
}

#[test]
fn both_return_errors_for_the_same_blocks() {
    let raw = repeated(&text(1500, 1), 1);
    let mut cases = Vec::new();
    for (codec, level) in [
        (CodecId::BWT, 1),
        (CodecId::BWT2, 1),
        (CodecId::CM, 2),
        (CodecId::LZ, 2),
    ] {
        let of = |params: &[u8], data: &[u8], length: usize| Case {
            name: format!("{codec:?} {params:?}, {} of {length} bytes", data.len()),
            codec,
            params: params.to_vec(),
            data: data.to_vec(),
            length,
            prefix: length,
        };
        let good = Case::encoded("", codec, level, &raw, raw.len()).unwrap();
        let (params, data, length) = (&good.params, &good.data, good.length);
        cases.extend([
            of(params, &data[..data.len() - 1], length),
            of(params, &[&data[..], &[0]].concat(), length),
            of(params, &data[..3], length),
            of(params, &data[..7], length),
            of(params, data, length - 1),
            of(params, data, length + 1),
        ]);
        if codec == CodecId::BWT || codec == CodecId::BWT2 {
            cases.push(of(&[0; 5], data, length));
            cases.push(of(&[0, 255, 255, 255, 0], data, length));
            for row in [0, length as u32 + 1] {
                let data = [&row.to_le_bytes(), &data[4..]].concat();
                cases.push(of(params, &data, length));
            }
        } else if codec == CodecId::LZ {
            for params in [[9, 0, 0], [0, 9, 0], [0, 0, 5]] {
                cases.push(of(&params, data, length));
            }
        } else {
            for (level, stated) in [
                (0, length),
                (4, length),
                (2, length + 100),
                // A hundred bytes fewer may end in the same word.
                (2, length / 2),
            ] {
                let size = (stated as u32).to_le_bytes();
                cases.push(of(&[&[level, params[1]][..], &size].concat(), data, stated));
            }
        }
        // The number of parameters is compared before the codec.
        assert_eq!(
            of(&params[..params.len() - 1], data, length).decoded(),
            None
        );
    }
    for case in &cases {
        assert!(case.decoded().is_none(), "{}", case.name);
    }
    assert_eq!(compare(&cases), cases.len());
}
