//! Slots: the file key, wrapped for one password or key.

use aegis::aegis256::Aegis256;
use x_wing::{Ciphertext, Decapsulate, DecapsulationKey, EncapsulationKey};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use super::derive::{Secret, derive};
use super::file_key::{FILE_KEY_BYTES, FileKey, SALT_BYTES};
use super::password::{PASSWORD_SALT_BYTES, PasswordCost};
use super::recipient::{Identity, Recipient};

/// The size of a wrapped file key in bytes: its ciphertext and a tag of 32 bytes.
pub const WRAPPED_KEY_BYTES: usize = FILE_KEY_BYTES + 32;

/// The size of an ephemeral X25519 key in bytes.
pub const X25519_SHARE_BYTES: usize = 32;

/// The size of X-Wing's ciphertext in bytes.
pub const HYBRID_SHARE_BYTES: usize = 1120;

/// How many random bytes a slot takes.
pub const SLOT_RANDOM_BYTES: usize = 64;

/// The file key, wrapped for one password or key. Slots do not say for which: a holder tries all of
/// the kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    /// For a password.
    Password {
        /// What a guess costs.
        cost: PasswordCost,
        /// The salt of the password.
        salt: [u8; PASSWORD_SALT_BYTES],
        /// The wrapped file key.
        wrapped: [u8; WRAPPED_KEY_BYTES],
    },
    /// For an X25519 key.
    X25519 {
        /// The ephemeral public key.
        share: [u8; X25519_SHARE_BYTES],
        /// The wrapped file key.
        wrapped: [u8; WRAPPED_KEY_BYTES],
    },
    /// For an X-Wing key, which also resists quantum computers.
    Hybrid {
        /// X-Wing's ciphertext.
        share: Box<[u8; HYBRID_SHARE_BYTES]>,
        /// The wrapped file key.
        wrapped: [u8; WRAPPED_KEY_BYTES],
    },
}

const PASSWORD: u8 = 1;
const X25519: u8 = 2;
const HYBRID: u8 = 3;

impl Slot {
    /// A slot for a password. `None` if the cost is not acceptable.
    #[must_use]
    pub fn for_password(
        file_key: &FileKey,
        archive_salt: &[u8; SALT_BYTES],
        password: &[u8],
        cost: PasswordCost,
        salt: [u8; PASSWORD_SALT_BYTES],
    ) -> Option<Slot> {
        let key = wrapping_key(PASSWORD, archive_salt, &*cost.key(password, &salt)?, &[]);
        let wrapped = wrap(file_key, &key);
        Some(Slot::Password {
            cost,
            salt,
            wrapped,
        })
    }

    /// A slot for a recipient, from bytes that are random and used for nothing else. `None` if the
    /// recipient's key is not a point that keeps a secret.
    #[must_use]
    pub fn for_recipient(
        file_key: &FileKey,
        archive_salt: &[u8; SALT_BYTES],
        recipient: &Recipient,
        random: &[u8; SLOT_RANDOM_BYTES],
    ) -> Option<Slot> {
        match recipient {
            Recipient::X25519(public) => {
                let mut secret = Zeroizing::new([0; 32]);
                secret.copy_from_slice(&random[..32]);
                let secret = StaticSecret::from(*secret);
                let share = PublicKey::from(&secret).to_bytes();
                let shared = secret.diffie_hellman(&PublicKey::from(*public));
                if !shared.was_contributory() {
                    return None;
                }
                let bound = [&share[..], public].concat();
                let key = wrapping_key(X25519, archive_salt, shared.as_bytes(), &bound);
                let wrapped = wrap(file_key, &key);
                Some(Slot::X25519 { share, wrapped })
            }
            Recipient::Hybrid(public) => {
                let public = EncapsulationKey::try_from(&public[..]).ok()?;
                let (share, shared) = public.encapsulate_deterministic(random.into());
                let mut bytes = Box::new([0; HYBRID_SHARE_BYTES]);
                bytes.copy_from_slice(&share);
                // X-Wing's shared key already binds the X25519 part and the public key.
                let key = wrapping_key(HYBRID, archive_salt, &shared, &bytes[..]);
                let wrapped = wrap(file_key, &key);
                Some(Slot::Hybrid {
                    share: bytes,
                    wrapped,
                })
            }
        }
    }

