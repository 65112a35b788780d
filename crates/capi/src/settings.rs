//! Options as they were set, and what they are to the engine.

use std::fs;
use std::path::PathBuf;

use refrain::directory::RestoreOptions;
use refrain::lrzip::{LrzipBackEnd, LrzipCipher, LrzipEncryption, LrzipOptions};
use refrain::storage::{OutputOptions, Overwrite, RemoteOptions, S3Credentials, S3Options};
use refrain::{
    CodecChoice, CompressOptions, Encryption, Identity, Level, PasswordSource, Purpose,
    ReadOptions, Recipient, RecoveryShare, RestoreToOptions, TemporarySpace,
};
use refrain_pool::processors;
use refrain_storage::Durability;

use crate::failure::{Failure, Result};
use crate::numbers::*;
use crate::ranges::{self, out_of_range, refused, text};

/// Where temporary files go by default: a directory for large ones.
const TEMPORARY_DIRECTORY: &str = "/var/tmp";

/// Where systems keep the certificates that they trust; the first file that exists counts.
const CERTIFICATES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The format that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    #[default]
    Native,
    Lrzip,
}

/// What is restored of a damaged archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Damaged {
    #[default]
    Refuse,
    Omit,
    Keep,
}

/// Access to a store.
#[derive(Debug, Clone, Default)]
struct Store {
    endpoint: Option<String>,
    region: Option<String>,
    access_key_id: Option<String>,
    secret_access_key: Option<String>,
    session_token: Option<String>,
}

/// Options as they were set. What was not set is `None` or empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    level: Option<u8>,
    threads: usize,
    memory_bytes: Option<u64>,
    pub format: Format,
    pub damaged: Damaged,
    block_bytes: Option<u64>,
    reach_bytes: Option<u64>,
    is_for_serving: bool,
    overwrites: bool,
    syncs: bool,
    content_bytes_max: Option<u64>,
    lrzip_cipher: LrzipCipherChoice,
    codec: Option<CodecChoice>,
    password: Option<PasswordSource>,
    identities: Vec<Identity>,
    recipients: Vec<Recipient>,
    temporary: Option<PathBuf>,
    lrzip_back_end: LrzipBackEnd,
    certificates: Option<PathBuf>,
    member_name: Option<Vec<u8>>,
    recovery: Option<RecoveryShare>,
    store: Store,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LrzipCipherChoice {
    #[default]
    Gcm,
    Cbc,
}

impl Settings {
    /// Sets a `REFRAIN_OPTION_…` that is a number.
    pub(crate) fn set_number(&mut self, option: i32, value: i64) -> Result<()> {
        match option {
            REFRAIN_OPTION_LEVEL => self.level = Some(ranges::level(value)?),
            REFRAIN_OPTION_THREADS => self.threads = ranges::threads(value)?,
            REFRAIN_OPTION_MEMORY_BYTES => {
                self.memory_bytes = Some(ranges::memory_bytes(value)?);
            }
            REFRAIN_OPTION_FORMAT => {
                self.format = match i32::try_from(value) {
                    Ok(REFRAIN_FORMAT_NATIVE) => Format::Native,
                    Ok(REFRAIN_FORMAT_LRZIP) => Format::Lrzip,
                    _ => return Err(out_of_range(value)),
                };
            }
            REFRAIN_OPTION_BLOCK_BYTES => self.block_bytes = Some(ranges::block_bytes(value)?),
            REFRAIN_OPTION_REACH_BYTES => self.reach_bytes = Some(ranges::reach_bytes(value)?),
            REFRAIN_OPTION_FOR_SERVING => self.is_for_serving = ranges::flag(value)?,
            REFRAIN_OPTION_OVERWRITE => self.overwrites = ranges::flag(value)?,
            REFRAIN_OPTION_SYNC => self.syncs = ranges::flag(value)?,
            REFRAIN_OPTION_CONTENT_BYTES_MAX => {
                self.content_bytes_max = Some(ranges::bytes(value)?);
            }
            REFRAIN_OPTION_LRZIP_CIPHER => {
                self.lrzip_cipher = match i32::try_from(value) {
                    Ok(REFRAIN_LRZIP_AES256_GCM) => LrzipCipherChoice::Gcm,
                    Ok(REFRAIN_LRZIP_AES128_CBC) => LrzipCipherChoice::Cbc,
                    _ => return Err(out_of_range(value)),
                };
            }
            REFRAIN_OPTION_DAMAGED => {
                self.damaged = match i32::try_from(value) {
                    Ok(REFRAIN_DAMAGED_REFUSE) => Damaged::Refuse,
                    Ok(REFRAIN_DAMAGED_OMIT) => Damaged::Omit,
                    Ok(REFRAIN_DAMAGED_KEEP) => Damaged::Keep,
                    _ => return Err(out_of_range(value)),
                };
            }
            _ => return Err(no_option(option, "number")),
        }
        Ok(())
    }

