//! What is done to the nodes, and when.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use refrain_cache::Key;

use super::nodes::{Nodes, connected};
use crate::args::CacheArgs;
use crate::failure::{Failure, Result};

/// What is done to the nodes with the first numbers: stopped ones, then killed ones.
pub struct Trouble {
    begins: Duration,
    ends: Duration,
    stopped: Vec<usize>,
    killed: Vec<usize>,
    is_flipped: bool,
    flipper: Option<Flipper>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    During,
    After,
}

impl Trouble {
    /// What the command line says, for so many nodes.
    pub fn new(args: &CacheArgs, nodes: usize) -> Trouble {
        let stop = usize::from(args.stop).min(nodes);
        let kill = (stop + usize::from(args.kill)).min(nodes);
        Trouble {
            begins: args.well,
            ends: args.well + args.sick,
            stopped: (0..stop).collect(),
            killed: (stop..kill).collect(),
            is_flipped: args.flip,
            flipper: None,
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
                    self.flipper = Some(Flipper::new(nodes)?);
                }
                self.stopped
                    .iter()
                    .for_each(|node| nodes.set_stopped(*node, true));
                self.killed.iter().for_each(|node| nodes.kill(*node));
            }
            State::During if elapsed >= self.ends => {
                self.state = State::After;
                self.stopped
                    .iter()
                    .for_each(|node| nodes.set_stopped(*node, false));
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
    left: Vec<BufReader<TcpStream>>,
    next: usize,
}

/// How many values are flipped before the readers go on.
const AT_ONCE: usize = 4;

impl Flipper {
    fn new(nodes: &Nodes) -> Result<Flipper> {
        let addresses = nodes.addresses().into_iter();
        let left: std::io::Result<Vec<_>> = addresses
            .map(|address| Ok(BufReader::new(connected(address)?)))
            .collect();
        Ok(Flipper {
            left: left.map_err(Failure::Storage)?,
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
            flip(node, key, self.next).map_err(Failure::Storage)?;
            self.next += 1;
        }
        Ok(true)
    }
}

fn flip(node: &mut BufReader<TcpStream>, key: &Key, number: usize) -> std::io::Result<()> {
    let name = key.text();
    let mut line = String::new();
    node.get_mut()
        .write_all(format!("mg {name} v\r\n").as_bytes())?;
    node.read_line(&mut line)?;
    let size = line
        .strip_prefix("VA ")
        .and_then(|rest| rest.split_ascii_whitespace().next());
    let Some(size) = size.and_then(|size| size.parse::<usize>().ok()) else {
        return Ok(());
    };
    let mut value = vec![0; size + 2];
    node.read_exact(&mut value)?;
    let place = number.wrapping_mul(7919) % size.max(1);
    if let Some(byte) = value.get_mut(place).filter(|_| size > 0) {
        *byte ^= 1 << (number % 8);
    }
    node.get_mut()
        .write_all(format!("ms {name} {size}\r\n").as_bytes())?;
    node.get_mut().write_all(&value)?;
    line.clear();
    node.read_line(&mut line)?;
    Ok(())
}
