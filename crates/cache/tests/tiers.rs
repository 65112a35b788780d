//! Tiers before a source that counts how often it is read: damaged disks, processes that are
//! killed, many processes at once, and lists of nodes that change.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests may fail loudly"
)]

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use refrain_cache::policy::Rules;
use refrain_cache::{DiskTier, Key, NodeList, SharedTier, TieredSource, Tiers};
use refrain_storage::{CachedRanges, MemorySource, NamedRange, Source};
use refrain_testkit::Rng;

const IDENTITY: [u8; 32] = [7; 32];

/// The size of a source, and of most ranges.
const SOURCE_BYTES: usize = 8 << 20;
const RANGE_BYTES: usize = 64 << 10;

fn random_bytes(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let numbers = (0..SOURCE_BYTES / 8).map(|_| rng.any().to_le_bytes());
    numbers.flatten().collect()
}

/// Bytes of which each read adds a byte to a file, which other processes see.
struct Counted {
    bytes: Vec<u8>,
    log: PathBuf,
    delay: Duration,
}

impl Counted {
    fn new(directory: &Path, delay: Duration) -> Arc<Counted> {
        // Made once for all processes.
        let (path, made) = (directory.join("bytes"), directory.join("bytes.made"));
        if !path.exists() {
            fs::write(&made, random_bytes(5)).unwrap();
            fs::rename(&made, &path).unwrap();
        }
        Arc::new(Counted {
            bytes: fs::read(path).unwrap(),
            log: directory.join("reads"),
            delay,
        })
    }

    fn reads(&self) -> u64 {
        fs::metadata(&self.log).map_or(0, |found| found.len())
    }
}

impl Source for Counted {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let log = OpenOptions::new().append(true).create(true).open(&self.log);
        log?.write_all(b".")?;
        std::thread::sleep(self.delay);
        let left = &self.bytes[(offset as usize).min(self.bytes.len())..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        Ok(count)
    }
}

fn disk(directory: &Path, limit_bytes: u64) -> DiskTier {
    DiskTier::open(&directory.join("disk"), limit_bytes).unwrap()
}

fn behind(origin: &Arc<Counted>, tiers: Tiers) -> (TieredSource, Arc<Tiers>) {
    let (origin, tiers) = (Arc::clone(origin) as Arc<dyn Source>, Arc::new(tiers));
    (
        TieredSource::new(origin, IDENTITY, Arc::clone(&tiers)),
        tiers,
    )
}

/// Reads a range and compares it with the source.
fn read(source: &TieredSource, origin: &Counted, offset: u64, length_bytes: usize) {
    let mut buffer = vec![0; length_bytes];
    assert_eq!(
        source.read_cached(offset, &mut buffer, None).unwrap(),
        length_bytes
    );
    let at = offset as usize;
    assert!(buffer == origin.bytes[at..at + length_bytes], "{offset}");
}

fn ranges() -> impl Iterator<Item = u64> {
    (0..SOURCE_BYTES as u64).step_by(RANGE_BYTES)
}

#[test]
fn what_was_read_is_on_the_disk_for_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let origin = Counted::new(directory.path(), Duration::ZERO);
    // Small and large ranges, some of which overlap, as records of an envelope do.
    let mut rng = Rng::new(9);
    let places: Vec<(u64, usize)> = (0..200)
        .map(|_| {
            let length = 1 + rng.below(200_000) as usize;
            (rng.below((SOURCE_BYTES - length) as u64), length)
        })
        .collect();
    let (source, _) = behind(
        &origin,
        Tiers::new(Some(disk(directory.path(), 1 << 30)), None),
    );
    for (offset, length_bytes) in &places {
        read(&source, &origin, *offset, *length_bytes);
    }
    let reads = origin.reads();
    assert!(reads >= 190, "{reads}");
    let (source, tiers) = behind(
        &origin,
        Tiers::new(Some(disk(directory.path(), 1 << 30)), None),
    );
    for (offset, length_bytes) in &places {
        read(&source, &origin, *offset, *length_bytes);
    }
    // Only where two begin in the same cell of the map is one read again.
    assert!(origin.reads() - reads <= 8, "{}", origin.reads() - reads);
    let [disk, from_origin] = &tiers.rows()[..] else { panic!("rows") };
    assert_eq!(disk.hits + from_origin.hits, 200);
    assert_eq!((disk.corrupt, disk.errors), (0, 0));
    // The end of the source is that of the origin, and is not kept.
    let mut buffer = [0; 100];
    let end = SOURCE_BYTES as u64 - 10;
    assert_eq!(source.read_cached(end, &mut buffer, None).unwrap(), 10);
}

