//! Ends connections whose clients take too long for something.

use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use refrain_policy::{Class, Entity};
use refrain_pool::pool::{Pool, TimerId};

use crate::socket::Socket;

/// Ends a connection after a time, unless it is dropped before. Without a pool there is no limit.
pub(crate) struct TimeLimit(Option<(Arc<Pool>, TimerId)>);

impl TimeLimit {
    /// Shuts the socket down in `time_max`: whoever waits for it wakes up.
    pub(crate) fn start(socket: &Arc<Socket>, time_max: Duration) -> TimeLimit {
        let start = |pool: Arc<Pool>| {
            let flow = pool.flow(Entity::new(Class::Normal));
            let socket = Arc::clone(socket);
            let end = move || socket.shutdown(Shutdown::Both);
            let timer = pool.after(time_max, &flow, end);
            (pool, timer)
        };
        TimeLimit(Pool::of_process().ok().map(start))
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        if let Some((pool, timer)) = self.0.take() {
            // It has fired if the time is over.
            pool.cancel(timer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_connection_ends_in_time_and_goes_on_without_a_limit() {
        let pair = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (Arc::new(Socket::Unix(ours)), theirs)
        };
        let (ended, mut of_ended) = pair();
        let _limit = TimeLimit::start(&ended, Duration::from_millis(5));
        let (going, mut of_going) = pair();
        drop(TimeLimit::start(&going, Duration::from_millis(1)));
        assert_eq!(of_ended.read(&mut [0]).unwrap(), 0);
        of_going.set_nonblocking(true).unwrap();
        let error = of_going.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}
