//! The members of a run: where their bytes come from, and what is known about them before they are
//! read.

use std::collections::HashMap;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use refrain_entries::tar::looks_like_tar;
use refrain_entries::{RECORD_BYTES, Timestamp};
use refrain_format::{MemberKind as FormatKind, MemberStart};
use refrain_pool::Lock;
use refrain_protect::DigestAlgorithm;
use refrain_storage::{Source, read_full};

use refrain_filesystem::{FileRoot, Problem, ProblemKind, WalkOptions, Walker};

use crate::digests::hashers;
use crate::error::{Error, ErrorKind, Result};
use crate::progress::Watch;
use crate::store::source_stream::SourceStream;
use crate::write::ending_early::EndingEarly;
use crate::write::log_memory::LogMemory;
use crate::write::pipeline::history_policy::MemberSources;
use crate::write::pipeline::holes::is_sparse;
use crate::write::pipeline::intake::{IntakeMember, MemberFeed, SegmentFeed};
use crate::write::tree::content::ContentWriter;
use crate::write::tree::directory_tar::DirectoryTar;
use crate::write::tree::entry_list::{EntryList, SharedEntries, ViewKind};
use crate::write::tree::feed::{DirectoryFeed, DirectoryInput, Problems};
use crate::write::tree::file_data::WHOLE_BYTES_MAX;
use crate::write::tree::known::KnownContents;
use crate::write::tree::reread::RereadLog;
use crate::write::tree::tar_feed::TarFeed;
use crate::write::tree::tar_reader::TarReader;
use crate::write::tree::unchanged::EarlierTree;

/// A member to be written into an archive.
pub struct MemberInput {
    /// Its name in the archive: at most 4096 bytes, without NUL, by convention UTF-8.
    pub name: Vec<u8>,
    /// Permission bits to store.
    pub mode: Option<u32>,
    /// The modification time to store.
    pub modified: Option<Timestamp>,
    /// Where its bytes come from.
    pub content: Content,
}

impl MemberInput {
    /// Checks a name for a member. [`compress`](crate::compress()) does the same first.
    ///
    /// # Errors
    /// `Usage` for a name that is too long or has a NUL byte.
    pub fn check_name(name: &[u8]) -> Result<()> {
        MemberStart::check_name(name).map_err(|error| Error::new(ErrorKind::Usage, error))
    }
}

/// Where a member's bytes come from.
pub enum Content {
    /// A source that can be read at any offset, and again: a file. Its size at the start of the run
    /// counts, unless it proves wrong: then everything readable does. If it changes during the run,
    /// the archive has what was read, and [`Watch::problem`] reports it.
    Source(Arc<dyn Source>),
    /// A non-seekable stream. It is read once the members before it are complete.
    Stream(Box<dyn Read + Send>),
    /// A stream independent of the other members: a pipe with its own writer. It is read before its
    /// turn, as far as memory allows, while the members before it are silent. Its bytes in the
    /// archive are the same as with `Stream`.
    ///
    /// Its reader waits by [`suspend_until_readable`](refrain_pool::suspend_until_readable), as
    /// [`DescriptorReader`](refrain_storage::DescriptorReader) does. Otherwise other members cannot
    /// be read while it waits.
    Pipe(Box<dyn Read + Send>),
    /// A directory: its entries, and the data of its files.
    Directory(Box<DirectoryContent>),
}

impl Content {
    /// A directory.
    pub fn directory(directory: DirectoryContent) -> Content {
        Content::Directory(Box::new(directory))
    }
}

/// A directory to store.
#[derive(Debug, Clone, Default)]
pub struct DirectoryContent {
    /// The directory.
    pub path: PathBuf,
    /// A relative path without `..`, the prefix of every entry's path; may be empty.
    pub name: PathBuf,
    /// What is stored of it.
    pub walk: WalkOptions,
    /// Paths below the directory, if only these are stored. The directories above them become
    /// entries too, except in lrzip archives.
    pub paths: Option<Vec<Vec<u8>>>,
}