    /// Sets a `REFRAIN_OPTION_…` that is a text.
    pub(crate) fn set_text(&mut self, option: i32, value: &[u8]) -> Result<()> {
        let path = || ranges::path(value).map(Some);
        let owned = || text(value).map(|value| Some(value.to_owned()));
        match option {
            REFRAIN_OPTION_CODEC => self.codec = Some(text(value)?.parse()?),
            REFRAIN_OPTION_PASSWORD => self.password = Some(ranges::password(value)?),
            REFRAIN_OPTION_IDENTITY => {
                let keys = Identity::from_file_text(text(value)?).map_err(refused)?;
                self.identities.extend(keys);
            }
            REFRAIN_OPTION_RECIPIENT => {
                let key = text(value)?.parse().map_err(refused)?;
                self.recipients.push(key);
            }
            REFRAIN_OPTION_TEMPORARY_DIRECTORY => self.temporary = path()?,
            REFRAIN_OPTION_LRZIP_BACK_END => self.lrzip_back_end = text(value)?.parse()?,
            REFRAIN_OPTION_CERTIFICATES => self.certificates = path()?,
            REFRAIN_OPTION_MEMBER_NAME => self.member_name = Some(ranges::member_name(value)?),
            REFRAIN_OPTION_RECOVERY => self.recovery = Some(text(value)?.parse()?),
            REFRAIN_OPTION_S3_ENDPOINT => self.store.endpoint = Some(ranges::endpoint(value)?),
            REFRAIN_OPTION_S3_REGION => self.store.region = owned()?,
            REFRAIN_OPTION_S3_ACCESS_KEY_ID => self.store.access_key_id = owned()?,
            REFRAIN_OPTION_S3_SECRET_ACCESS_KEY => self.store.secret_access_key = owned()?,
            REFRAIN_OPTION_S3_SESSION_TOKEN => self.store.session_token = owned()?,
            _ => return Err(no_option(option, "text")),
        }
        Ok(())
    }

    /// The name of the content of a stream.
    pub(crate) fn member_name(&self) -> Vec<u8> {
        self.member_name
            .clone()
            .unwrap_or_else(|| b"stdin".to_vec())
    }

    fn threads(&self) -> usize {
        if self.threads == 0 { processors() } else { self.threads }
    }

    /// The directory for temporary files, if there may be some.
    pub(crate) fn temporary(&self) -> Option<PathBuf> {
        let directory = self.temporary.clone();
        let directory = directory.unwrap_or_else(|| PathBuf::from(TEMPORARY_DIRECTORY));
        Some(directory).filter(|directory| !directory.as_os_str().is_empty())
    }

    pub(crate) fn compress_options(&self) -> CompressOptions {
        let usual = CompressOptions::default();
        let is_encrypted = self.password.is_some() || !self.recipients.is_empty();
        CompressOptions {
            level: self.level.map_or(usual.level, Level),
            purpose: if self.is_for_serving { Purpose::Serve } else { Purpose::Archive },
            codec: self.codec.clone(),
            block_bytes: self.block_bytes,
            threads: self.threads(),
            memory_bytes: self.memory_bytes,
            reach_bytes: self.reach_bytes,
            temporary: self.temporary().map(TemporarySpace::new),
            recovery: self.recovery,
            encryption: is_encrypted.then(|| Encryption {
                passwords: self.password.iter().cloned().collect(),
                recipients: self.recipients.clone(),
                is_padded: false,
            }),
            ..usual
        }
    }

