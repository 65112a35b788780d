//! The client against nodes that do what real ones do, and what sick ones do.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use refrain_cache::client::wait;
use refrain_cache::policy::{Absence, Rules};
use refrain_cache::{Client, Engine, Key, Node, Outcome};

/// A node of its own making.
#[derive(Clone)]
struct Fake {
    address: SocketAddr,
    values: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    /// It accepts and does not reply.
    is_silent: Arc<AtomicBool>,
    requests: Arc<AtomicUsize>,
    /// What it says instead of a reply.
    nonsense: Arc<Mutex<Option<&'static [u8]>>>,
}

impl Fake {
    fn start() -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let node = Fake {
            address: listener.local_addr().unwrap(),
            values: Arc::default(),
            is_silent: Arc::default(),
            requests: Arc::default(),
            nonsense: Arc::default(),
        };
        let serving = node.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(&stream.unwrap()));
            }
        });
        node
    }

    fn serve(&self, mut stream: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let mut line = String::new();
            reader
                .read_line(&mut line)
                .ok()
                .filter(|count| *count > 0)?;
            let words: Vec<_> = line.split_ascii_whitespace().collect();
            let mut value = Vec::new();
            if words[0] == "ms" {
                value.resize(words[2].parse::<usize>().unwrap() + 2, 0);
                reader.read_exact(&mut value).ok()?;
                value.truncate(value.len() - 2);
            }
            self.requests.fetch_add(1, Ordering::SeqCst);
            while self.is_silent.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            if let Some(nonsense) = *self.nonsense.lock().unwrap() {
                stream.write_all(nonsense).ok()?;
                return None;
            }
            stream.write_all(&self.reply(&words, value)).ok()?;
        }
    }

    fn reply(&self, words: &[&str], value: Vec<u8>) -> Vec<u8> {
        let mut values = self.values.lock().unwrap();
        match (words[0], words.get(1).and_then(|name| values.get(*name))) {
            ("ms", _) => {
                values.insert(words[1].to_owned(), value);
                b"HD\r\n".to_vec()
            }
            (_, Some(found)) => {
                let flag = if found.is_empty() { " Z" } else { "" };
                let head = format!("VA {}{flag}\r\n", found.len());
                [head.as_bytes(), found, b"\r\n"].concat()
            }
            (_, None) if words.contains(&"N3") => {
                values.insert(words[1].to_owned(), Vec::new());
                b"VA 0 W\r\n\r\n".to_vec()
            }
            (_, None) => b"EN\r\n".to_vec(),
        }
    }

    fn set_silent(&self, is_silent: bool) {
        self.is_silent.store(is_silent, Ordering::SeqCst);
    }

    fn has(&self, key: &Key) -> bool {
        let values = self.values.lock().unwrap();
        values
            .get(&key.text())
            .is_some_and(|value| !value.is_empty())
    }
}

/// A cache whose readers are in this thread.
struct Cache {
    nodes: Vec<Fake>,
    client: Client,
    clock: Instant,
}

/// What takes longer than anything here, so that a busy machine changes nothing.
fn patient() -> Rules {
    Rules {
        hedge_start_ns: 200_000_000,
        hedge_ns_min: 200_000_000,
        hedge_ns_max: 200_000_000,
        deadline_ns: 2_000_000_000,
        promise_ns_max: 0,
        ..Rules::default()
    }
}

impl Cache {
    fn start(count: usize, rules: Rules) -> Cache {
        let nodes: Vec<_> = (0..count).map(|_| Fake::start()).collect();
        let listed = nodes.iter().enumerate().map(|(number, node)| Node {
            name: format!("node {number}"),
            address: Some(node.address),
        });
        Cache {
            client: Client::new(Engine::Memcached, listed.collect(), rules),
            nodes,
            clock: Instant::now(),
        }
    }

    fn now_ns(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }

    fn read(&self, key: &Key) -> Outcome {
        let mut read = self.client.begin(*key, self.now_ns());
        loop {
            if let Some(outcome) = read.advance(&self.client, self.now_ns()) {
                return outcome;
            }
            let left_ns = read.wake_ns().saturating_sub(self.now_ns());
            wait([&read], left_ns.min(10_000_000));
        }
    }

