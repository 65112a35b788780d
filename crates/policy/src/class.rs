//! What orders flows before their deadlines: the class, and the tenant that pays.

pub(crate) const TENANT_BITS: u32 = 8;

/// The number of tenants.
pub const TENANTS_MAX: usize = 1 << TENANT_BITS;

/// The scheduling class. A flow runs before all flows of a later class, whatever their deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Class {
    /// Nearly real time while all isochronous flows together stay below their share of the machine;
    /// otherwise they count as normal. BFS's `SCHED_ISO`.
    Iso,
    /// Ordered by virtual deadline.
    #[default]
    Normal,
    /// Runs only when a CPU would otherwise be idle. BFS's `SCHED_IDLEPRIO`.
    Idle,
}

impl Class {
    /// The number of classes.
    pub const COUNT: usize = Class::Idle as usize + 1;

    /// The class with this number.
    pub const fn from_index(index: usize) -> Option<Class> {
        match index {
            0 => Some(Class::Iso),
            1 => Some(Class::Normal),
            2 => Some(Class::Idle),
            _ => None,
        }
    }
}

/// The account that a flow's CPU time is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TenantId(pub(crate) u8);

impl TenantId {
    /// The tenant with this number; [`TENANTS_MAX`] and above give the last tenant.
    pub const fn new(index: usize) -> TenantId {
        if index < TENANTS_MAX {
            TenantId(index as u8)
        } else {
            TenantId((TENANTS_MAX - 1) as u8)
        }
    }

    /// The index of the tenant in arrays, below [`TENANTS_MAX`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
