//! One file per verb. Each makes its plan, runs it with the engine, and returns the exit code.
//!
//! | file | what |
//! |---|---|
//! | `add`, `diff`, `forget`, `compact`, `merge` | verbs: generations |
//! | `compress`, `decompress`, `test`, `info`, `list`, `cat` | verbs |
//! | `manifest` | a verb: where the bytes of every file are, for other programs |
//! | `map` | a verb: what repeats where, and what folders cost |
//! | `protect`, `repair` | verbs: recovery data, and what it heals |
//! | `sign` | a verb: who vouches for an archive |
//! | `serve`, `mount`, `boot`, `top`, `hash`, `key`, `bench`, `cache`, `lab`, `generate` | verbs |
//! | `input` | opens archives: recognition, progress of a scan |
//!
//! `damaged`
//! reports damage
//! | `extraction` | what `decompress` did |
//! | `trusted` | archives that somebody must vouch for |
//! | `unpack` | the content of compressed input |
//!
//! `removal`
//! removes sources once all of their content is elsewhere
//! | `recognize` | names the format of an input that is not an archive |
//!
//! `entries`
//! visits the entries of archived directories, and finds them by path
//!
//! `operands`
//! tells archives from paths inside one
//! | `matches` | what a pattern matches |
//! | `part_stream` | a part of an archive to standard output |
//!
//! `near_names`
//! suggestions for a mistyped path
//! | `examples` | the examples in the manual pages |

pub mod add;
pub mod bench;
pub mod boot;
pub mod cache;
mod cache_model;
pub mod cat;
pub mod compact;
mod completions;
pub mod compress;
mod damaged;
pub mod decompress;
pub mod diff;
mod entries;
mod examples;
mod extraction;
pub mod forget;
pub mod generate;
pub mod hash;
pub mod info;
mod input;
pub mod key;
pub mod lab;
pub mod list;
pub mod manifest;
pub mod map;
mod matches;
pub mod merge;
pub mod mount;
mod near_names;
mod operands;
mod part_stream;
pub mod plugin;
pub mod protect;
mod recognize;
mod removal;
pub mod repair;
pub mod serve;
pub mod sign;
pub mod test;
pub mod top;
mod trusted;
mod unpack;
