//! End-to-end cases: a fresh directory, the real binary, and what a user observes.
//!
//! | file | what |
//! |---|---|
//! | `support` | the directory, the commands, data to compress |
//! | `round_trip` | files, pipes, several members: the output equals the input |
//! | `trees` | directories |
//! | `metadata` | trees with every kind of file, as root and as an ordinary user |
//! | `sampling` | profiles of samples, and flame graphs in a browser |
//! | `selection` | parts of directories: patterns, lists of paths, operands |
//! | `tar` | tar streams that are compressed, and read inside |
//! | `rfn` | the options of gzip, and `tar -I` |
//! | `sources` | sizes that are not true, files that change while they are read |
//! | `outcomes` | nothing overwritten, nothing left behind, exit codes |
//! | `plugins` | codecs in shared libraries |
//! | `plugin_filters` | filters in shared libraries |
//! | `pipes` | several named pipes at once |
//! | `first_day` | patterns, names of pipes, directories as outputs, the own output |
//! | `no_effect` | options that would have no effect are refused |
//! | `inherited` | closed and non-blocking streams, ignored signals, limits of the shell |
//! | `merge` | one archive of several |
//! | `messages` | what errors say, and their exit codes |
//! | `terminal` | progress, summaries and refusals on a terminal |
//! | `check` | `--check`, also on a disk that lies (`lying_disk`) |
//! | `damage` | broken archives |
//! | `decoders` | archives read by the decoders that they carry |
//! | `documents` | every command that README and docs/ show |
//! | `mutations` | archives of every kind, changed at random |
//!
//! `losses`
//! losses are reported by the exit code, a word, `complete`, and `--rm`
//! | `reading` | info, list, cat |
//! | `recovery` | protect, repair |
//! | `map` | map: its numbers, and its page in a browser |
//! | `remote` | archives behind URLs |
//! | `tiers` | archives behind caches |
//! | `store` | archives in an S3-compatible store |
//! | `store_volumes` | archives in volumes there |
//! | `mount` | archives as directories, seen through the kernel |
//! | `stalled_mount` | a mounted archive whose server stalls |
//! | `serve_http` | archives for browsers and curl |
//! | `serve_nbd` | archives as block devices, and guests that boot from them |
//! | `serve_several` | several archives behind one door, and SIGHUP |
//! | `hostile_names` | names that are commands to terminals |
//!
//! `hash`
//! digests, compared with md5sum and sha256sum
//!
//! `killed`
//! runs killed at random moments
//! | `compact` | the space of what was forgotten |
//! | `generations` | archives that grow |
//! | `volumes` | archives in folders |
//! | `lab` | measurements of the machine, and its profile |
//!
//! `foreign`
//! files of other formats, created by their own programs
//!
//! `lrzip`
//! lrzip archives
//! | `lrzip_command` | the lrzip command without a comparison |
//! | `completion` | what bash completes |
//! | `confined` | members that try to leave their place; where members go, who reads them |
//! | `lrzip_tar` | `lrztar` and `lrzuntar` |
//! | `lrzip_prompts` | the lrzip command on a terminal: passwords, refusals, signals |
//! | `lrzip_comparison` | the lrzip command compared with lrzip itself |

// A case fails by panicking, in its helpers too.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod cache;
mod check;
mod compact;
mod completion;
mod confined;
mod damage;
mod decoders;
mod documents;
mod encrypted_generations;
mod encryption;
mod first_day;
mod foreign;
mod generations;
mod hash;
mod hostile_names;
mod inherited;
mod killed;
mod lab;
mod losses;
#[cfg(feature = "lrzip")]
mod lrzip;
#[cfg(feature = "lrzip")]
mod lrzip_command;
#[cfg(feature = "lrzip")]
mod lrzip_comparison;
#[cfg(feature = "lrzip")]
mod lrzip_prompts;
#[cfg(feature = "lrzip")]
mod lrzip_tar;
mod lying_disk;
mod manifest;
mod map;
mod merge;
mod messages;
mod metadata;
mod mount;
mod mutations;
mod no_effect;
mod outcomes;
mod pipes;
mod plugin_filters;
mod plugins;
mod reading;
mod recovery;
#[cfg(feature = "remote")]
mod remote;
mod rfn;
mod round_trip;
mod sampling;
mod scarce_memory;
mod selection;
mod serve_http;
mod serve_nbd;
mod serve_several;
#[cfg(feature = "remote")]
mod signing;
mod sources;
mod sparse;
#[cfg(feature = "remote")]
mod stalled_mount;
mod store;
mod store_volumes;
mod support;
mod tar;
mod terminal;
mod tiers;
mod trees;
mod volumes;
