#![cfg(feature = "lrzip")]
//! What reading and writing archives of lrzip share.

pub(crate) mod keys;