impl DirectoryContent {
    /// Everything in the directory `path`.
    pub fn all(path: impl Into<PathBuf>) -> DirectoryContent {
        DirectoryContent {
            path: path.into(),
            ..DirectoryContent::default()
        }
    }

    /// Without the file at `output`, if there is one, under any name: what is about to be replaced
    /// by an archive of the directory is no part of it.
    #[must_use]
    pub fn without_output(mut self, output: &Path) -> DirectoryContent {
        let found = std::fs::metadata(output).ok();
        let own = found.map(|found| (found.dev(), found.ino()));
        self.walk.own_outputs.extend(own);
        self
    }

    /// The name in the normal form of paths in a tree.
    ///
    /// # Errors
    /// `Usage` if it is absolute or has a component `..`.
    fn normal_name(&self) -> Result<PathBuf> {
        let mut name = PathBuf::new();
        for component in self.name.components() {
            match component {
                Component::Normal(component) => name.push(component),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    let message = "the name before the paths of a directory must be relative, \
                                   without '..'";
                    return Err(Error::new(ErrorKind::Usage, message));
                }
            }
        }
        Ok(name)
    }

    fn walker(&self) -> io::Result<Walker> {
        let walk = WalkOptions {
            // Files' attributes are read along with the files.
            attributes_when_opened: true,
            ..self.walk.clone()
        };
        match &self.paths {
            None => Walker::open(&self.path, &self.name, walk),
            Some(paths) => Walker::for_paths(&self.path, &self.name, paths.clone(), walk),
        }
    }
}

/// Reports the problems to the watch. Returns the number of failures among them.
pub(crate) fn send_problems(problems: &Problems, watch: &dyn Watch) -> u64 {
    let problems = std::mem::take(&mut *problems.lock());
    for (member, problem) in &problems {
        watch.problem(*member, problem);
    }
    problems
        .iter()
        .filter(|(_, problem)| problem.is_failure())
        .count() as u64
}

/// The members of a run, ready to be read.
#[derive(Default)]
pub(crate) struct PreparedMembers {
    pub intake: Vec<IntakeMember>,
    pub members: Vec<MemberPlan>,
    pub sources: Vec<Option<Arc<dyn Source>>>,
    content_bytes_total: Option<u64>,
    has_unknown_length: bool,
    /// The size of the largest sparse member.
    pub sparse_bytes: u64,
    /// Whether a member that becomes unreadable ends there, for the sake of the others.
    is_one_of_many: bool,
    /// Sources to check for changes after the run, with the members' numbers.
    read_sources: Vec<(usize, ReadSource)>,
    memory_bytes: u64,
    /// Entries are written at least this often, in bytes of content.
    run_bytes_max: u64,
    /// How much code makes a program one whose code is rebased, bytes.
    pub code_bytes_min: u64,
    digests: Vec<DigestAlgorithm>,
    log_memory: Option<LogMemory>,
    /// See [`CODE_SHARE`].
    code_memory: Option<LogMemory>,
    /// Whether files are named as they are written.
    pub names_files: bool,
    /// Whether a member is a directory, or a stream that may be a tar stream.
    may_have_entries: bool,
    /// Whether the dialect has neither entries nor holes, so that members are plain bytes and
    /// directories become tar streams.
    is_flat: bool,
    /// The bytes of files found equal to others.
    pub duplicate_bytes: Arc<AtomicU64>,
    /// What could not be read, or changed while it was read.
    pub problems: Problems,
    /// The id of the first member: the number of members in earlier generations.
    pub first_member: u64,
    /// Trees of earlier generations, by the names of the members that are stored as changes to
    /// them.
    pub earlier_trees: HashMap<Vec<u8>, EarlierTree>,
}

/// A member before it is written, and how its entries are read.
pub(crate) struct MemberPlan {
    pub start: MemberStart,
    pub entries: Option<SharedEntries>,
}

