//! Signatures, for people and for scripts.

use refrain::{ArchiveSignature, SignatureState};
use serde_json::{Value, json};

use crate::text::printable;

/// A signature of an archive, and what is known of it.
#[derive(Debug)]
pub struct KnownSignature {
    pub signature: ArchiveSignature,
    pub state: SignatureState,
}

/// The row of `info`.
pub fn signature_text(known: &KnownSignature) -> String {
    let state = match &known.state {
        SignatureState::Valid { comment } if !comment.is_empty() => format!("valid ({comment})"),
        state => state.to_string(),
    };
    printable(&match &known.signature.signature {
        Ok(signature) => format!("by {}, {state}", signature.signer()),
        Err(_) => state,
    })
}

/// The values for scripts.
pub fn signature_json(known: &KnownSignature) -> Value {
    let state = match known.state {
        SignatureState::NotVerified => "not verified",
        SignatureState::Valid { .. } => "valid",
        SignatureState::Wrong => "wrong",
        SignatureState::DoesNotCount => "does not count",
        SignatureState::Unusable(_) => "unusable",
    };
    let mut json = json!({ "state": state });
    match &known.signature.signature {
        Ok(signature) => {
            json["kind"] = json!(signature.signer().kind());
            json["key"] = json!(signature.signer().key());
            json["comment"] = json!(signature.trusted_comment());
        }
        Err(why) => json["problem"] = json!(why),
    }
    if let SignatureState::Valid { comment } = &known.state {
        json["signer"] = json!(comment);
    }
    json
}
