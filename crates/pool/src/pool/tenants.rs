//! Hands out the tenants of a pool.
//!
//! Tenants get equal shares of the processors, whatever the number of their flows. There are fewer
//! tenants than a server may have users, so users may have to share one; its weight is then the
//! number of its users, and each user still gets an equal share.

use std::sync::Arc;

use refrain_policy::{TENANTS_MAX, TenantId, WEIGHT_DEFAULT};
use refrain_sync::plain::Mutex;

use super::state::domain::Domain;

/// The tenants of the flows of a domain.
pub(crate) struct Tenants {
    domain: Arc<Domain>,
    /// The number of users of each tenant. The first tenant is everything that has no other.
    users: Mutex<[u32; TENANTS_MAX]>,
}

impl Tenants {
    pub(crate) fn new(domain: &Arc<Domain>) -> Arc<Tenants> {
        Arc::new(Tenants {
            domain: Arc::clone(domain),
            users: Mutex::new([0; TENANTS_MAX]),
        })
    }

    /// Changes the number of a tenant's users, and its weight.
    fn change(&self, users: &mut [u32; TENANTS_MAX], tenant: TenantId, by: i32) {
        let count = &mut users[tenant.index()];
        *count = count.saturating_add_signed(by);
        let weight = WEIGHT_DEFAULT.saturating_mul((*count).max(1));
        self.domain.ledger.set_weight(tenant, weight);
    }
}

/// One user's place in a tenant, until it is dropped.
pub(crate) struct Seat {
    tenants: Arc<Tenants>,
    tenant: TenantId,
}

impl Seat {
    /// A place in the tenant with the fewest users.
    pub(crate) fn take(tenants: &Arc<Tenants>) -> Seat {
        let mut users = tenants.users.lock();
        let index = (1..TENANTS_MAX).min_by_key(|index| users[*index]);
        let tenant = TenantId::new(index.unwrap_or_default());
        tenants.change(&mut users, tenant, 1);
        Seat {
            tenants: Arc::clone(tenants),
            tenant,
        }
    }

    pub(crate) fn tenant(&self) -> TenantId {
        self.tenant
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut users = self.tenants.users.lock();
        self.tenants.change(&mut users, self.tenant, -1);
    }
}