/// Logs of directories may take 1/16 of the memory budget: in 1 GiB enough for a million entries
/// like a kernel tree's. Later entries are history only if blocks can be decoded again.
const LOG_SHARE: u64 = 16;

/// Where the operands of machine code are that was read again may take 1/32 of the memory budget:
/// in 1 GiB enough for 1 GB of code.
const CODE_SHARE: u64 = 32;

/// Entries whose files are being read may take 1/16 of the memory budget, and the next ones as
/// much.
const WINDOW_SHARE: u64 = 16;

/// Entries of a tar stream that are packed together may take 1/64 of the memory budget, as the
/// format counts them. In memory they take three to four times as much.
const TAR_WINDOW_SHARE: u64 = 64;

/// Hashes of contents may take 1/32 of the memory budget: in 1 GiB enough for half a million
/// distinct files.
const KNOWN_SHARE: u64 = 32;

impl PreparedMembers {
    /// `digests` are computed for every member. `is_flat`: the dialect has neither entries nor
    /// holes, so directories become tar streams.
    pub(crate) fn new(
        memory_bytes: u64,
        run_bytes_max: u64,
        digests: &[DigestAlgorithm],
        is_flat: bool,
    ) -> PreparedMembers {
        PreparedMembers {
            is_one_of_many: false,
            memory_bytes,
            run_bytes_max,
            digests: digests.to_vec(),
            is_flat,
            ..PreparedMembers::default()
        }
    }

    /// Turns all inputs into members. If one of several becomes unreadable it ends there, which is
    /// a problem but not an error.
    pub(crate) fn add_all(&mut self, members: Vec<MemberInput>) -> Result<()> {
        self.is_one_of_many = members.len() > 1;
        members.into_iter().try_for_each(|member| self.add(member))
    }

    /// The memory for directories and tar streams, in bytes: logs, entries, hashes, and one large
    /// file that is read whole.
    pub(crate) fn tree_bytes(&self) -> u64 {
        let of_logs = match self.log_memory {
            None => 0,
            Some(_) => self.memory_bytes / LOG_SHARE + self.memory_bytes / CODE_SHARE,
        };
        let of_entries = if !self.may_have_entries {
            0
        } else {
            2 * (self.memory_bytes / WINDOW_SHARE)
                + self.memory_bytes / KNOWN_SHARE
                + WHOLE_BYTES_MAX
        };
        of_logs + of_entries
    }

    /// The memory shared by the logs of all directories.
    fn log_memory(&mut self) -> LogMemory {
        let bytes = self.memory_bytes / LOG_SHARE;
        self.log_memory
            .get_or_insert_with(|| LogMemory::new(bytes))
            .clone()
    }

    /// The memory for machine code of all directories that is read again.
    fn code_memory(&mut self) -> LogMemory {
        let bytes = self.memory_bytes / CODE_SHARE;
        self.code_memory
            .get_or_insert_with(|| LogMemory::new(bytes))
            .clone()
    }

    /// The sources to check for changes after the run.
    pub(crate) fn take_read_sources(&mut self) -> ReadSources {
        ReadSources {
            sources: std::mem::take(&mut self.read_sources),
            problems: self.problems.clone(),
        }
    }

    /// Whether some members may be read before their turn.
    pub(crate) fn reads_later_members(&self) -> bool {
        self.intake
            .iter()
            .skip(1)
            .any(|member| member.is_independent)
    }

    /// How the members can be read again.
    pub(crate) fn member_sources(&self) -> MemberSources {
        match self.log_memory {
            _ if self.sources.iter().any(Option::is_none) => MemberSources::Streams,
            Some(_) => MemberSources::Directories,
            None => MemberSources::Seekable,
        }
    }

    pub(crate) fn content_bytes_total(&self) -> Option<u64> {
        self.content_bytes_total
            .filter(|_| !self.has_unknown_length)
    }

