//! Runs: what is appended to an encrypted archive, each encrypted with a key of its own.
//!
//! A run that was cut off may be followed by another one at the same place, so the place alone
//! cannot make a nonce. Each run draws a salt, and its [link](run_link) hashes all salts and places
//! up to it: the keys that follow from the link belong to one run of one version of one archive.
//!
//! A run whose writer has only the public half of a key pair that follows from the archive's key is
//! encrypted with a secret that it agrees with whoever has the other half (X-Wing).

use std::fmt;

use aegis::aegis256::Aegis256;
use x_wing::{Ciphertext, Decapsulate, DecapsulationKey, EncapsulationKey};
use zeroize::Zeroizing;

use super::derive::{Secret, derive};
use super::file_key::{FileKey, SALT_BYTES};
use super::recipient::{Identity, Recipient};
use super::record::{NotAuthentic, RecordCipher};
use super::slot::{HYBRID_SHARE_BYTES, SLOT_RANDOM_BYTES};

/// The size of a [link](run_link) in bytes.
pub const LINK_BYTES: usize = 32;

/// The size of a [`RunKey`] in bytes.
pub const RUN_KEY_BYTES: usize = 32;

/// The size of the tag of a sealed table in bytes.
pub const TABLE_TAG_BYTES: usize = 32;

/// The link of the run with this salt whose records begin at `position`, in bytes from the first
/// record of the archive. `previous` is that of the run before; of the first, the archive's salt.
/// It is public.
#[must_use]
pub fn run_link(
    previous: &[u8; LINK_BYTES],
    salt: &[u8; SALT_BYTES],
    position: u64,
) -> [u8; LINK_BYTES] {
    let parts: [&[u8]; 3] = [previous, salt, &position.to_le_bytes()];
    *derive("refrain envelope 1 link", &parts)
}

/// What the writer of a run without the archive's key publishes: X-Wing's ciphertext.
pub type RunShare = Box<[u8; HYBRID_SHARE_BYTES]>;

/// What the keys of a run follow from, besides its link: the archive's key, or a secret that was
/// agreed for this run. Erased when dropped.
#[derive(Clone)]
pub struct RunKey(Secret);

impl fmt::Debug for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunKey")
    }
}

impl FileKey {
    /// The key of runs that are written with the archive's key.
    #[must_use]
    pub fn run_key(&self) -> RunKey {
        RunKey(self.0.clone())
    }

    /// The key of runs that those may read who have it and not the archive's key: they say which
    /// generations are kept, and have no content.
    #[must_use]
    pub fn writers_key(&self, salt: &[u8; SALT_BYTES]) -> RunKey {
        RunKey(derive("refrain envelope 1 run writers", &[&*self.0, salt]))
    }

    /// The key pair (X-Wing) of runs that are written without the archive's key, by who has its
    /// public half.
    #[must_use]
    pub fn run_pair(&self, salt: &[u8; SALT_BYTES]) -> Identity {
        Identity::Hybrid(derive("refrain envelope 1 run pair", &[&*self.0, salt]))
    }
}

impl RunKey {
    /// The key with these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; RUN_KEY_BYTES]) -> RunKey {
        RunKey(Zeroizing::new(bytes))
    }

    /// Its bytes, which are secret.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; RUN_KEY_BYTES] {
        &self.0
    }

    /// Agrees on the key of a run with whoever has the other half of a key pair, from bytes that
    /// are random and used for nothing else. `None` for another kind of key.
    #[must_use]
    pub fn agree(
        public: &Recipient,
        random: &[u8; SLOT_RANDOM_BYTES],
    ) -> Option<(RunShare, RunKey)> {
        let Recipient::Hybrid(public) = public else { return None };
        let public = EncapsulationKey::try_from(&public[..]).ok()?;
        let (ciphertext, shared) = public.encapsulate_deterministic(random.into());
        let mut share = Box::new([0; HYBRID_SHARE_BYTES]);
        share.copy_from_slice(&ciphertext);
        let key = RunKey::new(&Zeroizing::new(shared)[..], &share);
        Some((share, key))
    }

    /// The key that was agreed on with the public half of `pair`; for a share that was made for
    /// another one, a key that opens nothing. `None` for another kind of key.
    #[must_use]
    pub fn of_share(pair: &Identity, share: &RunShare) -> Option<RunKey> {
        let Identity::Hybrid(secret) = pair else { return None };
        let ciphertext = Ciphertext::try_from(&share[..]).ok()?;
        let shared = Zeroizing::new(DecapsulationKey::from(**secret).decapsulate(&ciphertext));
        Some(RunKey::new(&shared[..], share))
    }

    fn new(shared: &[u8], share: &RunShare) -> RunKey {
        RunKey(derive(
            "refrain envelope 1 run share",
            &[shared, &share[..]],
        ))
    }

    /// The cipher of the records of the run with this link.
    #[must_use]
    pub fn records(&self, salt: &[u8; SALT_BYTES], link: &[u8; LINK_BYTES]) -> RecordCipher {
        RecordCipher::new(derive("refrain envelope 1 run", &[&*self.0, salt, link]))
    }

    /// The cipher of its table.
    #[must_use]
    pub fn table(&self, salt: &[u8; SALT_BYTES], link: &[u8; LINK_BYTES]) -> TableCipher {
        let parts: [&[u8]; 3] = [&*self.0, salt, link];
        TableCipher(derive("refrain envelope 1 run table", &parts))
    }
}