    /// The key that opens a slot with a password, which takes as long as the slot states. Slots
    /// with the same cost and salt have the same. `None` for other slots and unacceptable costs.
    #[must_use]
    pub fn password_key(&self, password: &[u8]) -> Option<PasswordKey> {
        match self {
            Slot::Password { cost, salt, .. } => Some(PasswordKey {
                key: cost.key(password, salt)?,
                cost: *cost,
                salt: *salt,
            }),
            Slot::X25519 { .. } | Slot::Hybrid { .. } => None,
        }
    }

    /// The file key, if this slot is for this password.
    #[must_use]
    pub fn open_with_password(
        &self,
        archive_salt: &[u8; SALT_BYTES],
        password: &PasswordKey,
    ) -> Option<FileKey> {
        match self {
            Slot::Password { wrapped, .. } if password.is_for(self) => {
                let key = wrapping_key(PASSWORD, archive_salt, &*password.key, &[]);
                unwrap_key(wrapped, &key)
            }
            _ => None,
        }
    }

    /// The file key, if this slot is for this identity.
    #[must_use]
    pub fn open_with_identity(
        &self,
        archive_salt: &[u8; SALT_BYTES],
        identity: &Identity,
    ) -> Option<FileKey> {
        match (self, identity) {
            (Slot::X25519 { share, wrapped }, Identity::X25519(secret)) => {
                let secret = StaticSecret::from(**secret);
                let shared = secret.diffie_hellman(&PublicKey::from(*share));
                if !shared.was_contributory() {
                    return None;
                }
                let bound = [&share[..], PublicKey::from(&secret).as_bytes()].concat();
                let key = wrapping_key(X25519, archive_salt, shared.as_bytes(), &bound);
                unwrap_key(wrapped, &key)
            }
            (Slot::Hybrid { share, wrapped }, Identity::Hybrid(secret)) => {
                let secret = DecapsulationKey::from(**secret);
                let ciphertext = Ciphertext::try_from(&share[..]).ok()?;
                let shared = Zeroizing::new(secret.decapsulate(&ciphertext));
                let key = wrapping_key(HYBRID, archive_salt, &shared[..], &share[..]);
                unwrap_key(wrapped, &key)
            }
            _ => None,
        }
    }
}

/// The key of a password, for all slots with one cost and salt.
pub struct PasswordKey {
    key: Secret,
    cost: PasswordCost,
    salt: [u8; PASSWORD_SALT_BYTES],
}

impl std::fmt::Debug for PasswordKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordKey")
    }
}

impl PasswordKey {
    /// Whether it may open this slot: another one needs a key of its own.
    #[must_use]
    pub fn is_for(&self, slot: &Slot) -> bool {
        match slot {
            Slot::Password { cost, salt, .. } => (*cost, *salt) == (self.cost, self.salt),
            Slot::X25519 { .. } | Slot::Hybrid { .. } => false,
        }
    }
}

/// The key that wraps: it belongs to one kind of slot, archive, secret and what was agreed in the
/// open.
fn wrapping_key(kind: u8, archive_salt: &[u8; SALT_BYTES], secret: &[u8], bound: &[u8]) -> Secret {
    derive(
        "refrain envelope 1 slot",
        &[&[kind], archive_salt, secret, bound],
    )
}

/// A wrapping key is used for one plaintext, so its nonce is constant. The tag of 32 bytes keeps
/// one wrapped key from opening with two passwords.
fn state(key: &Secret) -> Aegis256<32> {
    Aegis256::new(key, &[0; 32])
}

