//! Makes the key of an archive and its slots, and opens them.

use refrain_format::envelope::{Envelope, StoredEnvelope, StoredSlot};
use refrain_pool::Lock;
use refrain_protect::envelope::{
    FILE_KEY_BYTES, FileKey, Identity, PASSWORD_SALT_BYTES, PasswordCost, PasswordKey, SALT_BYTES,
    SLOT_RANDOM_BYTES, Slot,
};
use refrain_sync::clock::RealClock;
use zeroize::Zeroizing;

use crate::error::{Error, ErrorKind, Result, mebibytes};
use crate::options::{Encryption, PasswordSource, ReadOptions};

/// The memory of a password's key, if the budget allows four times as much.
const PASSWORD_MEMORY_KIB: u64 = 256 << 10;

/// How long the key of a password takes on the machine that writes it.
const PASSWORD_SECONDS: f64 = 1.0;

/// Unpredictable bytes from the system.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        let cause = format!("the system supplies no random numbers: {error}");
        Error::new(ErrorKind::Io, cause)
    })?;
    Ok(bytes)
}

/// A new secret key: X25519, or X-Wing, which also resists quantum computers.
///
/// # Errors
/// `Io` if the system supplies no random numbers.
pub fn new_identity(is_post_quantum: bool) -> Result<Identity> {
    let secret = Zeroizing::new(random::<32>()?);
    Ok(if is_post_quantum {
        Identity::Hybrid(secret)
    } else {
        Identity::X25519(secret)
    })
}

fn usage(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, text.into())
}

/// A new key, and the envelope with its slots.
pub(super) fn new_envelope(
    encryption: &Encryption,
    memory_bytes: u64,
) -> Result<(FileKey, Envelope)> {
    let file_key = FileKey::new(random::<FILE_KEY_BYTES>()?);
    let salt = random::<SALT_BYTES>()?;
    let slots = new_slots(&file_key, &salt, encryption, memory_bytes)?;
    if slots.is_empty() {
        return Err(usage(
            "encryption needs a password or the key of a recipient",
        ));
    }
    let envelope = Envelope {
        salt,
        commitment: file_key.commitment(&salt),
        revision: 0,
        slots,
    };
    Ok((file_key, envelope))
}

/// Slots for all passwords and recipients.
pub(crate) fn new_slots(
    file_key: &FileKey,
    salt: &[u8; SALT_BYTES],
    encryption: &Encryption,
    memory_bytes: u64,
) -> Result<Vec<StoredSlot>> {
    let mut slots = vec![];
    for source in &encryption.passwords {
        let password = new_password(source)?;
        let cost = calibrated_cost(memory_bytes)?;
        slots.push(password_slot(file_key, salt, &password, cost)?);
    }
    for recipient in &encryption.recipients {
        let random = Zeroizing::new(random::<SLOT_RANDOM_BYTES>()?);
        let slot = Slot::for_recipient(file_key, salt, recipient, &random);
        let slot =
            slot.ok_or_else(|| usage(format!("the key {recipient} keeps nothing secret")))?;
        slots.push(StoredSlot::Known(slot));
    }
    Ok(slots)
}

fn new_password(source: &PasswordSource) -> Result<Zeroizing<Vec<u8>>> {
    let password = Zeroizing::new(source.password()?);
    PasswordSource::check(&password)?;
    Ok(password)
}

fn password_slot(
    file_key: &FileKey,
    salt: &[u8; SALT_BYTES],
    password: &[u8],
    cost: PasswordCost,
) -> Result<StoredSlot> {
    let own_salt = random::<PASSWORD_SALT_BYTES>()?;
    let slot = Slot::for_password(file_key, salt, password, cost, own_salt);
    let slot = slot.ok_or_else(|| Error::new(ErrorKind::Internal, "the cost is not acceptable"))?;
    Ok(StoredSlot::Known(slot))
}

/// The cost that takes [`PASSWORD_SECONDS`] here, with a quarter of the memory at most. Measured
/// once for all archives of a run with the same memory.
fn calibrated_cost(memory_bytes: u64) -> Result<PasswordCost> {
    static KNOWN: Lock<Option<PasswordCost>> = Lock::new(None);
    let memory_kib = (memory_bytes >> 12).min(PASSWORD_MEMORY_KIB);
    let memory_kib = memory_kib.max(u64::from(PasswordCost::MIN.memory_kib)) as u32;
    let mut known = KNOWN.lock();
    match *known {
        Some(cost) if cost.memory_kib == memory_kib => Ok(cost),
        _ => Ok(*known.insert(measured_cost(memory_kib)?)),
    }
}

