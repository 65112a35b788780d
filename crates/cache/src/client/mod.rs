//! Nodes, connections to them, and reads that are on their way.
//!
//! Nothing here blocks, and nobody waits for a connection: a [`Read`] says which sockets and what
//! time it waits for, so one thread drives one read or thousands. A connection has one request at
//! a time: a slow reply blocks no other.
//!
//! | file | what |
//! |---|---|
//! | `nodes` | [`Client`]: nodes, connections, requests that nobody waits for |
//! | `exchange` | a request on a connection, and its reply |
//! | `read` | a read: requests and replies as a [`Reading`](crate::policy::Reading) decides |
//! | `node_counts` | what a node was asked and did |
//! | `wait` | waits for the sockets of reads |
//! | `sockets` | waits for sockets |

mod exchange;
mod node_counts;
mod nodes;
mod read;
mod sockets;
mod wait;

pub use node_counts::NodeCounts;
pub use nodes::{Client, Counts, Node, VALUE_BYTES_MAX};
pub use read::{Outcome, Read};
pub use sockets::Waited;
pub use wait::wait;
