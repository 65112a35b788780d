//! ZPAQ blocks, after "The ZPAQ Open Standard Format for Highly Compressed Data", levels 1 and 2 (M. Mahoney).
//!
//! A block brings its own decoder: a tree of predictors, and programs that compute their contexts (HCOMP) and undo what was done
//! to the data (PCOMP). Nothing here trusts them: memory is known and limited before it is taken, every access is masked
//! into its array as the standard says, programs are interpreted, and their steps are counted against what the block is
//! allowed for its length.
//!
//! | file | what |
//! |---|---|
//! | `header` | the block header: components and programs, checked |
//! | `machine` | the virtual machine |
//! | `tables` | logistic functions and bit histories |
//! | `component`, `predictor` | the model |
//! | `arithmetic` | arithmetic decoding |
//! | `decoder` | blocks and segments |
//! | `encoder`, `models` | the other way, in models of our own choice |
//! | `property` | all of it beside a slow twin (`tests/twin/zpaq.rs`), in any model |
//!
//! The time goes to bits: eight times for each byte every component predicts and learns. Rows of histories are taken out of their
//! table for half a byte, and are asked for before; links of a chain learn side by side; counters keep what their prediction is when
//! stretched; compiled for AVX2 where the machine has it.

mod arithmetic;
mod component;
mod decoder;
mod encoder;
mod header;
mod machine;
mod models;
mod predictor;
#[cfg(any(test, feature = "property"))]
pub(super) mod property;
mod tables;

use super::{Progress, Stage, damaged};
use crate::error::{Error, Result};
use crate::id::CodecId;

pub(super) use decoder::Zpaq;
pub(super) use encoder::{encode, encoder_memory_bytes};

/// Memory of a decoder for the block that begins with `head`, in bytes.
///
/// # Errors
/// `Damaged` when no block header is there.
pub(super) fn memory_bytes(head: &[u8]) -> Result<u64> {
    match header::Header::parse(decoder::after_tag(head))? {
        Some((header, _)) => Ok(header.memory_bytes()),
        None => Err(wrong("the block header is cut short")),
    }
}

fn wrong(cause: &'static str) -> Error {
    damaged(CodecId::ZPAQ, cause)
}

/// A table of `length` values, if there is memory for it.
fn table<T: Clone>(length: usize, value: T) -> Result<Vec<T>> {
    let mut table = Vec::new();
    table
        .try_reserve_exact(length)
        .map_err(|_| Error::OutOfMemory {
            codec: CodecId::ZPAQ,
            wanted_bytes: (length as u64).saturating_mul(size_of::<T>() as u64),
        })?;
    table.resize(length, value);
    Ok(table)
}
