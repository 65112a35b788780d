//! Which nodes a shared cache has.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::net::ToSocketAddrs;
use std::path::PathBuf;

use crate::client::Node;
use crate::engine::Engine;

/// A list of nodes, as people write it.
///
/// `memcached://HOST[:PORT],...` names the nodes, `memcached://@FILE` a file with a name on each
/// line, and `memcached+dns://HOST[:PORT]` a host each of whose addresses is a node; so do
/// `redis://` and `redis+dns://`. Keys are spread by the names as they are written, or by the
/// addresses with `+dns`, so all clients must write them alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeList {
    engine: Engine,
    names: Names,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Names {
    Given(Vec<String>),
    File(PathBuf),
    /// A host and its port.
    Addresses(String),
}

/// Why a text is no list of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeListError {
    /// It begins with no known scheme.
    Scheme(String),
    /// It names no node.
    Empty,
    /// This is no name of a node.
    Name(String),
}

impl fmt::Display for NodeListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeListError::Scheme(text) => write!(
                f,
                "{text:?} does not begin with memcached://, redis://, memcached+dns:// or redis+dns://"
            ),
            NodeListError::Empty => write!(f, "no node is named"),
            NodeListError::Name(name) => write!(f, "{name:?} is not HOST or HOST:PORT"),
        }
    }
}

impl std::error::Error for NodeListError {}

impl NodeList {
    /// The list in a text.
    ///
    /// # Errors
    /// [`NodeListError`]. A file need not exist.
    pub fn parse(text: &str) -> Result<NodeList, NodeListError> {
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| NodeListError::Scheme(text.to_owned()))?;
        let (engine, is_dns) = match scheme {
            "memcached" => (Engine::Memcached, false),
            "memcached+dns" => (Engine::Memcached, true),
            "redis" => (Engine::Redis, false),
            "redis+dns" => (Engine::Redis, true),
            _ => return Err(NodeListError::Scheme(text.to_owned())),
        };
        let names = match (is_dns, rest.strip_prefix('@')) {
            (true, _) => Names::Addresses(with_port(rest, engine)?),
            (false, Some(file)) if !file.is_empty() => Names::File(PathBuf::from(file)),
            (false, _) => Names::Given(names(rest.split(','), engine)?),
        };
        Ok(NodeList { engine, names })
    }

    /// What the nodes are.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// The nodes now, in the order of their names. Looks up names of hosts, which may take long.
    ///
    /// # Errors
    /// From reading the file or looking up the host; `InvalidData` for a line that is no name, or a
    /// file without any.
    pub fn nodes(&self) -> io::Result<Vec<Node>> {
        let bad = |error: NodeListError| io::Error::new(io::ErrorKind::InvalidData, error);
        let mut nodes = match &self.names {
            Names::Given(names) => by_name(names),
            Names::File(path) => {
                let text = fs::read_to_string(path)?;
                let lines = text
                    .lines()
                    .map(|line| line.split('#').next().unwrap_or_default());
                let lines = lines.map(str::trim).filter(|line| !line.is_empty());
                by_name(&names(lines, self.engine).map_err(bad)?)
            }
            Names::Addresses(host) => {
                let addresses: BTreeSet<_> = host.to_socket_addrs()?.collect();
                let node = |address: std::net::SocketAddr| Node {
                    name: address.to_string(),
                    address: Some(address),
                };
                addresses.into_iter().map(node).collect()
            }
        };
        if nodes.is_empty() {
            return Err(bad(NodeListError::Empty));
        }
        nodes.sort_by(|one, other| one.name.cmp(&other.name));
        nodes.dedup_by(|one, other| one.name == other.name);
        Ok(nodes)
    }
}

/// Nodes whose addresses are looked up. One without an address now keeps its keys.
fn by_name(names: &[String]) -> Vec<Node> {
    let node = |name: &String| Node {
        name: name.clone(),
        address: name
            .to_socket_addrs()
            .ok()
            .and_then(|mut found| found.next()),
    };
    names.iter().map(node).collect()
}

fn names<'a>(
    texts: impl Iterator<Item = &'a str>,
    engine: Engine,
) -> Result<Vec<String>, NodeListError> {
    let names: Vec<_> = texts
        .map(|text| with_port(text, engine))
        .collect::<Result<_, _>>()?;
    if names.is_empty() { Err(NodeListError::Empty) } else { Ok(names) }
}

/// A name with its port, or the engine's.
fn with_port(text: &str, engine: Engine) -> Result<String, NodeListError> {
    let bad = || NodeListError::Name(text.to_owned());
    let is_name = |host: &str| {
        let is_inner = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
        !host.is_empty() && host.chars().all(is_inner)
    };
    let (host, port) = match text.rsplit_once(':') {
        Some((host, _)) if text.ends_with(']') || host.contains(':') && !host.ends_with(']') => {
            (text, None)
        }
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    if !is_name(host) || (host.contains(':') && !is_bracketed) {
        return Err(bad());
    }
    let port = match port {
        Some(port) => port.parse::<u16>().map_err(|_| bad())?,
        None => engine.port(),
    };
    Ok(format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_names_files_or_the_addresses_of_a_host() {
        let given = |text: &str| match NodeList::parse(text) {
            Ok(NodeList {
                names: Names::Given(names),
                ..
            }) => names.join(" "),
            other => format!("{other:?}"),
        };
        assert_eq!(given("memcached://a,b.c:7"), "a:11211 b.c:7");
        assert_eq!(given("redis://[::1],[fe80::1]:9"), "[::1]:6379 [fe80::1]:9");
        let file = NodeList::parse("memcached://@/etc/nodes").unwrap();
        assert_eq!(file.names, Names::File("/etc/nodes".into()));
        let host = NodeList::parse("redis+dns://cache.internal").unwrap();
        assert_eq!(host.names, Names::Addresses("cache.internal:6379".into()));
        assert_eq!(host.engine(), Engine::Redis);
        for text in [
            "",
            "a",
            "http://a",
            "memcached://",
            "memcached://a,,b",
            "memcached://a:b",
            "memcached://::1",
            "memcached://a/b",
            "memcached://@",
            "redis+dns://",
        ] {
            assert!(NodeList::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_file_is_read_each_time_and_its_order_does_not_matter() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nodes");
        let list = NodeList::parse(&format!("memcached://@{}", path.display())).unwrap();
        let names = |text: &str| {
            fs::write(&path, text).unwrap();
            let nodes = list.nodes().unwrap().into_iter();
            nodes.map(|node| node.name).collect::<Vec<_>>()
        };
        assert!(list.nodes().is_err());
        let two = ["127.0.0.1:1", "127.0.0.1:11211"];
        assert_eq!(names("127.0.0.1\n\n# old\n127.0.0.1:1 # new\n"), two);
        assert_eq!(names("127.0.0.1:1\n127.0.0.1\n127.0.0.1\n"), two);
        fs::write(&path, "a b\n").unwrap();
        assert!(list.nodes().is_err());
    }
}