    /// The options of lrzip's format.
    ///
    /// # Errors
    /// Usage, for options that it has no place for.
    pub(crate) fn lrzip_options(&self) -> Result<LrzipOptions> {
        let absent = [
            (self.codec.is_some(), "a codec: it has back ends"),
            (!self.recipients.is_empty(), "public keys"),
            (self.recovery.is_some(), "recovery data"),
            (self.block_bytes.is_some(), "a size of blocks"),
            (self.reach_bytes.is_some(), "a reach"),
            (self.is_for_serving, "archives for serving"),
        ];
        if let Some((_, what)) = absent.iter().find(|(is_set, _)| *is_set) {
            return Err(Failure::usage(format!(
                "lrzip's format has no place for {what}"
            )));
        }
        let usual = LrzipOptions::default();
        Ok(LrzipOptions {
            back_end: self.lrzip_back_end,
            level: self.level.map_or(usual.level, Level),
            encryption: self.password.clone().map(|password| LrzipEncryption {
                cipher: match self.lrzip_cipher {
                    LrzipCipherChoice::Gcm => LrzipCipher::Aes256Gcm,
                    LrzipCipherChoice::Cbc => LrzipCipher::Aes128Cbc,
                },
                password,
                // The smallest number of rounds that is still used: no clock is read here.
                written_unix_seconds: 0,
            }),
            threads: self.threads(),
            memory_bytes: self.memory_bytes,
            ..usual
        })
    }

    pub(crate) fn read_options(&self) -> ReadOptions {
        let usual = ReadOptions::default();
        ReadOptions {
            threads: self.threads(),
            memory_bytes: self.memory_bytes.unwrap_or(usual.memory_bytes),
            temporary: self.temporary(),
            password: self.password.clone(),
            identities: self.identities.clone(),
            content_bytes_max: self.content_bytes_max,
            ..usual
        }
    }

    pub(crate) fn output_options(&self) -> OutputOptions {
        OutputOptions {
            overwrite: if self.overwrites { Overwrite::Replace } else { Overwrite::Refuse },
            durability: if self.syncs { Durability::Synced } else { Durability::Unsynced },
            sparse: true,
            ..OutputOptions::default()
        }
    }

    pub(crate) fn restore_options(&self) -> RestoreToOptions {
        let usual = RestoreOptions::default();
        RestoreToOptions {
            file: self.output_options(),
            directory: RestoreOptions {
                overwrite: self.overwrites,
                memory_bytes: self.memory_bytes.unwrap_or(usual.memory_bytes),
                ..usual
            },
            unpacks_tar: false,
            keeps_broken: self.damaged == Damaged::Keep,
            leaves_out_refused: self.damaged != Damaged::Refuse,
            unnamed: b"content".to_vec(),
            temporary: self.temporary(),
        }
    }

    /// How remote objects are read.
    ///
    /// # Errors
    /// The file of certificates cannot be read.
    pub(crate) fn remote_options(&self) -> Result<RemoteOptions> {
        let certificates = match &self.certificates {
            Some(path) => fs::read(path).map_err(|error| {
                Failure::new(REFRAIN_ERROR_IO, format!("{}: {error}", path.display()))
            })?,
            None => {
                let mut found = CERTIFICATES.iter().filter_map(|path| fs::read(path).ok());
                found.next().unwrap_or_default()
            }
        };
        Ok(RemoteOptions {
            certificates,
            temporary: self.temporary(),
            ..RemoteOptions::default()
        })
    }

