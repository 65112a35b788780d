//! A prefix of a bucket whose objects are created and deleted, never changed.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ureq::http::Method;

use super::attempts::{FetchFailure, Repeater};
use super::client::Client;
use super::fetcher::Fetcher;
use super::link::Link;
use super::listing::{text, texts};
use super::location::{Location, S3Options};
use super::options::RemoteOptions;
use super::origin::OriginServer;
use super::source::RemoteSource;
use super::store::{Answer, Store, StoreRequest, checksum_headers};
use super::upload::{OBJECT_BYTES_MAX, Upload};
use crate::failure::refuse;
use crate::scratch_file::ScratchFile;
use crate::sink::Sink;
use crate::source::Source;
use crate::volumes::{Alone, JoinedVolume, Layout, VolumeLock, VolumePlace};

/// The most that is read of an object that is created alone.
const SMALL_BYTES_MAX: u64 = 64 << 20;

/// Objects whose keys begin with a prefix and a slash.
///
/// What must be created by one writer alone is uploaded on the condition that there is no such
/// object (`If-None-Match: *`). Whether the store heeds that is found out with an object that is
/// there: it is uploaded again on this condition, with the bytes that it has.
pub struct BucketFolder {
    /// `s3://BUCKET/PREFIX`.
    label: String,
    bucket: String,
    /// With a slash at its end, or empty.
    prefix: String,
    store: Arc<Store>,
    s3: S3Options,
    client: Client,
    options: RemoteOptions,
}

