//! The CPUs of the machine that a flow may run on.

use crate::entity::Entity;
use crate::topology::{CpuId, CpuMask};
use crate::view::View;

/// The CPUs of the machine that the flow may run on; all CPUs if its mask has none of them.
pub(crate) fn allowed_here(entity: &Entity, view: &impl View) -> CpuMask {
    let all = view.topology().all();
    let allowed = entity.allowed.and(&all);
    if allowed.is_empty() { all } else { allowed }
}

/// Whether the flow may run on `cpu`. Usually the flow's mask has the CPU, so that no mask is
/// computed.
#[inline(always)]
pub(crate) fn is_allowed_here(entity: &Entity, cpu: CpuId, view: &impl View) -> bool {
    let is_named = entity.allowed.contains(cpu) && cpu.index() < view.topology().len();
    is_named || allowed_here(entity, view).contains(cpu)
}
