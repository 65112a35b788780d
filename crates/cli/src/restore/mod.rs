//! Where the members of an archive are restored.
//!
//! | file | what |
//! |---|---|
//! | `placement` | the path of each member |
//! | `stream` | the same for a stream, whose number of members is unknown until its end |
//! | `losses` | what was not restored |
//! | `targets` | the engine's [`Targets`](refrain::Targets): opens, writes and publishes members |

mod losses;
mod placement;
mod stream;
mod targets;

pub use placement::Placement;
pub use stream::StreamPlacement;
pub use targets::Restore;
