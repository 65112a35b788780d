//! Errors of ZPAQ blocks.

use refrain_codec::{CodecId, Error};

use crate::stage;

pub(crate) fn damaged(cause: &'static str) -> Error {
    stage::damaged(CodecId::ZPAQ, cause)
}
