//! Sockets that systemd created for this process (`sd_listen_fds(3)`).
//!
//! `unsafe`: the environment gives descriptors as numbers. A number becomes the owner of its
//! descriptor only if that is a socket on which connections are awaited, which this program has
//! none of before its arguments are carried out.

#![allow(unsafe_code)]

use std::env;
use std::io;
use std::net::TcpListener;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;

use refrain_server::Listener;
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketType};

/// The number of the first descriptor that is passed.
const FIRST: RawFd = 3;

/// A socket that was passed.
pub struct InheritedSocket {
    /// Its number among those that were passed.
    pub number: RawFd,
    /// What systemd calls it; may be empty.
    pub name: String,
    /// An error if it is not a socket on which connections are awaited.
    pub listener: io::Result<Listener>,
}

/// Takes the sockets that were passed to this process, each when the iterator reaches it.
pub fn take() -> impl Iterator<Item = InheritedSocket> {
    let variable = |name| env::var(name).unwrap_or_default();
    let count = count(
        &variable("LISTEN_FDS"),
        &variable("LISTEN_PID"),
        std::process::id(),
    );
    let names = variable("LISTEN_FDNAMES");
    (0..count).map(move |number| InheritedSocket {
        number,
        name: nth_name(&names, number),
        listener: listener(number.saturating_add(FIRST)),
    })
}

/// How many descriptors were passed to `process`, by the values of `LISTEN_FDS` and `LISTEN_PID`.
/// Programs that do not know the process in advance leave the second empty.
fn count(descriptors: &str, for_process: &str, process: u32) -> RawFd {
    let is_for_us = for_process.is_empty() || for_process.parse() == Ok(process);
    let count = descriptors.parse().unwrap_or(0);
    if is_for_us { count } else { 0 }
}

fn nth_name(names: &str, number: RawFd) -> String {
    let index = usize::try_from(number).unwrap_or(usize::MAX);
    names.split(':').nth(index).unwrap_or_default().to_owned()
}

/// Takes over the socket with a number. Programs that this one starts do not inherit it.
fn listener(number: RawFd) -> io::Result<Listener> {
    // SAFETY: asks for the flags of a number that may not be a descriptor.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and nothing closes it meanwhile: no other thread knows the number.
    let found = unsafe { BorrowedFd::borrow_raw(number) };
    if socket_type(found)? != SocketType::STREAM || !socket_acceptconn(found)? {
        return Err(refusal("not a socket on which connections are awaited"));
    }
    let family = socket_domain(found)?;
    fcntl_setfd(found, fcntl_getfd(found)? | FdFlags::CLOEXEC)?;
    // SAFETY: the process received this descriptor for this purpose, and takes each number once.
    let owned = |number| unsafe { OwnedFd::from_raw_fd(number) };
    match family {
        AddressFamily::INET | AddressFamily::INET6 => {
            Ok(Listener::from_tcp(TcpListener::from(owned(number))))
        }
        AddressFamily::UNIX => Ok(Listener::from_unix(UnixListener::from(owned(number)))),
        other => Err(refusal(&format!(
            "a socket of the address family {}",
            other.as_raw()
        ))),
    }
}

fn refusal(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::UdpSocket;
    use std::os::fd::{AsRawFd, IntoRawFd};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn descriptors_count_if_they_are_for_this_process() {
        for (descriptors, for_process, expected) in [
            ("2", "77", 2),
            ("2", "", 2),
            ("2", "78", 0),
            ("2", "x", 0),
            ("", "77", 0),
            ("x", "77", 0),
            ("0", "77", 0),
        ] {
            let found = count(descriptors, for_process, 77);
            assert_eq!(found, expected, "{descriptors:?} {for_process:?}");
        }
        assert_eq!(
            (0..3).map(|i| nth_name("a::c", i)).collect::<Vec<_>>(),
            ["a", "", "c"]
        );
        assert_eq!(nth_name("a", 1), "");
    }

    #[test]
    fn listening_sockets_are_taken_and_closed_to_children() {
        let tcp = TcpListener::bind("[::1]:0").or_else(|_| TcpListener::bind("127.0.0.1:0"));
        let tcp = tcp.unwrap();
        let address = tcp.local_addr().unwrap().to_string();
        let number = tcp.into_raw_fd();
        // SAFETY: it was just released, and is taken below.
        let found = unsafe { BorrowedFd::borrow_raw(number) };
        fcntl_setfd(found, FdFlags::empty()).unwrap();
        let taken = listener(number).unwrap();
        assert_eq!(taken.address(), address);
        assert_eq!(fcntl_getfd(found).unwrap(), FdFlags::CLOEXEC);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let taken = listener(UnixListener::bind(&path).unwrap().into_raw_fd()).unwrap();
        assert_eq!(taken.address(), format!("unix:{}", path.display()));
    }

    #[test]
    fn what_awaits_no_connection_is_refused_and_stays_open() {
        let file = File::open("/dev/null").unwrap();
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (connected, _other) = UnixStream::pair().unwrap();
        for number in [
            file.as_raw_fd(),
            datagrams.as_raw_fd(),
            connected.as_raw_fd(),
            RawFd::MAX,
        ] {
            assert!(listener(number).is_err(), "{number}");
        }
        assert!(file.metadata().is_ok());
    }
}
