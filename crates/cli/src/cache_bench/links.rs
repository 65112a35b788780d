//! Slow links to nodes: what passes arrives later, and no faster than at a rate.
//!
//! The kernel can do that (`tc netem`), as root, in a namespace of its own, and if it was built
//! with it, which many were not. So bytes go through this process, which holds them back.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use refrain_pool::{SignalDelivery, start_detached};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::failure::{Failure, Result};

/// What is read at once, and held back at most in each direction of a connection.
const READ_BYTES: usize = 64 << 10;
const HELD_BYTES_MAX: usize = 4 << 20;

/// How long nothing can happen before it is seen that the links ended.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// How slow a link is.
#[derive(Debug, Clone, Copy)]
pub struct Slowness {
    /// How much later bytes of a node arrive.
    pub delay: Duration,
    /// How many of them in a second, all connections of a node together.
    pub bytes_per_second: Option<u64>,
}

/// Links to some nodes. They end when this is dropped, with what is on them.
pub struct Links {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    is_slow: AtomicBool,
    is_ended: AtomicBool,
}

impl Links {
    /// Links to the nodes at these addresses, which are as fast as others at first.
    pub fn start(nodes: &[SocketAddr], slowness: Slowness) -> Result<Links> {
        let shared = Arc::new(Shared::default());
        let links = nodes.iter().map(|node| Link::new(*node, slowness));
        let mut links = links
            .collect::<io::Result<Vec<_>>>()
            .map_err(Failure::Storage)?;
        let addresses = links.iter().map(|link| link.listener.local_addr());
        let addresses = addresses.collect::<io::Result<Vec<_>>>();
        let addresses = addresses.map_err(Failure::Storage)?;
        let state = Arc::clone(&shared);
        let carry = move || {
            let clock = Instant::now();
            while !state.is_ended.load(Ordering::Relaxed) {
                let is_slow = state.is_slow.load(Ordering::Relaxed);
                links
                    .iter_mut()
                    .for_each(|link| link.carry(clock.elapsed(), is_slow));
                wait(&links, clock.elapsed());
            }
        };
        let is_started =
            nodes.is_empty() || start_detached("slow links", SignalDelivery::OwnFaults, carry);
        if !is_started {
            return Err(Failure::Storage(ErrorKind::WouldBlock.into()));
        }
        Ok(Links { addresses, shared })
    }

    /// Where the nodes are behind their links.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Makes the links slow, or as fast as others.
    pub fn set_slow(&self, is_slow: bool) {
        self.shared.is_slow.store(is_slow, Ordering::Relaxed);
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.shared.is_ended.store(true, Ordering::Relaxed);
    }
}

/// A link to a node.
struct Link {
    listener: TcpListener,
    node: SocketAddr,
    slowness: Slowness,
    /// Until when earlier bytes of the node occupy the link.
    busy_until: Duration,
    connections: Vec<Connection>,
}

impl Link {
    fn new(node: SocketAddr, slowness: Slowness) -> io::Result<Link> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        Ok(Link {
            listener,
            node,
            slowness,
            busy_until: Duration::ZERO,
            connections: Vec::new(),
        })
    }

    /// Accepts what is there, and carries what is due.
    fn carry(&mut self, now: Duration, is_slow: bool) {
        while let Ok((client, _)) = self.listener.accept() {
            self.connections.extend(Connection::to(self.node, client));
        }
        let (slowness, busy_until) = (self.slowness, &mut self.busy_until);
        let mut due_of = |bytes: usize| {
            if !is_slow {
                return now;
            }
            let rate = slowness.bytes_per_second;
            let sending = rate.map_or(0.0, |rate| bytes as f64 / rate.max(1) as f64);
            *busy_until = now.max(*busy_until) + Duration::from_secs_f64(sending);
            *busy_until + slowness.delay
        };
        self.connections.retain_mut(|connection| {
            let [there, back] = &mut connection.ways;
            let (client, node) = (&mut connection.client, &mut connection.node);
            let carried = there.carry(client, node, now, |_| now);
            carried
                .and_then(|()| back.carry(node, client, now, &mut due_of))
                .is_ok()
        });
    }
}

/// A connection of a client to a node.
struct Connection {
    client: TcpStream,
    node: TcpStream,
    /// To the node, and back.
    ways: [Way; 2],
}

