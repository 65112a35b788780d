//! Loads an NBD server and prints what its clients see. To build it:
//! `rustc --edition 2024 -O bench/serve-load.rs -o serve-load`
//!
//! ```text
//! serve-load SOCKET EXPORT CLIENTS DEPTH OFFSET LENGTH SECONDS
//! ```
//!
//! Each client keeps DEPTH reads of 4 KiB in flight, at random in the LENGTH bytes at OFFSET, over
//! the Unix socket SOCKET. With a DEPTH of 0 the clients take the export and are silent.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

const READ_BYTES: u64 = 4096;

fn connect(socket: &str, export: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.read_exact(&mut [0; 18])?;
    stream.write_all(&3_u32.to_be_bytes())?;
    let mut go = b"IHAVEOPT\0\0\0\x07".to_vec();
    go.extend_from_slice(&(export.len() as u32 + 6).to_be_bytes());
    go.extend_from_slice(&(export.len() as u32).to_be_bytes());
    go.extend_from_slice(export.as_bytes());
    go.extend_from_slice(&[0, 0]);
    stream.write_all(&go)?;
    loop {
        let mut head = [0; 20];
        stream.read_exact(&mut head)?;
        let number =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let mut data = vec![0; number(16) as usize];
        stream.read_exact(&mut data)?;
        match number(12) {
            1 => return Ok(stream),
            3 => {}
            error => return Err(io::Error::other(format!("the server refused: {error:#x}"))),
        }
    }
}

/// Reads until the time is over. Returns the times of all replies in nanoseconds.
fn load(
    mut stream: UnixStream,
    seed: u64,
    depth: usize,
    range: (u64, u64),
    time: Duration,
) -> io::Result<Vec<u64>> {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut sent = vec![Instant::now(); depth];
    let mut times = vec![];
    let start = Instant::now();
    let mut ask = |stream: &mut UnixStream, slot: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let offset = range.0 + random % (range.1 / READ_BYTES) * READ_BYTES;
        let mut request = [0; 28];
        request[..4].copy_from_slice(&0x2560_9513_u32.to_be_bytes());
        request[8..16].copy_from_slice(&(slot as u64).to_be_bytes());
        request[16..24].copy_from_slice(&offset.to_be_bytes());
        request[24..].copy_from_slice(&(READ_BYTES as u32).to_be_bytes());
        stream.write_all(&request)
    };
    for (slot, at) in sent.iter_mut().enumerate() {
        *at = Instant::now();
        ask(&mut stream, slot)?;
    }
    let mut reply = [0; 16 + READ_BYTES as usize];
    while start.elapsed() < time {
        stream.read_exact(&mut reply)?;
        if reply[4..8] != [0; 4] {
            return Err(io::Error::other("a read failed"));
        }
        let slot = reply[15] as usize;
        times.push(sent[slot].elapsed().as_nanos() as u64);
        sent[slot] = Instant::now();
        ask(&mut stream, slot)?;
    }
    Ok(times)
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, export, numbers @ ..] = &arguments[..] else {
        return Err(io::Error::other(
            "SOCKET EXPORT CLIENTS DEPTH OFFSET LENGTH SECONDS",
        ));
    };
    let numbers: Result<Vec<u64>, _> = numbers.iter().map(|number| number.parse()).collect();
    let [clients, depth, offset, length, seconds] = numbers.map_err(io::Error::other)?[..] else {
        return Err(io::Error::other("five numbers after the export"));
    };
    let time = Duration::from_secs(seconds);
    let streams: io::Result<Vec<_>> = (0..clients).map(|_| connect(socket, export)).collect();
    let streams = streams?;
    if depth == 0 {
        println!("{clients} clients are connected");
        thread::sleep(time);
        return Ok(());
    }
    let serve = |(number, stream)| {
        thread::spawn(move || load(stream, number + 1, depth as usize, (offset, length), time))
    };
    let running: Vec<_> = (0_u64..).zip(streams).map(serve).collect();
    let mut all = vec![];
    let mut counts = vec![];
    for each in running {
        let times = each
            .join()
            .map_err(|_| io::Error::other("a client panicked"))??;
        counts.push(times.len());
        all.extend(times);
    }
    all.sort_unstable();
    counts.sort_unstable();
    let at = |permille: usize| all[(all.len() - 1) * permille / 1000] as f64 / 1000.0;
    println!(
        "{:.0} per second; p50 {:.0}, p99 {:.0}, p99.9 {:.0} µs; replies of a client: least {}, median {}, most {}",
        all.len() as f64 / seconds as f64,
        at(500),
        at(990),
        at(999),
        counts[0],
        counts[counts.len() / 2],
        counts[counts.len() - 1],
    );
    Ok(())
}
