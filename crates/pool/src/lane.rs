//! The lanes of a crew.

/// Which worker takes a job, and before which others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Computing, before all other jobs: something waits for the result.
    Urgent,
    /// Computing.
    Normal,
    /// Computing, when there is nothing else to do.
    Background,
    /// Blocking reads, on a separate thread, so that a slow pipe never blocks a compute worker. One
    /// runs at a time; a job that waits in
    /// [`suspend_until_readable`](crate::suspend_until_readable) lets others run.
    Input,
    /// Blocking writes, one after the other on a separate thread.
    Output,
}

impl Lane {
    /// The number of lanes.
    pub const COUNT: usize = Lane::Output as usize + 1;
}
