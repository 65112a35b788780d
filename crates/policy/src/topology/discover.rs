//! Discovers the CPUs that this process may use, from Linux's sysfs and procfs.
//!
//! Sources: `Documentation/admin-guide/cputopology.rst`,
//! `Documentation/ABI/testing/sysfs-devices-system-cpu`. Every file may be missing, empty or wrong,
//! because containers hide files and virtual machines invent them. Each has a fallback; the last
//! one is as many equal CPUs as the system reports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::control_groups::ControlGroups;
use super::cpu::{CAPACITY_MAX, Cpu};
use super::files::{numbered_entries, read_first_list, read_list, read_number, read_text};
use super::machine::Topology;
use super::mask::CPUS_MAX;
use super::sources::Sources;

/// The number of cache directories read per CPU.
const CACHE_INDICES: u32 = 16;

/// The part of the machine that this process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The CPUs that are online and allowed by affinity mask and cpuset.
    pub topology: Topology,
    /// The CPU time that the control groups allow, in thousandths of a CPU (`cpu.max` or
    /// `cpu.cfs_quota_us`). `None` without a limit.
    pub quota_permille: Option<u64>,
}

impl Machine {
    /// Discovers the machine that this process runs on. Reads about twenty small files for each
    /// CPU.
    pub fn discover() -> Machine {
        Machine::from_sources(&system_sources(process()))
    }

    /// Returns the machine that these files describe.
    pub fn from_sources(sources: &Sources) -> Machine {
        let allowance = Allowance::from_sources(sources);
        Machine {
            topology: topology(&sources.sys, &allowance.numbers),
            quota_permille: allowance.quota_permille,
        }
    }

    /// A sensible number of workers: one per CPU, limited by the quota, at least one.
    pub fn workers(&self) -> usize {
        workers(self.topology.len(), self.quota_permille)
    }
}

/// How much of the machine may be used, without its topology. An administrator may change it at any
/// time. Reads a few files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    /// The CPUs of [`Machine::topology`], by the operating system's numbers.
    numbers: Vec<u32>,
    quota_permille: Option<u64>,
}

impl Allowance {
    /// What the process may use: the affinity mask is that of its first thread, which `taskset -p`
    /// changes.
    pub fn of_process() -> Allowance {
        Allowance::from_sources(&system_sources(process()))
    }

    /// What the calling thread may use.
    pub fn of_this_thread() -> Allowance {
        Allowance::from_sources(&system_sources(None))
    }

    fn from_sources(sources: &Sources) -> Allowance {
        let groups = ControlGroups::from_process(sources);
        Allowance {
            numbers: usable_numbers(sources, &groups),
            quota_permille: groups.quota_permille(),
        }
    }

    /// As [`Machine::workers`].
    pub fn workers(&self) -> usize {
        workers(self.numbers.len(), self.quota_permille)
    }
}

fn system_sources(thread: Option<Thread>) -> Sources {
    Sources {
        sys: "/sys".into(),
        proc: "/proc".into(),
        affinity: affinity(thread),
    }
}

/// A quota of one and a half CPUs is used up by two workers, not by one.
fn workers(cpus: usize, quota_permille: Option<u64>) -> usize {
    let by_quota = quota_permille.map_or(usize::MAX, |permille| {
        usize::try_from(permille.div_ceil(1000)).unwrap_or(usize::MAX)
    });
    cpus.min(by_quota).max(1)
}

#[cfg(target_os = "linux")]
type Thread = rustix::thread::Pid;
#[cfg(not(target_os = "linux"))]
type Thread = ();

/// The first thread of the process.
#[cfg(target_os = "linux")]
fn process() -> Option<Thread> {
    Thread::from_raw(std::process::id().cast_signed())
}

#[cfg(not(target_os = "linux"))]
fn process() -> Option<Thread> {
    None
}

/// The affinity mask of a thread, or of the calling one.
#[cfg(target_os = "linux")]
fn affinity(thread: Option<Thread>) -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(thread) else {
        return Vec::new();
    };
    let numbers = 0..rustix::thread::CpuSet::MAX_CPU;
    let allowed = numbers.filter(|&number| set.is_set(number));
    allowed.map(|number| number as u32).collect()
}

#[cfg(not(target_os = "linux"))]
fn affinity(_thread: Option<Thread>) -> Vec<u32> {
    Vec::new()
}

