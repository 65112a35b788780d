//! Recovery data of a file: made, checked, and used to heal it. `docs/recovery.md` specifies it.
//!
//! | file | what |
//! |---|---|
//! | `options` | how much to make, and with which resources |
//! | `ending` | how a file ends: where recovery data is, or goes |
//! | `encode` | digests and parity of a file, by several threads |
//! | `spool` | parity until it is written: rows are computed side by side, and written in turn |
//! | `appendix` | the frames, and the tail after them |
//! | `sink` | an archive that gets recovery data while it is written |
//! | `growth` | recovery data for what was added to an archive |
//! | `window` | a range of a file, as a file |
//! | `protect` | recovery data for a file that exists |
//! | `frames` | finds the frames in damaged files |
//! | `unreadable` | files of which sectors cannot be read |
//! | `solve` | computes lost slices |
//! | `healed` | what a set protects, put together from what is intact and what was computed |
//! | `pieces` | a file put together from ranges of others |
//! | `depot` | what was computed, until it is written |
//! | `segment` | heals what a set protects, and the set |
//! | `merge` | an archive from damaged copies without recovery data |
//! | `healed_file` | segments, and what is between them |
//! | `summary` | what a repair found and does |
//! | `repair` | from damaged files to a healed one |
//! | `check` | how much of the recovery data of a file is intact |

mod appendix;
mod check;
mod depot;
mod encode;
mod frames;
pub(crate) mod growth;
mod healed;
mod healed_file;
mod merge;
mod options;
mod pieces;
mod protect;
mod repair;
mod segment;
pub(crate) mod sink;
mod solve;
mod spool;
mod summary;
mod unreadable;
mod window;

pub(crate) use check::check_digests;
pub use check::{RecoveryInfo, RecoveryState, recovery_info, recovery_state};
pub use options::RecoveryOptions;
pub(crate) use protect::copy;
pub use protect::{ProtectSummary, protect, recovery_goes_apart};
pub use repair::{RepairPlan, plan_repair};
pub use summary::RepairSummary;
