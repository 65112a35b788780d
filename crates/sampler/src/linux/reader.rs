//! The thread that drains the rings while the program runs, and counts stacks.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use framehop::Unwinder as _;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use super::event::{Kind, PerfEvent};
use super::functions::Functions;
use super::modules::Modules;
use super::record::{Record, Sample};
use super::ring::Ring;
use super::stages::StageTimes;
use crate::options::TakeChanges;
use crate::profile::{Count, Function, FunctionNumber, Paths, Profile, ROOT};

/// Rings are drained at least this often.
const INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
/// Longer stacks are cut: they come from infinite recursion.
const DEPTH_MAX: usize = 512;

/// A processor's ring, and its event.
pub(super) struct ProcessorRing {
    pub(super) owner: Arc<PerfEvent>,
    pub(super) ring: Ring,
}

pub(super) struct Ending {
    pub(super) requested: AtomicBool,
    pub(super) wake: OwnedFd,
}

/// How to unwind stacks, and the names of functions.
pub(super) struct Code {
    unwinder: UnwinderX86_64<Vec<u8>>,
    functions: Functions,
}

impl Code {
    /// # Errors
    /// The list of mappings, or the program, cannot be read.
    pub(super) fn read() -> io::Result<Code> {
        let mut unwinder = UnwinderX86_64::new();
        let functions = Functions::new(Modules::read(&mut unwinder)?);
        Ok(Code {
            unwinder,
            functions,
        })
    }
}

pub(super) struct Reader {
    rings: Vec<ProcessorRing>,
    kinds: Vec<(u64, Kind)>,
    take_changes: TakeChanges,
    stages: StageTimes,
    unwinder: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64,
    functions: Functions,
    /// The addresses of the present stack, innermost first.
    addresses: Vec<u64>,
    paths: Paths,
    names: HashMap<u32, String>,
    kernel: FunctionNumber,
    rest: FunctionNumber,
    profile: Profile,
}

impl Reader {
    /// `names` are the names of existing threads.
    pub(super) fn new(
        code: Code,
        rings: Vec<ProcessorRing>,
        kinds: Vec<(u64, Kind)>,
        names: HashMap<u32, String>,
        take_changes: TakeChanges,
    ) -> Reader {
        let Code {
            unwinder,
            mut functions,
        } = code;
        let kernel = functions.number_of(Function::without_symbol("[kernel]", "kernel"));
        let rest = Function::without_symbol("[rest of the stack is not known]", "unknown");
        let rest = functions.number_of(rest);
        Reader {
            rings,
            kinds,
            take_changes,
            stages: StageTimes::default(),
            unwinder,
            cache: CacheX86_64::new(),
            functions,
            addresses: vec![],
            paths: Paths::new(),
            names,
            kernel,
            rest,
            profile: Profile::default(),
        }
    }

    pub(super) fn run(mut self, ending: &Ending) -> Profile {
        loop {
            // Checked first, so that everything sampled before the request is read.
            let is_last = ending.requested.load(Ordering::Acquire);
            self.read_rings();
            if is_last {
                return self.finished();
            }
            let owners: Vec<Arc<PerfEvent>> = self
                .rings
                .iter()
                .map(|ring| Arc::clone(&ring.owner))
                .collect();
            let files = owners
                .iter()
                .map(|owner| PollFd::new(owner.file(), PollFlags::IN));
            let wake = std::iter::once(PollFd::new(&ending.wake, PollFlags::IN));
            let mut files: Vec<PollFd<'_>> = files.chain(wake).collect();
            // An interrupted wait merely ends early.
            let _ = poll(&mut files, Some(&INTERVAL));
        }
    }

    fn read_rings(&mut self) {
        let now = clock_gettime(ClockId::Monotonic);
        // All samples up to here are older than the changes taken next.
        let heads: Vec<u64> = self.rings.iter().map(|of| of.ring.head()).collect();
        let stages = &mut self.stages;
        self.profile.stage_changes_lost = (self.take_changes)(&mut |change| stages.add(change));
        let mut rings = std::mem::take(&mut self.rings);
        for (of_processor, head) in rings.iter_mut().zip(heads) {
            of_processor.ring.take(head, |header, body| {
                if let Some(record) = Record::parse(header, body) {
                    self.add(record);
                }
            });
        }
        self.rings = rings;
        let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        self.stages.forget_before(now_ns);
    }

    fn add(&mut self, record: Record<'_>) {
        match record {
            Record::Name { thread_id, name } => {
                self.names.insert(thread_id, name);
            }
            Record::Lost(count) => self.profile.lost += count,
            Record::Sample(sample) => self.add_sample(&sample),
        }
    }

    fn add_sample(&mut self, sample: &Sample<'_>) {
        let kind = self.kinds.iter().find(|(id, _)| *id == sample.event_id);
        let count = match kind {
            Some((_, Kind::CpuClock)) => Count { cpu: 1, faults: 0 },
            Some((_, Kind::PageFaults)) => Count { cpu: 0, faults: 1 },
            None => return,
        };
        let is_whole = self.follow(sample);
        let mut path = ROOT;
        if !is_whole {
            self.profile.cut += 1;
            path = self.paths.called(path, self.rest);
        }
        for address in self.addresses.iter().rev() {
            path = self.paths.called(path, self.functions.at(*address));
        }
        if sample.in_kernel {
            path = self.paths.called(path, self.kernel);
        }
        let stage = self.stages.at(sample.thread_id, sample.at_ns);
        self.paths.add(stage, sample.thread_id, path, count);
    }

    /// Unwinds a stack. Returns whether its start was reached.
    fn follow(&mut self, sample: &Sample<'_>) -> bool {
        self.addresses.clear();
        let Some(user) = &sample.user else {
            return false;
        };
        let registers =
            UnwindRegsX86_64::new(user.instruction, user.stack_pointer, user.frame_pointer);
        let mut read = |address| user.word_at(address).ok_or(());
        let mut frames =
            self.unwinder
                .iter_frames(user.instruction, registers, &mut self.cache, &mut read);
        loop {
            match frames.next() {
                Ok(None) => return true,
                Ok(Some(_)) if self.addresses.len() == DEPTH_MAX => return false,
                // For return addresses, an address inside the call instruction.
                Ok(Some(frame)) => self.addresses.push(frame.address_for_lookup()),
                Err(_) => return false,
            }
        }
    }

    fn finished(self) -> Profile {
        let (paths, rows) = self.paths.into_parts();
        let mut threads: Vec<(u32, String)> = self.names.into_iter().collect();
        threads.sort();
        Profile {
            functions: self.functions.into_vec(),
            paths,
            rows,
            threads,
            ..self.profile
        }
    }
}
