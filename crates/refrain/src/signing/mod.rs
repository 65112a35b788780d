//! Signatures of an archive's root hash: appended, read, and checked. `docs/format-signature.md`
//! specifies them.
//!
//! | file | what |
//! |---|---|
//! | `stored` | the signatures in a file, and the tree that proves single members |
//! | `trust` | whose signatures count, and what they say |
//! | `authenticate` | an archive whose members are compared with what was signed |
//! | `frames` | the frames of an appendix with signatures |
//! | `append` | signatures for an archive that exists |
//! | `sink` | an archive that is signed while it is written |

mod append;
mod authenticate;
mod frames;
pub(crate) mod sink;
mod stored;
mod trust;

pub use append::{SignSummary, append_signature, attached_signature};
pub use authenticate::Authenticated;
pub use stored::ArchiveSignature;
pub use trust::{SignatureState, Trust};
