//! Threads that wait for something other than work, such as signals or the next directory of a file
//! system. A job must not wait for that: it would block a worker.

use super::class::{KernelClass, SignalDelivery};
use super::settings::ThreadSettings;
use super::start::start;

/// Runs `body` on a separate thread, which is not joined. Returns whether the system allowed the
/// thread.
pub fn start_detached(
    name: &str,
    signals: SignalDelivery,
    body: impl FnOnce() + Send + 'static,
) -> bool {
    let settings = ThreadSettings::from_process(KernelClass::Normal).with_signals(signals);
    start(&settings, name, body).is_ok()
}

#[cfg(all(test, not(loom)))]
#[allow(
    clippy::unwrap_used,
    reason = "clippy does not take `all(test, not(loom))` for a test"
)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_detached_thread_runs_under_its_name() {
        let (sender, receiver) = channel();
        let send_name = move || {
            let name = std::thread::current().name().map(str::to_owned);
            sender.send(name).unwrap();
        };
        assert!(start_detached("test", SignalDelivery::OwnFaults, send_name));
        assert_eq!(receiver.recv().unwrap().as_deref(), Some("test"));
    }
}