    pub(crate) fn add(&mut self, input: MemberInput) -> Result<()> {
        let MemberInput {
            name,
            mode,
            modified,
            content,
        } = input;
        MemberInput::check_name(&name)?;
        let label = String::from_utf8_lossy(&name).into_owned();
        let mut start = MemberStart {
            member_id: self.first_member + self.members.len() as u64,
            content_start: 0,
            kind: FormatKind::File,
            name,
            mode,
            modified,
            content_bytes_hint: None,
            is_sparse: false,
            layers: None,
            extensions: Vec::new(),
        };
        let mut entries = None;
        let is_independent = matches!(content, Content::Pipe(_));
        let content = if self.is_one_of_many { self.ending_early(content) } else { content };
        match content {
            Content::Source(source) => {
                let read = ReadSource::new(source.clone());
                let read = read.map_err(|error| Error::from(error).in_file(&label))?;
                let size_bytes = read.size_bytes;
                self.read_sources.push((self.members.len(), read));
                match (!self.is_flat && is_tar(&*source)?, size_bytes) {
                    (true, size_bytes) => {
                        start.kind = FormatKind::Tar;
                        let list = self.entry_list(&start, ViewKind::Recorded);
                        entries = Some(list.shared());
                        self.add_tar_file(source, size_bytes, list);
                    }
                    (false, Some(size_bytes)) => {
                        start.content_bytes_hint = Some(size_bytes);
                        start.is_sparse = !self.is_flat && is_sparse(&*source, size_bytes);
                        self.add_file(source, size_bytes, start.is_sparse);
                    }
                    (false, None) => {
                        let stream = SourceStream::new(source.clone(), 0);
                        self.add_stream(Box::new(stream), Some(source));
                    }
                }
            }
            Content::Stream(stream) | Content::Pipe(stream) if self.is_flat => {
                start.kind = FormatKind::Stream;
                self.add_stream(stream, None);
            }
            Content::Stream(stream) | Content::Pipe(stream) => {
                // It becomes a tar member if it starts like one.
                start.kind = FormatKind::Stream;
                let list = self.entry_list(&start, ViewKind::Recorded);
                entries = Some(list.shared());
                self.has_unknown_length = true;
                self.add_tar(stream, RereadLog::none(), list, None);
                if let Some(member) = self.intake.last_mut() {
                    // Its log is empty, so nothing in it depends on other members.
                    member.is_independent = is_independent;
                }
            }
            Content::Directory(mut directory) => {
                directory.name = directory
                    .normal_name()
                    .map_err(|error| error.in_file(&label))?;
                if self.is_flat {
                    self.add_directory_as_tar(*directory)
                } else {
                    let earlier = self.earlier_trees.remove(&start.name);
                    start.layers = earlier.as_ref().map(|tree| tree.layers.clone());
                    start.kind = match earlier {
                        Some(_) => FormatKind::LayeredTree,
                        None => FormatKind::Tree,
                    };
                    let list = self.entry_list(&start, ViewKind::Canonical);
                    entries = Some(list.shared());
                    self.add_directory(&directory, earlier, list)
                }
                .map_err(|error| Error::from(error).in_file(label))?;
            }
        }
        self.members.push(MemberPlan { start, entries });
        Ok(())
    }

    fn entry_list(&self, start: &MemberStart, view: ViewKind) -> EntryList {
        let list = EntryList::new(start.member_id, view, self.names_files);
        list.numbered(self.members.len())
    }

    /// Content that ends at its first error, which becomes a problem.
    fn ending_early(&self, content: Content) -> Content {
        let (member, problems) = (self.members.len(), self.problems.clone());
        match content {
            Content::Source(source) => {
                Content::Source(Arc::new(EndingEarly::new(source, member, problems)))
            }
            Content::Stream(stream) => {
                Content::Stream(Box::new(EndingEarly::new(stream, member, problems)))
            }
            Content::Pipe(stream) => {
                Content::Pipe(Box::new(EndingEarly::new(stream, member, problems)))
            }
            Content::Directory(directory) => Content::Directory(directory),
        }
    }

