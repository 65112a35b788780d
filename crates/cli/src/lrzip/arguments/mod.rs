//! The command line and `lrzip.conf`, and the settings that they result in.

pub mod back_end;
pub mod config;
pub mod number;
pub mod options;
pub mod parse;
pub mod program;
pub mod settings;
#[cfg(test)]
mod settings_tests;