#[test]
fn damaged_ranges_on_the_disk_are_found_and_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let origin = Counted::new(directory.path(), Duration::ZERO);
    let count = ranges().count() as u64;
    let read_all = || {
        let before = origin.reads();
        let tiers = Tiers::new(Some(disk(directory.path(), 1 << 30)), None);
        let (source, tiers) = behind(&origin, tiers);
        ranges().for_each(|offset| read(&source, &origin, offset, RANGE_BYTES));
        (origin.reads() - before, tiers.rows()[0].corrupt)
    };
    assert_eq!(read_all(), (count, 0));
    assert_eq!(read_all(), (0, 0));
    let data = fs::read_dir(directory.path().join("disk")).unwrap();
    let data = data.map(|entry| entry.unwrap().path());
    let data = data.filter(|path| path.extension().is_some_and(|suffix| suffix == "data"));
    let path = data.last().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    for (number, offset) in ranges().enumerate() {
        bytes[offset as usize + number * 7919 % RANGE_BYTES] ^= 1 << (number % 8);
    }
    fs::write(&path, &bytes).unwrap();
    assert_eq!(read_all(), (count, count));
    assert_eq!(read_all(), (0, 0));
}

#[test]
fn what_the_reader_finds_wrong_is_read_anew_and_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let origin = Counted::new(directory.path(), Duration::ZERO);
    let tiers = || Tiers::new(Some(disk(directory.path(), 1 << 30)), None);
    // Somebody who can write to the cache has put something else there, with its checksum.
    let forged = Arc::new(Counted {
        bytes: random_bytes(6),
        log: directory.path().join("forged"),
        delay: Duration::ZERO,
    });
    let (forger, _) = behind(&forged, tiers());
    read(&forger, &forged, 0, RANGE_BYTES);
    let (source, counted) = behind(&origin, tiers());
    let mut buffer = vec![0; RANGE_BYTES];
    source.read_cached(0, &mut buffer, None).unwrap();
    assert!(buffer == forged.bytes[..RANGE_BYTES]);
    assert!(source.read_anew(0, &mut buffer, None).unwrap());
    assert!(buffer == origin.bytes[..RANGE_BYTES]);
    assert_eq!(counted.rows()[1].corrupt, 1);
    // The source itself has these bytes: nobody is to blame.
    assert!(!source.read_anew(0, &mut buffer, None).unwrap());
    let (source, _) = behind(&origin, tiers());
    let before = origin.reads();
    read(&source, &origin, 0, RANGE_BYTES);
    assert_eq!(origin.reads(), before);
}

