//! The functions of the interface, in the order of the header.

pub mod archives;
pub mod files;
pub mod general;
pub mod options;
pub mod streams;