fn wrap(file_key: &FileKey, key: &Secret) -> [u8; WRAPPED_KEY_BYTES] {
    let mut wrapped = [0; WRAPPED_KEY_BYTES];
    let (ciphertext, tag) = wrapped.split_at_mut(FILE_KEY_BYTES);
    ciphertext.copy_from_slice(&*file_key.0);
    tag.copy_from_slice(&state(key).encrypt_in_place(ciphertext, &[]));
    wrapped
}

fn unwrap_key(wrapped: &[u8; WRAPPED_KEY_BYTES], key: &Secret) -> Option<FileKey> {
    let (ciphertext, found) = wrapped.split_at(FILE_KEY_BYTES);
    let mut tag = [0; 32];
    tag.copy_from_slice(found);
    let mut file_key = Zeroizing::new([0; FILE_KEY_BYTES]);
    file_key.copy_from_slice(ciphertext);
    let opened = state(key).decrypt_in_place(&mut *file_key, &tag, &[]);
    opened.ok().map(|()| FileKey(file_key))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: [u8; 32] = [9; 32];

    fn identities() -> [Identity; 2] {
        [
            Identity::X25519(Zeroizing::new([3; 32])),
            Identity::Hybrid(Zeroizing::new([4; 32])),
        ]
    }

    #[test]
    fn slots_open_with_their_own_key_only() {
        let file_key = FileKey::new([1; 32]);
        let identities = identities();
        for (number, identity) in identities.iter().enumerate() {
            let recipient = identity.recipient();
            let slot = Slot::for_recipient(&file_key, &SALT, &recipient, &[5; 64]).unwrap();
            for (other, tried) in identities.iter().enumerate() {
                let opened = slot.open_with_identity(&SALT, tried);
                assert_eq!(opened, (number == other).then(|| file_key.clone()));
            }
            assert_eq!(slot.open_with_identity(&[8; 32], identity), None);
            assert!(slot.password_key(b"x").is_none());
        }
    }

    #[test]
    fn passwords_open_slots_of_their_cost_and_salt() {
        let file_key = FileKey::new([1; 32]);
        let cost = PasswordCost::MIN;
        let slot = |password: &[u8], salt| {
            Slot::for_password(&file_key, &SALT, password, cost, salt).unwrap()
        };
        let slots = [
            slot(b"a", [1; 16]),
            slot(b"b", [1; 16]),
            slot(b"a", [2; 16]),
        ];
        let key = slots[0].password_key(b"a").unwrap();
        let opened = slots
            .each_ref()
            .map(|slot| slot.open_with_password(&SALT, &key).is_some());
        assert_eq!(opened, [true, false, false]);
        assert!(key.is_for(&slots[1]) && !key.is_for(&slots[2]));
        assert_eq!(slots[0].open_with_identity(&SALT, &identities()[0]), None);
    }

    #[test]
    fn a_changed_slot_opens_nothing() {
        let file_key = FileKey::new([1; 32]);
        let identity = &identities()[0];
        let recipient = identity.recipient();
        let slot = Slot::for_recipient(&file_key, &SALT, &recipient, &[5; 64]).unwrap();
        let Slot::X25519 { share, wrapped } = slot else {
            panic!("another slot");
        };
        let is_opened = |share, wrapped| {
            let slot = Slot::X25519 { share, wrapped };
            slot.open_with_identity(&SALT, identity).is_some()
        };
        assert!(is_opened(share, wrapped));
        assert!(
            !is_opened([0; 32], wrapped),
            "a share that agrees on nothing"
        );
        for at in 0..WRAPPED_KEY_BYTES {
            let mut changed = wrapped;
            changed[at] ^= 1;
            assert!(!is_opened(share, changed), "{at}");
        }
        let mut changed = share;
        changed[0] ^= 1;
        assert!(!is_opened(changed, wrapped));
    }

    #[test]
    fn recipients_that_keep_no_secret_are_refused() {
        let file_key = FileKey::new([1; 32]);
        let weak = Recipient::X25519([0; 32]);
        assert_eq!(Slot::for_recipient(&file_key, &SALT, &weak, &[5; 64]), None);
    }
}
