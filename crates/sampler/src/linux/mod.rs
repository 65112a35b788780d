//! Sampling by the kernel's performance events.
//!
//! Inherited events must belong to one processor, so there is one for each processor, each kind,
//! and each thread that exists at the start. All events of a processor write into one ring.

mod event;
mod functions;
mod modules;
mod reader;
mod record;
mod ring;
mod stages;
mod symbols;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, gettid, sched_getaffinity};

use crate::error::Error;
use crate::options::{Options, TakeChanges};
use crate::profile::Profile;
use event::{Kind, PerfEvent, Sampling};
use reader::{Code, Ending, ProcessorRing, Reader};
use ring::Ring;

/// The sizes of each processor's ring to try, largest first. Without privileges the kernel permits
/// half a MiB by default, which fills in 30 ms at 16 KiB per sample.
const RING_BYTES: [usize; 4] = [2 << 20, 512 << 10, 256 << 10, 128 << 10];
/// The reader is woken when 1/4 of a ring is full.
const WAKEUP_SHARE: usize = 4;
/// Files that the program may have open besides the events.
const OTHER_FILES: u64 = 256;

/// A running sampling of the process.
#[derive(Debug)]
pub struct Sampler {
    events: Vec<Arc<PerfEvent>>,
    ending: Arc<Ending>,
    reader: JoinHandle<io::Result<Profile>>,
    start: Instant,
    start_unix_ns: u64,
    sampling: Sampling,
    faults_per_sample: u64,
}

impl std::fmt::Debug for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ending").finish_non_exhaustive()
    }
}

type Work = (Vec<ProcessorRing>, Vec<(u64, Kind)>, HashMap<u32, String>);

impl Sampler {
    /// Starts sampling all threads of the process. `take_changes` tells which stages they are in.
    ///
    /// # Errors
    /// The kernel refuses; see [`Error`].
    pub fn start(options: Options, take_changes: TakeChanges) -> Result<Sampler, Error> {
        let system = |action| move |error| Error::System { action, error };
        // Before the first event, so that the reader's own thread inherits none.
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| system("make an event for the reader")(error.into()))?;
        let ending = Arc::new(Ending {
            requested: AtomicBool::new(false),
            wake,
        });
        let (give_work, work) = channel::<Work>();
        let (give_id, id) = channel();
        let (is_ready, ready) = channel();
        let reader = {
            let ending = Arc::clone(&ending);
            Builder::new().name("sampler".into()).spawn(move || {
                // The receiver is waiting.
                let _ = give_id.send(gettid().as_raw_nonzero().get() as u32);
                read(&work, &is_ready, take_changes, &ending)
            })
        };
        let reader = reader.map_err(system("start a thread"))?;
        let reader_id = id.recv().map_err(|_| Error::ReaderLost)?;
        let threads = threads_but(reader_id).map_err(system("list the threads"))?;
        let mut sampling = Sampling {
            period: 1_000_000_000 / u64::from(options.samples_per_second.max(1)),
            stack_bytes: options.stack_bytes.next_multiple_of(8).min(60 << 10),
            with_kernel: true,
            wakeup_bytes: 0,
        };
        let faults_per_sample = options.faults_per_sample.max(1);
        let opened = open_all(&mut sampling, faults_per_sample, &threads)?;
        let Opened {
            events,
            rings,
            kinds,
        } = opened;
        give_work
            .send((rings, kinds, threads))
            .map_err(|_| Error::ReaderLost)?;
        // A ring fills soon. If the reader fails, it reports that at the end.
        let _ = ready.recv();
        let start = Instant::now();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let start_unix_ns = since_1970.map_or(0, |time| time.as_nanos() as u64);
        for event in &events {
            event.enable().map_err(system("start the sampling"))?;
        }
        Ok(Sampler {
            events,
            ending,
            reader,
            start,
            start_unix_ns,
            sampling,
            faults_per_sample,
        })
    }

    /// Ends sampling.
    ///
    /// # Errors
    /// The reader could not read what it needs.
    pub fn finish(self) -> Result<Profile, Error> {
        let (mut cpu_ns, mut faults) = (0, 0);
        for event in &self.events {
            // An event that cannot be disabled ends with its file.
            let _ = event.disable();
            let count = event.count().unwrap_or(0);
            match event.kind {
                Kind::CpuClock => cpu_ns += count,
                Kind::PageFaults => faults += count,
            }
        }
        let elapsed = self.start.elapsed();
        self.ending.requested.store(true, Ordering::Release);
        // If this fails, the reader ends after its interval.
        let _ = rustix::io::write(&self.ending.wake, &1_u64.to_ne_bytes());
        let read = self.reader.join().map_err(|_| Error::ReaderLost)?;
        let profile = read.map_err(|error| Error::System {
            action: "read what is in memory",
            error,
        })?;
        Ok(Profile {
            cpu_ns_per_sample: self.sampling.period,
            faults_per_sample: self.faults_per_sample,
            cpu_ns,
            faults,
            start_unix_ns: self.start_unix_ns,
            elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            with_kernel: self.sampling.with_kernel,
            ..profile
        })
    }
}

