//! Processes of memcached or Redis.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use refrain_cache::{Engine, NodeList};
use rustix::process::{Pid, Signal, kill_process};

use super::settings::VALUE_BYTES_MAX;
use crate::child::ends_with_this_thread;
use crate::failure::{Failure, Result};

/// How often and how long it is tried to reach a new process.
const TRIES: u32 = 500;
const TRY_AGAIN: Duration = Duration::from_millis(10);

/// The memory of a node that is not for values, in MiB.
const ROOM_MIB: u64 = 64;

/// Nodes. Those that were started listen on the loopback interface, and end when this is dropped.
pub struct Nodes {
    nodes: Vec<Process>,
    engine: Engine,
    memory_mib: u64,
}

struct Process {
    address: SocketAddr,
    /// `None`: somebody else's.
    child: Option<Child>,
}

impl Nodes {
    /// Starts nodes of which two together hold `bytes`.
    pub fn start(engine: Engine, count: u16, bytes: u64) -> Result<Nodes> {
        let memory_mib = (bytes >> 19) + ROOM_MIB;
        let mut nodes = Nodes {
            nodes: Vec::new(),
            engine,
            memory_mib,
        };
        for _ in 0..count {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
            let address = free
                .and_then(|free| free.local_addr())
                .map_err(Failure::Storage)?;
            let child = started(engine, address, memory_mib)?;
            let child = Some(child);
            nodes.nodes.push(Process { address, child });
        }
        for node in &nodes.nodes {
            wait_for(node.address)?;
        }
        Ok(nodes)
    }

    /// Nodes that run already.
    pub fn given(list: &NodeList) -> Result<Nodes> {
        let found = list.nodes().map_err(Failure::Storage)?.into_iter();
        let addresses: Vec<_> = found.filter_map(|node| node.address).collect();
        for address in &addresses {
            let refused = |_| Failure::usage(address.to_string(), "cannot be reached");
            wait_for(*address).map_err(refused)?;
        }
        let process = |address| Process {
            address,
            child: None,
        };
        Ok(Nodes {
            nodes: addresses.into_iter().map(process).collect(),
            engine: list.engine(),
            memory_mib: 0,
        })
    }

    pub fn engine(&self) -> Engine {
        self.engine
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.address).collect()
    }

    /// Stops a node, or continues it.
    pub fn set_stopped(&self, node: usize, is_stopped: bool) {
        let signal = if is_stopped { Signal::STOP } else { Signal::CONT };
        if let Some(node) = self.nodes.get(node) {
            node.send(signal);
        }
    }

    /// Ends a node.
    pub fn kill(&mut self, node: usize) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.end();
        }
    }

    /// Starts a node that was ended again, empty. It is not waited for.
    pub fn start_again(&mut self, node: usize) -> Result<()> {
        if let Some(node) = self.nodes.get_mut(node) {
            node.child = Some(started(self.engine, node.address, self.memory_mib)?);
        }
        Ok(())
    }

    /// How many reads all nodes served, as they say; of Redis, those of values that it had.
    pub fn reads_served(&self) -> Result<u64> {
        let mut served = 0;
        for node in &self.nodes {
            let (request, name) = match self.engine {
                Engine::Memcached => ("stats\r\n", "STAT cmd_get "),
                Engine::Redis => ("INFO stats\r\nQUIT\r\n", "keyspace_hits:"),
            };
            let found = statistic(node.address, request, name);
            served += found.map_err(Failure::Storage)?;
        }
        Ok(served)
    }
}

/// A connection that ends in an error instead of waiting for ever.
pub fn connected(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    Ok(stream)
}

/// The number behind a name among the statistics of a node.
fn statistic(address: SocketAddr, request: &str, name: &str) -> io::Result<u64> {
    let mut stream = connected(address)?;
    stream.write_all(request.as_bytes())?;
    for line in BufReader::new(stream).lines() {
        let line = line?;
        if let Some(number) = line.strip_prefix(name) {
            return Ok(number.trim().parse().unwrap_or(0));
        }
        if line == "END" {
            break;
        }
    }
    Ok(0)
}

fn started(engine: Engine, address: SocketAddr, memory_mib: u64) -> Result<Child> {
    let mut command = match engine {
        Engine::Memcached => memcached(address, memory_mib),
        Engine::Redis => redis(address, memory_mib),
    };
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    ends_with_this_thread(&mut command, Signal::KILL);
    command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::usage(
            command.get_program().to_string_lossy(),
            "is not installed: the nodes of the cache are processes of it (Debian: apt install \
             memcached redis-server)",
        ),
        _ => Failure::Storage(error),
    })
}

fn memcached(address: SocketAddr, memory_mib: u64) -> Command {
    let mut command = Command::new("memcached");
    command.args(["-l", "127.0.0.1", "-U", "0", "-t", "1", "-c", "8192"]);
    command.args([
        "-p",
        &address.port().to_string(),
        "-m",
        &memory_mib.to_string(),
    ]);
    command.args(["-I", &VALUE_BYTES_MAX.saturating_mul(2).to_string()]);
    if rustix::process::geteuid().is_root() {
        command.args(["-u", "nobody"]);
    }
    command
}

/// A server that keeps nothing on the disk, and makes room for what is newer.
fn redis(address: SocketAddr, memory_mib: u64) -> Command {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
    command.args(["--save", "", "--appendonly", "no", "--maxclients", "8192"]);
    command.args(["--maxmemory", &format!("{memory_mib}mb")]);
    command.args(["--maxmemory-policy", "allkeys-lru"]);
    command
}

/// Waits until a node accepts connections.
fn wait_for(address: SocketAddr) -> Result<()> {
    let mut tries = 0;
    while let Err(error) = TcpStream::connect(address) {
        tries += 1;
        if tries == TRIES {
            return Err(Failure::Storage(error));
        }
        refrain_pool::Event::default().wait_for(TRY_AGAIN);
    }
    Ok(())
}

impl Process {
    fn send(&self, signal: Signal) {
        // A process that ended keeps its number until it is waited for.
        let number = self.child.as_ref().map(|child| i32::try_from(child.id()));
        let process = number
            .and_then(|number| number.ok())
            .and_then(Pid::from_raw);
        if let Some(process) = process {
            let _ = kill_process(process, signal);
        }
    }

    fn end(&mut self) {
        let Some(child) = &mut self.child else { return };
        // Also of a stopped one.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
