//! The order of flows in one `u64`: smaller runs first.

use super::{Class, TenantId};

/// A flow's place in the order: class, then virtual deadline; the tenant is carried along.
///
/// | bits | what |
/// |---|---|
/// | 63–62 | class: isochronous before normal before idle; 3 is [`Key::NONE`] alone |
/// | 61–6 | virtual deadline in units of 64 ns |
/// | 5–0 | tenant |
///
/// So one word can be published by a worker or a stripe and read without a lock. That all of the order fits one `u64` is
/// MuQSS's idea (0.210); its key has no tenant. Time wraps never: the deadline saturates after 146 years of virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

const CLASS_SHIFT: u32 = 62;
const TENANT_BITS: u32 = 6;
const TENANT_MASK: u64 = (1 << TENANT_BITS) - 1;
const DEADLINE_MASK: u64 = (1 << CLASS_SHIFT) - 1 - TENANT_MASK;

/// Tenants that there can be.
pub const TENANTS_MAX: usize = 1 << TENANT_BITS;

/// Deadlines that differ by less are the same to a [`Key`], in nanoseconds.
pub const DEADLINE_STEP_NS: u64 = 1 << TENANT_BITS;

impl Default for Key {
    /// [`Key::NONE`].
    fn default() -> Key {
        Key::NONE
    }
}

impl Key {
    /// No flow: an idle worker, an empty stripe. After every other key.
    pub const NONE: Key = Key(u64::MAX);

    /// The key of a flow of this class and tenant with this virtual deadline.
    pub const fn new(class: Class, tenant: TenantId, deadline_ns: u64) -> Key {
        let deadline = if deadline_ns > DEADLINE_MASK {
            DEADLINE_MASK
        } else {
            deadline_ns & DEADLINE_MASK
        };
        Key((class as u64) << CLASS_SHIFT | deadline | tenant.index() as u64)
    }

    /// The word to publish.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// A key that was published. Every word is some key, so a torn or foreign one does no harm.
    pub const fn from_bits(bits: u64) -> Key {
        match bits >> CLASS_SHIFT {
            0..=2 => Key(bits),
            _ => Key::NONE,
        }
    }

    /// Whether there is a flow.
    pub fn is_some(self) -> bool {
        self != Key::NONE
    }

    /// The flow's class; none for [`Key::NONE`].
    pub fn class(self) -> Option<Class> {
        Class::from_index((self.0 >> CLASS_SHIFT) as usize)
    }

    /// The flow's tenant.
    pub fn tenant(self) -> TenantId {
        TenantId::new((self.0 & TENANT_MASK) as usize)
    }

    /// Class and tenant as one number: flows with the same are ordered by key alone. None for
    /// [`Key::NONE`].
    pub fn lane(self) -> Option<usize> {
        Some(self.class()? as usize * TENANTS_MAX + self.tenant().index())
    }

    /// The flow's virtual deadline, rounded down to [`DEADLINE_STEP_NS`].
    pub fn deadline_ns(self) -> u64 {
        self.0 & DEADLINE_MASK
    }
}

/// A key seen by a policy: what decides between flows of different tenants. Smaller runs first.
///
/// Two ranks can be compared only when both were made at the same moment: what a tenant has had changes all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// Class first.
    pub class: u8,
    /// Then what the tenant has had; 0 where tenants are not told apart.
    pub tenant_time_ns: u64,
    /// Then the flow's own place within its tenant.
    pub order: u64,
}

impl Rank {
    /// After every flow.
    pub const LAST: Rank = Rank {
        class: u8::MAX,
        tenant_time_ns: u64::MAX,
        order: u64::MAX,
    };

    /// By the key alone, where tenants are not told apart.
    pub const fn of(key: Key) -> Rank {
        Rank {
            class: 0,
            tenant_time_ns: 0,
            order: key.bits(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn class(index: usize) -> Class {
        Class::from_index(index).unwrap()
    }

    proptest! {
        #[test]
        fn orders_by_class_then_deadline(
            a in (0usize..3, 0usize..TENANTS_MAX, 0u64..1 << 61),
            b in (0usize..3, 0usize..TENANTS_MAX, 0u64..1 << 61),
        ) {
            let key = |(index, tenant, deadline): (usize, usize, u64)| {
                Key::new(class(index), TenantId::new(tenant), deadline)
            };
            let plain = |(index, tenant, deadline): (usize, usize, u64)| {
                (index, deadline / DEADLINE_STEP_NS, tenant)
            };
            prop_assert_eq!(key(a).cmp(&key(b)), plain(a).cmp(&plain(b)));
            let back = (key(a).class(), key(a).tenant().index(), key(a).deadline_ns() / DEADLINE_STEP_NS);
            prop_assert_eq!(back, (Some(class(a.0)), a.1, a.2 / DEADLINE_STEP_NS));
            prop_assert!(key(a) < Key::NONE);
        }

        #[test]
        fn any_word_is_a_key(bits: u64) {
            let key = Key::from_bits(bits);
            prop_assert_eq!(key.is_some(), key.class().is_some());
            prop_assert_eq!(Key::from_bits(key.bits()), key);
        }
    }

    #[test]
    fn the_deadline_saturates_inside_its_class() {
        let last = Key::new(Class::Normal, TenantId::default(), u64::MAX);
        assert_eq!(last.class(), Some(Class::Normal));
        assert!(last > Key::new(Class::Normal, TenantId::default(), 1 << 60));
        assert!(last < Key::new(Class::Idle, TenantId::default(), 0));
    }
}