impl BucketFolder {
    /// The objects of `bucket` below `prefix`.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for an impossible bucket, endpoint or certificates.
    pub fn new(
        bucket: &str,
        prefix: &str,
        s3: &S3Options,
        options: &RemoteOptions,
    ) -> io::Result<BucketFolder> {
        let client = Client::new(options)?;
        let prefix = prefix.trim_end_matches('/');
        Ok(BucketFolder {
            label: format!("s3://{bucket}/{prefix}"),
            bucket: bucket.to_owned(),
            prefix: if prefix.is_empty() { String::new() } else { format!("{prefix}/") },
            store: Arc::new(Store::new(bucket, s3, client.clone(), options)?),
            s3: s3.clone(),
            client,
            options: options.clone(),
        })
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn failed(&self, what: &'static str, name: &str) -> impl Fn(FetchFailure) -> io::Error {
        let path = format!("s3://{}/{}", self.bucket, self.key(name));
        move |failure| refuse(what, Path::new(&path), failure.kind, &failure.text)
    }

    /// Uploads an object, unless there is one; returns the answer.
    fn put_alone(&self, name: &str, bytes: &[u8]) -> io::Result<Answer> {
        let request = StoreRequest {
            method: Method::PUT,
            key: &self.key(name),
            signed: &checksum_headers(bytes),
            headers: &[("if-none-match", "*")],
            body: bytes,
            accepted: &[403, 409, 412, 501],
            ..StoreRequest::default()
        };
        self.store
            .request(&request)
            .map_err(self.failed("write", name))
    }

    /// Whether the store heeds conditions: `name` is there, with these bytes.
    fn heeds_conditions(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        // A store that forbids overwriting altogether refuses as well.
        let status = self.put_alone(name, bytes)?.status;
        Ok(status >= 300 && status != 501)
    }

    fn read_if_there(&self, name: &str, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        match self.read(name, bytes_max) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn exists_already(&self, name: &str) -> io::Error {
        let failure = FetchFailure {
            kind: io::ErrorKind::AlreadyExists,
            text: "another program created it".to_owned(),
        };
        self.failed("write", name)(failure)
    }
}

impl VolumePlace for BucketFolder {
    fn label(&self) -> &str {
        &self.label
    }

    fn names(&self, prefix: &str, count_max: usize) -> io::Result<Vec<String>> {
        let prefix = self.key(prefix);
        let count = count_max.clamp(1, 1000).to_string();
        let mut names: Vec<String> = Vec::new();
        let mut token: Option<String> = None;
        while names.len() < count_max {
            let mut query = vec![
                ("list-type", "2"),
                ("prefix", &*prefix),
                ("max-keys", &*count),
            ];
            query.extend(token.as_deref().map(|token| ("continuation-token", token)));
            let answer = self.store.request(&StoreRequest {
                query: &query,
                ..StoreRequest::default()
            });
            let document = answer.map_err(self.failed("list", ""))?.text();
            let keys = texts(&document, "Key").into_iter();
            let own = keys.filter_map(|key| key.strip_prefix(&self.prefix).map(str::to_owned));
            names.extend(own);
            let next = text(&document, "NextContinuationToken");
            let is_truncated = text(&document, "IsTruncated").is_some_and(|text| text == "true");
            if !is_truncated || next.is_none() || next == token {
                break;
            }
            token = next;
        }
        names.sort_unstable();
        names.truncate(count_max);
        Ok(names)
    }

    fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let location = Location::s3(&self.bucket, &self.key(name), &self.s3)?;
        let fetcher = Fetcher::new(
            OriginServer::new(location, self.client.clone()),
            Arc::new(Repeater::new(&self.options)),
            Arc::new(Link::new(&self.options)),
        );
        let fetched = fetcher.fetch(0..bytes_max.saturating_add(1));
        let bytes = fetched.map_err(self.failed("read", name))?;
        if bytes.len() as u64 > bytes_max {
            return Err(self.failed("read", name)(FetchFailure {
                kind: io::ErrorKind::InvalidData,
                text: format!("it has more than {bytes_max} bytes"),
            }));
        }
        Ok(bytes)
    }

    fn joined(&self, volumes: Vec<JoinedVolume>) -> io::Result<Arc<dyn Source>> {
        let (bucket, prefix, s3) = (self.bucket.clone(), self.prefix.clone(), self.s3.clone());
        let locate = move |name: &str| Location::s3(&bucket, &format!("{prefix}{name}"), &s3);
        Ok(Arc::new(RemoteSource::joined(
            &self.label,
            Layout::new(volumes),
            Box::new(locate),
            self.client.clone(),
            &self.options,
        )))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Sink>> {
        let copy = self.options.temporary.as_ref().map(ScratchFile::create);
        let key = self.key(name);
        let full_name = format!("s3://{}/{key}", self.bucket);
        let store = Arc::clone(&self.store);
        Ok(Box::new(Upload::new(
            store,
            key,
            full_name,
            copy.transpose()?,
        )))
    }

    fn create_alone(&self, name: &str, bytes: &[u8]) -> io::Result<Alone> {
        let kind_of_file = name.split_inclusive('-').next().unwrap_or_default();
        let others = self.names(kind_of_file, 1)?;
        let mut is_heeded = match others.first() {
            Some(other) if other == name => return Err(self.exists_already(name)),
            Some(other) => {
                let before = self.read(other, SMALL_BYTES_MAX)?;
                Some(self.heeds_conditions(other, &before)?)
            }
            None => None,
        };
        if is_heeded != Some(true) && self.read_if_there(name, SMALL_BYTES_MAX)?.is_some() {
            return Err(self.exists_already(name));
        }
        let answer = self.put_alone(name, bytes)?;
        if answer.status == 501 {
            // The store knows no conditions, and says so.
            is_heeded = Some(false);
            let request = StoreRequest {
                method: Method::PUT,
                key: &self.key(name),
                signed: &checksum_headers(bytes),
                body: bytes,
                ..StoreRequest::default()
            };
            self.store
                .request(&request)
                .map_err(self.failed("write", name))?;
        }
        // An answer may have come late, and the object be there from an earlier attempt.
        match self.read_if_there(name, SMALL_BYTES_MAX)? {
            Some(found) if found == bytes => {}
            Some(_) => return Err(self.exists_already(name)),
            None => {
                let code = text(&answer.text(), "Code").unwrap_or_default();
                return Err(self.failed("write", name)(FetchFailure {
                    kind: io::ErrorKind::PermissionDenied,
                    text: format!("status {}, {code}", answer.status),
                }));
            }
        }
        let is_heeded = match is_heeded {
            Some(is_heeded) => is_heeded,
            None => self.heeds_conditions(name, bytes)?,
        };
        Ok(if is_heeded { Alone::Certain } else { Alone::Likely })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let request = StoreRequest {
            method: Method::DELETE,
            key: &self.key(name),
            accepted: &[404],
            ..StoreRequest::default()
        };
        let removed = self.store.request(&request);
        removed.map(drop).map_err(self.failed("remove", name))
    }

    fn lock(&self) -> io::Result<VolumeLock> {
        Ok(VolumeLock::default())
    }

    fn reads_back(&self) -> bool {
        self.options.temporary.is_some()
    }

    fn volume_bytes_max(&self) -> u64 {
        OBJECT_BYTES_MAX
    }
}