    /// Adds bytes that belong to no member here. What is made of them has `content_bytes`.
    pub(crate) fn add_bytes(
        &mut self,
        source: Arc<dyn Source>,
        size_bytes: u64,
        content_bytes: u64,
    ) {
        if size_bytes > 0 {
            self.add_file(source, size_bytes, false);
        }
        self.content_bytes_total = Some(content_bytes);
    }

    fn add_file(&mut self, source: Arc<dyn Source>, size_bytes: u64, is_sparse: bool) {
        if is_sparse {
            self.sparse_bytes = self.sparse_bytes.max(size_bytes);
        }
        self.content_bytes_total = Some(self.content_bytes_total.unwrap_or(0) + size_bytes);
        self.sources.push(Some(source.clone()));
        self.intake.push(IntakeMember {
            feed: MemberFeed::Segments(SegmentFeed::Source(source)),
            size_bytes,
            is_sparse,
            is_independent: false,
        });
    }

    fn add_tar_file(&mut self, source: Arc<dyn Source>, size: Option<u64>, list: EntryList) {
        let log = RereadLog::new(self.log_memory());
        let again = log.source_of_tar(source.clone(), self.code_memory());
        let stream = SourceStream::new(source, 0);
        self.has_unknown_length |= size.is_none();
        self.content_bytes_total =
            Some(self.content_bytes_total.unwrap_or(0) + size.unwrap_or_default());
        self.add_tar(Box::new(stream), log, list, Some(Arc::new(again)));
    }

    /// Adds a stream, which is taken apart if it is a tar stream. `again` can read its content
    /// again.
    fn add_tar(
        &mut self,
        stream: Box<dyn Read + Send>,
        log: RereadLog,
        list: EntryList,
        again: Option<Arc<dyn Source>>,
    ) {
        self.may_have_entries = true;
        let known = KnownContents::new(self.memory_bytes / KNOWN_SHARE);
        let window_bytes = self.memory_bytes / TAR_WINDOW_SHARE;
        let reader = TarReader::new(
            stream,
            hashers(&self.digests),
            window_bytes,
            self.code_bytes_min,
        );
        let feed = TarFeed::new(
            reader,
            ContentWriter::new(known, log, self.duplicate_bytes.clone()),
            list,
            self.run_bytes_max,
        );
        self.sources.push(again);
        self.intake.push(IntakeMember {
            feed: MemberFeed::Content(Box::new(feed)),
            size_bytes: 0,
            is_sparse: false,
            is_independent: false,
        });
    }

    fn add_directory(
        &mut self,
        directory: &DirectoryContent,
        earlier: Option<EarlierTree>,
        list: EntryList,
    ) -> io::Result<()> {
        let log = RereadLog::new(self.log_memory());
        let source = log.source_of_files(
            FileRoot::open(&directory.path)?,
            &directory.name,
            self.code_memory(),
        );
        self.may_have_entries = true;
        let known = KnownContents::new(self.memory_bytes / KNOWN_SHARE);
        let input = DirectoryInput {
            walker: directory.walker()?,
            root: FileRoot::open(&directory.path)?,
            root_path: directory.path.clone(),
            name: directory.name.clone(),
            is_strict: directory.walk.is_strict,
            window_bytes: self.memory_bytes / WINDOW_SHARE,
            run_bytes_max: self.run_bytes_max,
            code_bytes_min: self.code_bytes_min,
            earlier,
        };
        let content = ContentWriter::new(known, log, self.duplicate_bytes.clone());
        let feed = DirectoryFeed::new(input, content, list, self.problems.clone());
        self.has_unknown_length = true;
        self.sources.push(Some(Arc::new(source)));
        self.intake.push(IntakeMember {
            feed: MemberFeed::Content(Box::new(feed)),
            size_bytes: 0,
            is_sparse: false,
            is_independent: false,
        });
        Ok(())
    }

