//! Compress: members in, one archive out.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use refrain_codec::opens_slowly;
use refrain_format::{
    ArchiveHeader, FORMAT_MAJOR, FORMAT_MINOR, MemberKind as FormatKind, MemberStart,
    REACH_UNLIMITED,
};
use refrain_pool::{Crew, Lock, crew};
use refrain_protect::{DigestAlgorithm, SEGMENT_BYTES};
use refrain_storage::{Sink, Source};
use refrain_tree::{Timestamp, TreeReader};

use crate::error::{Error, Result};
use crate::options::CompressOptions;
use crate::pipeline::assemble::{Assembler, NativeEncoding};
use crate::pipeline::budget::{Budget, KeptBytes};
use crate::pipeline::coordinator::Event;
use crate::pipeline::intake::{Feed, IntakeMember};
use crate::pipeline::members::{OutMember, TakeEntries};
use crate::pipeline::output::Output;
use crate::pipeline::reach::ReachTracker;
use crate::pipeline::reread::WrittenBlocks;
use crate::pipeline::run::{run, shared, store_history};
use crate::pipeline::segments::EPOCH_BYTES;
use crate::progress::{Progress, Watch};
use crate::tree_source::{LogMemory, TreeSource};
use crate::tuning::Tuning;

/// One thing to put into an archive.
pub struct MemberInput {
    /// Its name in the archive, at most 4096 bytes.
    pub name: String,
    /// Permission bits to remember.
    pub mode: Option<u32>,
    /// Time of last modification to remember.
    pub modified: Option<Timestamp>,
    /// Where its bytes come from.
    pub content: Content,
}

/// Where a member's bytes come from.
pub enum Content {
    /// Something that can be read at any offset, also a second time: a file. What it holds when the run begins is compressed;
    /// if it changes meanwhile, the archive holds what was read, and a notice says so.
    Source(Arc<dyn Source>),
    /// Something that can be read once, forward: a pipe.
    Stream(Box<dyn Read + Send>),
    /// A directory, packed as a tar stream with an entry list.
    Directory(PathBuf),
    /// The same; every path in the stream begins with `name`, as in that of `tar -c NAME`.
    NamedDirectory {
        /// The directory.
        path: PathBuf,
        /// A relative path.
        name: PathBuf,
    },
}

/// What a run made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressSummary {
    /// Bytes of all members' contents.
    pub content_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Unique bytes: what was left for the codec.
    pub store_bytes: u64,
    /// Content bytes that were found again in the store.
    pub matched_bytes: u64,
    /// Content bytes in runs and short periods.
    pub run_bytes: u64,
    /// Number of members.
    pub members: usize,
    /// Number of blocks.
    pub blocks: usize,
    /// Blocks that were not coded as planned.
    pub fallbacks: u64,
    /// How many of the archive's latest bytes a decoder that cannot seek has to keep.
    pub reach_bytes: u64,
}

/// Compresses `members`, in this order, into one archive, and publishes `sink`.
///
/// The same contents and options (`threads` aside) give the same bytes. Memory stays within the options' budget for any
/// input size. Members that are read from pipes have no length beforehand; everything else is the same for them.
///
/// # Errors
/// `Usage` for options that make no sense, `Io` for failing reads and writes, `Limit` if the memory budget is too small,
/// `Cancelled` when the watch asked for it. The sink is then not published.
pub fn compress(
    members: Vec<MemberInput>,
    sink: &mut dyn Sink,
    options: &CompressOptions,
    watch: &dyn Watch,
) -> Result<CompressSummary> {
    let tuning = Tuning::new(options)?;
    if tuning.level != options.level.0 {
        watch.notice(&format!(
            "{} bytes of memory are too few for the codec of level {}: as level {}",
            tuning.memory_bytes, options.level.0, tuning.level
        ));
    }
    let mut prepared = Prepared {
        digests: options.digests.clone(),
        ..Prepared::new(tuning.memory_bytes)
    };
    for member in members {
        prepared.add(member)?;
    }
    let has_pipes = prepared.sources.iter().any(Option::is_none);
    let is_pipe_to_pipe = sink.read_back().is_none() && has_pipes;
    // A directory can be read again; but who sends one through a pipe often has it restored at the other end.
    let is_for_pipe = sink.read_back().is_none() && prepared.has_unknown_length;
    let reach_bytes = reach(options, &tuning, is_for_pipe, is_pipe_to_pipe)?;
    let kept = KeptBytes {
        frames: prepared.log_bytes() + if is_pipe_to_pipe { reach_bytes } else { 0 },
        packed: has_pipes && opens_slowly(tuning.plan.codec),
    };
    let run = Run {
        tuning,
        budget: Budget::new(&tuning, options.threads, kept)?,
        reach_bytes,
        // Directories leave to them what their logs had no room for, unless they open slowly or cannot be read back.
        opens_blocks: has_pipes
            || prepared.log_memory.is_some()
                && sink.read_back().is_some()
                && !opens_slowly(tuning.plan.codec),
        watch,
    };
    crew(options.threads.max(1), |crew| {
        run.compress(crew, prepared, sink)
    })
}

