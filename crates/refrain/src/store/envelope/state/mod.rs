//! What a machine remembers of an encrypted archive, so that it adds to it without a secret: all of
//! the archive inside except for blocks and anchors, and the public key of those who can read it.
//!
//! A directory has a file for each run, named by its link, so that what was written for a run that
//! was never completed is not taken for one that was. `docs/format-envelope.md`, section 8.
//!
//! | file | what |
//! |---|---|
//! | `directory` | the files, and those of an archive as it is now |
//! | `mirror` | the archive inside, without what is left out |
//! | `recorder` | writes the file of a run while that is written |
//! | `catch_up` | runs that others wrote for writers |
//! | `kept` | which bytes of an archive inside are kept |

mod catch_up;
mod directory;
mod kept;
mod mirror;
mod recorder;

pub(crate) use directory::StateOwner;
pub(super) use recorder::StateRecorder;
