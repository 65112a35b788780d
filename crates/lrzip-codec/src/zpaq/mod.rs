//! ZPAQ blocks of levels 1 and 2, after M. Mahoney, "The ZPAQ Open Standard Format for Highly
//! Compressed Data".
//!
//! A block describes its own decoder: a tree of predictors, a program that computes their contexts
//! (HCOMP) and one that postprocesses the data (PCOMP). None of it is trusted: memory is computed
//! and limited before it is allocated, every access is masked into its array as the standard
//! requires, programs are interpreted, and their steps are limited by the length of the block.
//!
//! | file | contents |
//! |---|---|
//! | `header` | the block header: components and programs, validated |
//! | `machine` | the virtual machine ZPAQL |
//! | `tables` | logistic functions and bit histories |
//! | `component`, `predictor` | the model |
//! | `arithmetic` | arithmetic decoding |
//! | `decoder` | blocks and segments |
//! | `encoder`, `encoder_models` | encoding, with the models chosen here |
//!
//! `crate::property::zpaq` compares decoder and encoder with a reference implementation
//! (`tests/reference/zpaq.rs`) for random models.
//!
//! Most of the time is spent on bits: each component predicts and learns eight times per byte.
//! Therefore a row of histories is copied out of its table for half a byte and prefetched before,
//! the links of a chain learn in parallel lanes, counters cache their stretched prediction, and the
//! code is compiled for AVX2 where the processor has it.

mod arithmetic;
mod component;
pub(crate) mod decoder;
pub(crate) mod encoder;
pub(crate) mod encoder_models;
mod error;
mod header;
pub(crate) mod machine;
mod predictor;
mod table;
mod tables;
