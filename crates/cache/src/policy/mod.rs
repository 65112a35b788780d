//! Where a read goes, and when it goes elsewhere: decisions without sockets, threads or a clock, so
//! that a simulator can make them, too. Times are nanoseconds of the caller's clock.
//!
//! Each key has two homes, by rendezvous hashing over the names of the nodes (Thaler and
//! Ravishankar 1998): no directory, no lookup, and a node that joins or leaves moves its share of
//! the keys and no others. A read goes to the first home. If the reply is later than nearly all
//! replies of that node, the second home is asked as well (hedged requests: Dean and Barroso, "The
//! Tail at Scale", 2013), paid from a budget, so that a cache that is slow as a whole does not get
//! twice the load. A node that owes several replies is left out (a circuit breaker: Nygard,
//! "Release It!"), until one of a few probes is answered.
//!
//! | file | what |
//! |---|---|
//! | `placement` | the homes of a key |
//! | `latencies` | how long a node takes |
//! | `budget` | how many requests may be added |
//! | `breaker` | whether a node is asked at all |
//! | `rules` | [`Rules`]: the numbers |
//! | `decisions` | [`Policy`]: all of these for all nodes |
//! | `reading` | [`Reading`]: a read, from its first request to its end |

mod breaker;
mod budget;
mod decisions;
mod latencies;
mod placement;
mod reading;
mod rules;

pub use decisions::{NodeState, Policy};
pub use latencies::Latencies;
pub use placement::{Node, Placement};
pub use reading::{Absence, Answer, Command, Commands, Event, Purpose, Reading};
pub use rules::Rules;