/// The promise to decoders that cannot seek. What this side can read again, from its sources or its own output, it may
/// refer to at any distance; from pipe to pipe both sides keep to the memory they were given, and so they do with a directory in place of
/// the first.
fn reach(
    options: &CompressOptions,
    tuning: &Tuning,
    is_for_pipe: bool,
    is_pipe_to_pipe: bool,
) -> Result<u64> {
    let default = match is_for_pipe {
        true => tuning.memory_bytes / 4,
        false => REACH_UNLIMITED,
    };
    let reach = options.reach_bytes.unwrap_or(default);
    let reach_max = tuning.memory_bytes / 2;
    if is_pipe_to_pipe && reach > reach_max {
        return Err(Error::limit(format!(
            "from pipe to pipe a reach of {reach} bytes is kept in memory, allowed are {reach_max}: \
             raise the memory limit"
        )));
    }
    let reach_min = tuning.rules.block_bytes * 4;
    if reach < reach_min {
        return Err(Error::limit(format!(
            "a reach of {reach} bytes is too small: at least {reach_min}"
        )));
    }
    Ok(reach)
}

/// Remarks that are known only after the run.
pub(crate) type LateNotices = Box<dyn FnOnce() -> Vec<String>>;

/// Makes the remarks that are known after the run.
pub(crate) fn tell_late(notices: Vec<LateNotices>, watch: &dyn Watch) {
    notices
        .into_iter()
        .flat_map(|late| late())
        .for_each(|notice| watch.notice(&notice));
}

/// The members, ready to be read.
#[derive(Default)]
pub(crate) struct Prepared {
    pub intake: Vec<IntakeMember>,
    members: Vec<OutMember>,
    pub sources: Vec<Option<Arc<dyn Source>>>,
    content_bytes_total: Option<u64>,
    has_unknown_length: bool,
    pub late_notices: Vec<LateNotices>,
    /// Further digests of every member.
    digests: Vec<DigestAlgorithm>,
    /// What the logs of directories may take together, once there are any.
    log_bytes_max: u64,
    log_memory: Option<LogMemory>,
}

/// The part of the memory that directories' logs may take: of 1 GiB enough for a million entries like a kernel tree's. What comes after them
/// is remembered only where blocks can be opened again.
const LOG_SHARE: u64 = 16;

impl Prepared {
    pub(crate) fn new(memory_bytes: u64) -> Prepared {
        Prepared {
            log_bytes_max: memory_bytes / LOG_SHARE,
            ..Prepared::default()
        }
    }

    /// Memory for what is kept of directories, in bytes.
    pub(crate) fn log_bytes(&self) -> u64 {
        let bytes = self.log_memory.as_ref().map(|_| self.log_bytes_max);
        bytes.unwrap_or(0)
    }

    /// Bytes of all contents, if they are known.
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
        let mut start = MemberStart {
            member_id: self.members.len() as u64,
            content_start: 0,
            kind: FormatKind::File,
            name: name.clone().into_bytes(),
            mode,
            modified,
            content_bytes_hint: None,
        };
        let mut entries: Option<TakeEntries> = None;
        match content {
            Content::Source(source) => {
                let size_bytes = source
                    .size_bytes()
                    .map_err(|error| Error::from(error).in_file(&name))?;
                start.content_bytes_hint = Some(size_bytes);
                self.content_bytes_total = Some(self.content_bytes_total.unwrap_or(0) + size_bytes);
                self.late_notices
                    .push(size_notice(name, source.clone(), size_bytes));
                self.sources.push(Some(source.clone()));
                self.intake.push(IntakeMember {
                    feed: Feed::Source(source),
                    size_bytes,
                });
            }
            Content::Stream(stream) => {
                start.kind = FormatKind::Stream;
                self.add_stream(stream, None);
            }
            Content::Directory(path) => {
                start.kind = FormatKind::Tree;
                entries = Some(self.add_tree(TreeReader::open(&path), name)?);
            }
            Content::NamedDirectory { path, name: first } => {
                start.kind = FormatKind::Tree;
                entries = Some(self.add_tree(TreeReader::open_named(&path, &first), name)?);
            }
        }
        self.members
            .push(OutMember::new(start, entries, &self.digests));
        Ok(())
    }

    /// Adds a directory as a tar stream; its entries can be taken when it was read.
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

    /// Adds what comes once; `source` gives again what went by.
    fn add_stream(&mut self, stream: Box<dyn Read + Send>, source: Option<Arc<dyn Source>>) {
        self.has_unknown_length = true;
        self.sources.push(source);
        self.intake.push(IntakeMember {
            feed: Feed::Stream(Arc::new(Lock::new(stream))),
            size_bytes: 0,
        });
    }
}

