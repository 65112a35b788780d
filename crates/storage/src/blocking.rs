//! Descriptors that others may have put into non-blocking mode.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Reads and writes a descriptor as if it were in blocking mode.
/// `O_NONBLOCK` belongs to the open file description, which is shared by all processes that
/// inherited it: a pipe from or to an event loop (node.js, ssh) is often in that mode. Clearing it
/// would surprise the others, so this waits in `poll` instead.
#[derive(Debug)]
pub struct Blocking<F>(pub F);

impl<F: AsFd> Read for Blocking<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let descriptor = self.0.as_fd();
        as_if_blocking(descriptor, PollFlags::IN, || {
            rustix::io::read(descriptor, &mut *buffer)
        })
    }
}

impl<F: AsFd> Write for Blocking<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let descriptor = self.0.as_fd();
        as_if_blocking(descriptor, PollFlags::OUT, || {
            rustix::io::write(descriptor, bytes)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn as_if_blocking(
    descriptor: BorrowedFd<'_>,
    ready: PollFlags,
    mut transfer: impl FnMut() -> rustix::io::Result<usize>,
) -> io::Result<usize> {
    loop {
        match transfer() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => match poll(&mut [PollFd::new(&descriptor, ready)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            },
            done => return Ok(done?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_full_and_an_empty_descriptor_are_waited_for() {
        let (writer, reader) = UnixStream::pair().unwrap();
        writer.set_nonblocking(true).unwrap();
        reader.set_nonblocking(true).unwrap();
        // More than sockets buffer, so that both sides have to wait.
        let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at >> 4) as u8).collect();
        let received = std::thread::scope(|scope| {
            let received = scope.spawn(|| {
                let mut bytes = Vec::new();
                Blocking(&reader).read_to_end(&mut bytes).unwrap();
                bytes
            });
            Blocking(&writer).write_all(&sent).unwrap();
            writer.shutdown(std::net::Shutdown::Write).unwrap();
            received.join().unwrap()
        });
        assert!(received == sent);
    }

    #[test]
    fn other_errors_are_returned() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let error = Blocking(writer).write(b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
