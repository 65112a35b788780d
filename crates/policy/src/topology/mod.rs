//! What the machine looks like: which CPUs share a core, a cache, a node.
//!
//! A [`Topology`] is plain data. CPUs are numbered densely (`CpuId`), whatever the operating system calls them, so that
//! masks and arrays stay small; each CPU knows its number there.

mod control_groups;
mod discover;
mod files;
mod list;
mod mask;
mod spec;

pub use discover::{Machine, Sources, scaled_down};
pub use list::parse_list;
pub use mask::{CPUS_MAX, CpuMask};
pub use spec::SpecError;

/// A CPU of a [`Topology`]: a dense index, not the operating system's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CpuId(u16);

impl CpuId {
    /// The first CPU, which every topology has.
    pub const FIRST: CpuId = CpuId(0);

    /// The CPU with this index. Indices beyond 65,535 all mean the last one, which no topology has.
    pub fn new(index: usize) -> CpuId {
        CpuId(u16::try_from(index).unwrap_or(u16::MAX))
    }

    /// The CPU's place in arrays.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A run queue: one or more CPUs share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StripeId(u16);

impl StripeId {
    /// The stripe with this index. There are never more stripes than CPUs.
    pub fn new(index: usize) -> StripeId {
        StripeId(u16::try_from(index).unwrap_or(u16::MAX))
    }

    /// The stripe's place in arrays.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// How far two CPUs are from each other: BFS's five levels of `cpu_locality`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Locality {
    /// The same CPU.
    Same,
    /// Another hardware thread of the same core.
    Sibling,
    /// Another core behind the same last-level cache.
    Cache,
    /// Another cache of the same memory node.
    Node,
    /// Another memory node.
    Distant,
}

impl Locality {
    /// How many levels there are.
    pub const COUNT: usize = Locality::Distant as usize + 1;
}

/// How many CPUs share one run queue: MuQSS's `rqshare`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// A queue for each CPU.
    Cpu,
    /// A queue for each core.
    Core,
    /// A queue for each last-level cache.
    Cache,
    /// A queue for each memory node.
    Node,
    /// One queue for all: BFS.
    All,
}

/// One hardware thread, and with whom it shares what. Groups are numbers: equal means shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cpu {
    /// The operating system's number of this CPU.
    pub os_number: u32,
    /// Core, unique in the machine.
    pub core: u16,
    /// Last-level cache, unique in the machine.
    pub cache: u16,
    /// Memory node.
    pub node: u16,
    /// Speed compared with the fastest CPU of the machine, 1 to 1024 (the kernel's `cpu_capacity`).
    pub capacity: u16,
}

/// Full speed: [`Cpu::capacity`] of the fastest CPU.
pub const CAPACITY_MAX: u16 = 1024;

/// The machine: its CPUs and who is near whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    cpus: Vec<Cpu>,
    /// Per CPU: the CPUs of its core, of its cache, of its node, itself included.
    core_masks: Vec<CpuMask>,
    cache_masks: Vec<CpuMask>,
    node_masks: Vec<CpuMask>,
}

impl Topology {
    /// A topology of these CPUs, in this order; at most [`CPUS_MAX`], the rest is left out. Of no CPU it makes one.
    pub fn new(mut cpus: Vec<Cpu>) -> Topology {
        cpus.truncate(CPUS_MAX);
        if cpus.is_empty() {
            cpus.push(Cpu {
                os_number: 0,
                core: 0,
                cache: 0,
                node: 0,
                capacity: CAPACITY_MAX,
            });
        }
        let masks = |group: fn(&Cpu) -> u16| -> Vec<CpuMask> {
            let members = |of: u16| {
                let same = cpus
                    .iter()
                    .enumerate()
                    .filter(move |(_, cpu)| group(cpu) == of);
                same.map(|(index, _)| CpuId::new(index)).collect()
            };
            cpus.iter().map(|cpu| members(group(cpu))).collect()
        };
        Topology {
            core_masks: masks(|cpu| cpu.core),
            cache_masks: masks(|cpu| cpu.cache),
            node_masks: masks(|cpu| cpu.node),
            cpus,
        }
    }

    /// `count` CPUs, each a core of its own, behind one cache.
    pub fn flat(count: usize) -> Topology {
        let cpu = |index: usize| Cpu {
            os_number: index as u32,
            core: CpuId::new(index).0,
            cache: 0,
            node: 0,
            capacity: CAPACITY_MAX,
        };
        Topology::new((0..count.clamp(1, CPUS_MAX)).map(cpu).collect())
    }

    /// How many CPUs there are; at least one.
    pub fn len(&self) -> usize {
        self.cpus.len()
    }

    /// Never: a topology has a CPU.
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// The CPUs, by index.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// All CPUs.
    pub fn all(&self) -> CpuMask {
        CpuMask::first(self.len())
    }

    /// The CPUs of `cpu`'s core, itself included. Empty for a CPU that is not there; so are the other masks.
    pub fn core_of(&self, cpu: CpuId) -> CpuMask {
        self.core_masks
            .get(cpu.index())
            .copied()
            .unwrap_or(CpuMask::EMPTY)
    }

    /// The CPUs behind `cpu`'s last-level cache, itself included.
    pub fn cache_of(&self, cpu: CpuId) -> CpuMask {
        self.cache_masks
            .get(cpu.index())
            .copied()
            .unwrap_or(CpuMask::EMPTY)
    }

    /// The CPUs of `cpu`'s memory node, itself included.
    pub fn node_of(&self, cpu: CpuId) -> CpuMask {
        self.node_masks
            .get(cpu.index())
            .copied()
            .unwrap_or(CpuMask::EMPTY)
    }

    /// How far two CPUs are from each other. A CPU that is not there is distant from all others.
    pub fn locality(&self, from: CpuId, to: CpuId) -> Locality {
        if from == to {
            Locality::Same
        } else if self.core_of(from).contains(to) {
            Locality::Sibling
        } else if self.cache_of(from).contains(to) {
            Locality::Cache
        } else if self.node_of(from).contains(to) {
            Locality::Node
        } else {
            Locality::Distant
        }
    }

    /// All CPUs, from `cpu` itself to the most distant, in ascending order within a level: where to look for work.
    pub fn nearest(&self, cpu: CpuId) -> Vec<CpuId> {
        let mut order: Vec<CpuId> = self.all().iter().collect();
        order.sort_by_key(|&other| self.locality(cpu, other));
        order
    }

    /// Which stripe each CPU uses, by CPU; stripes are numbered from 0 in the order of their first CPU.
    pub fn stripes(&self, sharing: Sharing) -> Vec<StripeId> {
        let group = |index: usize| match sharing {
            Sharing::Cpu => index as u32,
            Sharing::Core => u32::from(self.cpus[index].core),
            Sharing::Cache => u32::from(self.cpus[index].cache),
            Sharing::Node => u32::from(self.cpus[index].node),
            Sharing::All => 0,
        };
        let mut seen: Vec<u32> = Vec::new();
        let stripe_of = |index: usize| {
            let of = group(index);
            let known = seen.iter().position(|&group| group == of);
            StripeId::new(known.unwrap_or_else(|| {
                seen.push(of);
                seen.len() - 1
            }))
        };
        (0..self.len()).map(stripe_of).collect()
    }
}
