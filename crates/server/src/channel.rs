//! The bytes of one client's connection, plain or through TLS.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use refrain_pool::Lock;

use crate::pace::Pace;
use crate::socket::Socket;

/// A connection. One thread receives at a time; what several send is not interleaved. Both may
/// happen at once.
pub(crate) trait Channel: Send + Sync {
    /// Receives at least one byte; 0 if the client has closed the connection.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Sends both parts completely. Fails if the client takes them too slowly ([`Pace`]).
    fn send(&self, head: &[u8], body: &[u8]) -> io::Result<()>;

    /// Limits how long a receive waits.
    fn set_receive_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// Tells the client that nothing more is sent.
    fn finish(&self) -> io::Result<()>;

    /// Closes both directions at once.
    fn close(&self);
}

/// A connection without TLS.
pub(crate) struct PlainChannel {
    socket: Arc<Socket>,
    pace: Lock<Pace>,
}

impl PlainChannel {
    /// The client must take what it is sent at this pace.
    pub(crate) fn new(socket: Arc<Socket>, pace: Pace) -> io::Result<PlainChannel> {
        socket.set_write_timeout(Some(pace.write_timeout()))?;
        Ok(PlainChannel {
            socket,
            pace: Lock::new(pace),
        })
    }
}

impl Channel for PlainChannel {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match (&*self.socket).read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                received => return received,
            }
        }
    }

    fn send(&self, head: &[u8], body: &[u8]) -> io::Result<()> {
        let mut pace = self.pace.lock();
        let mut parts = [IoSlice::new(head), IoSlice::new(body)];
        let mut left = &mut parts[..];
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            let count = pace.write(|| (&*self.socket).write_vectored(left))?;
            IoSlice::advance_slices(&mut left, count);
        }
        Ok(())
    }

    fn set_receive_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(timeout)
    }

    fn finish(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write);
        Ok(())
    }

    fn close(&self) {
        self.socket.shutdown(Shutdown::Both);
    }
}

/// Fills the buffer.
pub(crate) fn receive_exactly(channel: &dyn Channel, buffer: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        match channel.receive(&mut buffer[done..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => done += count,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Both sides of a connection, whose client has to take pieces within 20 ms.
    fn pair() -> (PlainChannel, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pace = Pace::new(Duration::from_millis(20), || {});
        let socket = Arc::new(Socket::Unix(ours));
        (PlainChannel::new(socket, pace).unwrap(), theirs)
    }

    #[test]
    fn parts_are_sent_whole_and_a_client_that_stops_reading_is_noticed() {
        let (ours, mut theirs) = pair();
        ours.send(b"head", b"body").unwrap();
        ours.send(b"", b"").unwrap();
        ours.send(b"", b"!").unwrap();
        let mut read = [0; 9];
        theirs.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"headbody!");
        let error = ours.send(b"", &vec![0; 64 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    }

    #[test]
    fn a_client_that_takes_single_bytes_is_noticed_as_well() {
        let (ours, mut theirs) = pair();
        let is_over = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&is_over);
        let reading = std::thread::spawn(move || {
            while !own.load(Ordering::Relaxed) {
                theirs.read_exact(&mut [0]).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let error = ours.send(b"", &vec![0; 64 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        is_over.store(true, Ordering::Relaxed);
        reading.join().unwrap();
    }
}