#[test]
fn the_directory_keeps_its_limit_and_what_was_used_last() {
    const LIMIT_BYTES: u64 = 3 << 20;
    let directory = tempfile::tempdir().unwrap();
    let origin = Counted::new(directory.path(), Duration::ZERO);
    let taken_bytes = || -> u64 {
        let files = fs::read_dir(directory.path().join("disk")).unwrap();
        let files = files.map(|entry| entry.unwrap().metadata().unwrap());
        files
            .filter(|file| file.is_file())
            .map(|file| file.blocks() * 512)
            .sum()
    };
    // Four users of the directory, each with an archive of its own.
    let users: Vec<_> = (0..4_u8)
        .map(|user| {
            let tiers = Arc::new(Tiers::new(Some(disk(directory.path(), LIMIT_BYTES)), None));
            let origin = Arc::clone(&origin) as Arc<dyn Source>;
            TieredSource::new(origin, [user; 32], tiers)
        })
        .collect();
    let mut rng = Rng::new(1);
    let mut most = 0;
    for _ in 0..600 {
        let offset = rng.below(SOURCE_BYTES as u64 / RANGE_BYTES as u64) * RANGE_BYTES as u64;
        let user = &users[rng.below(4) as usize];
        read(user, &origin, offset, RANGE_BYTES);
        most = most.max(taken_bytes());
    }
    assert!(most <= LIMIT_BYTES, "{most}");
    assert!(most > LIMIT_BYTES / 2, "{most}");
    let (reads, last) = (origin.reads(), ranges().last().unwrap());
    read(&users[0], &origin, last, RANGE_BYTES);
    read(&users[0], &origin, last, RANGE_BYTES);
    assert!(origin.reads() - reads <= 1);
    // A range that is large beside the limit is not kept.
    let reads = origin.reads();
    (0..2).for_each(|_| read(&users[1], &origin, 0, 1 << 20));
    assert_eq!(origin.reads() - reads, 2);
}

/// This test in a process of its own, with these words in its environment.
fn child(test: &str, directory: &Path, tier: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("TIERS_DIRECTORY", directory)
        .env("TIERS_TIER", tier)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// The directory and the tier, in a process that [`child`] has started.
fn of_child() -> Option<(PathBuf, String)> {
    let directory = std::env::var_os("TIERS_DIRECTORY")?;
    Some((directory.into(), std::env::var("TIERS_TIER").ok()?))
}

/// Ranges that have no room together in the directory of the next tests.
fn too_many_places() -> Vec<(u64, usize)> {
    let mut rng = Rng::new(4);
    let mut place = || {
        let length = 1 + rng.below(300_000) as usize;
        (rng.below((SOURCE_BYTES - length) as u64), length)
    };
    (0..50).map(|_| place()).collect()
}

const KILLED_LIMIT_BYTES: u64 = 4 << 20;

/// Writes and gives back until it is killed.
#[test]
fn writer_that_is_killed() {
    let Some((directory, seed)) = of_child() else { return };
    let origin = Counted::new(&directory, Duration::ZERO);
    let tiers = Tiers::new(Some(disk(&directory, KILLED_LIMIT_BYTES)), None);
    let (source, _) = behind(&origin, tiers);
    let (mut rng, places) = (Rng::new(seed.parse().unwrap()), too_many_places());
    loop {
        let (offset, length) = places[rng.below(places.len() as u64) as usize];
        read(&source, &origin, offset, length);
    }
}

#[test]
fn processes_killed_at_any_moment_leave_no_wrong_byte() {
    if of_child().is_some() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let origin = Counted::new(directory.path(), Duration::ZERO);
    let mut rng = Rng::new(2);
    for round in 0..40 {
        let before = origin.reads();
        let seeds = [0, 1].map(|number| (2 * round + number).to_string());
        let children = seeds.map(|seed| child("writer_that_is_killed", directory.path(), &seed));
        let deadline = Instant::now() + Duration::from_secs(60);
        while origin.reads() < before + 10 {
            assert!(Instant::now() < deadline, "round {round}");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(rng.below(20_000)));
        for mut child in children {
            // A writer ends only if it has read a wrong byte.
            assert_eq!(child.try_wait().unwrap(), None);
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
    let tiers = Tiers::new(Some(disk(directory.path(), KILLED_LIMIT_BYTES)), None);
    let (source, tiers) = behind(&origin, tiers);
    for (offset, length) in too_many_places() {
        read(&source, &origin, offset, length);
    }
    // What is whole is used.
    let row = &tiers.rows()[0];
    assert!(row.hits > 5, "{}", row.hits);
    assert_eq!(row.errors, 0);
}

/// Twelve readers of one range.
#[test]
fn readers_in_one_process() {
    let Some((directory, tier)) = of_child() else { return };
    let origin = Counted::new(&directory, Duration::from_millis(50));
    let tiers = match tier.as_str() {
        "disk" => Tiers::new(Some(disk(&directory, 1 << 30)), None),
        nodes => Tiers::new(None, Some(patient_tier(nodes))),
    };
    let (source, _) = behind(&origin, tiers);
    while !directory.join("begin").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| read(&source, &origin, 4096, RANGE_BYTES));
        }
    });
}

