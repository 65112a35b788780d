//! Properties that hold for all inputs, shared by unit tests, proptest and fuzz targets. The
//! functions panic when a property is violated.

use crate::decode::{decode, decode_damaged, decode_prefix};
use crate::description::{BlockDescription, UntrustedBlockDescription};
use crate::encode::encode_block;
use crate::filter::chain::FilterChain;
use crate::filter::step::FilterStep;
use crate::host::Host;
use crate::plan::BlockPlan;
use crate::workspace::Workspace;

pub use crate::test_data::{arm64_code, coordinates, random_bytes, text, wave, x86_code};

/// A block round-trips, whole and by prefixes; the payload is never larger than the block and is
/// appended to the output; a used workspace gives the same bytes as a new one. Returns the
/// description and the payload.
pub fn check_round_trip(
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
    assert!(
        used[6..] == fresh[..],
        "{plan:?}: bytes depend on earlier use"
    );
    assert!(fresh.len() <= raw.len());
    let mut decoded = vec![1; 3];
    let length = raw.len() as u64;
    let result = decode(workspace, &description, &fresh, length, &mut decoded);
    assert_eq!(result, Ok(()), "{plan:?} on {} bytes", raw.len());
    assert!(decoded == raw, "{plan:?} on {} bytes", raw.len());
    for want in [0, 1, 5, length / 3, length - 1, length, length + 9] {
        let result = decode_prefix(workspace, &description, &fresh, length, want, &mut decoded);
        assert_eq!(result, Ok(()), "{plan:?}: {want} of {length} bytes");
        assert!(decoded == raw[..want.min(length) as usize]);
    }
    (description, fresh)
}

/// Untrusted bytes never cause a panic, and a block that decodes has the stated length.
pub fn check_decode(
    workspace: &mut Workspace,
    untrusted: &UntrustedBlockDescription<'_>,
    data: &[u8],
    raw_length_bytes: u64,
    prefix_bytes: u64,
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
            prefix_bytes,
            &mut out,
        );
        assert_eq!(result, Ok(()));
        assert!(out == whole[..prefix_bytes.min(raw_length_bytes) as usize]);
        let damaged = decode_damaged(workspace, &description, data, raw_length_bytes, &mut out);
        assert_eq!(damaged, Ok(()));
        assert!(out == whole);
    } else {
        assert!(out.is_empty());
        if decode_damaged(workspace, &description, data, raw_length_bytes, &mut out).is_ok() {
            assert_eq!(out.len() as u64, raw_length_bytes);
        }
    }
    let mut prefix = Vec::new();
    let _ = decode_prefix(
        workspace,
        &description,
        data,
        raw_length_bytes,
        prefix_bytes,
        &mut prefix,
    );
    assert!(prefix.len() as u64 <= prefix_bytes.min(raw_length_bytes));
    assert!(prefix.capacity() as u64 <= raw_length_bytes + 64);
}

/// Filters are reversible, whole and by prefixes. Pairs that are not a filter are skipped, as are
/// those after the second.
pub fn check_filters(bytes: &[u8], ids: &[(u8, u8)]) {
    let mut chain = FilterChain::EMPTY;
    for &(id, param) in ids {
        if let Ok(step) = FilterStep::new(id, param) {
            let _ = chain.push(step);
        }
    }
    let mut filtered = bytes.to_vec();
    assert_eq!(chain.encode(Host::default(), &mut filtered), Ok(()));
    let mut decoded = filtered.clone();
    assert_eq!(chain.decode(Host::default(), &mut decoded), Ok(()));
    assert_eq!(decoded, bytes, "{chain}");
    for want in [1, bytes.len() / 3, bytes.len() / 2, bytes.len()] {
        let given = want
            .saturating_add(chain.lookahead_bytes())
            .min(bytes.len());
        let mut decoded = filtered[..given].to_vec();
        assert_eq!(chain.decode(Host::default(), &mut decoded), Ok(()));
        let want = want.min(bytes.len());
        assert_eq!(decoded[..want], bytes[..want], "{chain}");
    }
}