/// The online CPUs within affinity mask and cpuset. A restriction that would leave no CPU is
/// ignored.
fn usable_numbers(sources: &Sources, groups: &ControlGroups) -> Vec<u32> {
    let directory = sources.sys.join("devices/system/cpu");
    let mut numbers = read_list(&directory.join("online"));
    if numbers.is_empty() {
        numbers = numbered_entries(&directory, "cpu");
    }
    if numbers.is_empty() {
        numbers = sources.affinity.clone();
    }
    if numbers.is_empty() {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        numbers = (0..count.min(CPUS_MAX) as u32).collect();
    }
    for allowed in [&sources.affinity, &groups.cpuset()] {
        let remaining: Vec<u32> = numbers
            .iter()
            .filter(|&number| allowed.contains(number))
            .copied()
            .collect();
        if !remaining.is_empty() {
            numbers = remaining;
        }
    }
    numbers.truncate(CPUS_MAX);
    numbers
}

fn topology(sys: &Path, numbers: &[u32]) -> Topology {
    let nodes = nodes(sys);
    let capacities = capacities(sys, numbers);
    // Groups are identified by their members, because core ids repeat in every package.
    let (mut cores, mut caches) = (Groups::default(), Groups::default());
    let mut cpu = |(&number, &capacity): (&u32, &u16)| {
        let directory = cpu_directory(sys, number);
        let siblings = read_first_list(&[
            directory.join("topology/core_cpus_list"),
            directory.join("topology/thread_siblings_list"),
        ]);
        let package = read_first_list(&[
            directory.join("topology/package_cpus_list"),
            directory.join("topology/core_siblings_list"),
        ]);
        let cache = last_level_cache(&directory).unwrap_or(package);
        Cpu {
            os_number: number,
            core: cores.number_of(number, &siblings),
            cache: caches.number_of(number, &cache),
            node: nodes.get(&number).copied().unwrap_or(0),
            capacity,
        }
    };
    let mut cpus: Vec<Cpu> = numbers.iter().zip(&capacities).map(&mut cpu).collect();
    // All threads of a core share one cache, even if the files contradict it.
    let mut cache_of_core = BTreeMap::new();
    for cpu in &mut cpus {
        cpu.cache = *cache_of_core.entry(cpu.core).or_insert(cpu.cache);
    }
    Topology::new(cpus)
}

/// Numbers sets of CPUs. A CPU belongs to the first set that contains it, so that contradictory
/// files cannot separate a CPU from one that names it as its sibling.
#[derive(Default)]
struct Groups {
    group_of: BTreeMap<u32, u16>,
    count: u16,
}

impl Groups {
    fn number_of(&mut self, number: u32, members: &[u32]) -> u16 {
        let group = self.group_of.get(&number).copied().unwrap_or_else(|| {
            self.count = self.count.saturating_add(1);
            self.count - 1
        });
        for member in members.iter().chain([&number]) {
            self.group_of.entry(*member).or_insert(group);
        }
        group
    }
}

fn last_level_cache(directory: &Path) -> Option<Vec<u32>> {
    let indices = (0..CACHE_INDICES).map(|index| directory.join(format!("cache/index{index}")));
    let levels = indices.filter_map(|directory| {
        let holds_data = read_text(&directory.join("type"))?.trim() != "Instruction";
        let level = read_number(&directory.join("level"))?;
        let members = read_list(&directory.join("shared_cpu_list"));
        (holds_data && !members.is_empty()).then_some((level, members))
    });
    levels
        .max_by_key(|(level, _)| *level)
        .map(|(_, members)| members)
}

fn nodes(sys: &Path) -> BTreeMap<u32, u16> {
    let directory = sys.join("devices/system/node");
    let mut node_of = BTreeMap::new();
    for (index, node) in numbered_entries(&directory, "node")
        .into_iter()
        .take(CPUS_MAX)
        .enumerate()
    {
        for cpu in read_list(&directory.join(format!("node{node}/cpulist"))) {
            node_of.entry(cpu).or_insert(index as u16);
        }
    }
    node_of
}

/// Speeds relative to the fastest CPU: from `cpu_capacity`, else from the maximum frequencies, else
/// all equal.
fn capacities(sys: &Path, numbers: &[u32]) -> Vec<u16> {
    let by_file = |file: &str| -> Option<Vec<u64>> {
        let speeds = numbers
            .iter()
            .map(|&number| read_number(&cpu_directory(sys, number).join(file)));
        speeds
            .map(|speed| speed.filter(|&speed| speed > 0))
            .collect()
    };
    let speeds = by_file("cpu_capacity").or_else(|| by_file("cpufreq/cpuinfo_max_freq"));
    let Some(speeds) = speeds else {
        return vec![CAPACITY_MAX; numbers.len()];
    };
    let fastest = u128::from(speeds.iter().copied().max().unwrap_or(1));
    let scaled = |speed: u64| u128::from(speed) * u128::from(CAPACITY_MAX) / fastest;
    // At most CAPACITY_MAX, so the cast does not truncate.
    speeds
        .into_iter()
        .map(|speed| scaled(speed).max(1) as u16)
        .collect()
}

fn cpu_directory(sys: &Path, number: u32) -> PathBuf {
    sys.join(format!("devices/system/cpu/cpu{number}"))
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
