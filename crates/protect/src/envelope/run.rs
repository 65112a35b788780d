//! Runs: what is appended to an encrypted archive, each encrypted with a key of its own.
//!
//! A run that was cut off may be followed by another one at the same place, so the place alone
//! cannot make a nonce. Each run draws a salt, and its [link](run_link) hashes all salts and places
//! up to it: the keys that follow from the link belong to one run of one version of one archive.

use std::fmt;

use aegis::aegis256::Aegis256;

use super::derive::{Secret, derive};
use super::file_key::{FileKey, SALT_BYTES};
use super::record::{NotAuthentic, RecordCipher};

/// The size of a [link](run_link) in bytes.
pub const LINK_BYTES: usize = 32;

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

impl FileKey {
    /// The cipher of the records of the run with this link.
    #[must_use]
    pub fn run_records(&self, salt: &[u8; SALT_BYTES], link: &[u8; LINK_BYTES]) -> RecordCipher {
        RecordCipher::new(derive("refrain envelope 1 run", &[&*self.0, salt, link]))
    }

    /// The cipher of its table.
    #[must_use]
    pub fn run_table(&self, salt: &[u8; SALT_BYTES], link: &[u8; LINK_BYTES]) -> TableCipher {
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
                key.run_records(&salt, link).seal(0, false, &mut record);
                seen.push(record[..32].to_vec());
                seen.push(key.run_table(&salt, link).seal(vec![0; RECORD_BYTES])[..32].to_vec());
            }
        }
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn tables_open_as_they_were_sealed_only() {
        let cipher = || FileKey::new([1; 32]).run_table(&[2; 32], &[3; 32]);
        let sealed = cipher().seal(b"table".to_vec());
        assert_eq!(sealed.len(), 5 + TABLE_TAG_BYTES);
        assert_eq!(cipher().open(&sealed), Ok(b"table".to_vec()));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(cipher().open(&changed), Err(NotAuthentic), "{at}");
        }
        assert_eq!(cipher().open(&sealed[..20]), Err(NotAuthentic));
        let other = FileKey::new([1; 32]).run_table(&[2; 32], &[4; 32]);
        assert_eq!(other.open(&sealed), Err(NotAuthentic));
    }
}
