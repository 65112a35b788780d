//! Parses any bytes as an index, and checks it against an End frame that agrees with its totals or
//! not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain_format::{ArchiveEnd, Index, Limits};

fuzz_target!(|input: (&[u8], [u64; 7])| {
    let (payload, end) = input;
    let Ok(index) = Index::parse(payload, &Limits::default()) else {
        return;
    };
    assert_eq!(
        index.to_payload().expect("what was parsed can be written"),
        payload
    );
    let [
        index_frame_offset,
        index_frame_bytes,
        frame_count,
        archive_bytes,
        _,
        at,
        agrees,
    ] = end;
    let (content_bytes, store_bytes) = match agrees & 1 {
        0 => (index.content_bytes(), index.store_bytes()),
        _ => (at, agrees),
    };
    let end = ArchiveEnd {
        index_frame_offset,
        index_frame_bytes,
        frame_count,
        content_bytes,
        store_bytes,
        archive_bytes,
        root_hash: [0; 32],
    };
    let checked = index.check(&end);
    // Lookups return numbers inside the lists, even if the index is inconsistent.
    let block = index.block_at(at);
    let epoch = index.epoch_at(at);
    assert!(block.is_none_or(|number| number < index.blocks.len()));
    assert!(epoch.is_none_or(|number| number < index.epochs.len()));
    if checked.is_ok() {
        assert_eq!(index.block_at(at).is_some(), at < end.store_bytes);
        assert_eq!(index.epoch_at(at).is_some(), at < end.content_bytes);
    }
});
