//! Compares codec `cm` with the reference decoder `reference/cm.rs`, which was written from
//! `docs/codec-cm.md` alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests may fail loudly"
)]

#[path = "reference/arithmetic.rs"]
mod arithmetic;
#[path = "reference/cm.rs"]
mod cm;
#[path = "reference/data.rs"]
mod data;

use arithmetic::{Damage, Decoder};
use data::{
    code, fibonacci, machine_code, period, random_bytes, records, repeated, skewed_bytes, text,
};
use refrain_codec::{
    BlockDescription, BlockPlan, CodecId, UntrustedBlockDescription, Workspace, decode,
    decode_prefix, encode_block,
};

/// Encodes a block to parameters and data; `None` if another codec or storing was used.
fn encoded(workspace: &mut Workspace, level: i32, raw: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut out = Vec::new();
    let plan = BlockPlan::plain(CodecId::CM, level);
    let block = encode_block(workspace, raw, &plan, &mut out).unwrap();
    (block.codec == CodecId::CM).then(|| (block.params.as_bytes().to_vec(), out))
}

fn description(params: &[u8], length: usize) -> Option<BlockDescription> {
    let untrusted = UntrustedBlockDescription {
        codec: CodecId::CM.0,
        filters: &[],
        params,
        fallback: 0,
    };
    untrusted.check(length as u64).ok()
}

/// Decodes a block with the codec; an error is `None`.
fn codec_decodes(params: &[u8], out: &[u8], length: usize) -> Option<Vec<u8>> {
    let block = description(params, length)?;
    let mut decoded = Vec::new();
    let mut workspace = Workspace::new();
    decode(&mut workspace, &block, out, length as u64, &mut decoded).ok()?;
    Some(decoded)
}

/// Checks that the reference decoder decodes the output of the codec at this level. Returns the
/// profile.
fn check(workspace: &mut Workspace, level: i32, name: &str, raw: &[u8]) -> u8 {
    let (params, out) = encoded(workspace, level, raw).expect(name);
    assert_eq!(i32::from(params[0]), level);
    let decoded = cm::decode(&params, &out, raw.len());
    assert!(
        decoded.as_deref() == Ok(raw),
        "{name}, level {level}: {:?}",
        decoded.err()
    );
    params[1]
}

#[test]
fn tables_match_the_document() {
    cm::check_tables();
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

#[test]
fn reference_decodes_text_at_every_level() {
    let blocks = [
        ("text", text(8000, 1)),
        ("code", code(12_000, 2)),
        ("code repeated", repeated(&code(3500, 3), 3)),
        ("long lines", long_lines(code(8000, 5))),
    ];
    let mut workspace = Workspace::new();
    for level in 1..=3 {
        for (name, raw) in &blocks {
            assert_eq!(check(&mut workspace, level, name, raw), 0, "{name}");
        }
    }
    check(&mut workspace, 2, "much code", &code(100_000, 4));
}

#[test]
fn reference_decodes_binary_data_at_every_level() {
    let blocks = [
        ("machine code", machine_code(12_000, 4)),
        ("machine code repeated", repeated(&machine_code(2500, 5), 5)),
        ("skewed bytes", skewed_bytes(6000, 6)),
        ("random bytes repeated", repeated(&random_bytes(2000, 7), 7)),
    ];
    let mut workspace = Workspace::new();
    for level in 1..=3 {
        for (name, raw) in &blocks {
            assert_eq!(check(&mut workspace, level, name, raw), 1, "{name}");
        }
    }
}

#[test]
fn reference_decodes_records_at_every_level() {
    let mut workspace = Workspace::new();
    for (level, stride) in [(1, 9), (2, 28), (3, 16)] {
        let raw = records(65_536, stride, 8);
        let profile = check(&mut workspace, level, "records", &raw);
        assert_eq!(usize::from(profile), stride);
    }
}

#[test]
fn reference_decodes_regular_and_short_blocks() {
    let length = 100_003;
    let mut workspace = Workspace::new();
    for level in 1..=3 {
        check(&mut workspace, level, "equal", &vec![0; length]);
    }
    check(&mut workspace, 3, "period 1000", &period(length, 1000));
    check(&mut workspace, 2, "period 2", &period(length, 2));
    check(&mut workspace, 2, "fibonacci", &fibonacci(2 * length));
    let mut decoded = 0;
    for length in (1..40).chain([100, 255, 256, 257, 1000]) {
        for raw in [vec![7; length], text(length, 2), period(length, 3)] {
            if let Some((params, out)) = encoded(&mut workspace, 2, &raw) {
                assert_eq!(cm::decode(&params, &out, length), Ok(raw));
                decoded += 1;
            }
        }
    }
    assert!(decoded > 40, "{decoded}");
}

/// Any sequence of decisions is valid, so random bytes decode to something, which must be the same
/// with every profile and level.
#[test]
fn codec_and_reference_decode_random_bytes_to_the_same() {
    let (length, prefix_length) = (20_000_u32, 1500);
    let mut decoded = Vec::new();
    for profile in (0..8).chain([24, 100, 255]) {
        for level in 1..=3 {
            let data = [random_bytes(40, u64::from(profile)), vec![profile; 4000]].concat();
            let params = [&[level, profile][..], &length.to_le_bytes()].concat();
            let block = description(&params, length as usize).unwrap();
            let mut workspace = Workspace::new();
            let prefix_bytes = prefix_length as u64;
            decode_prefix(
                &mut workspace,
                &block,
                &data,
                length.into(),
                prefix_bytes,
                &mut decoded,
            )
            .unwrap();
            let mut decoder = Decoder::new(&data).unwrap();
            let reference =
                cm::decode_prefix(&params, &mut decoder, length as usize, prefix_length);
            assert!(
                reference.as_ref() == Ok(&decoded),
                "level {level}, profile {profile}"
            );
        }
    }
}

#[test]
fn codec_and_reference_return_errors_for_the_same_blocks() {
    let raw = text(3000, 1);
    let (params, out) = encoded(&mut Workspace::new(), 2, &raw).unwrap();
    let (level, profile) = (params[0], params[1]);
    let with =
        |level: u8, length: usize| [&[level, profile][..], &(length as u32).to_le_bytes()].concat();
    let forged = [
        (params.clone(), out[..out.len() - 1].to_vec(), raw.len()),
        (params.clone(), [&out[..], &[0]].concat(), raw.len()),
        (params.clone(), out[..3].to_vec(), raw.len()),
        (params.clone(), Vec::new(), raw.len()),
        (params.clone(), out.clone(), raw.len() - 1),
        (params.clone(), out.clone(), raw.len() + 1),
        (params[..5].to_vec(), out.clone(), raw.len()),
        (with(0, raw.len()), out.clone(), raw.len()),
        (with(4, raw.len()), out.clone(), raw.len()),
        (with(level, raw.len() + 100), out.clone(), raw.len() + 100),
        (with(level, raw.len() - 100), out.clone(), raw.len() - 100),
    ];
    for (params, out, length) in forged {
        let reference: Result<Vec<u8>, Damage> = cm::decode(&params, &out, length);
        assert!(reference.is_err());
        assert_eq!(codec_decodes(&params, &out, length), None, "{reference:?}");
    }
}