/// A tier whose deadlines a busy machine does not miss.
fn patient_tier(nodes: &str) -> SharedTier {
    let rules = Rules {
        hedge_start_ns: 1_000_000_000,
        hedge_ns_min: 1_000_000_000,
        hedge_ns_max: 1_000_000_000,
        deadline_ns: 2_000_000_000,
        ..Rules::default()
    };
    SharedTier::new(NodeList::parse(nodes).unwrap(), 1 << 20, rules)
}

fn ten_processes_read_once(tier: &str) {
    let directory = tempfile::tempdir().unwrap();
    let origin = Counted::new(directory.path(), Duration::ZERO);
    let children: Vec<_> = (0..10)
        .map(|_| child("readers_in_one_process", directory.path(), tier))
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    fs::write(directory.path().join("begin"), b"").unwrap();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(origin.reads(), 1);
}

#[test]
fn of_120_readers_in_ten_processes_one_reads_the_origin_if_they_share_a_disk() {
    if of_child().is_none() {
        ten_processes_read_once("disk");
    }
}

/// A process of memcached, if it is installed.
struct Memcached {
    process: Child,
    name: String,
}

impl Memcached {
    fn start() -> Option<Memcached> {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let port = address.port().to_string();
        let process = Command::new("memcached")
            .args([
                "-u",
                "nobody",
                "-l",
                "127.0.0.1",
                "-U",
                "0",
                "-m",
                "64",
                "-p",
                &port,
            ])
            .spawn();
        let Ok(process) = process else {
            eprintln!("left out: memcached is not installed");
            return None;
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(Memcached {
            process,
            name: address.to_string(),
        })
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn of_120_readers_in_ten_processes_one_reads_the_origin_if_they_share_nodes() {
    if of_child().is_some() {
        return;
    }
    let nodes: Option<Vec<_>> = (0..3).map(|_| Memcached::start()).collect();
    let Some(nodes) = nodes else { return };
    let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
    ten_processes_read_once(&format!("memcached://{}", names.join(",")));
}

#[test]
fn nodes_of_a_list_come_and_go_and_take_their_share_of_the_keys() {
    if of_child().is_some() {
        return;
    }
    let nodes: Option<Vec<_>> = (0..4).map(|_| Memcached::start()).collect();
    let Some(nodes) = nodes else { return };
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("nodes");
    let write = |nodes: &[Memcached]| {
        let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
        fs::write(&list, names.join("\n")).unwrap();
    };
    let homes = |tier: &SharedTier| -> Vec<String> {
        let client = tier.client();
        let names: Vec<_> = client
            .nodes()
            .into_iter()
            .map(|(node, _)| node.name)
            .collect();
        let home = |number: u32| {
            let key = Key::of(&number.to_le_bytes());
            names[client.home(&key).unwrap()].clone()
        };
        (0..2000).map(home).collect()
    };
    let moved = |one: &[String], other: &[String]| {
        one.iter()
            .zip(other)
            .filter(|(one, other)| one != other)
            .count()
    };
    write(&nodes[..3]);
    let tier = patient_tier(&format!("memcached://@{}", list.display()));
    let three = homes(&tier);
    let origin = Counted::new(directory.path(), Duration::ZERO);
    let (source, tiers) = behind(&origin, Tiers::new(None, Some(tier)));
    let shared = tiers.shared().unwrap();
    read(&source, &origin, 0, RANGE_BYTES);
    write(&nodes);
    shared.read_list();
    let four = homes(shared);
    let share = moved(&three, &four);
    assert!((400..600).contains(&share), "{share} of 2000");
    ranges().for_each(|offset| read(&source, &origin, offset, RANGE_BYTES));
    assert_eq!(tiers.rows().len(), 5);
    // A file that is gone or wrong changes nothing.
    fs::write(&list, "a b c").unwrap();
    shared.read_list();
    fs::remove_file(&list).unwrap();
    shared.read_list();
    assert_eq!(homes(shared), four);
    write(&nodes[1..]);
    shared.read_list();
    let gone = homes(shared);
    let was_there = four.iter().filter(|home| **home == nodes[0].name).count();
    assert_eq!(moved(&four, &gone), was_there);
    ranges().for_each(|offset| read(&source, &origin, offset, RANGE_BYTES));
}

/// A range that says where it is in its first byte.
struct Placed {
    place: u8,
    name: [u8; 16],
}

impl NamedRange for Placed {
    fn name(&self) -> [u8; 16] {
        self.name
    }

    fn value_of(&self, range: &[u8]) -> Option<Vec<u8>> {
        let value = range.get(1..)?.to_vec();
        (Placed::named(0, &value).name == self.name).then_some(value)
    }

    fn range_of(&self, value: &[u8]) -> Option<Vec<u8>> {
        let is_right = Placed::named(0, value).name == self.name;
        is_right.then(|| [&[self.place], value].concat())
    }
}

impl Placed {
    fn named(place: u8, value: &[u8]) -> Placed {
        let hash = refrain_protect::content_hash(value);
        let name = *hash.first_chunk().unwrap();
        Placed { place, name }
    }
}

#[test]
fn named_values_are_shared_by_sources_whose_ranges_differ() {
    if of_child().is_some() {
        return;
    }
    let nodes: Option<Vec<_>> = (0..3).map(|_| Memcached::start()).collect();
    let Some(nodes) = nodes else { return };
    let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
    let list = format!("memcached://{}", names.join(","));
    let value = b"the same in all sources".repeat(100);
    // What is stored is there when the tiers are dropped.
    let source = |place: u8| {
        let tiers = Arc::new(Tiers::new(None, Some(patient_tier(&list))));
        let bytes = [&[place], &value[..]].concat();
        let origin: Arc<dyn Source> = Arc::new(MemorySource::new(bytes.clone()));
        let source = TieredSource::new(origin, [place; 32], Arc::clone(&tiers));
        (source, tiers, bytes)
    };
    let read = |(source, tiers, bytes): &(TieredSource, Arc<Tiers>, Vec<u8>), name: &Placed| {
        let mut buffer = vec![0; bytes.len()];
        source.read_cached(0, &mut buffer, Some(name)).unwrap();
        assert!(buffer == *bytes);
        let rows = tiers.rows();
        let origin = rows.last().unwrap();
        (origin.hits, origin.corrupt)
    };
    let name = |place| Placed::named(place, &value);
    assert_eq!(read(&source(1), &name(1)), (1, 0));
    let second = source(2);
    assert_eq!(read(&second, &name(2)), (0, 0));
    // Who writes something else there is found out.
    let mut hash = refrain_protect::ContentHash::with_context("refrain 1.0 cached value");
    hash.update(&name(1).name);
    let key = Key::new(hash.value());
    patient_tier(&list).store(&key, b"forged");
    assert_eq!(read(&second, &name(2)), (1, 1));
    let counted = |tiers: &Tiers| {
        let rows = tiers.rows();
        let sums = rows
            .iter()
            .map(|row| row.hits + row.bytes + row.corrupt + row.times.count());
        sums.sum::<u64>()
    };
    assert!(counted(&second.1) > 0);
    second.1.reset();
    assert_eq!(counted(&second.1), 0);
    drop(second);
    assert_eq!(read(&source(3), &name(3)), (0, 0));
    // What is not what it is named is read, and not shared.
    let other = Placed::named(1, b"another value");
    assert_eq!(read(&source(1), &other).0, 1);
    assert_eq!(read(&source(1), &other).0, 1);
}

#[test]
fn named_values_are_on_the_disk_once_for_all_sources() {
    if of_child().is_some() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let value = b"the same in all sources".repeat(100);
    let read = |place: u8| {
        let tiers = Tiers::new(Some(disk(directory.path(), 1 << 30)), None);
        let tiers = Arc::new(tiers);
        let bytes = [&[place], &value[..]].concat();
        let origin: Arc<dyn Source> = Arc::new(MemorySource::new(bytes.clone()));
        let source = TieredSource::new(origin, [place; 32], Arc::clone(&tiers));
        let mut buffer = vec![0; bytes.len()];
        let name = Placed::named(place, &value);
        source.read_cached(0, &mut buffer, Some(&name)).unwrap();
        assert!(buffer == bytes);
        let [disk, origin] = &tiers.rows()[..] else { panic!("rows") };
        assert_eq!(disk.errors, 0);
        // Who waited for another process looks twice.
        (origin.hits, disk.hits, disk.corrupt.min(1))
    };
    assert_eq!(read(1), (1, 0, 0));
    assert_eq!(read(2), (0, 1, 0));
    assert_eq!(read(1), (0, 1, 0));
    // Somebody damages it.
    let path = |place: u8| {
        let name = format!("disk/{}.data", format!("{place:02x}").repeat(16));
        directory.path().join(name)
    };
    let mut bytes = fs::read(path(1)).unwrap();
    bytes[1000] ^= 1;
    fs::write(path(1), &bytes).unwrap();
    assert_eq!(read(2), (1, 0, 1));
    assert_eq!(read(2), (0, 1, 0));
    // The table says where it was kept last.
    assert_eq!(read(3), (0, 1, 0));
    fs::remove_file(path(2)).unwrap();
    assert_eq!(read(3), (1, 0, 0));
    assert_eq!(read(3), (0, 1, 0));
    // Somebody who can write there puts something else there, with its checksum.
    let tiers = Arc::new(Tiers::new(Some(disk(directory.path(), 1 << 30)), None));
    let mut forged = [&[4], &value[..]].concat();
    forged[1000] ^= 1;
    let origin: Arc<dyn Source> = Arc::new(MemorySource::new(forged.clone()));
    fs::remove_file(path(3)).unwrap();
    let forger = TieredSource::new(origin, [4; 32], tiers);
    let name = Placed::named(4, &value);
    let mut buffer = vec![0; forged.len()];
    forger.read_cached(0, &mut buffer, Some(&name)).unwrap();
    assert!(buffer == forged);
    assert_eq!(read(5), (1, 0, 1));
    assert_eq!(read(5), (0, 1, 0));
}

#[test]
fn losing_all_nodes_loses_nothing() {
    if of_child().is_some() {
        return;
    }
    let nodes: Option<Vec<_>> = (0..2).map(|_| Memcached::start()).collect();
    let Some(mut nodes) = nodes else { return };
    let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
    let tier = patient_tier(&format!("memcached://{}", names.join(",")));
    let directory = tempfile::tempdir().unwrap();
    let origin = Counted::new(directory.path(), Duration::ZERO);
    let (source, tiers) = behind(&origin, Tiers::new(None, Some(tier)));
    let count = ranges().count() as u64;
    ranges().for_each(|offset| read(&source, &origin, offset, RANGE_BYTES));
    let deadline = Instant::now() + Duration::from_secs(30);
    while tiers.shared().unwrap().client().has_background() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(1));
    }
    ranges().for_each(|offset| read(&source, &origin, offset, RANGE_BYTES));
    let hits: u64 = tiers
        .rows()
        .iter()
        .filter(|row| row.node.is_some())
        .map(|row| row.hits)
        .sum();
    assert!(
        hits + origin.reads() == 2 * count && hits > count * 9 / 10,
        "{hits}"
    );
    nodes.clear();
    ranges().for_each(|offset| read(&source, &origin, offset, RANGE_BYTES));
    let rows = tiers.rows();
    let states: Vec<_> = rows.iter().filter_map(|row| row.state).collect();
    assert_eq!(states, ["open", "open"]);
}
