//! Decides which files of archives are exports.

use std::io;
use std::sync::Arc;

use refrain::Result;

use crate::archive_counts::ArchiveCounts;
use crate::archives::{Archives, OpenedArchive, split_name};
use crate::block_source::{BlockSource, FileOfArchive};
use crate::readahead::{Prefetcher, ReadaheadSource};
use crate::service::Service;

/// Wraps the source of an export, for example to record reads.
pub type Wrap = dyn Fn(Arc<dyn BlockSource>) -> Arc<dyn BlockSource> + Send + Sync;

/// The exports: every member that is a file, by name; files in directory members as `MEMBER/PATH`,
/// which are not listed; and the only file, if there is just one, under the empty name. Of archives
/// with names, the same below `NAME/`.
pub struct Exports {
    archives: Archives,
    wrap: Option<Box<Wrap>>,
    default_name: Option<Vec<u8>>,
    prefetcher: Option<Arc<Prefetcher>>,
}

/// An export that a client takes.
pub(crate) struct Export {
    pub source: Arc<dyn BlockSource>,
    /// Where requests are counted if there are several archives.
    pub counts: Option<Arc<ArchiveCounts>>,
}

/// The only member that is a file.
fn only_file(service: &Service) -> Result<Option<FileOfArchive>> {
    let mut only = None;
    for member in 0..service.archive().member_count() {
        let file = FileOfArchive::from_member(service, member)?;
        if file.is_some() && only.is_some() {
            return Ok(None);
        }
        only = only.or(file);
    }
    Ok(only)
}

impl Exports {
    /// The exports of one archive, or of several.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn new(archives: impl Into<Archives>) -> crate::error::Result<Exports> {
        let archives = archives.into();
        if let Some(opened) = archives.only() {
            only_file(&opened.service)?;
        }
        Ok(Exports {
            archives,
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
    pub(crate) fn archives(&self) -> &Archives {
        &self.archives
    }

    /// Calls `each` for the listed names, until it fails. Leaves out what cannot be read.
    pub(crate) fn for_each_name(
        &self,
        each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(opened) = self.archives.only() {
            return list(&opened.service, b"", each);
        }
        for name in self.archives.names() {
            if let Ok(Some(opened)) = self.archives.get(&name) {
                list(&opened.service, &[&name[..], b"/"].concat(), each)?;
            }
        }
        Ok(())
    }

    /// `None` if there is no export with this name.
    pub(crate) fn open(&self, name: &[u8]) -> crate::error::Result<Option<Export>> {
        let wanted = match &self.default_name {
            Some(default) if name.is_empty() => default,
            _ => name,
        };
        let Some((opened, file)) = self.find(wanted)? else {
            return Ok(None);
        };
        let mut source: Arc<dyn BlockSource> = Arc::new(file);
        if let Some(prefetcher) = &self.prefetcher {
            source = Arc::new(ReadaheadSource::new(source, Arc::clone(prefetcher)));
        }
        if let Some(wrap) = &self.wrap {
            source = wrap(source);
        }
        let counts = opened.service.counts().cloned();
        Ok(Some(Export { source, counts }))
    }

    fn find(&self, name: &[u8]) -> crate::error::Result<Option<Found>> {
        if let Some(opened) = self.archives.only() {
            let mut file = FileOfArchive::find(&opened.service, name)?;
            if file.is_none() && name.is_empty() {
                file = only_file(&opened.service)?;
            }
            return Ok(file.map(|file| (opened, file)));
        }
        if name.is_empty() {
            return self.only_of_all();
        }
        let (archive, Some(path)) = split_name(name) else {
            return Ok(None);
        };
        let Some(opened) = self.archives.get(archive)? else {
            return Ok(None);
        };
        let file = FileOfArchive::find(&opened.service, path)?;
        Ok(file.map(|file| (opened, file)))
    }

    /// The only file of the only archive.
    fn only_of_all(&self) -> crate::error::Result<Option<Found>> {
        let names = self.archives.names();
        let [name] = &names[..] else {
            return Ok(None);
        };
        let Some(opened) = self.archives.get(name)? else {
            return Ok(None);
        };
        let file = only_file(&opened.service)?;
        Ok(file.map(|file| (opened, file)))
    }

    /// Why there is no such export.
    pub(crate) fn unknown_text(&self, name: &[u8]) -> String {
        let shown = String::from_utf8_lossy(name);
        match self.archives.only() {
            Some(_) if name.is_empty() => {
                "name an export: the archive does not contain exactly one file".to_owned()
            }
            Some(_) => format!("the archive has no file {shown:?}"),
            None if name.is_empty() => {
                "name an export, ARCHIVE/MEMBER: there is not exactly one file".to_owned()
            }
            None => format!("there is no archive with a file {shown:?}: ARCHIVE/MEMBER"),
        }
    }
}

type Found = (Arc<OpenedArchive>, FileOfArchive);

/// Calls `each` for the names of the members that are files, below `above`.
fn list(
    service: &Service,
    above: &[u8],
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let archive = service.archive();
    for member in 0..archive.member_count() {
        let is_file = FileOfArchive::from_member(service, member).is_ok_and(|file| file.is_some());
        if let (true, Ok(member)) = (is_file, archive.member(member)) {
            each(&[above, &member.name].concat())?;
        }
    }
    Ok(())
}
