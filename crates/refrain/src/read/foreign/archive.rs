//! A file of another format as an opened archive: one member without a name, read by passes from
//! front to back, each from the beginning.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use refrain_entries::Entry;
use refrain_filesystem::Problem;
use refrain_foreign::{Bytes, Description, Format};
use refrain_pool::{Lock, OnceValue};
use refrain_storage::{Sink, Source, read_full};

use crate::archive_info::{ArchiveInfo, BlockInfo, Member, MemberKind};
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::read::foreign::content::{Content, engine_error};
use crate::read::foreign::pieces::deliver;
use crate::read::foreign::range::write_range;
use crate::read::foreign::tar;
use crate::read::foreign::zip::{ENTRY_BYTES, Zip, holds_files};
use crate::read::opened_archive::{Layout, Members, Passes, Provable, Remains, Serving};
use crate::read::range_read::within;
use crate::read::read_control::ReadControl;
use crate::read::tree::content::TreeContent;
use crate::store::frames::ArchiveFeed;

/// The entries of a tar stream may take this share of the memory budget.
const MEMORY_SHARE: u64 = 4;

/// A compressed stream, which may be a tar stream, or a zip file.
pub(crate) struct ForeignArchive {
    source: Arc<dyn Source>,
    format: Format,
    options: ReadOptions,
    zip: Option<Zip>,
    is_tar: OnceValue<bool>,
    seen: Lock<Seen>,
}

/// What a pass over a tar stream found.
#[derive(Default)]
struct Seen {
    /// The entries, if they take little memory: finding one does not decode the stream again.
    entries: Option<Arc<Vec<Entry>>>,
    /// The parts that belong to no entry.
    problems: Option<Vec<Problem>>,
}

impl ForeignArchive {
    /// Opens a file of this format. Reads the directory of a zip file; otherwise nothing.
    ///
    /// # Errors
    /// As [`Zip::open`].
    pub(crate) fn open(
        source: Arc<dyn Source>,
        format: Format,
        options: &ReadOptions,
    ) -> Result<ForeignArchive> {
        let zip = match format {
            Format::Zip => Some(Zip::open(source.clone(), options)?),
            _ => None,
        };
        Ok(ForeignArchive {
            source,
            format,
            options: options.clone(),
            zip,
            is_tar: OnceValue::default(),
            seen: Lock::default(),
        })
    }

    /// The content from its beginning.
    fn content(&self) -> Result<Content> {
        let feed = ArchiveFeed::Source(self.source.clone());
        Content::open(feed, self.format, &self.options)
    }

    fn kind(&self) -> Result<MemberKind> {
        if self.zip.is_some() {
            return Ok(MemberKind::Tree);
        }
        let is_tar = self.is_tar.get_or_try_init(|| self.content()?.is_tar())?;
        Ok(if *is_tar { MemberKind::Tar } else { MemberKind::Stream })
    }

    /// The error of what needs random access.
    fn unsupported(&self) -> Error {
        let format = self.format;
        let message = format!("this needs random access, which {format} files do not have");
        Error::new(ErrorKind::Unsupported, message)
    }

    /// Passes over a tar stream, and keeps what it finds.
    fn pass(&self, each: &mut dyn FnMut(&Entry) -> Result<()>) -> Result<()> {
        let problems = Problems::default();
        let entries_max = self.options.memory_bytes / MEMORY_SHARE / ENTRY_BYTES;
        let mut kept = Some(Vec::new());
        let listed = tar::for_each_entry(self.content()?, &problems, &mut |entry| {
            kept = kept.take().filter(|kept| (kept.len() as u64) < entries_max);
            if let Some(kept) = &mut kept {
                kept.push(entry.clone());
            }
            each(entry)
        });
        *self.seen.lock() = Seen {
            entries: kept.filter(|_| listed.is_ok()).map(Arc::new),
            problems: Some(std::mem::take(&mut *problems.0.lock())),
        };
        listed
    }
}

