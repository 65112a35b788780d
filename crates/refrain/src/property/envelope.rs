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
    use refrain_format::envelope::run::{RUN_FRAME_BYTES, run_end_header};
    use refrain_format::{FRAME_HEADER_BYTES, FrameKind, MAGIC, complete_frame, find_frame};
    use refrain_testkit::{Rng, scaled};

    use super::*;

    fn golden(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/encrypted");
        std::fs::read(format!("{folder}/{name}.rfn")).expect("a golden archive")
    }

    /// Where the frames of this kind begin.
    fn frames_of(archive: &[u8], kind: FrameKind) -> Vec<usize> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(frame) = find_frame(archive, at) {
            if archive[frame + 8] == kind.id() {
                found.push(frame);
            }
            at = frame + 1;
        }
        found
    }

    /// Changes some bytes of a frame of a run, and makes its checksums valid again.
    fn forged_run(archive: &[u8], rng: &mut Rng) -> Vec<u8> {
        let mut forged = archive.to_vec();
        let kind = [FrameKind::Run, FrameKind::RunEnd][rng.below(2) as usize];
        let frames = frames_of(archive, kind);
        let start = frames[rng.below(frames.len() as u64) as usize];
        let header = match kind {
            FrameKind::RunEnd => run_end_header(&archive[start..]).unwrap().frame_bytes(),
            _ => RUN_FRAME_BYTES as u64,
        };
        let sequence = u32::from_le_bytes(archive[start + 12..start + 16].try_into().unwrap());
        let archive_id = u32::from_le_bytes(archive[start + 4..start + 8].try_into().unwrap());
        let frame = start..start + header as usize;
        for _ in 0..rng.below(3) {
            let at = frame.start + FRAME_HEADER_BYTES + rng.below(70.min(header - 32)) as usize;
            forged[at] = rng.below(256) as u8;
        }
        let payload = &forged[frame.start + FRAME_HEADER_BYTES..frame.end];
        let sequence = u64::from(sequence) ^ [0, 0, 1, 2][rng.below(4) as usize];
        let inside = complete_frame(kind, 0, payload, archive_id, sequence);
        forged.splice(frame, inside);
        forged
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

    fn damaged(archive: &[u8], rng: &mut Rng) -> Vec<u8> {
        let mut damaged = archive.to_vec();
        let at = rng.below(archive.len() as u64) as usize;
        damaged[at] ^= 1 << rng.below(8);
        damaged.truncate(archive.len() - rng.below(3) as usize * 9_000);
        damaged
    }

    #[test]
    fn encrypted_archives_survive() {
        let archive = golden("all");
        envelope_survives(&archive);
        assert!(with_another_slot(&archive).is_some());
        let mut rng = Rng::new(7);
        for _ in 0..scaled(60) {
            envelope_survives(&forged_header(&archive, &mut rng));
            envelope_survives(&damaged(&archive, &mut rng));
        }
    }

    #[test]
    fn encrypted_archives_with_generations_survive() {
        let archives = ["nights", "small"].map(golden);
        for archive in &archives {
            envelope_survives(archive);
            assert!(with_another_slot(archive).is_some());
        }
        let mut rng = Rng::new(8);
        for number in 0..scaled(60) {
            let archive = &archives[number as usize % 2];
            envelope_survives(&forged_run(archive, &mut rng));
            envelope_survives(&forged_header(archive, &mut rng));
            envelope_survives(&damaged(archive, &mut rng));
        }
    }
}
