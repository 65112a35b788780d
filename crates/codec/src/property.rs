//! What must hold for all inputs: shared by the tests here, proptest and
//! the fuzz targets. Functions panic when a property is violated.

use crate::decode::{decode, decode_prefix};
use crate::description::{BlockDescription, UntrustedBlockDescription};
use crate::encode::encode_block;
use crate::filter::chain::FilterChain;
use crate::filter::step::FilterStep;
use crate::plan::BlockPlan;
use crate::workspace::Workspace;

pub use crate::test_data::{arm64_code, figures, noise, text, wave, x86_code};

/// A block comes back whole and by prefixes, is never larger than raw, appends to what was there,
/// and a used workspace writes the same bytes as a fresh one. Returns what was written.
pub fn round_trip(
    workspace: &mut Workspace,
    raw: &[u8],
    plan: &BlockPlan,
) -> (BlockDescription, Vec<u8>) {
    let mut used = b"header".to_vec();
    let result = encode_block(workspace, raw, plan, &mut used);
    let mut fresh = Vec::new();
    let again = encode_block(&mut Workspace::new(), raw, plan, &mut fresh);
    assert_eq!(result, again, "{plan:?} on {} bytes", raw.len());
    assert!(result.is_ok(), "{result:?} of {plan:?}");
    let description = result.unwrap_or(BlockDescription::stored(None));
    assert_eq!(&used[..6], b"header");
    assert!(used[6..] == fresh[..], "{plan:?}: bytes depend on the past");
    assert!(fresh.len() <= raw.len());
    let mut opened = vec![1; 3];
    let length = raw.len() as u64;
    let result = decode(workspace, &description, &fresh, length, &mut opened);
    assert_eq!(result, Ok(()), "{plan:?} on {} bytes", raw.len());
    assert!(opened == raw, "{plan:?} on {} bytes", raw.len());
    for want in [0, 1, 5, length / 3, length - 1, length, length + 9] {
        let result = decode_prefix(workspace, &description, &fresh, length, want, &mut opened);
        assert_eq!(result, Ok(()), "{plan:?}: {want} of {length} bytes");
        assert!(opened == raw[..want.min(length) as usize]);
    }
    (description, fresh)
}

/// Untrusted bytes never panic, and what opens has the stated length.
pub fn decode_survives(
    workspace: &mut Workspace,
    untrusted: &UntrustedBlockDescription<'_>,
    data: &[u8],
    raw_length_bytes: u64,
    want_bytes: u64,
) {
    let Ok(description) = untrusted.check(raw_length_bytes) else {
        return;
    };
    let mut out = Vec::new();
    if decode(workspace, &description, data, raw_length_bytes, &mut out).is_ok() {
        assert_eq!(out.len() as u64, raw_length_bytes);
        let whole = out.clone();
        let result = decode_prefix(
            workspace,
            &description,
            data,
            raw_length_bytes,
            want_bytes,
            &mut out,
        );
        assert_eq!(result, Ok(()));
        assert!(out == whole[..want_bytes.min(raw_length_bytes) as usize]);
    } else {
        assert!(out.is_empty());
    }
    let mut prefix = Vec::new();
    let _ = decode_prefix(
        workspace,
        &description,
        data,
        raw_length_bytes,
        want_bytes,
        &mut prefix,
    );
    assert!(prefix.len() as u64 <= want_bytes.min(raw_length_bytes));
    assert!(prefix.capacity() as u64 <= raw_length_bytes + 64);
}

/// Filters give back what they were given, whole and by prefixes. Pairs that are no filter are left
/// out, as are those beyond the second.
pub fn filters_are_reversible(bytes: &[u8], ids: &[(u8, u8)]) {
    let mut chain = FilterChain::EMPTY;
    for &(id, param) in ids {
        if let Ok(step) = FilterStep::new(id, param) {
            let _ = chain.push(step);
        }
    }
    let mut filtered = bytes.to_vec();
    chain.encode(&mut filtered);
    let mut opened = filtered.clone();
    chain.decode(&mut opened);
    assert_eq!(opened, bytes, "{chain}");
    for want in [1, bytes.len() / 3, bytes.len() / 2, bytes.len()] {
        let given = (want + chain.lookahead_bytes()).min(bytes.len());
        let mut opened = filtered[..given].to_vec();
        chain.decode(&mut opened);
        let want = want.min(bytes.len());
        assert_eq!(opened[..want], bytes[..want], "{chain}");
    }
}
