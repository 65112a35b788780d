//! A connected socket of any kind, used by several threads at once.

use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A connected stream socket.
#[derive(Debug)]
pub enum Socket {
    /// Over the network.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
}

impl Socket {
    /// A TCP connection that sends small replies at once.
    pub fn tcp(stream: TcpStream) -> Socket {
        // Merely slower if the system refuses.
        let _ = stream.set_nodelay(true);
        Socket::Tcp(stream)
    }

    /// The address of the other side; `None` for a Unix socket, and if the client has left.
    pub(crate) fn peer_address(&self) -> Option<IpAddr> {
        match self {
            Socket::Tcp(stream) => Some(stream.peer_addr().ok()?.ip()),
            Socket::Unix(_) => None,
        }
    }

    /// Shuts down sending, receiving or both: threads that wait for it wake up.
    pub fn shutdown(&self, how: Shutdown) {
        // Fails only if the client has left.
        let _ = match self {
            Socket::Tcp(stream) => stream.shutdown(how),
            Socket::Unix(stream) => stream.shutdown(how),
        };
    }

    /// Limits how long a read waits; `None`: forever.
    ///
    /// # Errors
    /// From the operating system.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_read_timeout(timeout),
            Socket::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// Limits how long a write waits; `None`: forever.
    ///
    /// # Errors
    /// From the operating system.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_write_timeout(timeout),
            Socket::Unix(stream) => stream.set_write_timeout(timeout),
        }
    }

    /// Waits until a read would not block. Returns `false` after the timeout.
    ///
    /// # Errors
    /// From the operating system.
    pub fn wait_readable(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let mut descriptors = [PollFd::new(self, PollFlags::IN)];
        loop {
            match poll(&mut descriptors, timeout.as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                ready => return Ok(ready? > 0),
            }
        }
    }

    /// Writes `head`, then `body`.
    ///
    /// # Errors
    /// From the operating system; `TimedOut` or `WouldBlock` after the write timeout.
    pub fn write_parts(&self, head: &[u8], body: &[u8]) -> io::Result<()> {
        let mut socket = self;
        let mut parts = [IoSlice::new(head), IoSlice::new(body)];
        let mut left = &mut parts[..];
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            match socket.write_vectored(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => IoSlice::advance_slices(&mut left, count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether an error means that a wait timed out.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).read(buffer),
            Socket::Unix(stream) => (&mut &*stream).read(buffer),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).write(bytes),
            Socket::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).write_vectored(parts),
            Socket::Unix(stream) => (&mut &*stream).write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_whole_and_a_client_that_stops_reading_is_noticed() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (ours, theirs) = (Socket::Unix(ours), Socket::Unix(theirs));
        let is_readable = || theirs.wait_readable(Some(Duration::ZERO)).unwrap();
        assert!(!is_readable());
        ours.write_parts(b"head", b"body").unwrap();
        ours.write_parts(b"", b"").unwrap();
        ours.write_parts(b"", b"!").unwrap();
        assert!(is_readable());
        let mut read = [0; 9];
        (&theirs).read_exact(&mut read).unwrap();
        assert_eq!(&read, b"headbody!");
        ours.set_write_timeout(Some(Duration::from_millis(10)))
            .unwrap();
        let error = ours.write_parts(b"", &vec![0; 64 << 20]).unwrap_err();
        let kinds = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
        assert!(kinds.contains(&error.kind()), "{error:?}");
        ours.shutdown(Shutdown::Both);
        assert!(is_readable());
    }
}
