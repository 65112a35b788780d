//! Changes for whom an encrypted archive is, without touching its records.

use std::ops::Range;
use std::sync::Arc;

use refrain_format::envelope::{Envelope, StoredEnvelope, StoredSlot, envelope_tail};
use refrain_format::{MAGIC, TAIL_BYTES, Tail};
use refrain_protect::envelope::{FileKey, SEALED_RECORD_BYTES, Slot};
use refrain_storage::{Sink, Source};

use crate::error::{Error, ErrorKind, Result};
use crate::options::{Encryption, ReadOptions};
use crate::progress::Unwatched;
use crate::recovery::growth::share_of;
use crate::recovery::sink::RecoverySink;
use crate::recovery::{RecoveryOptions, check_digests, copy, recovery_info};
use crate::recovery_share::RecoveryShare;
use crate::store::appendix::{LastFrame, OwnEnd, appended_frames};
use crate::store::ending::{protected_end, set_ending_at};
use crate::store::envelope::keys::{new_slots, unlock};
use crate::store::envelope::open::read_envelope;
use crate::store::envelope::source::EnvelopeSource;
use crate::store::recovery_chain::is_between_generations;

/// What opens an encrypted archive: a list of slots, each for one password or key.
pub struct KeySlots {
    stored: StoredEnvelope,
    recovery: Option<RecoveryShare>,
    /// Whether recovery data is between runs: it cannot be left out, as runs would not be at their
    /// places, and would bring the old slots back.
    is_fixed: bool,
}

/// What a slot is for. It does not say for whose key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotKind {
    /// A password.
    Password {
        /// The memory of a guess in KiB.
        memory_kib: u32,
        /// The passes over it.
        passes: u32,
    },
    /// An X25519 or SSH key.
    X25519,
    /// An X-Wing key, which resists quantum computers.
    Hybrid,
    /// A kind of a later version.
    Unknown(u64),
}

/// The slots of an archive after a change.
pub struct ChangedSlots {
    frames: [Vec<u8>; 2],
    /// Opens the archive as it is.
    before: (StoredEnvelope, FileKey),
    /// The size of each frame in the archive as it is.
    frame_bytes_before: u64,
    /// How much recovery data the archive has.
    recovery: Option<RecoveryShare>,
}

impl KeySlots {
    /// The slots of an archive; `None` if it is not encrypted. Needs no secret.
    ///
    /// # Errors
    /// `Damaged`, `Unsupported`, `Limit`, `Io`.
    pub fn read(source: &dyn Source) -> Result<Option<KeySlots>> {
        let Some(stored) = read_envelope(source)? else {
            return Ok(None);
        };
        // Damaged recovery data is an error here.
        recovery_info(source)?;
        let recovery = set_ending_at(source, source.size_bytes()?)?;
        let recovery = recovery.map(|set| share_of(&set));
        Ok(Some(KeySlots {
            stored,
            recovery,
            is_fixed: is_between_generations(source)?,
        }))
    }

    /// What the slots are for, in order.
    pub fn kinds(&self) -> Vec<SlotKind> {
        let slots = self.stored.envelope.slots.iter();
        let kind = |slot: &StoredSlot| match slot {
            StoredSlot::Known(Slot::Password { cost, .. }) => SlotKind::Password {
                memory_kib: cost.memory_kib,
                passes: cost.passes,
            },
            StoredSlot::Known(Slot::X25519 { .. }) => SlotKind::X25519,
            StoredSlot::Known(Slot::Hybrid { .. }) => SlotKind::Hybrid,
            StoredSlot::Unknown { kind, .. } => SlotKind::Unknown(*kind),
        };
        slots.map(kind).collect()
    }

    /// Adds slots for passwords and recipients. The options' secrets must open the archive.
    ///
    /// # Errors
    /// `Usage` if no secret opens it; `Limit` for too many slots; `Unsupported` if something was
    /// added behind recovery data; `Io`.
    pub fn with(&self, added: &Encryption, options: &ReadOptions) -> Result<ChangedSlots> {
        let key = unlock(&self.stored, options)?;
        let salt = &self.stored.envelope.salt;
        let new = new_slots(&key, salt, added, options.memory_bytes)?;
        let mut slots = self.stored.envelope.slots.clone();
        slots.extend(new);
        self.changed(&key, slots)
    }

    /// Removes slots by their numbers, from 0. Whoever kept a copy of the archive, or of the key in
    /// it, can still read it.
    ///
    /// # Errors
    /// `Usage` if there is no such slot, none would be left, or no secret opens the archive.
    pub fn without(&self, removed: &[usize], options: &ReadOptions) -> Result<ChangedSlots> {
        let usage = |text: String| Error::new(ErrorKind::Usage, text);
        let before = &self.stored.envelope.slots;
        if let Some(missing) = removed.iter().find(|&&number| number >= before.len()) {
            return Err(usage(format!(
                "there is no slot {missing}: the archive has slots 0 to {}",
                before.len().saturating_sub(1)
            )));
        }
        let kept = before.iter().enumerate();
        let kept = kept.filter(|(number, _)| !removed.contains(number));
        let kept: Vec<_> = kept.map(|(_, slot)| slot.clone()).collect();
        if kept.is_empty() {
            let text = "nobody could open the archive without its last slot: add another one first";
            return Err(usage(text.into()));
        }
        let key = unlock(&self.stored, options)?;
        self.changed(&key, kept)
    }

