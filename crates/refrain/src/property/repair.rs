//! Repairs of arbitrary bytes.

use std::sync::Arc;

use crate::storage::{MemorySink, MemorySource, Source};
use crate::{RecoveryOptions, RecoveryShare, Unwatched, plan_repair};

/// Little memory, so that violations of the limits show.
fn small_options() -> RecoveryOptions {
    RecoveryOptions {
        share: RecoveryShare::default(),
        threads: 1,
        memory_bytes: 32 << 20,
        temporary: None,
    }
}

/// What a repair of arbitrary bytes yields needs no repair. Returns it, if there is any.
///
/// # Panics
/// If the property does not hold.
pub fn repair_survives(bytes: &[u8]) -> Option<Vec<u8>> {
    let source: Arc<dyn Source> = Arc::new(MemorySource::new(bytes.to_vec()));
    let options = small_options();
    let plan = plan_repair(vec![source], &options, &Unwatched).ok()?;
    let mut sink = MemorySink::new();
    let output = sink.output();
    plan.write(&mut sink, &Unwatched).ok()?;
    let healed = output.published()?;
    if plan.summary().is_intact {
        assert!(healed == bytes, "intact, and yet changed");
    }
    let is_appended = healed.len() as u64 > plan.summary().protected_bytes;
    if is_appended && bytes.len() >= healed.len() / 2 {
        let source: Arc<dyn Source> = Arc::new(MemorySource::new(healed.clone()));
        let again = plan_repair(vec![source], &options, &Unwatched);
        assert!(again.is_ok_and(|again| again.summary().is_intact));
    }
    Some(healed)
}

#[cfg(test)]
mod tests {
    use refrain_format::{FRAME_HEADER_BYTES, complete_frame, find_frame};
    use refrain_format::{Limits, UntrustedFrameHeader};
    use refrain_testkit::{Rng, data, scaled};

    use super::*;
    use crate::{CompressOptions, Content, MemberInput, compress};

    fn protected() -> Vec<u8> {
        let content = Arc::new(MemorySource::new(data::random(9_000, 4)));
        let member = MemberInput {
            name: b"content".to_vec(),
            mode: None,
            modified: None,
            content: Content::Source(content),
        };
        let options = CompressOptions {
            recovery: Some(RecoveryShare::default()),
            ..CompressOptions::default()
        };
        let mut sink = MemorySink::new();
        let output = sink.output();
        compress(vec![member], &mut sink, &options, &Unwatched).unwrap();
        output.published().unwrap()
    }

    /// Changes a byte of a Recovery frame's head, and makes its checksums right again.
    fn forge(bytes: &mut [u8], rng: &mut Rng) {
        let from = bytes.len() / 2 + rng.below(bytes.len() as u64 / 2) as usize;
        let Some(at) = find_frame(bytes, from) else {
            return;
        };
        let header = UntrustedFrameHeader::parse(&bytes[at..]).unwrap();
        let header = header.check(&Limits::default(), None).unwrap();
        let end = at + FRAME_HEADER_BYTES + header.payload_bytes as usize;
        let mut payload = bytes[at + FRAME_HEADER_BYTES..end].to_vec();
        payload[rng.below(42) as usize] = rng.below(256) as u8;
        let frame = complete_frame(header.kind, 1, &payload, header.archive_id, header.sequence);
        bytes[at..end].copy_from_slice(&frame);
    }

    #[test]
    fn forged_and_damaged_recovery_data_is_survived() {
        let whole = protected();
        assert_eq!(repair_survives(&whole).as_ref(), Some(&whole));
        for case in 0..u64::from(scaled(200)) {
            let mut rng = Rng::new(case);
            let mut forged = whole.clone();
            for _ in 0..1 + rng.below(30) {
                forge(&mut forged, &mut rng);
            }
            let at = rng.below(9_000) as usize;
            forged[at] ^= 1;
            repair_survives(&forged);
        }
        assert_eq!(repair_survives(b""), None);
    }
}