/// The reader's thread. It prepares while the events are opened.
fn read(
    work: &Receiver<Work>,
    is_ready: &Sender<()>,
    take_changes: TakeChanges,
    ending: &Ending,
) -> io::Result<Profile> {
    let code = Code::read()?;
    let Ok((rings, kinds, names)) = work.recv() else {
        // The start failed, and reports why.
        return Ok(Profile::default());
    };
    let reader = Reader::new(code, rings, kinds, names, take_changes);
    // The receiver is waiting.
    let _ = is_ready.send(());
    Ok(reader.run(ending))
}

/// The names of all threads of this process except one.
fn threads_but(excluded: u32) -> io::Result<HashMap<u32, String>> {
    let mut threads = HashMap::new();
    for entry in fs::read_dir("/proc/self/task")? {
        let entry = entry?;
        let id = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(id) = id.filter(|&id| id != excluded) {
            // The thread may have ended.
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            threads.insert(id, name.trim_end().to_owned());
        }
    }
    Ok(threads)
}

struct Opened {
    events: Vec<Arc<PerfEvent>>,
    rings: Vec<ProcessorRing>,
    kinds: Vec<(u64, Kind)>,
}

fn open_all(
    sampling: &mut Sampling,
    faults_per_sample: u64,
    threads: &HashMap<u32, String>,
) -> Result<Opened, Error> {
    let processors = sched_getaffinity(None).map_err(|error| Error::System {
        action: "ask for the processors",
        error: error.into(),
    })?;
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|&processor| processors.is_set(processor))
        .collect();
    allow_files((threads.len() * processors.len() * 2) as u64);
    let this_thread = gettid().as_raw_nonzero().get() as u32;
    sampling.with_kernel = may_sample_kernel(sampling, this_thread)?;
    let mut opened = Opened {
        events: vec![],
        rings: vec![],
        kinds: vec![],
    };
    for processor in processors {
        let open = |kind, thread_id| {
            let mut sampling = *sampling;
            if kind == Kind::PageFaults {
                sampling.period = faults_per_sample;
            }
            PerfEvent::open(kind, &sampling, thread_id, processor).map(Arc::new)
        };
        let (owner, ring) = ring_of(sampling, this_thread, processor)?;
        let mut events = vec![Arc::clone(&owner)];
        for &thread_id in threads.keys() {
            for kind in [Kind::CpuClock, Kind::PageFaults] {
                if thread_id == this_thread && kind == owner.kind {
                    continue;
                }
                match open(kind, thread_id) {
                    Ok(event) => {
                        event.write_to_ring_of(&owner).map_err(refused)?;
                        events.push(event);
                    }
                    // The thread has ended.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => return Err(refused(error)),
                }
            }
        }
        for event in &events {
            opened
                .kinds
                .push((event.id().map_err(refused)?, event.kind));
        }
        opened.events.append(&mut events);
        opened.rings.push(ProcessorRing { owner, ring });
    }
    Ok(opened)
}

/// The first event of a processor, with the largest permitted ring.
fn ring_of(
    sampling: &Sampling,
    thread_id: u32,
    processor: usize,
) -> Result<(Arc<PerfEvent>, Ring), Error> {
    let mut last = None;
    for data_bytes in RING_BYTES {
        let sampling = Sampling {
            wakeup_bytes: (data_bytes / WAKEUP_SHARE) as u32,
            ..*sampling
        };
        let event = PerfEvent::open(Kind::CpuClock, &sampling, thread_id, processor);
        let event = Arc::new(event.map_err(refused)?);
        match Ring::map(&event, data_bytes) {
            Ok(ring) => return Ok((event, ring)),
            Err(error) => last = Some(error),
        }
    }
    Err(Error::System {
        action: "map memory for samples (/proc/sys/kernel/perf_event_mlock_kb limits it)",
        error: last.unwrap_or_else(|| io::ErrorKind::OutOfMemory.into()),
    })
}

/// Whether the kernel's work may be sampled, not only the program itself.
fn may_sample_kernel(sampling: &Sampling, thread_id: u32) -> Result<bool, Error> {
    let attempt = |with_kernel| {
        let sampling = Sampling {
            with_kernel,
            ..*sampling
        };
        let (any_kind, any_processor) = (Kind::CpuClock, usize::MAX);
        PerfEvent::open(any_kind, &sampling, thread_id, any_processor)
    };
    match attempt(true) {
        Ok(_) => Ok(true),
        Err(_) => attempt(false).map(|_| false).map_err(refused),
    }
}

/// Events are files: raises the limit of open files, if needed to its hard limit.
fn allow_files(events: u64) {
    let limit = getrlimit(Resource::Nofile);
    let needed = events + OTHER_FILES;
    if let Some(current) = limit.current
        && current < needed
    {
        let raised = Rlimit {
            current: Some(limit.maximum.map_or(needed, |maximum| maximum.min(needed))),
            maximum: limit.maximum,
        };
        // If this fails, opening the events reports too many files.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

fn refused(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM | libc::ENOSYS | libc::ENOENT) => {
            let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
            let paranoid = text.ok().and_then(|text| text.trim().parse().ok());
            Error::Forbidden { error, paranoid }
        }
        _ => Error::System {
            action: "open a performance event",
            error,
        },
    }
}