impl Connection {
    /// `None` if the node accepts none: then that of the client ends, too.
    fn to(node: SocketAddr, client: TcpStream) -> Option<Connection> {
        let node = TcpStream::connect(node).ok()?;
        for socket in [&client, &node] {
            socket.set_nonblocking(true).ok()?;
            socket.set_nodelay(true).ok()?;
        }
        Some(Connection {
            client,
            node,
            ways: [Way::default(), Way::default()],
        })
    }
}

/// Bytes on their way in one direction.
#[derive(Default)]
struct Way {
    /// With when they are due.
    held: VecDeque<(Duration, Vec<u8>)>,
    held_bytes: usize,
}

impl Way {
    /// Takes what arrives, due when `due_of` says for so many bytes, and passes on what is due.
    ///
    /// # Errors
    /// A side closed its connection, or it broke.
    fn carry(
        &mut self,
        from: &mut TcpStream,
        to: &mut TcpStream,
        now: Duration,
        mut due_of: impl FnMut(usize) -> Duration,
    ) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        while self.held_bytes < HELD_BYTES_MAX {
            let count = match from.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            let bytes = buffer.get(..count).unwrap_or_default().to_vec();
            self.held_bytes += count;
            self.held.push_back((due_of(count), bytes));
        }
        while let Some((due, bytes)) = self.held.front_mut()
            && *due <= now
        {
            let count = match to.write(bytes) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            self.held_bytes -= count;
            bytes.drain(..count);
            if bytes.is_empty() {
                self.held.pop_front();
            }
        }
        Ok(())
    }

    /// When the first of its bytes are due.
    fn due(&self) -> Option<Duration> {
        self.held.front().map(|(due, _)| *due)
    }
}

/// Waits until something arrives, can be passed on, or is due.
fn wait(links: &[Link], now: Duration) {
    let mut sockets = Vec::new();
    let mut until = now + WAIT_MAX;
    for link in links {
        sockets.push(PollFd::from_borrowed_fd(
            link.listener.as_fd(),
            PollFlags::IN,
        ));
        for connection in &link.connections {
            let [there, back] = &connection.ways;
            sockets.extend(polled(connection.client.as_fd(), (there, back), now));
            sockets.extend(polled(connection.node.as_fd(), (back, there), now));
            let later = [there, back].into_iter().filter_map(Way::due);
            let later = later.filter(|due| *due > now).min();
            until = until.min(later.unwrap_or(until));
        }
    }
    let left = until.saturating_sub(now);
    let timeout = Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    // An interrupt only makes the next round earlier.
    let _ = poll(&mut sockets, Some(&timeout));
}

/// What a socket waits for, from which `reads` come and to which `writes` go.
fn polled<'a>(
    socket: BorrowedFd<'a>,
    (reads, writes): (&Way, &Way),
    now: Duration,
) -> Option<PollFd<'a>> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, reads.held_bytes < HELD_BYTES_MAX);
    flags.set(PollFlags::OUT, writes.due().is_some_and(|due| due <= now));
    (!flags.is_empty()).then(|| PollFd::from_borrowed_fd(socket, flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_a_slow_link_is_whole_and_late() {
        let node = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let slowness = Slowness {
            delay: Duration::from_millis(30),
            bytes_per_second: Some(10_000_000),
        };
        let links = Links::start(&[node.local_addr().unwrap()], slowness).unwrap();
        let mut client = TcpStream::connect(links.addresses()[0]).unwrap();
        let (mut served, _) = node.accept().unwrap();
        let value: Vec<u8> = (0..1_000_000_u32)
            .map(|at| (at.wrapping_mul(7919) >> 8) as u8)
            .collect();
        for is_slow in [true, false] {
            links.set_slow(is_slow);
            client.write_all(b"x").unwrap();
            served.read_exact(&mut [0]).unwrap();
            let begun = Instant::now();
            let (mut writer, sent) = (served.try_clone().unwrap(), value.clone());
            let mut found = vec![0; value.len()];
            std::thread::scope(|scope| {
                scope.spawn(move || writer.write_all(&sent).unwrap());
                client.read_exact(&mut found).unwrap();
            });
            assert!(found == value);
            // No upper bound: the machine may be busy.
            if is_slow {
                assert!(begun.elapsed() >= Duration::from_millis(130));
            }
        }
        // Where a node hangs up, so does its link.
        drop(served);
        assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
    }
}
