//! What people see: help, messages and the options in effect.

pub mod console;
pub mod help;
pub mod options_in_effect;
pub mod rates;
