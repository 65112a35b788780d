//! Decides where the members of an archive are restored.
//!
//! | file | what |
//! |---|---|
//! | `placement` | the place of each member |
//! | `place` | one place, and how it is created without leaving the output directory |
//!
//! `stream`
//! the same for a stream, whose number of members is unknown until its end
//! | `losses` | what was not restored |
//! | `targets` | the engine's [`Targets`](refrain::Targets): opens, writes and publishes members |

mod not_restored;
mod place;
mod placement;
mod stream;
mod targets;

pub use placement::Placement;
pub use stream::StreamPlacement;
pub use targets::Restore;
