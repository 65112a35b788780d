//! The scheduling order of flows as one `u64`: smaller runs first.

use crate::class::{Class, TENANT_BITS, TENANTS_MAX, TenantId};

/// The position of a flow in the scheduling order: class, then virtual deadline. The tenant is
/// included.
///
/// | bits | content |
/// |---|---|
/// | 63–62 | class: isochronous before normal before idle; 3 is [`Key::NONE`] only |
/// | 61–8 | virtual deadline in units of 256 ns |
/// | 7–0 | tenant |
///
/// A worker or a stripe can therefore publish its key in one atomic word that others read without a
/// lock. Packing the whole order into one `u64` is MuQSS's idea (0.210); its key has no tenant. The
/// deadline does not wrap: it saturates after 146 years of virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

const CLASS_SHIFT: u32 = 62;

const TENANT_MASK: u64 = (1 << TENANT_BITS) - 1;
const DEADLINE_MASK: u64 = (1 << CLASS_SHIFT) - 1 - TENANT_MASK;

/// The resolution of deadlines in a [`Key`], nanoseconds.
pub const DEADLINE_STEP_NS: u64 = 1 << TENANT_BITS;

impl Default for Key {
    /// [`Key::NONE`].
    fn default() -> Key {
        Key::NONE
    }
}

impl Key {
    /// No flow: an idle worker or an empty stripe. Orders after every other key.
    pub const NONE: Key = Key(u64::MAX);

    /// Returns the key of a flow of this class and tenant with this virtual deadline.
    pub const fn new(class: Class, tenant: TenantId, deadline_ns: u64) -> Key {
        let deadline = if deadline_ns > DEADLINE_MASK {
            DEADLINE_MASK
        } else {
            deadline_ns & DEADLINE_MASK
        };
        Key((class as u64) << CLASS_SHIFT | deadline | tenant.index() as u64)
    }

    /// The key as the word to publish.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the key of a published word. Every word is a valid key, so torn or foreign words are
    /// harmless.
    pub const fn from_bits(bits: u64) -> Key {
        match bits >> CLASS_SHIFT {
            0..=2 => Key(bits),
            _ => Key::NONE,
        }
    }

    /// Whether this is the key of a flow.
    pub fn is_some(self) -> bool {
        self != Key::NONE
    }

    /// The flow's class, or `None` for [`Key::NONE`].
    pub fn class(self) -> Option<Class> {
        Class::from_index((self.0 >> CLASS_SHIFT) as usize)
    }

    /// The flow's tenant.
    pub fn tenant(self) -> TenantId {
        TenantId::new((self.0 & TENANT_MASK) as usize)
    }

    /// Class and tenant as one number; flows of the same lane are ordered by their keys alone.
    /// `None` for [`Key::NONE`].
    pub fn lane(self) -> Option<usize> {
        Some(self.class()? as usize * TENANTS_MAX + self.tenant().index())
    }

    /// The flow's virtual deadline, rounded down to [`DEADLINE_STEP_NS`].
    pub fn deadline_ns(self) -> u64 {
        self.0 & DEADLINE_MASK
    }
}

/// A key as a policy ranks it against flows of other tenants. Smaller runs first.
///
/// Two ranks are comparable only if both were computed at the same moment, because the CPU time of
/// tenants changes all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// Compared first: the class.
    pub class: u8,
    /// Compared second: the CPU time of the tenant; 0 if the policy does not distinguish tenants.
    pub tenant_time_ns: u64,
    /// Compared last: the position of the flow within its tenant.
    pub order: u64,
}

impl Rank {
    /// Orders after every flow.
    pub const LAST: Rank = Rank {
        class: u8::MAX,
        tenant_time_ns: u64::MAX,
        order: u64::MAX,
    };

    /// Returns the rank by the key alone, for policies that do not distinguish tenants.
    pub const fn from_key(key: Key) -> Rank {
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

        #![proptest_config(ProptestConfig::with_cases(refrain_testkit::scaled(256)))]

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
