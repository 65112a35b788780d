use super::*;
use crate::property::{noise, round_trip, text};
use crate::{Plan, codec};

fn plan() -> Plan {
    Plan::plain(CodecId::BWT, 1)
}

/// Strings that are hard for some suffix sorters, matchers or models.
fn adversaries(length: usize) -> Vec<(&'static str, Vec<u8>)> {
    let (mut shorter, mut fibonacci) = (b"a".to_vec(), b"ab".to_vec());
    while fibonacci.len() < length {
        let longer = [&fibonacci[..], &shorter[..]].concat();
        shorter = std::mem::replace(&mut fibonacci, longer);
    }
    fibonacci.truncate(length);
    let thue_morse = (0..length as u32).map(|n| b'0' + (n.count_ones() & 1) as u8);
    let mut sorted = noise(length, 3);
    sorted.sort_unstable();
    let mut squares = Vec::with_capacity(length);
    for n in 1.. {
        if squares.len() + n > length {
            break;
        }
        squares.resize(squares.len() + n - 1, b'a');
        squares.push(b'b');
    }
    let period = |n: usize| noise(n, 2).into_iter().cycle().take(length).collect();
    vec![
        ("equal", vec![0; length]),
        (
            "period 2",
            b"ab".iter().copied().cycle().take(length).collect(),
        ),
        ("period 3", period(3)),
        ("period 31", period(31)),
        ("period 64", period(64)),
        ("period 1000", period(1000)),
        ("fibonacci", fibonacci),
        ("thue-morse", thue_morse.collect()),
        ("sorted", sorted),
        ("squares", squares),
    ]
}

#[test]
fn adversaries_come_back_small() {
    let mut workspace = Workspace::new();
    for length in [65_536, 200_003] {
        for (name, raw) in adversaries(length) {
            let (block, data) = round_trip(&mut workspace, &raw, &plan());
            assert_eq!(block.codec, CodecId::BWT, "{name}");
            assert!(data.len() < raw.len() / 20, "{name}: {}", data.len());
        }
    }
}

#[test]
fn repeats_are_taken_out_only_where_that_pays() {
    let mut state = BwtState::default();
    let once = noise(100_000, 1);
    let header = state.take_out_repeats(&once).unwrap();
    assert_eq!(header, Header::new(0, 100_000));
    let header = state.take_out_repeats(&once.repeat(2)).unwrap();
    assert!((100_000..101_000).contains(&header.kept_bytes));
}

#[test]
fn forged_headers_and_rows_are_refused() {
    let raw = text(100_000, 1);
    let mut out = Vec::new();
    let mut workspace = Workspace::new();
    let settings = Settings::default();
    let params = Bwt
        .encode(&mut workspace, &raw, &settings, &mut out)
        .unwrap();
    for kept in [0, 100_001, u32::MAX] {
        let forged = Header {
            escape: 0,
            kept_bytes: kept,
        };
        let result = Bwt.check_params(&forged.to_params(), 100_000);
        assert!(matches!(result, Err(Error::Description { .. })));
    }
    let mut opened = vec![0; raw.len()];
    for row in [0, 100_001, u32::MAX] {
        let mut forged = out.clone();
        forged[..4].copy_from_slice(&row.to_le_bytes());
        let result = Bwt.decode(&mut workspace, &params, &forged, &mut opened);
        assert_eq!(result, Err(damaged("a row outside of the block")));
    }
    // Another row inside the block is not noticed here, but opens safely to other bytes.
    let mut forged = out.clone();
    forged[..4].copy_from_slice(&77_u32.to_le_bytes());
    assert_eq!(
        Bwt.decode(&mut workspace, &params, &forged, &mut opened),
        Ok(())
    );
    assert!(opened != raw);
    assert_eq!(
        Bwt.decode(&mut workspace, &params, &out, &mut opened),
        Ok(())
    );
    assert!(opened == raw);
}

#[test]
fn incompressible_blocks_give_up_at_their_length() {
    let raw = noise(100_000, 5);
    let mut out = b"kept".to_vec();
    let settings = Settings::default();
    Bwt.encode(&mut Workspace::new(), &raw, &settings, &mut out)
        .unwrap();
    assert!(out.len() > raw.len() && out.len() < raw.len() + 4096);
}

#[test]
fn memory_is_stated_for_the_kept_length() {
    let codec = codec::by_id(CodecId::BWT).unwrap();
    let whole = Header::new(0, 1 << 26).to_params();
    let half = Header::new(0, 1 << 25).to_params();
    let memory = |params| codec.decode_memory_bytes(1 << 26, params);
    assert!(memory(&whole) >= 5 << 26 && memory(&whole) < 6 << 26);
    assert!(memory(&half) < memory(&whole) * 6 / 10);
}
