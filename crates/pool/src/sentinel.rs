//! A thread that waits for something outside of all work, such as signals: no job may wait for that, or it would keep a worker.

/// Runs `body` on a thread of its own, which nobody waits for. Whether there could be one.
pub fn sentinel(name: &str, body: impl FnOnce() + Send + 'static) -> bool {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(body).is_ok()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn it_runs_beside_its_maker() {
        let (said, heard) = channel();
        assert!(sentinel("test", move || said
            .send(std::thread::current().name().map(str::to_owned))
            .unwrap()));
        assert_eq!(heard.recv().unwrap().as_deref(), Some("test"));
    }
}
