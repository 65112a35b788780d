//! Decides which files of an archive are exports.

use std::sync::Arc;

use refrain::Result;

use crate::block_source::{BlockSource, FileOfArchive};
use crate::readahead::{Prefetcher, ReadaheadSource};
use crate::service::Service;

/// Wraps the source of an export, for example to record reads.
pub type Wrap = dyn Fn(Arc<dyn BlockSource>) -> Arc<dyn BlockSource> + Send + Sync;

/// The exports: every member that is a file, by name; files in directory members as `MEMBER/PATH`,
/// which are not listed; and the only file, if there is just one, under the empty name.
pub struct Exports {
    service: Service,
    /// The number of the only member that is a file, and how many there are.
    only: Option<usize>,
    wrap: Option<Box<Wrap>>,
    default_name: Option<Vec<u8>>,
    prefetcher: Option<Arc<Prefetcher>>,
}

impl Exports {
    /// The exports of an archive.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn new(service: Service) -> Result<Exports> {
        let mut files = vec![];
        for member in 0..service.archive().member_count() {
            if FileOfArchive::from_member(&service, member)?.is_some() {
                files.push(member);
            }
            if files.len() > 1 {
                break;
            }
        }
        let only = (files.len() == 1).then(|| files[0]);
        Ok(Exports {
            service,
            only,
            wrap: None,
            default_name: None,
            prefetcher: None,
        })
    }

    /// Puts this file under the empty name.
    #[must_use]
    pub fn with_default(self, name: Vec<u8>) -> Exports {
        Exports {
            default_name: Some(name),
            ..self
        }
    }

    /// Decodes ahead of every client with up to `threads_max` threads.
    #[must_use]
    pub fn with_readahead(self, threads_max: usize) -> Exports {
        Exports {
            prefetcher: Some(Prefetcher::new(threads_max)),
            ..self
        }
    }

    /// Wraps every source.
    #[must_use]
    pub fn wrapped(self, wrap: Box<Wrap>) -> Exports {
        Exports {
            wrap: Some(wrap),
            ..self
        }
    }

    /// What the exports are part of.
    pub(crate) fn service(&self) -> &Service {
        &self.service
    }

    /// The listed names.
    pub(crate) fn names(&self) -> Result<Vec<Vec<u8>>> {
        let mut names = vec![];
        let archive = self.service.archive();
        for member in 0..archive.member_count() {
            if FileOfArchive::from_member(&self.service, member)?.is_some() {
                names.push(archive.member(member)?.name);
            }
        }
        Ok(names)
    }

    /// `None` if there is no export with this name.
    pub(crate) fn open(&self, name: &[u8]) -> Result<Option<Arc<dyn BlockSource>>> {
        let file = match (name, &self.default_name) {
            (b"", Some(default)) => FileOfArchive::find(&self.service, default)?,
            _ => match FileOfArchive::find(&self.service, name)? {
                None if name.is_empty() => match self.only {
                    Some(member) => FileOfArchive::from_member(&self.service, member)?,
                    None => None,
                },
                found => found,
            },
        };
        let Some(file) = file else {
            return Ok(None);
        };
        let mut source: Arc<dyn BlockSource> = Arc::new(file);
        if let Some(prefetcher) = &self.prefetcher {
            source = Arc::new(ReadaheadSource::new(source, Arc::clone(prefetcher)));
        }
        Ok(Some(match &self.wrap {
            Some(wrap) => wrap(source),
            None => source,
        }))
    }

    /// Why there is no such export.
    pub(crate) fn unknown_text(&self, name: &[u8]) -> String {
        if name.is_empty() {
            "name an export: the archive does not contain exactly one file".to_owned()
        } else {
            format!(
                "the archive has no file {:?}",
                String::from_utf8_lossy(name)
            )
        }
    }
}
