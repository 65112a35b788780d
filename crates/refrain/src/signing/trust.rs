//! Whose signatures count, and what they say of a root hash.

use refrain_format::signed_statement;
use refrain_protect::HASH_BYTES;
use refrain_protect::signature::{Signature, TrustedSigner};

use super::stored::ArchiveSignature;
use crate::error::{Error, Result};

/// What an archive must be: signed by somebody, or one that is remembered, or both.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// Whose signatures count; one is enough. Empty: none is needed.
    pub signers: Vec<TrustedSigner>,
    /// The root hash that the archive must have.
    pub root_hash: Option<[u8; HASH_BYTES]>,
    /// Signatures from other files, which count as those in the archive do.
    pub signatures: Vec<Signature>,
    /// The time, in seconds since 1970: keys may count for some time only.
    pub unix_seconds: i64,
}

/// What is known of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureState {
    /// No key was given for it: whoever stores the archive may have made it.
    NotVerified,
    /// It is one of this root hash by a trusted key.
    Valid {
        /// Whose key it is, by the file that has it.
        comment: String,
    },
    /// It names a trusted key, and is of something else, or damaged.
    Wrong,
    /// It is right, but its key does not count now, or not for archives.
    DoesNotCount,
    /// It cannot be read.
    Unusable(String),
}

impl std::fmt::Display for SignatureState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SignatureState::NotVerified => "not verified",
            SignatureState::Valid { .. } => "valid",
            SignatureState::Wrong => "wrong: of another archive, or damaged",
            SignatureState::DoesNotCount => "by a key that does not count now, or not for archives",
            SignatureState::Unusable(why) => why,
        })
    }
}

impl Trust {
    /// Whether anything is asked for.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.signers.is_empty() && self.root_hash.is_none()
    }

    /// What is known of a signature in an archive with this root hash.
    #[must_use]
    pub fn state(
        &self,
        signature: &ArchiveSignature,
        root_hash: &[u8; HASH_BYTES],
    ) -> SignatureState {
        match &signature.signature {
            Ok(signature) => self.state_of(signature, root_hash),
            Err(why) => SignatureState::Unusable(why.clone()),
        }
    }

    fn state_of(&self, signature: &Signature, root_hash: &[u8; HASH_BYTES]) -> SignatureState {
        let statement = signed_statement(root_hash);
        let mut state = SignatureState::NotVerified;
        for signer in &self.signers {
            if signer.key.name() != signature.signer() {
                continue;
            }
            if !signature.is_valid(statement.as_bytes(), &signer.key) {
                state = SignatureState::Wrong;
            } else if !signer.counts_at(self.unix_seconds) {
                return SignatureState::DoesNotCount;
            } else {
                let comment = signer.comment.clone();
                return SignatureState::Valid { comment };
            }
        }
        state
    }

    /// Finds what vouches for a root hash. Returns the name of the signer, if one is asked for.
    ///
    /// # Errors
    /// `Damaged` if nothing vouches for it.
    pub(crate) fn check(
        &self,
        root_hash: &[u8; HASH_BYTES],
        stored: &[ArchiveSignature],
    ) -> Result<Option<String>> {
        if let Some(expected) = self.root_hash.filter(|expected| expected != root_hash) {
            return Err(Error::damaged(format!(
                "the root hash is {}, not {}: this is another archive, or another version of it",
                hex(root_hash),
                hex(&expected)
            )));
        }
        if self.signers.is_empty() {
            return Ok(None);
        }
        let detached = self
            .signatures
            .iter()
            .cloned()
            .map(|signature| ArchiveSignature {
                signature: Ok(signature),
            });
        let all: Vec<_> = stored.iter().cloned().chain(detached).collect();
        let mut words = vec![];
        for signature in &all {
            let state = self.state(signature, root_hash);
            let signer = signature
                .signature
                .as_ref()
                .map(|it| it.signer().to_string());
            match (state, signer) {
                (SignatureState::Valid { comment }, Ok(signer)) => {
                    let whose = if comment.is_empty() { comment } else { format!(" ({comment})") };
                    return Ok(Some(signer + &whose));
                }
                (SignatureState::NotVerified, Ok(signer)) => {
                    words.push(format!("{signer}: not a trusted key"));
                }
                (state, Ok(signer)) => words.push(format!("{signer}: {state}")),
                (state, Err(_)) => words.push(state.to_string()),
            }
        }
        Err(Error::damaged(if words.is_empty() {
            "the archive is not signed".to_owned()
        } else {
            format!("no signature by a trusted key: {}", words.join("; "))
        }))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