    fn changed(&self, key: &FileKey, slots: Vec<StoredSlot>) -> Result<ChangedSlots> {
        if self.is_fixed {
            let text = "the keys of an archive with recovery data to which something was added \
                        cannot be changed in this version: `refrain merge` writes a new archive";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        let envelope = Envelope {
            revision: self.stored.envelope.revision + 1,
            slots,
            ..self.stored.envelope.clone()
        };
        let frame_bytes_before = self.stored.frame_bytes;
        let frame_bytes = match envelope.to_frames(key, frame_bytes_before) {
            Ok(_) => frame_bytes_before,
            Err(_) => envelope.frame_bytes(),
        };
        Ok(ChangedSlots {
            frames: envelope.to_frames(key, frame_bytes)?,
            before: (self.stored.clone(), key.clone()),
            frame_bytes_before,
            recovery: self.recovery,
        })
    }
}

impl ChangedSlots {
    /// What to write where in the file, in this order; each must be durable before the next, so
    /// that an interruption leaves one intact copy. `None` if there is no room, or recovery data
    /// that would bring the old slots back: then the archive is [copied](Self::copy).
    pub fn writes(&self) -> Option<[(u64, &[u8]); 2]> {
        let [first, second] = &self.frames;
        let start = MAGIC.len() as u64;
        let second_at = start + self.frame_bytes_before;
        let fits = first.len() as u64 == self.frame_bytes_before;
        (fits && self.recovery.is_none()).then_some([(second_at, &second[..]), (start, &first[..])])
    }

    /// Copies the archive in `source` with these slots, and publishes it. Recovery data is renewed,
    /// with the share that it has; the share of the options does not count.
    ///
    /// # Errors
    /// `Damaged` if the archive is truncated, or is not what its recovery data says; `Limit`, `Io`.
    pub fn copy(
        &self,
        source: &Arc<dyn Source>,
        sink: &mut dyn Sink,
        options: RecoveryOptions,
    ) -> Result<()> {
        let Some(share) = self.recovery else {
            return self.copy_records(source, sink);
        };
        check_digests(&**source)?;
        let options = RecoveryOptions { share, ..options };
        self.copy_records(source, &mut RecoverySink::new(sink, options)?)
    }

    fn copy_records(&self, source: &Arc<dyn Source>, sink: &mut dyn Sink) -> Result<()> {
        let start = MAGIC.len() as u64 + 2 * self.frame_bytes_before;
        let (stored, key) = &self.before;
        let archive = EnvelopeSource::open(source.clone(), stored, key)?;
        let append_at = archive.complete_end()?.1.min(protected_end(&**source)?);
        let records = archive.base_records();
        let records_end = start + records * SEALED_RECORD_BYTES as u64;
        let first_run = archive.first_run()?;
        let source = &**source;
        sink.write_all(&MAGIC)?;
        for frame in &self.frames {
            sink.write_all(frame)?;
        }
        copy(source, start..records_end, sink, &Unwatched)?;
        let new_start = MAGIC.len() as u64 + 2 * self.frames[0].len() as u64;
        let tail = envelope_tail(new_start, records);
        sink.write_all(&tail.to_bytes())?;
        let tail_end = records_end + TAIL_BYTES as u64;
        let protected = protected_end(source)?;
        match first_run {
            None => copy_appendices(
                source,
                tail_end..protected,
                (archive.archive_id(), tail),
                sink,
            )?,
            Some(run) => {
                let run_start = start + run.frame_position();
                let place = (archive.archive_id(), tail);
                copy_appendices(source, tail_end..run_start, place, sink)?;
                // The place of what is appended to a run is counted from its end.
                copy(source, run_start..append_at, sink, &Unwatched)?;
            }
        }
        Ok(sink.publish()?)
    }
}

/// Copies the appendices that are these bytes, except for recovery data: neither the key nor the
/// root hash of the archive has changed, so signatures stay right.
fn copy_appendices(
    source: &dyn Source,
    bytes: Range<u64>,
    (archive_id, tail): (u32, Tail),
    sink: &mut dyn Sink,
) -> Result<()> {
    let own = OwnEnd {
        offset: bytes.start,
        last: LastFrame {
            archive_id,
            sequence: 1,
            generation: 0,
        },
    };
    let mut back_bytes = tail.back_bytes;
    for frame in appended_frames(source, &own, bytes.end)?.frames {
        let frame_end = frame.offset + frame.header.frame_bytes();
        copy(source, frame.offset..frame_end, sink, &Unwatched)?;
        back_bytes += frame.header.frame_bytes();
    }
    if back_bytes > tail.back_bytes {
        back_bytes += TAIL_BYTES as u64;
        sink.write_all(&Tail { back_bytes }.to_bytes())?;
    }
    Ok(())
}
