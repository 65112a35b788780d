//! Compares codec `bwt` with the reference decoder `reference/bwt.rs`, which was written from
//! `docs/codec-bwt.md` alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests may fail loudly"
)]

#[path = "reference/arithmetic.rs"]
mod arithmetic;
#[path = "reference/bwt.rs"]
mod bwt;
#[path = "reference/data.rs"]
mod data;

use arithmetic::Damage;
use data::{
    Random, code, fibonacci, machine_code, period, random_bytes, records, repeated, skewed_bytes,
    text,
};
use refrain_codec::{
    BlockPlan, CodecId, UntrustedBlockDescription, Workspace, decode, encode_block,
};

/// Encodes a block to parameters and data; `None` if another codec or storing was used.
fn encoded(workspace: &mut Workspace, raw: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut out = Vec::new();
    let plan = BlockPlan::plain(CodecId::BWT, 1);
    let block = encode_block(workspace, raw, &plan, &mut out).unwrap();
    (block.codec == CodecId::BWT).then(|| (block.params.as_bytes().to_vec(), out))
}

/// Decodes a block with the codec; an error is `None`.
fn codec_decodes(params: &[u8], out: &[u8], length: usize) -> Option<Vec<u8>> {
    let untrusted = UntrustedBlockDescription {
        codec: CodecId::BWT.0,
        filters: &[],
        params,
        fallback: 0,
    };
    let block = untrusted.check(length as u64).ok()?;
    let mut decoded = Vec::new();
    let mut workspace = Workspace::new();
    decode(&mut workspace, &block, out, length as u64, &mut decoded).ok()?;
    Some(decoded)
}

/// Checks that the reference decoder decodes the output of the codec. Returns whether repeats were
/// removed.
fn check(workspace: &mut Workspace, name: &str, raw: &[u8]) -> bool {
    let (params, out) = encoded(workspace, raw).expect(name);
    let decoded = bwt::decode(&params, &out, raw.len());
    assert!(decoded == Ok(raw.to_vec()), "{name}: {:?}", decoded.err());
    params[1..] != (raw.len() as u32).to_le_bytes()
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

/// Each value half as often as the one before, with a few random bytes: deep leaves in the tree.
fn halving(length: usize) -> Vec<u8> {
    let mut random = Random(12);
    let mut bytes = Vec::new();
    while bytes.len() < length {
        bytes.push(match random.below(500) {
            0 => random.next() as u8,
            _ => random.next().trailing_zeros() as u8,
        });
    }
    bytes
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
fn tables_match_the_document() {
    bwt::check_tables();
}

#[test]
fn reference_decodes_blocks_of_all_kinds() {
    let length = 100_003;
    let plain = [
        ("text", text(300_000, 1)),
        ("code", code(200_000, 2)),
        ("records", records(length, 28, 3)),
        ("machine code", machine_code(length, 4)),
        ("skewed bytes", skewed_bytes(length, 5)),
        ("long runs", long_runs()),
        ("halving", halving(180_000)),
        (
            "random bytes of two ranges",
            random_bytes_of_two_ranges(40_000),
        ),
        ("equal", vec![0; length]),
        ("sorted", {
            let mut bytes = random_bytes(length, 7);
            bytes.sort_unstable();
            bytes
        }),
        ("equal 255", vec![255; length]),
        ("period 2", period(length, 2)),
        ("period 31", period(length, 31)),
        ("period 1000", period(length, 1000)),
        ("fibonacci", fibonacci(length)),
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
    let mut workspace = Workspace::new();
    for (name, raw) in &plain {
        check(&mut workspace, name, raw);
    }
    for (name, raw) in &repeating {
        assert!(check(&mut workspace, name, raw), "{name}");
    }
}

#[test]
#[ignore = "two minutes and 0.9 GB"]
fn reference_decodes_a_block_of_more_than_64_mib() {
    let mib = 1 << 20;
    let mut raw = code(20 * mib, 1);
    raw.extend(text(20 * mib, 2));
    raw.extend(machine_code(20 * mib, 3));
    raw.extend(records(8 * mib + 5, 20, 4));
    raw.extend(random_bytes(2 * mib, 5));
    raw.extend_from_within(7 * mib..17 * mib);
    let (params, out) = encoded(&mut Workspace::new(), &raw).unwrap();
    let reduced = u32::from_le_bytes([params[1], params[2], params[3], params[4]]) as usize;
    assert!(reduced > 64 * mib && reduced < 75 * mib, "{reduced}");
    assert!(codec_decodes(&params, &out, raw.len()) == Some(raw.clone()));
    assert!(bwt::decode(&params, &out, raw.len()) == Ok(raw));
}

#[test]
fn reference_decodes_short_blocks() {
    let mut workspace = Workspace::new();
    let mut decoded = 0;
    for length in (100..140).chain([255, 256, 257, 1000, 5000]) {
        for raw in [vec![7; length], text(length, 2), period(length, 3)] {
            if let Some((params, out)) = encoded(&mut workspace, &raw) {
                assert_eq!(bwt::decode(&params, &out, length), Ok(raw));
                decoded += 1;
            }
        }
    }
    assert!(decoded > 50, "{decoded}");
}

#[test]
fn codec_and_reference_return_errors_for_the_same_blocks() {
    let raw = repeated(&text(3000, 1), 1);
    let (params, out) = encoded(&mut Workspace::new(), &raw).unwrap();
    let mut forged = vec![
        (params.clone(), out[..out.len() - 1].to_vec(), raw.len()),
        (params.clone(), [&out[..], &[0]].concat(), raw.len()),
        (params.clone(), out[..3].to_vec(), raw.len()),
        (params.clone(), out[..7].to_vec(), raw.len()),
        (params.clone(), out.clone(), raw.len() - 1),
        (params.clone(), out.clone(), raw.len() + 1),
        (params[..4].to_vec(), out.clone(), raw.len()),
        (vec![0; 5], out.clone(), raw.len()),
        (vec![0, 255, 255, 255, 0], out.clone(), raw.len()),
    ];
    for row in [0, raw.len() as u32 + 1] {
        let mut data = out.clone();
        data[..4].copy_from_slice(&row.to_le_bytes());
        forged.push((params.clone(), data, raw.len()));
    }
    for (params, out, length) in forged {
        let reference: Result<Vec<u8>, Damage> = bwt::decode(&params, &out, length);
        assert!(reference.is_err());
        assert_eq!(codec_decodes(&params, &out, length), None, "{reference:?}");
    }
}
