#![doc = include_str!("../README.md")]
//!
//! An [`Entry`] describes one file, directory, link or device; its paths are bytes.
//!
//! | module | contents |
//! |---|---|
//! | `entry` | [`Entry`], [`EntryKind`], [`Timestamp`] |
//! | `path_order` | the order of entries in a list: [`compare_paths`] |
//! | `order` | the order in which contents are best stored: [`content_order`] |
//! | `selection` | which entries are wanted: [`Selection`] |
//! | [`tar`] | the tar view: [`tar::TarView`]; tar streams taken apart: [`tar::TarSplitter`] |
//!
//! `refrain-filesystem` reads entries from directories and restores them.

#![forbid(unsafe_code)]

mod entry;
mod order;
mod path_order;
mod selection;
pub mod tar;

pub use entry::{Entry, EntryKind, ExtendedAttribute, Owner, Timestamp};
pub use order::content_order;
pub use path_order::{ascend, compare_paths};
pub use selection::{Decision, Selection, SelectionBuilder, SelectionError};
pub use tar::{RECORD_BYTES, padding_bytes};
