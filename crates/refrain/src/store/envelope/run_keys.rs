//! The keys of the runs of an archive, for who has the archive's key.

use std::collections::HashMap;
use std::sync::OnceLock;

use refrain_format::envelope::run::RunSecret;
use refrain_pool::Lock;
use refrain_protect::envelope::{FileKey, Identity, LINK_BYTES, RunKey, SALT_BYTES};

use crate::error::{Error, ErrorKind, Result};

/// Knows the key of a run by the archive's key, or by the share of the run.
pub(super) struct RunKeys {
    file_key: FileKey,
    salt: [u8; SALT_BYTES],
    /// Made once: deriving an X-Wing key takes a tenth of a millisecond, as opening a share does.
    pair: OnceLock<Identity>,
    shared: Lock<HashMap<[u8; LINK_BYTES], RunKey>>,
}

impl RunKeys {
    pub(super) fn new(file_key: &FileKey, salt: &[u8; SALT_BYTES]) -> RunKeys {
        RunKeys {
            file_key: file_key.clone(),
            salt: *salt,
            pair: OnceLock::new(),
            shared: Lock::default(),
        }
    }

    /// The key of a run with a secret.
    pub(super) fn of(&self, secret: &RunSecret) -> Result<RunKey> {
        let share = match secret {
            RunSecret::Archive => return Ok(self.file_key.run_key()),
            RunSecret::Writers => return Ok(self.file_key.writers_key(&self.salt)),
            RunSecret::Shared(share) => share,
        };
        let pair = self.pair.get_or_init(|| self.file_key.run_pair(&self.salt));
        let key = RunKey::of_share(pair, share);
        key.ok_or_else(|| Error::new(ErrorKind::Internal, "the pair is of another kind"))
    }

    /// The key of a run with this link, whose secret is read once.
    pub(super) fn of_shared(
        &self,
        link: &[u8; LINK_BYTES],
        read_secret: impl FnOnce() -> Result<RunSecret>,
    ) -> Result<RunKey> {
        if let Some(known) = self.shared.lock().get(link) {
            return Ok(known.clone());
        }
        let key = self.of(&read_secret()?)?;
        self.shared.lock().insert(*link, key.clone());
        Ok(key)
    }
}
