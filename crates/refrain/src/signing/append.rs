//! The verb sign: a signature for an archive that exists.

use refrain_format::{SIGNATURES_MAX, SignaturePart, signed_statement};
use refrain_protect::signature::{PublicKey, Signature, SigningKey};
use refrain_storage::Sink;

use super::frames::{appendix, tree_for};
use crate::archive::Archive;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Watch;
use crate::recovery::growth::share_of;
use crate::recovery::sink::RecoverySink;
use crate::recovery::{RecoveryOptions, check_digests, copy};
use crate::store::appendix::{LastFrame, appended_frames, own_end, tail_before};
use crate::store::ending::{Ending, ending_of, protected_end};

/// What was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignSummary {
    /// The bytes of the signature, and of what proves single members.
    pub appended_bytes: u64,
    /// Whether recovery data was renewed.
    pub renewed_recovery: bool,
}

impl Archive {
    /// Signs the root hash. Compares the index with it, and no content: what does not have the
    /// hashes that the index states is refused by all who verify the signature.
    ///
    /// # Errors
    /// `Damaged` if the members are not those of the root hash, or there is none.
    pub fn sign(&self, key: &SigningKey) -> Result<Signature> {
        let statement = self.signed_statement()?;
        Ok(key.sign(statement.as_bytes(), "Refrain archive"))
    }

    /// The text that is signed, for other programs.
    ///
    /// # Errors
    /// As [`Archive::sign`].
    pub fn signed_statement(&self) -> Result<String> {
        let root_hash = self.root_hash().ok_or_else(|| {
            let text = "cannot be signed: only a single, intact archive of Refrain's own format \
                        has a root hash";
            Error::new(ErrorKind::Usage, text)
        })?;
        self.proven_hashes(&root_hash)?;
        Ok(signed_statement(&root_hash))
    }
}

/// Checks a signature that another program made, as far as it is known by whom.
///
/// # Errors
/// `Usage` if it is of something else.
pub fn attached_signature(
    archive: &Archive,
    signature: &Signature,
    keys: &[PublicKey],
) -> Result<()> {
    let statement = archive.signed_statement()?;
    let own_key = signature.public_key();
    let mut keys = keys.iter().copied().chain(own_key);
    let name = signature.signer();
    let Some(key) = keys.find(|key| key.name() == name) else {
        let text = format!("is by {name}, whose public key is needed to check it (--signer)");
        return Err(Error::new(ErrorKind::Usage, text));
    };
    if signature.is_valid(statement.as_bytes(), &key) {
        return Ok(());
    }
    let text = "is not a signature of this archive's statement (refrain sign --statement)";
    Err(Error::new(ErrorKind::Usage, text))
}

/// Copies an archive with one more signature, and publishes `sink`. Recovery data is renewed, with
/// the share that it has, for the whole archive: it protects the signature, too. `None` if the
/// archive has the signature.
///
/// # Errors
/// `Damaged` if the archive is not what its recovery data says; `Limit` for too many signatures;
/// `Io`, `Cancelled`. Then the sink is not published.
pub fn append_signature(
    archive: &Archive,
    signature: &Signature,
    sink: &mut dyn Sink,
    options: RecoveryOptions,
    watch: &dyn Watch,
) -> Result<Option<SignSummary>> {
    let unlocked = archive.unlocked.as_ref();
    let unlocked = unlocked.ok_or_else(|| Error::new(ErrorKind::Usage, "is not intact"))?;
    let file = &*unlocked.file;
    let stored = archive.stored_signatures()?;
    let is_there = |other: &Signature| other.text() == signature.text();
    if stored
        .signatures
        .iter()
        .any(|it| it.signature.as_ref().is_ok_and(is_there))
    {
        return Ok(None);
    }
    if stored.signatures.len() >= SIGNATURES_MAX {
        let text = format!("the archive has {SIGNATURES_MAX} signatures, and no room for another");
        return Err(Error::limit(text));
    }
    let mut parts = vec![SignaturePart::Signature(signature.text().into())];
    // What proves single members begins with those of an archive without generations.
    if stored.tree.is_none() && archive.generations().is_empty() {
        let hashes = archive
            .opened
            .member_hashes(0..archive.member_count() as u64)?;
        parts.extend(tree_for(&hashes).map(SignaturePart::Tree));
    }
    let end = protected_end(file)?;
    let (own, tail) = (own_end(file, end)?, tail_before(file, end)?);
    let (Some(own), Some(tail)) = (own, tail) else {
        return Err(Error::damaged("the archive has no end"));
    };
    let sequence = appended_frames(file, &own, end)?
        .last
        .map(|(_, sequence)| sequence);
    let last = LastFrame {
        sequence: sequence.unwrap_or(own.last.sequence),
        ..own.last
    };
    let appendix = appendix(&parts, unlocked.cipher.as_ref(), last, tail)?;
    let write = |sink: &mut dyn Sink| -> Result<()> {
        copy(file, 0..end, sink, watch)?;
        sink.write_all(&appendix)?;
        if file.has_changed()? {
            let text = "the file changed while it was copied";
            return Err(Error::new(ErrorKind::Io, text));
        }
        Ok(sink.publish()?)
    };
    let recovery = match ending_of(file)? {
        Ending::Recovery(set) => Some(share_of(&set)),
        _ => None,
    };
    match recovery {
        None => write(sink)?,
        Some(share) => {
            check_digests(file)?;
            let options = RecoveryOptions { share, ..options };
            write(&mut RecoverySink::new(sink, options)?)?;
        }
    }
    Ok(Some(SignSummary {
        appended_bytes: appendix.len() as u64,
        renewed_recovery: recovery.is_some(),
    }))
}
