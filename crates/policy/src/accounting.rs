//! What a policy returns for the driver to apply to the ledger.

use crate::class::{Class, TenantId};
use crate::entity::Entity;

/// Permission to run. The driver applies it with [`Ledger::dispatched`](crate::Ledger::dispatched).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "apply it with Ledger::dispatched"]
pub struct Grant {
    /// How long the flow may run before it stops with [`Stop::Expired`](crate::Stop::Expired),
    /// nanoseconds; `u64::MAX` if there is no limit.
    pub slice_ns: u64,
    /// The virtual time at which this slice began: the deadline minus the offset.
    pub start_ns: u64,
    /// The class that the flow runs in.
    pub class: Class,
    /// The account that the run is charged to.
    pub tenant: TenantId,
    /// The tenant's CPU time when the flow was dispatched.
    pub tenant_time_ns: u64,
}

impl Grant {
    /// A slice of a policy without tenants and virtual time.
    pub fn plain(entity: &Entity, slice_ns: u64) -> Grant {
        Grant {
            slice_ns,
            start_ns: 0,
            class: entity.class,
            tenant: TenantId::default(),
            tenant_time_ns: 0,
        }
    }
}

/// CPU time used. The driver applies it with [`Ledger::ran`](crate::Ledger::ran).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "apply it with Ledger::ran"]
pub struct Charge {
    /// The class that the flow ran in.
    pub class: Class,
    /// The account that the run is charged to.
    pub tenant: TenantId,
    /// The length of the run, nanoseconds.
    pub ran_ns: u64,
    /// The tenant's CPU time before the run.
    pub tenant_time_ns: u64,
    /// When the flow stopped, nanoseconds.
    pub now_ns: u64,
    /// By how many the tenant's [running flows](crate::Ledger::running_flows) change.
    pub running_change: i32,
}

impl Charge {
    /// A run under a policy without tenants and virtual time.
    pub fn plain(entity: &Entity, ran_ns: u64, now_ns: u64) -> Charge {
        Charge {
            class: entity.class,
            tenant: TenantId::default(),
            ran_ns,
            tenant_time_ns: 0,
            now_ns,
            running_change: 0,
        }
    }

    /// Adds a later charge if it belongs to the same account. Returns whether it does.
    pub fn join(&mut self, later: &Charge) -> bool {
        let is_same = self.class == later.class && self.tenant == later.tenant;
        if is_same {
            self.ran_ns = self.ran_ns.saturating_add(later.ran_ns);
            self.tenant_time_ns = self.tenant_time_ns.max(later.tenant_time_ns);
            self.now_ns = later.now_ns;
            self.running_change = self.running_change.saturating_add(later.running_change);
        }
        is_same
    }
}
