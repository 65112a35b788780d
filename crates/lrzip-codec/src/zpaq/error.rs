//! Errors of ZPAQ blocks.

use refrain_codec::{CodecId, Error};

use crate::stage;

/// The error for bytes that are not a valid ZPAQ block.
pub(crate) fn damaged(cause: &'static str) -> Error {
    stage::damaged(CodecId::ZPAQ, cause)
}