fn measured_cost(memory_kib: u32) -> Result<PasswordCost> {
    let cost = |passes| PasswordCost {
        memory_kib,
        passes,
        lanes: 1,
    };
    // The second pass shows what each further one takes: the first also gets the memory.
    let seconds = |passes| -> Result<f64> {
        let clock = RealClock::new();
        password_slot(&FileKey::new([0; 32]), &[0; 32], b"", cost(passes))?;
        Ok(clock.now_ns() as f64 / 1e9)
    };
    let (one, two) = (seconds(1)?, seconds(2)?);
    let each = (two - one).max(one / 4.0);
    let passes = 1.0 + ((PASSWORD_SECONDS - one) / each).max(0.0);
    let passes_max = PasswordCost::WORK_KIB_MAX / u64::from(memory_kib);
    Ok(cost((passes.round() as u64).clamp(2, passes_max) as u32))
}

/// The key of an archive that one of the options' secrets opens.
///
/// # Errors
/// `Usage` if none does; `Limit` if a password's key would take more memory than allowed; `Damaged`
/// if a slot opens and the header contradicts its key.
pub(crate) fn unlock(stored: &StoredEnvelope, options: &ReadOptions) -> Result<FileKey> {
    let slots: Vec<&Slot> = known_slots(&stored.envelope).collect();
    let found = by_identity(stored, &slots, options);
    let found = match found {
        Some(key) => Some(key),
        None => by_password(stored, &slots, options)?,
    };
    let key = found.ok_or_else(|| Error::locked(why_locked(&slots, options)))?;
    if !stored.is_authentic(&key) {
        return Err(Error::damaged(
            "the header of the encrypted archive is forged: its key opens, and contradicts the rest",
        ));
    }
    Ok(key)
}

fn known_slots(envelope: &Envelope) -> impl Iterator<Item = &Slot> {
    envelope.slots.iter().filter_map(|slot| match slot {
        StoredSlot::Known(slot) => Some(slot),
        StoredSlot::Unknown { .. } => None,
    })
}

fn by_identity(stored: &StoredEnvelope, slots: &[&Slot], options: &ReadOptions) -> Option<FileKey> {
    let salt = &stored.envelope.salt;
    let mut identities = options.identities.iter();
    identities.find_map(|identity| {
        let mut slots = slots.iter();
        slots.find_map(|slot| slot.open_with_identity(salt, identity))
    })
}

fn by_password(
    stored: &StoredEnvelope,
    slots: &[&Slot],
    options: &ReadOptions,
) -> Result<Option<FileKey>> {
    let costs = slots.iter().filter_map(|slot| match slot {
        Slot::Password { cost, .. } => Some(cost),
        Slot::X25519 { .. } | Slot::Hybrid { .. } => None,
    });
    let costs: Vec<_> = costs.collect();
    let (Some(source), false) = (&options.password, costs.is_empty()) else {
        return Ok(None);
    };
    let work_kib: u64 = costs.iter().map(|cost| cost.work_kib()).sum();
    if !costs.iter().all(|cost| cost.is_acceptable()) || work_kib > PasswordCost::WORK_KIB_MAX {
        return Err(Error::limit(format!(
            "the archive asks for {work_kib} KiB of work to try a password, more than is done: it may be forged"
        )));
    }
    let memory_kib = costs.iter().map(|cost| u64::from(cost.memory_kib)).max();
    let memory_bytes = memory_kib.unwrap_or_default() << 10;
    if memory_bytes > options.memory_bytes {
        return Err(Error::limit(format!(
            "trying a password takes {} of memory, the limit is {}: raise the memory limit",
            mebibytes(memory_bytes),
            mebibytes(options.memory_bytes)
        )));
    }
    let password = Zeroizing::new(source.password()?);
    let mut key: Option<PasswordKey> = None;
    for slot in slots {
        if !key.as_ref().is_some_and(|key| key.is_for(slot)) {
            key = slot.password_key(&password);
        }
        let opened = key.as_ref();
        let opened = opened.and_then(|key| slot.open_with_password(&stored.envelope.salt, key));
        if opened.is_some() {
            return Ok(opened);
        }
    }
    Ok(None)
}

/// What a user without the right secret needs to know.
fn why_locked(slots: &[&Slot], options: &ReadOptions) -> String {
    let passwords = slots
        .iter()
        .filter(|slot| matches!(slot, Slot::Password { .. }))
        .count();
    let keys = slots.len() - passwords;
    let key = "the secret key of a recipient (--identity)";
    let opens = match (passwords, keys) {
        (0, _) => key.to_owned(),
        (_, 0) => "its password".to_owned(),
        _ => format!("its password or {key}"),
    };
    let tried = match (
        options.password.is_some() && passwords > 0,
        options.identities.len(),
    ) {
        (false, 0) => return format!("the archive is encrypted: {opens} is needed"),
        (true, 0) if keys == 0 => return "the password is wrong".to_owned(),
        (true, 0) => return format!("the password is wrong; {key} opens the archive, too"),
        (false, _) => "the archive is not encrypted for this secret key",
        (true, _) => return "neither the password nor the secret key is right".to_owned(),
    };
    format!("{tried}: {opens} opens it")
}
