//! CPUs and stripes: identifiers, attributes, distances.

/// A CPU of a [`Topology`](super::Topology): a dense index, not the operating system's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CpuId(u16);

impl CpuId {
    /// The first CPU, which every topology has.
    pub const FIRST: CpuId = CpuId(0);

    /// The CPU with this index. Indices above 65,535 give the last one, which no topology has.
    pub fn new(index: usize) -> CpuId {
        CpuId(u16::try_from(index).unwrap_or(u16::MAX))
    }

    /// The index of the CPU in arrays.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A run queue, shared by one or more CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StripeId(u16);

impl StripeId {
    /// The stripe with this index. There are never more stripes than CPUs.
    pub fn new(index: usize) -> StripeId {
        StripeId(u16::try_from(index).unwrap_or(u16::MAX))
    }

    /// The index of the stripe in arrays.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The distance between two CPUs: BFS's five levels of `cpu_locality`.
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
    /// The number of levels.
    pub const COUNT: usize = Locality::Distant as usize + 1;
}

/// Which CPUs share one run queue: MuQSS's `rqshare`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// One queue per CPU.
    Cpu,
    /// One queue per core.
    Core,
    /// One queue per last-level cache.
    Cache,
    /// One queue per memory node.
    Node,
    /// One queue for all CPUs: BFS.
    All,
}

/// A hardware thread and the groups it belongs to. CPUs with equal group numbers share the core,
/// cache or node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cpu {
    /// The operating system's number of this CPU.
    pub os_number: u32,
    /// The core, unique in the machine.
    pub core: u16,
    /// The last-level cache, unique in the machine.
    pub cache: u16,
    /// The memory node.
    pub node: u16,
    /// The speed relative to the fastest CPU of the machine, 1 to 1024 (the kernel's
    /// `cpu_capacity`).
    pub capacity: u16,
}

/// The [`Cpu::capacity`] of the fastest CPU.
pub const CAPACITY_MAX: u16 = 1024;