    /// Stores a value and waits until its homes have it.
    fn store(&self, content: &[u8]) -> (Key, [usize; 2]) {
        let key = Key::of(content);
        self.client.store(&key, content, self.now_ns());
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            self.client.turn(self.now_ns());
            let homes: Vec<_> = (0..self.nodes.len())
                .filter(|node| self.nodes[*node].has(&key))
                .collect();
            if let [one, two] = homes[..] {
                let first = usize::from(self.read_from(&key) != one);
                return (key, if first == 0 { [one, two] } else { [two, one] });
            }
            assert!(Instant::now() < deadline, "stored on {homes:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The node that a value comes from.
    fn read_from(&self, key: &Key) -> usize {
        match self.read(key) {
            Outcome::Value(_, node) => node,
            outcome => panic!("{outcome:?}"),
        }
    }

    #[track_caller]
    fn wait_until(&self, what: &str, condition: impl Fn(&Cache) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !condition(self) {
            self.client.turn(self.now_ns());
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn one_request_reads_what_is_stored() {
    let cache = Cache::start(5, patient());
    let contents: Vec<_> = (0..40_u8)
        .map(|byte| vec![byte; 10_000 * usize::from(byte)])
        .collect();
    let keys: Vec<_> = contents
        .iter()
        .map(|content| cache.store(content).0)
        .collect();
    let count = |cache: &Cache| -> usize {
        cache
            .nodes
            .iter()
            .map(|node| node.requests.load(Ordering::SeqCst))
            .sum()
    };
    let before = count(&cache);
    for (key, content) in keys.iter().zip(&contents) {
        let Outcome::Value(found, _) = cache.read(key) else { panic!("{key:?}") };
        assert!(found == *content);
    }
    assert_eq!(count(&cache) - before, keys.len());
}

#[test]
fn one_reader_is_told_to_supply_what_is_missing() {
    let cache = Cache::start(3, patient());
    let key = Key::of(b"content");
    assert_eq!(cache.read(&key), Outcome::NextTier(Absence::Missing));
    (0..20).for_each(|_| assert_eq!(cache.read(&key), Outcome::NextTier(Absence::Promised)));
    cache.store(b"content");
    cache.read_from(&key);
}

#[test]
fn the_second_home_answers_for_a_silent_node_which_is_left_out_and_comes_back() {
    let rules = Rules {
        hedge_start_ns: 20_000_000,
        hedge_ns_min: 20_000_000,
        hedge_ns_max: 20_000_000,
        ..patient()
    };
    let cache = Cache::start(4, rules);
    let (key, [first, second]) = cache.store(&[7; 50_000]);
    cache.nodes[first].set_silent(true);
    (0..30).for_each(|_| assert_eq!(cache.read_from(&key), second));
    let state = &cache.client.nodes()[first].1;
    assert!(!state.is_asked() && state.opened >= 1);
    let counts = cache.client.counts();
    // Three late requests are enough.
    assert!(
        counts.added <= 5 && counts.won <= counts.added,
        "{counts:?}"
    );
    cache.nodes[first].set_silent(false);
    let deadline = Instant::now() + Duration::from_secs(60);
    while cache.read_from(&key) != first {
        assert!(Instant::now() < deadline, "left out for ever");
        cache.client.turn(cache.now_ns());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_waits_for_a_cache_that_is_silent_as_a_whole() {
    let rules = Rules {
        deadline_ns: 100_000_000,
        ..Rules::default()
    };
    let cache = Cache::start(3, rules);
    let (key, _) = cache.store(b"content");
    cache.nodes.iter().for_each(|node| node.set_silent(true));
    for _ in 0..50 {
        assert_eq!(cache.read(&key), Outcome::NextTier(Absence::Unavailable));
    }
    let begun = Instant::now();
    // All are left out: no request is sent, so none is waited for.
    (0..1000).for_each(|_| assert_eq!(cache.read(&key), Outcome::NextTier(Absence::Unavailable)));
    assert!(begun.elapsed() < Duration::from_secs(20));
    cache.nodes.iter().for_each(|node| node.set_silent(false));
    cache.wait_until("they come back", |cache| {
        matches!(cache.read(&key), Outcome::Value(..))
    });
}

#[test]
fn damaged_and_exchanged_values_are_found_and_overwritten() {
    let cache = Cache::start(3, patient());
    let (key, homes) = cache.store(&[1; 5000]);
    let (other, _) = cache.store(&[2; 5000]);
    for change in 0..3 {
        let node = &cache.nodes[homes[0]];
        let mut values = node.values.lock().unwrap();
        let foreign = other.seal(&[2; 5000]);
        let value = values.get_mut(&key.text()).unwrap();
        match change {
            0 => value[77] ^= 4,
            1 => value.truncate(100),
            _ => *value = foreign,
        }
        drop(values);
        let before = cache.client.counts().corrupt;
        assert_eq!(cache.read_from(&key), homes[1], "{change}");
        assert_eq!(cache.client.counts().corrupt, before + 1);
        let is_mended = |cache: &Cache| {
            let values = cache.nodes[homes[0]].values.lock().unwrap();
            values[&key.text()] == key.seal(&[1; 5000])
        };
        cache.wait_until("it is stored again", is_mended);
        assert_eq!(cache.read_from(&key), homes[0]);
    }
}

#[test]
fn nodes_that_speak_nonsense_hang_up_or_refuse_cost_one_request_each() {
    for nonsense in [
        Some(&b"HTTP/1.1 400 Bad Request\r\n"[..]),
        Some(b"VA 9999999999\r\n"),
        Some(b""),
    ] {
        let cache = Cache::start(3, patient());
        let (key, homes) = cache.store(b"content");
        *cache.nodes[homes[0]].nonsense.lock().unwrap() = nonsense;
        (0..20).for_each(|_| assert_eq!(cache.read_from(&key), homes[1], "{nonsense:?}"));
        let state = &cache.client.nodes()[homes[0]].1;
        assert!((1..=8).contains(&state.failures), "{}", state.failures);
    }
    // Nor does one whose address is not known.
    let cache = Cache::start(3, patient());
    let (key, homes) = cache.store(b"content");
    let mut nodes: Vec<_> = cache.client.nodes().into_iter().map(|row| row.0).collect();
    nodes[homes[0]].address = None;
    let cache = Cache {
        client: cache.client.with_nodes(nodes),
        ..cache
    };
    assert_eq!(cache.read_from(&key), homes[1]);
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let client = Client::new(
        Engine::Memcached,
        vec![Node {
            name: "gone".into(),
            address: Some(free),
        }],
        patient(),
    );
    let mut read = client.begin(Key::of(b"x"), 0);
    let outcome = loop {
        match read.advance(&client, 1) {
            Some(outcome) => break outcome,
            None => wait([&read], 10_000_000),
        };
    };
    assert_eq!(outcome, Outcome::NextTier(Absence::Unavailable));
}

#[test]
fn what_one_home_was_promised_is_read_from_the_other() {
    let cache = Cache::start(4, patient());
    let (key, [first, second]) = cache.store(b"kept");
    // The first home was replaced, and who was told to fill it is gone.
    let mut values = cache.nodes[first].values.lock().unwrap();
    values.insert(key.text(), Vec::new());
    drop(values);
    for _ in 0..3 {
        assert_eq!(cache.read(&key), Outcome::Value(b"kept".to_vec(), second));
    }
    cache.nodes[second].values.lock().unwrap().clear();
    assert_eq!(cache.read(&key), Outcome::NextTier(Absence::Promised));
}

#[test]
fn what_a_late_node_was_promised_is_supplied_from_the_other() {
    let rules = Rules {
        hedge_start_ns: 20_000_000,
        ..patient()
    };
    let cache = Cache::start(4, rules);
    let (key, [first, second]) = cache.store(b"kept");
    cache.nodes[first].values.lock().unwrap().clear();
    cache.nodes[first].set_silent(true);
    assert_eq!(cache.read(&key), Outcome::Value(b"kept".to_vec(), second));
    // It replies now, and takes the read for a promise.
    cache.nodes[first].set_silent(false);
    cache.wait_until("it is stored", |cache| cache.nodes[first].has(&key));
    assert_eq!(cache.read_from(&key), first);
}
