//! A profile of the locks of the whole process: how long they are held and waited for, and where.

pub use refrain_sync::{LockProfile, LockProfiling, profile_locks, report};
