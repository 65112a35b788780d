//! The topology of a machine.

use super::cpu::{CAPACITY_MAX, Cpu, CpuId, Locality, Sharing, StripeId};
use super::mask::{CPUS_MAX, CpuMask};

/// The CPUs of a machine and their distances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    cpus: Vec<Cpu>,
    /// For each CPU: the CPUs of its core, cache and node, itself included.
    core_masks: Vec<CpuMask>,
    cache_masks: Vec<CpuMask>,
    node_masks: Vec<CpuMask>,
}

impl Topology {
    /// Returns a topology of these CPUs in this order. Uses the first [`CPUS_MAX`]; an empty list
    /// gives one CPU.
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

    /// A topology of `count` single-threaded cores behind one cache.
    pub fn flat(count: usize) -> Topology {
        let cpu = |index: usize| Cpu {
            os_number: index as u32,
            core: CpuId::new(index).index() as u16,
            cache: 0,
            node: 0,
            capacity: CAPACITY_MAX,
        };
        Topology::new((0..count.clamp(1, CPUS_MAX)).map(cpu).collect())
    }

    /// The number of CPUs, at least one.
    pub fn len(&self) -> usize {
        self.cpus.len()
    }

    /// Always `false`: a topology has at least one CPU.
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

    /// The CPUs of `cpu`'s core, including itself. Empty if the topology has no such CPU, as for
    /// the other masks.
    pub fn core_of(&self, cpu: CpuId) -> CpuMask {
        self.core_masks
            .get(cpu.index())
            .copied()
            .unwrap_or(CpuMask::EMPTY)
    }

    /// The CPUs behind `cpu`'s last-level cache, including itself.
    pub fn cache_of(&self, cpu: CpuId) -> CpuMask {
        self.cache_masks
            .get(cpu.index())
            .copied()
            .unwrap_or(CpuMask::EMPTY)
    }

    /// The CPUs of `cpu`'s memory node, including itself.
    pub fn node_of(&self, cpu: CpuId) -> CpuMask {
        self.node_masks
            .get(cpu.index())
            .copied()
            .unwrap_or(CpuMask::EMPTY)
    }

    /// The distance between two CPUs. A CPU outside the topology is distant from all others.
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

    /// All CPUs from `cpu` itself to the most distant, ascending within a level: the order of a
    /// search for work.
    pub fn nearest(&self, cpu: CpuId) -> Vec<CpuId> {
        let mut order: Vec<CpuId> = self.all().iter().collect();
        order.sort_by_key(|&other| self.locality(cpu, other));
        order
    }

    /// The stripe of each CPU, by CPU index. Stripes are numbered from 0 in the order of their
    /// first CPU.
    pub fn stripes(&self, sharing: Sharing) -> Vec<StripeId> {
        let group = |index: usize| match sharing {
            Sharing::Cpu => index as u32,
            Sharing::Core => u32::from(self.cpus[index].core),
            Sharing::Cache => u32::from(self.cpus[index].cache),
            Sharing::Node => u32::from(self.cpus[index].node),
            Sharing::All => 0,
        };
        let mut groups: Vec<u32> = Vec::new();
        let stripe_of = |index: usize| {
            let of = group(index);
            let known = groups.iter().position(|&group| group == of);
            StripeId::new(known.unwrap_or_else(|| {
                groups.push(of);
                groups.len() - 1
            }))
        };
        (0..self.len()).map(stripe_of).collect()
    }
}
