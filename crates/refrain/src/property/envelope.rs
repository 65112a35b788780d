//! Encrypted archives of arbitrary bytes.

use std::sync::Arc;

use refrain_protect::envelope::Identity;

use super::{SMALL, survives};
use crate::storage::{MemorySink, MemorySource, Source};
use crate::{Encryption, KeySlots, ReadOptions, RecoveryOptions, RecoveryShare};

/// The secret key of the properties and of `golden/encrypted`: as good as public.
pub fn known_identity() -> Identity {
    Identity::X25519([0x42; 32].into())
}

/// Options with the known key.
fn options() -> ReadOptions {
    ReadOptions {
        identities: vec![known_identity()],
        ..SMALL
    }
}

/// Every way of reading either reads arbitrary bytes as an archive, which may be encrypted for
/// [`known_identity`], or refuses them, and all agree on the content. Slots can be listed and
/// changed, or that is refused; afterwards the archive reads as before.
///
/// # Panics
/// If the property does not hold.
pub fn envelope_survives(bytes: &[u8]) {
    survives(bytes, &options());
    if let Some(changed) = with_another_slot(bytes) {
        survives(&changed, &options());
    }
}

/// A copy with a slot more, if it is an encrypted archive that the known key opens.
fn with_another_slot(bytes: &[u8]) -> Option<Vec<u8>> {
    let source: Arc<dyn Source> = Arc::new(MemorySource::new(bytes.to_vec()));
    let slots = KeySlots::read(&*source).ok()??;
    let added = Encryption {
        recipients: vec![known_identity().recipient()],
        ..Encryption::default()
    };
    let _ = slots.without(&[0], &options());
    let changed = slots.with(&added, &options()).ok()?;
    let recovery = RecoveryOptions {
        share: RecoveryShare::default(),
        threads: 1,
        memory_bytes: SMALL.memory_bytes,
        temporary: None,
    };
    let mut sink = MemorySink::new();
    let output = sink.output();
    changed.copy(&source, &mut sink, recovery).ok()?;
    let copied = output.published()?;
    let again = KeySlots::read(&MemorySource::new(copied.clone()));
    let again = again.ok().flatten().map(|again| again.kinds().len());
    assert!(again == Some(slots.kinds().len() + 1), "the slot is lost");
    Some(copied)
}

#[cfg(test)]
mod tests {
    use refrain_format::envelope::envelope_header;
    use refrain_format::{FRAME_HEADER_BYTES, FrameKind, MAGIC, complete_frame};
    use refrain_testkit::{Rng, scaled};

    use super::*;

    fn golden() -> Vec<u8> {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../golden/encrypted/all.rfn"
        );
        std::fs::read(path).expect("the golden archive")
    }

    /// Changes some bytes of the first copy of the header, and makes its checksums valid again.
    fn forged_header(archive: &[u8], rng: &mut Rng) -> Vec<u8> {
        let mut forged = archive.to_vec();
        let header = envelope_header(&archive[MAGIC.len()..]).unwrap();
        let frame = MAGIC.len()..MAGIC.len() + header.frame_bytes() as usize;
        for _ in 0..1 + rng.below(3) {
            let at = frame.start + FRAME_HEADER_BYTES + rng.below(400) as usize;
            forged[at] = rng.below(256) as u8;
        }
        let payload = &forged[frame.start + FRAME_HEADER_BYTES..frame.end];
        let inside = complete_frame(FrameKind::Envelope, 0, payload, header.archive_id, 0);
        forged.splice(frame, inside);
        forged
    }

    #[test]
    fn encrypted_archives_survive() {
        let archive = golden();
        envelope_survives(&archive);
        assert!(with_another_slot(&archive).is_some());
        let mut rng = Rng::new(7);
        for _ in 0..scaled(60) {
            envelope_survives(&forged_header(&archive, &mut rng));
            let mut damaged = archive.clone();
            let at = rng.below(archive.len() as u64) as usize;
            damaged[at] ^= 1 << rng.below(8);
            damaged.truncate(archive.len() - rng.below(3) as usize * 9_000);
            envelope_survives(&damaged);
        }
    }
}
