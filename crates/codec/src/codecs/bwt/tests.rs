use super::block::damaged;
use super::*;
use crate::error::Error;
use crate::host::Host;
use crate::test_data::{random_bytes, text};

#[test]
fn removes_repeats_only_if_that_pays() {
    let mut state = BlockState::<RankedRuns>::default();
    let once = random_bytes(100_000, 1);
    let header = state.remove_repeats(Host::default(), &once).unwrap();
    assert_eq!(header, Header::new(0, 100_000));
    let header = state
        .remove_repeats(Host::default(), &once.repeat(2))
        .unwrap();
    assert!((100_000..101_000).contains(&header.reduced_bytes));
}

#[test]
fn returns_an_error_for_forged_parameters_and_rows() {
    let raw = text(100_000, 1);
    let mut out = Vec::new();
    let mut workspace = Workspace::new();
    let settings = Settings::default();
    let params = BWT
        .encode(&mut workspace, &raw, &settings, &mut out)
        .unwrap();
    for reduced in [0, 100_001, u32::MAX] {
        let forged = Header {
            escape: 0,
            reduced_bytes: reduced,
        };
        let result = BWT.check_params(&forged.to_params(), 100_000);
        assert!(matches!(result, Err(Error::Description { .. })));
    }
    for (escape, reduced_bytes, is_valid) in [
        (1, 100_000, false),
        (0, 100_000, true),
        (1, 99_999, true),
        (0, 99_999, true),
    ] {
        let header = Header {
            escape,
            reduced_bytes,
        };
        let result = BWT.check_params(&header.to_params(), 100_000);
        assert_eq!(result.is_ok(), is_valid, "{escape}, {reduced_bytes}");
    }
    let mut decoded = vec![0; raw.len()];
    for row in [0, 100_001, u32::MAX] {
        let mut forged = out.clone();
        forged[..4].copy_from_slice(&row.to_le_bytes());
        let result = BWT.decode(&mut workspace, &params, &forged, &mut decoded);
        assert_eq!(result, Err(damaged::<MixedRuns>("row outside the block")));
    }
    // Another row inside the block is not detected here, but decodes safely to other bytes.
    let mut forged = out.clone();
    forged[..4].copy_from_slice(&77_u32.to_le_bytes());
    assert_eq!(
        BWT.decode(&mut workspace, &params, &forged, &mut decoded),
        Ok(())
    );
    assert!(decoded != raw);
    assert_eq!(
        BWT.decode(&mut workspace, &params, &out, &mut decoded),
        Ok(())
    );
    assert!(decoded == raw);
}

#[test]
fn stops_encoding_when_the_output_reaches_the_length_of_the_block() {
    let raw = random_bytes(100_000, 5);
    let mut out = b"before".to_vec();
    let settings = Settings::default();
    BWT.encode(&mut Workspace::new(), &raw, &settings, &mut out)
        .unwrap();
    assert!(out.len() > raw.len() && out.len() < raw.len() + 4096);
}

#[test]
fn memory_estimate_follows_the_reduced_length() {
    let whole = Header::new(0, 1 << 26).to_params();
    let half = Header::new(0, 1 << 25).to_params();
    let memory = |params| BWT.decode_memory_bytes(1 << 26, params);
    assert!(memory(&whole) >= 5 << 26 && memory(&whole) < 6 << 26);
    assert!(memory(&half) < memory(&whole) * 6 / 10);
}