/// Tells when a source has not the size any more that it had.
fn size_notice(name: String, source: Arc<dyn Source>, size_bytes: u64) -> LateNotices {
    Box::new(move || match source.size_bytes() {
        Ok(now) if now != size_bytes => {
            vec![format!(
                "{name}: its size changed from {size_bytes} to {now} bytes while it was read"
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

struct Run<'a> {
    tuning: Tuning,
    budget: Budget,
    reach_bytes: u64,
    /// Blocks that were written are opened again for what cannot be read from its source.
    opens_blocks: bool,
    watch: &'a dyn Watch,
}

impl Run<'_> {
    fn compress(
        &self,
        crew: &Crew<'_, '_, Event<NativeEncoding>>,
        prepared: Prepared,
        sink: &mut dyn Sink,
    ) -> Result<CompressSummary> {
        let content_bytes_total = prepared.content_bytes_total();
        let Prepared {
            intake,
            members,
            sources,
            late_notices,
            ..
        } = prepared;
        let memory_bytes = self.tuning.memory_bytes;
        let written = self
            .opens_blocks
            .then(|| Arc::new(WrittenBlocks::new(sink.read_back(), memory_bytes)));
        let blocks = written.clone().map(|written| written as Arc<_>);
        let history = store_history(&self.budget, sources, blocks)?;
        let shared = shared(self.tuning, &self.budget);
        let block_bytes = self.tuning.rules.block_bytes;
        let reach = ReachTracker::new(self.reach_bytes, self.reach_margin(), block_bytes);
        let packed_reach = match self.budget.packed_bytes {
            0 => REACH_UNLIMITED,
            packed_bytes => packed_bytes,
        };
        let packed_reach = ReachTracker::new(packed_reach, 0, block_bytes);
        let output = Output::begin(sink, &self.head())?;
        let assembler = Assembler::new(
            output,
            members,
            shared.clone(),
            (reach, packed_reach),
            written,
            content_bytes_total,
            self.watch,
        );
        let assembler = run(
            crew,
            &shared,
            self.budget,
            intake,
            history,
            assembler,
            self.watch,
        )?;
        let summary = self.finish(assembler.output)?;
        tell_late(late_notices, self.watch);
        Ok(summary)
    }

    /// Bytes that the frames of one epoch can put behind its references, at most.
    fn reach_margin(&self) -> u64 {
        EPOCH_BYTES + EPOCH_BYTES / 8 + self.tuning.rules.block_bytes + (1 << 20)
    }

    fn head(&self) -> ArchiveHeader {
        ArchiveHeader {
            version: (FORMAT_MAJOR, FORMAT_MINOR),
            required_features: 0,
            level: self.tuning.level,
            segment_bytes: SEGMENT_BYTES as u64,
            epoch_bytes: EPOCH_BYTES + SEGMENT_BYTES as u64,
            block_bytes_max: self.tuning.rules.block_bytes,
            memory_budget_bytes: self.tuning.memory_bytes,
            reach_bytes: self.reach_bytes,
        }
    }

    /// Writes the index and the end, and publishes.
    fn finish(&self, output: Output<'_>) -> Result<CompressSummary> {
        let (archive_bytes, index) = output.publish()?;
        let content_bytes = index.content_bytes();
        self.watch.progress(&Progress {
            content_bytes_done: content_bytes,
            content_bytes_total: Some(content_bytes),
            archive_bytes,
        });
        Ok(CompressSummary {
            content_bytes,
            archive_bytes,
            store_bytes: index.store_bytes(),
            matched_bytes: index.totals.matched_bytes,
            run_bytes: index.totals.run_bytes,
            members: index.members.len(),
            blocks: index.blocks.len(),
            fallbacks: index.totals.fallback_count,
            reach_bytes: index.totals.reach_bytes,
        })
    }
}
