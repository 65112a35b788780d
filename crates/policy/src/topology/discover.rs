//! The machine that this process may use, from what Linux tells about it.
//!
//! Sources: `Documentation/admin-guide/cputopology.rst`, `Documentation/ABI/testing/sysfs-devices-system-cpu`. Every file may be missing, empty or wrong: containers hide
//! them, virtual machines make them up. Then the next best source counts, in the end "as many equal CPUs as the system says".

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::control_groups::ControlGroups;
use super::files::{first_list, list_in, listed_folders, number_in, text_in};
use super::{CAPACITY_MAX, CPUS_MAX, Cpu, CpuMask, Topology};

/// Cache levels looked at per CPU.
const CACHE_INDICES: u32 = 16;
/// A CPU counts as scaled down below this part of its full frequency, in 16ths.
const SCALED_DOWN_16THS: u64 = 12;

/// Where the kernel's files are; other places in tests.
#[derive(Debug, Clone)]
pub struct Sources {
    /// `/sys`.
    pub sys: PathBuf,
    /// `/proc`.
    pub proc: PathBuf,
    /// CPUs that the scheduler lets this process run on, by the operating system's number; empty: not known.
    pub affinity: Vec<u32>,
}

/// What this process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The CPUs that are online and allowed by affinity and cpuset.
    pub topology: Topology,
    /// How much CPU time the control groups allow, in thousandths of a CPU: `cpu.max`, or `cpu.cfs_quota_us`. None: no limit.
    pub quota_permille: Option<u64>,
}

impl Machine {
    /// The machine this runs on.
    pub fn discover() -> Machine {
        Machine::from_sources(&Sources {
            sys: "/sys".into(),
            proc: "/proc".into(),
            affinity: affinity(),
        })
    }

    /// The machine that these files describe.
    pub fn from_sources(sources: &Sources) -> Machine {
        let groups = ControlGroups::of_this_process(sources);
        let numbers = usable_numbers(sources, &groups);
        Machine {
            topology: topology(&sources.sys, &numbers),
            quota_permille: groups.quota_permille(),
        }
    }

    /// Workers that make sense: one per CPU, and no more than the quota pays for; at least one.
    pub fn workers(&self) -> usize {
        let paid = self.quota_permille.map_or(usize::MAX, |permille| {
            usize::try_from(permille.div_ceil(1000)).unwrap_or(usize::MAX)
        });
        self.topology.len().min(paid).max(1)
    }
}

/// CPUs of `topology` that run well below their full frequency now. Those whose frequency is not known count as fast.
pub fn scaled_down(sys: &Path, topology: &Topology) -> CpuMask {
    let is_slow = |cpu: &Cpu| {
        let folder = cpu_folder(sys, cpu.os_number).join("cpufreq");
        let now = number_in(&folder.join("scaling_cur_freq"));
        let full = number_in(&folder.join("cpuinfo_max_freq"));
        now.zip(full)
            .is_some_and(|(now, full)| now < full / 16 * SCALED_DOWN_16THS)
    };
    let slow = topology
        .cpus()
        .iter()
        .enumerate()
        .filter(|(_, cpu)| is_slow(cpu));
    slow.map(|(index, _)| super::CpuId::new(index)).collect()
}

#[cfg(target_os = "linux")]
fn affinity() -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else {
        return Vec::new();
    };
    let numbers = 0..rustix::thread::CpuSet::MAX_CPU;
    let allowed = numbers.filter(|&number| set.is_set(number));
    allowed.map(|number| number as u32).collect()
}

#[cfg(not(target_os = "linux"))]
fn affinity() -> Vec<u32> {
    Vec::new()
}

