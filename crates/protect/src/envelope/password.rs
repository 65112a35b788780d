//! Keys from passwords: Argon2id (RFC 9106), version 1.3.

use argon2::{Algorithm, Argon2, Params, Version};
use zeroize::Zeroizing;

use super::derive::Secret;

/// The size of the salt of a password in bytes.
pub const PASSWORD_SALT_BYTES: usize = 16;

/// How much a guess of a password costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PasswordCost {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over the memory.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
}

impl PasswordCost {
    /// What writers use at least, and what readers accept at least: a cheaper slot was not written
    /// by this program, and invites guessing.
    pub const MIN: PasswordCost = PasswordCost {
        memory_kib: 8 << 10,
        passes: 1,
        lanes: 1,
    };

    /// The work in KiB over all passes, which readers bound: [`PasswordCost::WORK_KIB_MAX`].
    #[must_use]
    pub fn work_kib(&self) -> u64 {
        u64::from(self.memory_kib) * u64::from(self.passes)
    }

    /// The work that a reader accepts: about a minute of a core.
    pub const WORK_KIB_MAX: u64 = 64 << 20;

    /// The memory that a reader accepts.
    pub const MEMORY_KIB_MAX: u32 = 4 << 20;

    /// Whether a reader accepts it, before any work.
    #[must_use]
    pub fn is_acceptable(&self) -> bool {
        (Self::MIN.memory_kib..=Self::MEMORY_KIB_MAX).contains(&self.memory_kib)
            && (1..=64).contains(&self.lanes)
            && self.passes >= Self::MIN.passes
            && self.work_kib() <= Self::WORK_KIB_MAX
    }

    /// The key of a password. `None` if the cost is not [acceptable](Self::is_acceptable), or the
    /// password is longer than 2^32 bytes.
    pub(super) fn key(&self, password: &[u8], salt: &[u8; PASSWORD_SALT_BYTES]) -> Option<Secret> {
        if !self.is_acceptable() {
            return None;
        }
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(32)).ok()?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut key = Zeroizing::new([0; 32]);
        argon2.hash_password_into(password, salt, &mut *key).ok()?;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_bounded_before_work() {
        let cost = |memory_kib, passes, lanes| PasswordCost {
            memory_kib,
            passes,
            lanes,
        };
        assert!(PasswordCost::MIN.is_acceptable());
        assert!(cost(1 << 20, 64, 4).is_acceptable());
        for refused in [
            cost(1, 1, 1),
            cost(8 << 10, 0, 1),
            cost(8 << 10, 1, 0),
            cost(u32::MAX, 1, 1),
            cost(4 << 20, 64, 1),
            cost(8 << 10, u32::MAX, 1),
        ] {
            assert!(!refused.is_acceptable(), "{refused:?}");
            assert!(refused.key(b"", &[0; 16]).is_none());
        }
    }

    #[test]
    fn keys_depend_on_password_salt_and_cost() {
        let cost = PasswordCost::MIN;
        let key = cost.key(b"a", &[1; 16]).unwrap();
        assert_eq!(key, cost.key(b"a", &[1; 16]).unwrap());
        assert_ne!(key, cost.key(b"b", &[1; 16]).unwrap());
        assert_ne!(key, cost.key(b"a", &[2; 16]).unwrap());
        let slower = PasswordCost { passes: 2, ..cost };
        assert_ne!(key, slower.key(b"a", &[1; 16]).unwrap());
    }
}