    fn add_directory_as_tar(&mut self, directory: DirectoryContent) -> io::Result<()> {
        let log = RereadLog::new(self.log_memory());
        let again = log.source_of_files(
            FileRoot::open(&directory.path)?,
            &directory.name,
            self.code_memory(),
        );
        let tar = DirectoryTar {
            log,
            walker: directory.walker()?,
            root: FileRoot::open(&directory.path)?,
            paths: directory.paths,
            root_path: directory.path,
            is_strict: directory.walk.is_strict,
            member: self.members.len(),
            problems: self.problems.clone(),
        };
        self.add_stream(Box::new(tar.into_reader()), Some(Arc::new(again)));
        Ok(())
    }

    /// Adds a stream, which `source` can read again.
    fn add_stream(&mut self, stream: Box<dyn Read + Send>, source: Option<Arc<dyn Source>>) {
        self.has_unknown_length = true;
        self.sources.push(source);
        self.intake.push(IntakeMember {
            feed: MemberFeed::Segments(SegmentFeed::Stream(Arc::new(Lock::new(Some(stream))))),
            size_bytes: 0,
            is_sparse: false,
            is_independent: false,
        });
    }
}

/// A source used as a member's content.
struct ReadSource {
    source: Arc<dyn Source>,
    /// Its size at the start of the run; `None` if the stated size is wrong.
    size_bytes: Option<u64>,
}

impl ReadSource {
    /// Compares a source's stated size with what can be read: files of `/proc` state 0, and file
    /// systems that compute contents may state anything.
    fn new(source: Arc<dyn Source>) -> io::Result<ReadSource> {
        let is_readable = |offset| Ok::<_, io::Error>(source.read_at(offset, &mut [0])? > 0);
        let mut stated_bytes = source.size_bytes()?;
        for _ in 0..3 {
            let last = stated_bytes.checked_sub(1);
            let is_true = !is_readable(stated_bytes)? && last.map_or(Ok(true), is_readable)?;
            let again_bytes = source.size_bytes()?;
            if is_true || again_bytes == stated_bytes {
                return Ok(ReadSource {
                    size_bytes: is_true.then_some(stated_bytes),
                    source,
                });
            }
            // It grew or shrank just now.
            stated_bytes = again_bytes;
        }
        Ok(ReadSource {
            source,
            size_bytes: Some(stated_bytes),
        })
    }

    /// What happened to the source while it was read.
    fn change(&self) -> io::Result<Option<&'static str>> {
        let (now_bytes, is_changed) = (self.source.size_bytes()?, self.source.has_changed()?);
        Ok(match self.size_bytes {
            Some(bytes) if now_bytes < bytes => Some("shrank while it was read"),
            Some(bytes) if now_bytes > bytes => Some("grew while it was read"),
            _ => is_changed.then_some("changed while it was read"),
        })
    }
}

pub(crate) struct ReadSources {
    sources: Vec<(usize, ReadSource)>,
    problems: Problems,
}

impl ReadSources {
    /// Reports sources that changed while they were read.
    pub(crate) fn report_changes(&self) {
        for (member, read) in &self.sources {
            let (kind, text) = match read.change() {
                Ok(None) => continue,
                Ok(Some(text)) => (ProblemKind::Changed, text.to_string()),
                Err(error) => (ProblemKind::Unreadable, error.to_string()),
            };
            let path = Vec::new();
            let problem = Problem { path, kind, text };
            self.problems.lock().push((*member, problem));
        }
    }
}

/// Whether a source starts like a tar stream.
fn is_tar(source: &dyn Source) -> Result<bool> {
    let mut first = [0; RECORD_BYTES];
    let count = read_full(0, &mut first, |at, part| source.read_at(at, part))?;
    Ok(looks_like_tar(&first[..count]))
}
