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
pub(crate) mod decoder;
pub(crate) mod encoder;
mod error;
mod header;
pub(crate) mod machine;
pub(crate) mod models;
mod predictor;
mod table;
mod tables;
