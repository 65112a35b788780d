//! A simulated faulty disk with reproducible failures.
//!
//! A [`FaultPlan`] lists the failures. [`FaultySource`], [`FaultySink`] and [`FaultyStream`] insert
//! them between the code under test and a working implementation (a
//! [`MemorySource`](crate::MemorySource), an [`AtomicFile`](crate::AtomicFile)). Short transfers
//! and interruptions happen below the retry loops that real files use, so a plan with only those
//! must change nothing.
//!
//! A plan fails the n-th call, whatever it is. A test that runs with every n fails each operation
//! once (an idea from redb's and TigerBeetle's crash tests).

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sink::Sink;
use crate::source::Source;
use crate::transfer::{read_full, write_full};

/// The failures to simulate. Calls are counted from 0, reads and writes separately. With several
/// threads, their timing determines which thread makes the n-th call.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan {
    seed: u64,
    failing_reads: Vec<(u64, ErrorKind)>,
    failing_writes: Vec<(u64, ErrorKind)>,
    failing_publish: Option<ErrorKind>,
    capacity_bytes: Option<u64>,
    resizes: Vec<(u64, u64)>,
    short_transfers: bool,
    interruptions: bool,
}

impl FaultPlan {
    /// A plan without failures. `seed` determines where transfers are short or interrupted.
    pub fn new(seed: u64) -> Self {
        FaultPlan {
            seed,
            ..Self::default()
        }
    }

    /// Read number `call` fails with `kind`; later ones succeed.
    pub fn fail_read(mut self, call: u64, kind: ErrorKind) -> Self {
        self.failing_reads.push((call, kind));
        self
    }

    /// Write number `call` (of bytes or zeros) fails with `kind`; later ones succeed.
    pub fn fail_write(mut self, call: u64, kind: ErrorKind) -> Self {
        self.failing_writes.push((call, kind));
        self
    }

    /// Publishing fails with `kind`, before it reaches the inner sink.
    pub fn fail_publish(mut self, kind: ErrorKind) -> Self {
        self.failing_publish = Some(kind);
        self
    }

    /// The disk is full after `capacity_bytes`: the bytes that fit are written, then writes fail
    /// with [`ErrorKind::StorageFull`].
    pub fn full_after(mut self, capacity_bytes: u64) -> Self {
        self.capacity_bytes = Some(capacity_bytes);
        self
    }

    /// From read number `call` on, the source is `size_bytes` long, limited by the inner source.
    /// Increasing sizes simulate a growing log, decreasing ones a truncation.
    pub fn resize_at(mut self, call: u64, size_bytes: u64) -> Self {
        self.resizes.push((call, size_bytes));
        self.resizes.sort_by_key(|resize| resize.0); // stable: the last one for a call applies
        self
    }

    /// Transfers move only part of the requested bytes, often one byte.
    pub fn short_transfers(mut self) -> Self {
        self.short_transfers = true;
        self
    }

    /// Most transfers are interrupted by signals.
    pub fn interruptions(mut self) -> Self {
        self.interruptions = true;
        self
    }

    /// How much of `length_bytes` transfer number `transfer` moves; at least 1 unless it is 0.
    fn transfer_length(&self, transfer: u64, length_bytes: usize) -> io::Result<usize> {
        let random = split_mix(self.seed ^ split_mix(transfer));
        if self.interruptions && !random.is_multiple_of(4) {
            return Err(ErrorKind::Interrupted.into());
        }
        if !self.short_transfers || length_bytes <= 1 {
            return Ok(length_bytes);
        }
        let part = match (random >> 8) % 4 {
            0 => 1,
            1 => length_bytes as u64,
            _ => 1 + (random >> 16) % length_bytes as u64,
        };
        Ok(usize::try_from(part).map_or(length_bytes, |part| part.min(length_bytes)))
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): a pseudo-random number for a counter.
fn split_mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn planned(failing: &[(u64, ErrorKind)], call: u64) -> io::Result<()> {
    match failing.iter().find(|(failing, _)| *failing == call) {
        None => Ok(()),
        Some((_, kind)) => {
            let text = format!("planned fault at call {call}");
            Err(io::Error::new(*kind, text))
        }
    }
}

#[derive(Debug, Default)]
struct Counters {
    calls: AtomicU64,
    transfers: AtomicU64,
}

impl Counters {
    fn call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    fn transfer(&self) -> u64 {
        self.transfers.fetch_add(1, Ordering::Relaxed)
    }

    fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct DiskSpace {
    left_bytes: u64,
}

impl DiskSpace {
    fn from_plan(plan: &FaultPlan) -> Self {
        DiskSpace {
            left_bytes: plan.capacity_bytes.unwrap_or(u64::MAX),
        }
    }

    /// How much of `length_bytes` fits; an error if the disk is full.
    fn fit(&self, length_bytes: u64) -> io::Result<u64> {
        if length_bytes > 0 && self.left_bytes == 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(length_bytes.min(self.left_bytes))
    }

    fn fit_slice<'bytes>(&self, bytes: &'bytes [u8]) -> io::Result<&'bytes [u8]> {
        let fitting = self.fit(bytes.len() as u64)?;
        Ok(&bytes[..usize::try_from(fitting).map_or(bytes.len(), |n| n.min(bytes.len()))])
    }