/// Online CPUs within affinity and cpuset. A source that would leave none is not believed.
fn usable_numbers(sources: &Sources, groups: &ControlGroups) -> Vec<u32> {
    let folder = sources.sys.join("devices/system/cpu");
    let mut numbers = list_in(&folder.join("online"));
    if numbers.is_empty() {
        numbers = listed_folders(&folder, "cpu");
    }
    if numbers.is_empty() {
        numbers = sources.affinity.clone();
    }
    if numbers.is_empty() {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        numbers = (0..count.min(CPUS_MAX) as u32).collect();
    }
    for allowed in [&sources.affinity, &groups.cpuset()] {
        let kept: Vec<u32> = numbers
            .iter()
            .filter(|&number| allowed.contains(number))
            .copied()
            .collect();
        if !kept.is_empty() {
            numbers = kept;
        }
    }
    numbers.truncate(CPUS_MAX);
    numbers
}

/// What sysfs says about each of these CPUs.
fn topology(sys: &Path, numbers: &[u32]) -> Topology {
    let nodes = nodes(sys);
    let capacities = capacities(sys, numbers);
    // Groups are told apart by their members, which are unique, unlike core ids, which repeat in every package.
    let (mut cores, mut caches) = (Groups::default(), Groups::default());
    let mut cpu = |(&number, &capacity): (&u32, &u16)| {
        let folder = cpu_folder(sys, number);
        let siblings = first_list(&[
            folder.join("topology/core_cpus_list"),
            folder.join("topology/thread_siblings_list"),
        ]);
        let package = first_list(&[
            folder.join("topology/package_cpus_list"),
            folder.join("topology/core_siblings_list"),
        ]);
        let cache = last_level_cache(&folder).unwrap_or(package);
        Cpu {
            os_number: number,
            core: cores.number_of(number, &siblings),
            cache: caches.number_of(number, &cache),
            node: nodes.get(&number).copied().unwrap_or(0),
            capacity,
        }
    };
    let mut cpus: Vec<Cpu> = numbers.iter().zip(&capacities).map(&mut cpu).collect();
    // A core lies behind one cache, whatever the files say.
    let mut cache_of_core = BTreeMap::new();
    for cpu in &mut cpus {
        cpu.cache = *cache_of_core.entry(cpu.core).or_insert(cpu.cache);
    }
    Topology::new(cpus)
}

/// Numbers sets of CPUs. A CPU belongs to the first set that names it: else odd files could make it a stranger to a CPU that
/// calls it its sibling.
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

/// The CPUs that share the outermost cache of the CPU in `folder`.
fn last_level_cache(folder: &Path) -> Option<Vec<u32>> {
    let indices = (0..CACHE_INDICES).map(|index| folder.join(format!("cache/index{index}")));
    let levels = indices.filter_map(|folder| {
        let holds_data = text_in(&folder.join("type"))?.trim() != "Instruction";
        let level = number_in(&folder.join("level"))?;
        let members = list_in(&folder.join("shared_cpu_list"));
        (holds_data && !members.is_empty()).then_some((level, members))
    });
    levels
        .max_by_key(|(level, _)| *level)
        .map(|(_, members)| members)
}

fn nodes(sys: &Path) -> BTreeMap<u32, u16> {
    let folder = sys.join("devices/system/node");
    let mut node_of = BTreeMap::new();
    for (index, node) in listed_folders(&folder, "node")
        .into_iter()
        .take(CPUS_MAX)
        .enumerate()
    {
        for cpu in list_in(&folder.join(format!("node{node}/cpulist"))) {
            node_of.entry(cpu).or_insert(index as u16);
        }
    }
    node_of
}

/// Speeds compared with the fastest: `cpu_capacity`, else the largest frequencies, else all the same.
fn capacities(sys: &Path, numbers: &[u32]) -> Vec<u16> {
    let by_file = |file: &str| -> Option<Vec<u64>> {
        let speeds = numbers
            .iter()
            .map(|&number| number_in(&cpu_folder(sys, number).join(file)));
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
    // At most CAPACITY_MAX, so the cast loses nothing.
    speeds
        .into_iter()
        .map(|speed| scaled(speed).max(1) as u16)
        .collect()
}

fn cpu_folder(sys: &Path, number: u32) -> PathBuf {
    sys.join(format!("devices/system/cpu/cpu{number}"))
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
