//! What is done to the nodes, and when.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use refrain_cache::client::VALUE_BYTES_MAX;
use refrain_cache::engine::Reply;
use refrain_cache::{Engine, Key};

use super::links::Links;
use super::nodes::{Nodes, connected};
use crate::args::CacheArgs;
use crate::failure::{Failure, Result};

/// What is done to the nodes with the first numbers: stopped ones, then killed ones.
pub struct Trouble {
    begins: Duration,
    ends: Duration,
    stopped: Vec<usize>,
    killed: Vec<usize>,
    /// To the nodes that come behind these.
    links: Links,
    is_flipped: bool,
    flipper: Option<Flipper>,
    engine: Engine,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    During,
    After,
}

impl Trouble {
    /// What the command line says, for so many nodes, some of which are behind links.
    pub fn new(args: &CacheArgs, engine: Engine, nodes: usize, links: Links) -> Trouble {
        let stop = usize::from(args.stop).min(nodes);
        let kill = (stop + usize::from(args.kill)).min(nodes);
        Trouble {
            begins: args.well,
            ends: args.well + args.sick,
            stopped: (0..stop).collect(),
            killed: (stop..kill).collect(),
            links,
            is_flipped: args.flip,
            flipper: None,
            engine,
            state: State::Before,
        }
    }

    /// When something is done next.
    pub fn next(&self) -> Option<Duration> {
        if self.flipper.is_some() {
            return Some(Duration::ZERO);
        }
        match self.state {
            State::Before => Some(self.begins),
            State::During => Some(self.ends),
            State::After => None,
        }
    }

    /// Does what is due.
    pub fn act(&mut self, elapsed: Duration, nodes: &mut Nodes, keys: &[Key]) -> Result<()> {
        match self.state {
            State::Before if elapsed >= self.begins => {
                self.state = State::During;
                if self.is_flipped {
                    self.flipper = Some(Flipper::new(nodes, self.engine)?);
                }
                self.stopped
                    .iter()
                    .for_each(|node| nodes.set_stopped(*node, true));
                self.killed.iter().for_each(|node| nodes.kill(*node));
                self.links.set_slow(true);
            }
            State::During if elapsed >= self.ends => {
                self.state = State::After;
                self.stopped
                    .iter()
                    .for_each(|node| nodes.set_stopped(*node, false));
                self.links.set_slow(false);
                for node in &self.killed {
                    nodes.start_again(*node)?;
                }
            }
            _ => {}
        }
        if let Some(flipper) = &mut self.flipper
            && !flipper.advance(keys)?
        {
            self.flipper = None;
        }
        Ok(())
    }
}

/// Flips a bit in every value that any node has, a few at a time: the thread that does it also
/// reads.
struct Flipper {
    left: Vec<TcpStream>,
    engine: Engine,
    next: usize,
}

/// How many values are flipped before the readers go on.
const AT_ONCE: usize = 4;

impl Flipper {
    fn new(nodes: &Nodes, engine: Engine) -> Result<Flipper> {
        let addresses = nodes.addresses().into_iter();
        let left: io::Result<Vec<_>> = addresses.map(connected).collect();
        Ok(Flipper {
            left: left.map_err(Failure::Storage)?,
            engine,
            next: 0,
        })
    }

    /// Goes on. Returns whether something is left.
    fn advance(&mut self, keys: &[Key]) -> Result<bool> {
        for _ in 0..AT_ONCE {
            let Some(node) = self.left.last_mut() else { return Ok(false) };
            let Some(key) = keys.get(self.next) else {
                self.left.pop();
                self.next = 0;
                continue;
            };
            flip(node, self.engine, key, self.next).map_err(Failure::Storage)?;
            self.next += 1;
        }
        Ok(true)
    }
}

fn flip(node: &mut TcpStream, engine: Engine, key: &Key, number: usize) -> io::Result<()> {
    let name = key.text();
    let Reply::Value(mut value) = reply(node, engine, &engine.get(&name))? else {
        return Ok(());
    };
    let place = number.wrapping_mul(7919) % value.len().max(1);
    if let Some(byte) = value.get_mut(place) {
        *byte ^= 1 << (number % 8);
    }
    reply(node, engine, &engine.set(&name, &value))?;
    Ok(())
}

/// The reply to a request.
fn reply(node: &mut TcpStream, engine: Engine, request: &[u8]) -> io::Result<Reply> {
    node.write_all(request)?;
    let mut parser = engine.parser();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = node.read(&mut buffer)?;
        let bytes = buffer.get(..count).filter(|bytes| !bytes.is_empty());
        let bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
        let found = parser.take(bytes, VALUE_BYTES_MAX);
        if let Some(reply) = found.map_err(io::Error::other)? {
            return Ok(reply);
        }
    }
}