    /// Access to a store.
    ///
    /// # Errors
    /// Usage, for half of a pair of keys.
    pub(crate) fn store_options(&self) -> Result<S3Options> {
        let store = self.store.clone();
        let credentials = match (store.access_key_id, store.secret_access_key) {
            (Some(access_key_id), Some(secret_access_key)) => Some(S3Credentials {
                access_key_id,
                secret_access_key,
                session_token: store.session_token,
            }),
            (None, None) => None,
            _ => return Err(Failure::usage("a key for a store has two parts")),
        };
        Ok(S3Options {
            endpoint: store.endpoint,
            region: store.region,
            path_style: None,
            credentials,
        })
    }
}

fn no_option(option: i32, kind: &str) -> Failure {
    Failure::usage(format!("there is no option {option} that is a {kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_of_their_range_are_refused() {
        let mut settings = Settings::default();
        for (option, value) in [
            (REFRAIN_OPTION_LEVEL, 0),
            (REFRAIN_OPTION_LEVEL, 10),
            (REFRAIN_OPTION_LEVEL, i64::MIN),
            (REFRAIN_OPTION_THREADS, -1),
            (REFRAIN_OPTION_THREADS, 70_000),
            (REFRAIN_OPTION_MEMORY_BYTES, -1),
            (REFRAIN_OPTION_FORMAT, i64::from(REFRAIN_FORMAT_FOREIGN)),
            (REFRAIN_OPTION_OVERWRITE, 2),
            (REFRAIN_OPTION_DAMAGED, 3),
            (REFRAIN_OPTION_LRZIP_CIPHER, 1 << 40),
            (REFRAIN_OPTION_CODEC, 1),
            (0, 0),
        ] {
            let failure = settings.set_number(option, value).unwrap_err();
            assert_eq!(failure.number, REFRAIN_ERROR_USAGE, "{option} {value}");
        }
        settings.set_number(REFRAIN_OPTION_LEVEL, 6).unwrap();
        assert_eq!(settings.compress_options().level, Level(6));
    }

    #[test]
    fn texts_that_mean_nothing_are_refused() {
        let mut settings = Settings::default();
        for (option, value) in [
            (REFRAIN_OPTION_CODEC, &b"zip"[..]),
            (REFRAIN_OPTION_CODEC, b"\xff"),
            (REFRAIN_OPTION_IDENTITY, b"not a key"),
            (REFRAIN_OPTION_RECIPIENT, b"age1"),
            (REFRAIN_OPTION_LRZIP_BACK_END, b"zstd"),
            (REFRAIN_OPTION_RECOVERY, b"much"),
            (REFRAIN_OPTION_LEVEL, b"3"),
        ] {
            let failure = settings.set_text(option, value).unwrap_err();
            assert_eq!(failure.number, REFRAIN_ERROR_USAGE, "{option}");
        }
    }

    #[test]
    fn the_format_of_lrzip_refuses_what_it_has_no_place_for() {
        let mut settings = Settings::default();
        settings
            .set_text(REFRAIN_OPTION_PASSWORD, b"secret")
            .unwrap();
        let options = settings.lrzip_options().unwrap();
        let encryption = options.encryption.unwrap();
        assert_eq!(encryption.cipher, LrzipCipher::Aes256Gcm);
        settings.set_text(REFRAIN_OPTION_RECOVERY, b"10%").unwrap();
        assert!(settings.lrzip_options().is_err());
    }

    #[test]
    fn an_empty_directory_means_no_temporary_files() {
        let mut settings = Settings::default();
        assert_eq!(settings.temporary(), Some(PathBuf::from("/var/tmp")));
        let option = REFRAIN_OPTION_TEMPORARY_DIRECTORY;
        settings.set_text(option, b"").unwrap();
        assert_eq!(settings.temporary(), None);
        assert!(settings.compress_options().temporary.is_none());
    }

    #[test]
    fn half_a_key_for_a_store_is_refused() {
        let mut settings = Settings::default();
        assert!(settings.store_options().unwrap().credentials.is_none());
        let option = REFRAIN_OPTION_S3_ACCESS_KEY_ID;
        settings.set_text(option, b"id").unwrap();
        assert!(settings.store_options().is_err());
    }
}
