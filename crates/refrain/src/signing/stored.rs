//! The signatures in a file.

use refrain_format::{
    FRAME_HEADER_BYTES, FrameHeader, FrameKind, MemberTree, SIGNATURE_PAYLOAD_BYTES_MAX,
    SIGNATURES_MAX, SignaturePart, StoredSignature,
};
use refrain_protect::envelope::AppendixCipher;
use refrain_protect::signature::Signature;
use refrain_storage::Source;

use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::store::appendix::{AppendedFrame, OwnEnd, appended_frames, own_end};
use crate::store::ending::protected_end;
use crate::store::envelope::open::Unlocked;

/// A signature in a file, or why it cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveSignature {
    /// The signature, or what is wrong with it.
    pub signature: std::result::Result<Signature, String>,
}

/// What signatures an archive has, and where further ones go.
#[derive(Debug, Default)]
pub(crate) struct StoredSignatures {
    pub signatures: Vec<ArchiveSignature>,
    pub tree: Option<MemberTree>,
}

/// Reads the signatures of the generation that is shown, in its file. Those that are damaged are
/// among them.
///
/// # Errors
/// `Io`; `Limit` if there are too many.
pub(crate) fn stored_signatures(archive: &Archive, at: &Unlocked) -> Result<StoredSignatures> {
    let (file, cipher) = (&*at.file, at.cipher.as_ref());
    let mut stored = StoredSignatures::default();
    let mut frames = Vec::new();
    for own in signed_ends(archive, at)? {
        frames.extend(appended_frames(file, &own, protected_end(file)?)?.frames);
    }
    for frame in frames
        .iter()
        .filter(|frame| frame.header.kind == FrameKind::Signature)
    {
        match part_of(file, frame, cipher)? {
            Ok(Some(SignaturePart::Signature(text))) => {
                let signature = Signature::parse(&text).map_err(|error| error.to_string());
                stored.signatures.push(ArchiveSignature { signature });
            }
            Ok(Some(SignaturePart::Tree(tree))) => stored.tree = Some(tree),
            // A part of a later version.
            Ok(None) => {}
            Err(text) => stored.signatures.push(ArchiveSignature {
                signature: Err(text),
            }),
        }
        if stored.signatures.len() > SIGNATURES_MAX {
            let text = format!("the archive has more than {SIGNATURES_MAX} signatures");
            return Err(Error::limit(text));
        }
    }
    Ok(stored)
}

/// The ends behind which signatures of the shown generation may be: its own, and the last one
/// before the next generation that is kept, as records of what was forgotten may be between them.
fn signed_ends(archive: &Archive, at: &Unlocked) -> Result<Vec<OwnEnd>> {
    let envelope = at.envelope.as_ref();
    let in_file = |place: Option<u64>| place.map(|place| own_end(&*at.file, place)).transpose();
    let end = match envelope {
        Some(envelope) => envelope.complete_end().map(|(_, end)| end).ok(),
        None => Some(protected_end(&*at.file)?.min(archive.size_bytes()?)),
    };
    let rows = archive.generations();
    let shown = rows
        .iter()
        .position(|row| row.number == archive.generation());
    let Some((shown, row)) = shown.and_then(|shown| Some((shown, rows.get(shown)?))) else {
        return Ok(in_file(end)?.flatten().into_iter().collect());
    };
    let own = match (envelope, row.end) {
        (Some(envelope), Some(end)) => envelope.end_in_file(end, row.number)?,
        (_, end) => end,
    };
    let before_next = match (rows.get(shown + 1), envelope) {
        (None, _) => end,
        (Some(next), Some(envelope)) => envelope.start_in_file(next.start)?,
        (Some(next), None) => Some(next.start),
    };
    let mut ends: Vec<_> = [in_file(own)?, in_file(before_next)?]
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    ends.dedup();
    Ok(ends)
}

type Part = std::result::Result<Option<SignaturePart>, String>;

/// The contents of a frame, or why there are none.
fn part_of(
    file: &dyn Source,
    frame: &AppendedFrame,
    cipher: Option<&AppendixCipher>,
) -> Result<Part> {
    let header: &FrameHeader = &frame.header;
    if header.payload_bytes > SIGNATURE_PAYLOAD_BYTES_MAX {
        return Ok(Err("the signature is larger than any".into()));
    }
    let mut payload = vec![0; header.payload_bytes as usize];
    let count = file.read_at(frame.offset + FRAME_HEADER_BYTES as u64, &mut payload)?;
    let payload = payload.get(..count).unwrap_or_default();
    let parse = || {
        header.check_payload(payload)?;
        StoredSignature::parse(header, payload)?.open(cipher)
    };
    Ok(parse().map_err(|error| format!("the signature is damaged: {error}")))
}
