//! The signatures in a file.

use refrain_format::{
    FRAME_HEADER_BYTES, FrameHeader, FrameKind, MemberTree, SIGNATURE_PAYLOAD_BYTES_MAX,
    SIGNATURES_MAX, SignaturePart, StoredSignature,
};
use refrain_protect::envelope::AppendixCipher;
use refrain_protect::signature::Signature;
use refrain_storage::Source;

use crate::error::{Error, Result};
use crate::store::appendix::{AppendedFrame, appended_frames, own_end};
use crate::store::ending::protected_end;

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

/// Reads the signatures in a file. Those that are damaged are among them.
///
/// # Errors
/// `Io`; `Limit` if there are too many.
pub(crate) fn stored_signatures(
    file: &dyn Source,
    cipher: Option<&AppendixCipher>,
) -> Result<StoredSignatures> {
    let end = protected_end(file)?;
    let mut stored = StoredSignatures::default();
    let Some(own) = own_end(file, end)? else {
        return Ok(stored);
    };
    let appended = appended_frames(file, &own, end)?;
    let frames = appended.frames.iter();
    for frame in frames.filter(|frame| frame.header.kind == FrameKind::Signature) {
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