/// Collects what a pass reports.
#[derive(Default)]
struct Problems(Lock<Vec<Problem>>);

impl Watch for Problems {
    fn problem(&self, _member: usize, problem: &Problem) {
        self.0.lock().push(problem.clone());
    }
}

impl Members for ForeignArchive {
    fn member_count(&self) -> usize {
        1
    }

    fn member(&self, member: usize) -> Result<Option<Member>> {
        if member > 0 {
            return Ok(None);
        }
        Ok(Some(Member {
            name: Vec::new(),
            kind: self.kind()?,
            mode: None,
            modified: None,
            content_bytes: 0,
            blake3: [0; 32],
            is_sparse: false,
            has_layers: false,
            digests: Vec::new(),
            entries: 0,
        }))
    }

    fn read(&self, _: usize, _: u64, _: &mut [u8], _: &ReadControl) -> Result<usize> {
        Err(self.unsupported())
    }

    fn content(&self, _: usize, _: &ReadControl) -> Result<Option<Box<dyn TreeContent + '_>>> {
        Err(self.unsupported())
    }

    fn passes(&self) -> Option<&dyn Passes> {
        Some(self)
    }
}

impl Passes for ForeignArchive {
    fn for_each_entry(&self, each: &mut dyn FnMut(&Entry) -> Result<()>) -> Result<()> {
        if let Some(zip) = &self.zip {
            return zip.entries().iter().try_for_each(each);
        }
        if self.kind()? != MemberKind::Tar {
            return Ok(());
        }
        let entries = self.seen.lock().entries.clone();
        match entries {
            Some(entries) => entries.iter().try_for_each(each),
            None => self.pass(each),
        }
    }

    fn problems(&self) -> Result<Vec<Problem>> {
        if let Some(zip) = &self.zip {
            return Ok(zip.others().to_vec());
        }
        if self.kind()? == MemberKind::Tar && self.seen.lock().problems.is_none() {
            self.pass(&mut |_| Ok(()))?;
        }
        Ok(self.seen.lock().problems.clone().unwrap_or_default())
    }

    fn write_range(
        &self,
        entry: Option<&Entry>,
        range: Range<u64>,
        sink: &mut dyn Sink,
        watch: &dyn Watch,
    ) -> Result<u64> {
        let Some(entry) = entry else {
            return match self.zip {
                Some(_) => Err(holds_files()),
                None => write_range(self.content()?, range, sink, watch),
            };
        };
        let range = within(range, entry.size_bytes, Some(entry))?;
        match &self.zip {
            Some(zip) => zip.write_entry(entry, &range, sink, watch)?,
            None => tar::write_entry(self.content()?, entry, &range, sink, watch)?,
        }
        Ok(range.end - range.start)
    }

    fn measure(&self, watch: &dyn Watch) -> Result<u64> {
        match self.zip {
            Some(_) => Err(holds_files()),
            None => Ok(deliver(self.content()?, None, watch, &mut |_| Ok(()))?.content_bytes),
        }
    }

    fn describe(&self) -> Result<Description> {
        match &self.zip {
            Some(zip) => zip.describe(),
            None => {
                let bytes = SourceBytes(self.source.clone());
                refrain_foreign::describe(self.format, &bytes).map_err(engine_error)
            }
        }
    }
}

impl Serving for ForeignArchive {}

impl Layout for ForeignArchive {
    fn info(&self) -> Result<ArchiveInfo> {
        Err(self.unsupported())
    }

    fn for_each_block(&self, _: &mut dyn FnMut(BlockInfo) -> Result<()>) -> Result<()> {
        Err(self.unsupported())
    }
}

impl Provable for ForeignArchive {}

impl Remains for ForeignArchive {}

/// A source in the form that descriptions read.
struct SourceBytes(Arc<dyn Source>);

impl Bytes for SourceBytes {
    fn size_bytes(&self) -> io::Result<u64> {
        self.0.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        read_full(offset, buffer, |offset, rest| self.0.read_at(offset, rest))
    }
}
