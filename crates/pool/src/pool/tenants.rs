//! Hands out the tenants of a pool.
//!
//! Tenants get equal shares of the processors, whatever the number of their flows. There are fewer
//! tenants than a server may have users, so users may have to share one; its weight is then the
//! number of those that have something to do, and each of them still gets an equal share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use refrain_policy::{TENANTS_MAX, TenantId, WEIGHT_DEFAULT};
use refrain_sync::plain::Mutex;

use super::state::domain::Domain;

/// The tenants of the flows of a domain.
pub(crate) struct Tenants {
    domain: Arc<Domain>,
    /// The number of users of each tenant. The first tenant is everything that has no other.
    users: Mutex<[u32; TENANTS_MAX]>,
    /// How many of them have something to do.
    busy: [AtomicU32; TENANTS_MAX],
}

impl Tenants {
    pub(crate) fn new(domain: &Arc<Domain>) -> Arc<Tenants> {
        Arc::new(Tenants {
            domain: Arc::clone(domain),
            users: Mutex::new([0; TENANTS_MAX]),
            busy: std::array::from_fn(|_| AtomicU32::new(0)),
        })
    }

    /// Sets the weight of a tenant. It may be that of a moment ago, until the number of its busy
    /// users changes again.
    fn weigh(&self, tenant: TenantId) {
        let busy = self.busy[tenant.index()].load(Ordering::Relaxed);
        let weight = WEIGHT_DEFAULT.saturating_mul(busy.max(1));
        self.domain.ledger.set_weight(tenant, weight);
    }
}

/// One user's place in a tenant, until it is dropped.
pub(crate) struct Seat {
    tenants: Arc<Tenants>,
    tenant: TenantId,
    /// The number of its threads that wait for jobs.
    busy: AtomicU32,
}

impl Seat {
    /// A place in the tenant with the fewest users.
    pub(crate) fn take(tenants: &Arc<Tenants>) -> Seat {
        let mut users = tenants.users.lock();
        let index = (1..TENANTS_MAX).min_by_key(|index| users[*index]);
        let tenant = TenantId::new(index.unwrap_or_default());
        users[tenant.index()] += 1;
        Seat {
            tenants: Arc::clone(tenants),
            tenant,
            busy: AtomicU32::new(0),
        }
    }

    /// The user has something to do, until as many calls of [`Seat::end_work`].
    pub(crate) fn begin_work(&self) {
        if self.busy.fetch_add(1, Ordering::Relaxed) == 0 {
            self.tenants.busy[self.tenant.index()].fetch_add(1, Ordering::Relaxed);
            self.tenants.weigh(self.tenant);
        }
    }

    pub(crate) fn end_work(&self) {
        if self.busy.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.tenants.busy[self.tenant.index()].fetch_sub(1, Ordering::Relaxed);
            self.tenants.weigh(self.tenant);
        }
    }

    pub(crate) fn tenant(&self) -> TenantId {
        self.tenant
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.tenants.users.lock()[self.tenant.index()] -= 1;
    }
}
