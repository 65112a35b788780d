//! The topology of the machine: which CPUs share a core, a cache, a memory node.
//!
//! A [`Topology`] is plain data. CPUs are numbered densely ([`CpuId`]), independently of the
//! operating system's numbers, so that masks and arrays stay small. Each [`Cpu`] records its number
//! in the operating system.

mod control_groups;
mod cpu;
mod discover;
mod files;
mod list;
mod machine;
mod mask;
mod sources;
mod spec;

pub use cpu::{CAPACITY_MAX, Cpu, CpuId, Locality, Sharing, StripeId};
pub use discover::{Allowance, Machine};
pub use list::parse_list;
pub use machine::Topology;
pub use mask::{CPUS_MAX, CpuMask};
pub use sources::Sources;
pub use spec::SpecError;
