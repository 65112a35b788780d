//! The members of a run: where their bytes come from and what is known of them before they are
//! read.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use refrain_format::{MemberKind as FormatKind, MemberStart};
use refrain_pool::Lock;
use refrain_storage::Source;
use refrain_tree::{Entry, Timestamp, TreeReader};

use crate::error::{Error, Result};
use crate::progress::Watch;
use crate::write::pipeline::history_policy::MemberSources;
use crate::write::pipeline::intake::{IntakeMember, MemberFeed};
use crate::write::tree_source::{LogMemory, TreeSource};

/// A member to be written into an archive.
pub struct MemberInput {
    /// Its name in the archive: at most 4096 bytes, without NUL, by custom UTF-8.
    pub name: Vec<u8>,
    /// Permission bits to store.
    pub mode: Option<u32>,
    /// Time of last modification to store.
    pub modified: Option<Timestamp>,
    /// Where its bytes come from.
    pub content: Content,
}

/// Where a member's bytes come from.
pub enum Content {
    /// A source that can be read at any offset, and again: a file. Its size when the run begins
    /// counts. If it changes during the run, the archive holds what was read, and a notice says so.
    Source(Arc<dyn Source>),
    /// A non-seekable stream, such as a pipe.
    Stream(Box<dyn Read + Send>),
    /// A directory, stored as a tar stream with an entry list.
    Directory(PathBuf),
    /// A directory whose paths in the stream begin with `name`, as those of `tar -c NAME` do.
    NamedDirectory {
        /// The directory.
        path: PathBuf,
        /// A relative path.
        name: PathBuf,
    },
}

/// Notices that are known only after the run.
pub(crate) type LateNotices = Box<dyn FnOnce() -> Vec<String>>;

/// Passes the late notices to the watch.
pub(crate) fn send_late_notices(notices: Vec<LateNotices>, watch: &dyn Watch) {
    notices
        .into_iter()
        .flat_map(|late| late())
        .for_each(|notice| watch.notice(&notice));
}

/// Returns the entries of a tree once its stream has ended.
pub(crate) type TakeEntries = Box<dyn FnMut() -> Vec<Entry>>;

/// The members of a run, ready to be read.
#[derive(Default)]
pub(crate) struct PreparedMembers {
    pub intake: Vec<IntakeMember>,
    pub members: Vec<MemberPlan>,
    pub sources: Vec<Option<Arc<dyn Source>>>,
    content_bytes_total: Option<u64>,
    has_unknown_length: bool,
    pub late_notices: Vec<LateNotices>,
    /// The memory for the logs of all directories together.
    log_bytes_max: u64,
    log_memory: Option<LogMemory>,
}

/// A member before it is written, and how its entries are read.
pub(crate) struct MemberPlan {
    pub start: MemberStart,
    pub entries: Option<TakeEntries>,
}

/// One in so many bytes of the memory is for the logs of directories: in 1 GiB enough for a million
/// entries like those of a kernel tree. Later entries are history only where blocks can be decoded
/// again.
const LOG_SHARE: u64 = 16;

impl PreparedMembers {
    pub(crate) fn new(memory_bytes: u64) -> PreparedMembers {
        PreparedMembers {
            log_bytes_max: memory_bytes / LOG_SHARE,
            ..PreparedMembers::default()
        }
    }

    /// The memory for the logs of directories, in bytes.
    pub(crate) fn log_bytes(&self) -> u64 {
        let bytes = self.log_memory.as_ref().map(|_| self.log_bytes_max);
        bytes.unwrap_or(0)
    }

    /// How the members can be read again.
    pub(crate) fn member_sources(&self) -> MemberSources {
        match self.log_memory {
            _ if self.sources.iter().any(Option::is_none) => MemberSources::Streams,
            Some(_) => MemberSources::Directories,
            None => MemberSources::Seekable,
        }
    }

    /// The bytes of all contents, if they are known.
    pub(crate) fn content_bytes_total(&self) -> Option<u64> {
        self.content_bytes_total
            .filter(|_| !self.has_unknown_length)
    }

    /// Adds a member.
    pub(crate) fn add(&mut self, input: MemberInput) -> Result<()> {
        let MemberInput {
            name,
            mode,
            modified,
            content,
        } = input;
        let label = String::from_utf8_lossy(&name).into_owned();
        let mut start = MemberStart {
            member_id: self.members.len() as u64,
            content_start: 0,
            kind: FormatKind::File,
            name,
            mode,
            modified,
            content_bytes_hint: None,
        };
        let mut entries: Option<TakeEntries> = None;
        match content {
            Content::Source(source) => {
                let size_bytes = source
                    .size_bytes()
                    .map_err(|error| Error::from(error).in_file(&label))?;
                start.content_bytes_hint = Some(size_bytes);
                self.content_bytes_total = Some(self.content_bytes_total.unwrap_or(0) + size_bytes);
                self.late_notices
                    .push(size_notice(label, source.clone(), size_bytes));
                self.sources.push(Some(source.clone()));
                self.intake.push(IntakeMember {
                    feed: MemberFeed::Source(source),
                    size_bytes,
                });
            }
            Content::Stream(stream) => {
                start.kind = FormatKind::Stream;
                self.add_stream(stream, None);
            }
            Content::Directory(path) => {
                start.kind = FormatKind::Tree;
                entries = Some(self.add_tree(TreeReader::open(&path), label)?);
            }
            Content::NamedDirectory { path, name: first } => {
                start.kind = FormatKind::Tree;
                entries = Some(self.add_tree(TreeReader::open_named(&path, &first), label)?);
            }
        }
        self.members.push(MemberPlan { start, entries });
        Ok(())
    }

    /// Adds a directory as a tar stream. The returned function supplies its entries once the stream
    /// was read.
    fn add_tree(&mut self, reader: io::Result<TreeReader>, member: String) -> Result<TakeEntries> {
        let mut reader = reader.map_err(|error| Error::from(error).in_file(member))?;
        let memory = (self.log_memory).get_or_insert_with(|| LogMemory::new(self.log_bytes_max));
        let source = TreeSource::observe(&mut reader, memory.clone());
        reader.start_prefetching();
        let reader = Arc::new(Lock::new(reader));
        let (tree, notices) = (reader.clone(), reader.clone());
        self.add_stream(Box::new(SharedReader(tree)), Some(Arc::new(source)));
        self.late_notices
            .push(Box::new(move || notices.lock().take_notices()));
        Ok(Box::new(move || reader.lock().take_entries()))
    }

    /// Adds a stream; `source` can read it again.
    fn add_stream(&mut self, stream: Box<dyn Read + Send>, source: Option<Arc<dyn Source>>) {
        self.has_unknown_length = true;
        self.sources.push(source);
        self.intake.push(IntakeMember {
            feed: MemberFeed::Stream(Arc::new(Lock::new(stream))),
            size_bytes: 0,
        });
    }
}

/// A notice if the size of a source changed.
fn size_notice(name: String, source: Arc<dyn Source>, size_bytes: u64) -> LateNotices {
    Box::new(move || match source.size_bytes() {
        Ok(now) if now != size_bytes => {
            vec![format!(
                "{name}: the size changed from {size_bytes} to {now} bytes while it was read"
            )]
        }
        _ => vec![],
    })
}

struct SharedReader(Arc<Lock<TreeReader>>);

impl Read for SharedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.lock().read(buffer)
    }
}