/// Encrypts and decrypts the table of one run.
pub struct TableCipher(Secret);

impl fmt::Debug for TableCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TableCipher")
    }
}

impl TableCipher {
    /// The ciphertext of the only table of the run, and the tag behind it.
    #[must_use]
    pub fn seal(self, mut table: Vec<u8>) -> Vec<u8> {
        let tag = self.state().encrypt_in_place(&mut table, &[]);
        table.extend_from_slice(&tag);
        table
    }

    /// The table.
    ///
    /// # Errors
    /// [`NotAuthentic`].
    pub fn open(&self, sealed: &[u8]) -> Result<Vec<u8>, NotAuthentic> {
        let (content, tag) = sealed.split_last_chunk().ok_or(NotAuthentic)?;
        let mut content = content.to_vec();
        let opened = self.state().decrypt_in_place(&mut content, tag, &[]);
        opened.map_err(|_| NotAuthentic)?;
        Ok(content)
    }

    /// The key is used once, so the nonce can be zeros.
    fn state(&self) -> Aegis256<TABLE_TAG_BYTES> {
        Aegis256::new(&self.0, &[0; 32])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RECORD_BYTES, SEALED_RECORD_BYTES};
    use super::*;

    #[test]
    fn keys_depend_on_everything_before() {
        let key = FileKey::new([1; 32]);
        let (first, second) = (
            run_link(&[2; 32], &[3; 32], 5),
            run_link(&[2; 32], &[4; 32], 5),
        );
        let links = [
            first,
            second,
            run_link(&[2; 32], &[3; 32], 6),
            run_link(&first, &[5; 32], 9),
            run_link(&second, &[5; 32], 9),
        ];
        let mut seen = Vec::new();
        let keys = [key.clone(), FileKey::new([9; 32])];
        for (key, salt) in keys.iter().flat_map(|key| [(key, [2; 32]), (key, [7; 32])]) {
            let mut base = [0; SEALED_RECORD_BYTES];
            key.records(&salt).seal(0, false, &mut base);
            seen.push(base[..32].to_vec());
            for link in &links {
                let mut record = [0; SEALED_RECORD_BYTES];
                key.run_key()
                    .records(&salt, link)
                    .seal(0, false, &mut record);
                seen.push(record[..32].to_vec());
                seen.push(
                    key.run_key().table(&salt, link).seal(vec![0; RECORD_BYTES])[..32].to_vec(),
                );
            }
        }
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn tables_open_as_they_were_sealed_only() {
        let cipher = || FileKey::new([1; 32]).run_key().table(&[2; 32], &[3; 32]);
        let sealed = cipher().seal(b"table".to_vec());
        assert_eq!(sealed.len(), 5 + TABLE_TAG_BYTES);
        assert_eq!(cipher().open(&sealed), Ok(b"table".to_vec()));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(cipher().open(&changed), Err(NotAuthentic), "{at}");
        }
        assert_eq!(cipher().open(&sealed[..20]), Err(NotAuthentic));
        let other = FileKey::new([1; 32]).run_key().table(&[2; 32], &[4; 32]);
        assert_eq!(other.open(&sealed), Err(NotAuthentic));
    }

    #[test]
    fn a_key_is_agreed_with_the_other_half_only() {
        let (file_key, salt) = (FileKey::new([1; 32]), [2; 32]);
        let pair = file_key.run_pair(&salt);
        let (share, key) = RunKey::agree(&pair.recipient(), &[3; 64]).unwrap();
        let sealed = key.table(&salt, &[4; 32]).seal(b"table".to_vec());
        let open = |pair: &Identity, share: &RunShare| {
            let key = RunKey::of_share(pair, share).unwrap();
            key.table(&salt, &[4; 32]).open(&sealed)
        };
        assert_eq!(open(&pair, &share), Ok(b"table".to_vec()));
        for other in [
            file_key.run_pair(&[9; 32]),
            FileKey::new([9; 32]).run_pair(&salt),
        ] {
            assert_eq!(open(&other, &share), Err(NotAuthentic));
        }
        for at in 0..share.len() {
            let mut changed = share.clone();
            changed[at] ^= 1;
            assert_eq!(open(&pair, &changed), Err(NotAuthentic), "{at}");
        }
        let file_cipher = file_key.run_key().table(&salt, &[4; 32]);
        assert_eq!(file_cipher.open(&sealed), Err(NotAuthentic));
        let x25519 = Identity::X25519(Zeroizing::new([5; 32]));
        assert!(RunKey::agree(&x25519.recipient(), &[3; 64]).is_none());
        assert!(RunKey::of_share(&x25519, &share).is_none());
    }
}