    fn take(&mut self, length_bytes: u64) {
        self.left_bytes = self.left_bytes.saturating_sub(length_bytes);
    }
}

/// A source with planned failures. Calls of `read_at` are counted; other calls are not.
#[derive(Debug)]
pub struct FaultySource<S> {
    inner: S,
    plan: FaultPlan,
    counters: Counters,
}

impl<S: Source> FaultySource<S> {
    /// Applies `plan` to `inner`.
    pub fn new(inner: S, plan: FaultPlan) -> Self {
        FaultySource {
            inner,
            plan,
            counters: Counters::default(),
        }
    }

    /// The number of reads, including failed ones.
    pub fn calls(&self) -> u64 {
        self.counters.calls()
    }

    /// The size of the source for read number `call`.
    fn size_at(&self, call: u64) -> io::Result<u64> {
        let resizes = self.plan.resizes.iter();
        let resized = resizes.take_while(|resize| resize.0 <= call).last();
        let size = self.inner.size_bytes()?;
        Ok(resized.map_or(size, |resize| resize.1.min(size)))
    }
}

impl<S: Source> Source for FaultySource<S> {
    fn size_bytes(&self) -> io::Result<u64> {
        self.size_at(self.counters.calls())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let call = self.counters.call();
        planned(&self.plan.failing_reads, call)?;
        let left = self.size_at(call)?.saturating_sub(offset);
        let length = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        read_full(offset, &mut buffer[..length], |at, part| {
            let moved = self
                .plan
                .transfer_length(self.counters.transfer(), part.len())?;
            self.inner.read_at(at, &mut part[..moved])
        })
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
        let size = self.size_bytes()?;
        let range = self.inner.next_data(offset)?;
        Ok(range.and_then(|(start, end)| (start < size).then_some((start, end.min(size)))))
    }

    fn can_reread(&self, offset: u64) -> bool {
        self.inner.can_reread(offset)
    }
}

/// A sink with planned failures. Writes of bytes and of zeros are counted; publishing is not.
#[derive(Debug)]
pub struct FaultySink<K> {
    inner: K,
    plan: FaultPlan,
    counters: Counters,
    space: DiskSpace,
}

impl<K: Sink> FaultySink<K> {
    /// Applies `plan` to `inner`.
    pub fn new(inner: K, plan: FaultPlan) -> Self {
        FaultySink {
            inner,
            space: DiskSpace::from_plan(&plan),
            plan,
            counters: Counters::default(),
        }
    }

    /// The number of writes, including failed ones.
    pub fn calls(&self) -> u64 {
        self.counters.calls()
    }

    fn transfer(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let moved = self
            .plan
            .transfer_length(self.counters.transfer(), bytes.len())?;
        let fitting = self.space.fit_slice(&bytes[..moved])?;
        self.inner.write_all(fitting)?;
        self.space.take(fitting.len() as u64);
        Ok(fitting.len())
    }
}

impl<K: Sink> Sink for FaultySink<K> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        planned(&self.plan.failing_writes, self.counters.call())?;
        write_full(bytes, |left| self.transfer(left))
    }

    /// Holes use space like data: the simulated disk does not support them.
    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        planned(&self.plan.failing_writes, self.counters.call())?;
        let fitting = self.space.fit(length_bytes)?;
        self.inner.write_zeros(fitting)?;
        self.space.take(fitting);
        if fitting < length_bytes {
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    /// The view of the inner sink, without failures.
    fn read_back(&self) -> Option<Arc<dyn Source>> {
        self.inner.read_back()
    }

    fn publish(&mut self) -> io::Result<()> {
        if let Some(kind) = self.plan.failing_publish {
            return Err(io::Error::new(kind, "planned fault at publishing"));
        }
        self.inner.publish()
    }
}

/// A stream with planned failures of [`Read`] and [`Write`]. Short transfers and interruptions
/// reach the caller, as those traits allow.
#[derive(Debug)]
pub struct FaultyStream<T> {
    inner: T,
    plan: FaultPlan,
    reads: Counters,
    writes: Counters,
    space: DiskSpace,
}

impl<T> FaultyStream<T> {
    /// Applies `plan` to `inner`.
    pub fn new(inner: T, plan: FaultPlan) -> Self {
        FaultyStream {
            inner,
            space: DiskSpace::from_plan(&plan),
            plan,
            reads: Counters::default(),
            writes: Counters::default(),
        }
    }

    /// Returns the inner stream.
    pub fn into_inner(self) -> T {
        self.inner
    }
}

impl<T: Read> Read for FaultyStream<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        planned(&self.plan.failing_reads, self.reads.call())?;
        let moved = self
            .plan
            .transfer_length(self.reads.transfer(), buffer.len())?;
        self.inner.read(&mut buffer[..moved])
    }
}

impl<T: Write> Write for FaultyStream<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        planned(&self.plan.failing_writes, self.writes.call())?;
        let moved = self
            .plan
            .transfer_length(self.writes.transfer(), bytes.len())?;
        let written = self.inner.write(self.space.fit_slice(&bytes[..moved])?)?;
        self.space.take(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
#[path = "faulty_tests.rs"]
mod tests;
