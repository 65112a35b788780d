//! The verb compress: members in, one archive out.

use std::sync::Arc;

use refrain_codec::{FilterStep, by_name, is_slow_to_decode};
use refrain_format::{ArchiveEnd, ArchiveHeader, FORMAT_MAJOR, FORMAT_MINOR, REACH_UNLIMITED};
use refrain_pool::{Crew, crew};
use refrain_protect::envelope::AppendixCipher;
use refrain_protect::{DigestAlgorithm, HASH_BYTES, SEGMENT_BYTES};
use refrain_storage::{Sink, Source};

use crate::error::{Error, Result, mebibytes};
use crate::options::{CompressOptions, TemporarySpace};
use crate::progress::{Progress, Watch};
use crate::recovery::RecoveryOptions;
use crate::recovery::sink::RecoverySink;
use crate::recovery_share::RecoveryShare;
use crate::signing::sink::SignatureSink;
use crate::store::appendix::LastFrame;
use crate::store::envelope::sink::EnvelopeSink;
use crate::tuning::{RUN_BYTES_MAX, Tuning};
use crate::write::input::{MemberInput, PreparedMembers, send_problems};
use crate::write::native::assemble::{Assembler, NativeEncoding, ProgressCounts};
use crate::write::native::carried;
use crate::write::native::continuation::Continuation;
use crate::write::native::copied::CopiedMembers;
use crate::write::native::holes::epoch_bytes_max;
use crate::write::native::members::MemberWriter;
use crate::write::native::output::Output;
use crate::write::native::references::{reference_window, references_bytes};
use crate::write::native::written_blocks::WrittenBlocks;
use crate::write::pipeline::assembly::PipelineEvent;
use crate::write::pipeline::budget::Budget;
use crate::write::pipeline::commit::MatchState;
use crate::write::pipeline::earlier_store::EarlierStore;
use crate::write::pipeline::history_policy::{
    BlockFrames, HistoryInputs, HistoryPolicy, MemberSources,
};
use crate::write::pipeline::page_spill::{PageSpill, SpillSpace};
use crate::write::pipeline::reach::{
    ReachFloors, ReachLimits, epoch_bytes_within, reach_bytes_min,
};
use crate::write::pipeline::run::{pipeline_context, run, store_history};

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressSummary {
    /// Bytes of all members; a directory counts as a tar stream.
    pub content_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Bytes of the store: the unique bytes that the codecs compressed.
    pub store_bytes: u64,
    /// Content bytes that repeat bytes of the store.
    pub matched_bytes: u64,
    /// Content bytes in runs and short periods.
    pub run_bytes: u64,
    /// Number of members.
    pub members: usize,
    /// Number of members that are files, and of entries other than directories.
    pub files: u64,
    /// Number of files that were not read, because they are as in an earlier generation
    /// ([`add`](crate::add())).
    pub unchanged_files: u64,
    /// Number of blocks.
    pub blocks: usize,
    /// Blocks that were not encoded as planned.
    pub fallbacks: u64,
    /// How many of the archive's latest bytes a decoder that cannot seek has to keep.
    pub reach_bytes: u64,
    /// The root hash, BLAKE3 over everything that a reader shows.
    pub root_hash: [u8; HASH_BYTES],
    /// Number of files that the archive lacks, or has not as they were at one moment.
    /// [`Watch::problem`] named each.
    pub problems: u64,
}

/// Compresses `members`, in this order, into one archive, and publishes `sink`.
///
/// The same contents and options (except `threads`) give the same bytes, unless they are encrypted.
/// Memory stays within the options' budget for any input size. The length of members read from
/// streams need not be known beforehand.
///
/// # Errors
/// `Usage` for invalid options, `Io` for failed reads and writes, `Limit` if the memory budget is
/// too small, `Cancelled` if the watch cancelled the run. Then the sink is not published.
pub fn compress(
    members: Vec<MemberInput>,
    sink: &mut dyn Sink,
    options: &CompressOptions,
    watch: &dyn Watch,
) -> Result<CompressSummary> {
    let Some(share) = options.recovery else {
        return sign(members, sink, options, watch);
    };
    let mut sink = RecoverySink::new(sink, options.with_recovery(share)?)?;
    let mut summary = sign(members, &mut sink, options, watch)?;
    summary.archive_bytes += sink.recovery_bytes();
    Ok(summary)
}

impl CompressOptions {
    /// Checks the options without reading or writing anything. [`compress`](crate::compress()) does
    /// the same first.
    ///
    /// # Errors
    /// `Usage` for contradictory options, `Limit` for a memory budget that is too small for them,
    /// or a reach that is too small for the blocks.
    pub fn check(&self) -> Result<()> {
        let block_bytes = Tuning::new(self)?.rules.block_bytes;
        let reach = self.reach_bytes;
        reach.map_or(Ok(()), |reach| {
            epoch_bytes(self, reach, block_bytes).map(drop)
        })
    }

    /// How to make recovery data with these resources.
    pub(crate) fn with_recovery(&self, share: RecoveryShare) -> Result<RecoveryOptions> {
        Ok(RecoveryOptions {
            share,
            threads: self.threads,
            memory_bytes: Tuning::new(self)?.memory_bytes,
            temporary: (self.temporary.as_ref()).map(|temporary| temporary.directory.clone()),
        })
    }
}

/// An archive that was written, and what it takes to sign it.
pub(crate) struct Compressed {
    summary: CompressSummary,
    member_hashes: Vec<[u8; HASH_BYTES]>,
    last: LastFrame,
    cipher: Option<AppendixCipher>,
}

/// Compresses, and signs the archive if the options have a key.
fn sign(
    members: Vec<MemberInput>,
    sink: &mut dyn Sink,
    options: &CompressOptions,
    watch: &dyn Watch,
) -> Result<CompressSummary> {
    let Some(key) = &options.signing_key else {
        return Ok(encrypt(members, sink, options, watch)?.summary);
    };
    let mut sink = SignatureSink::new(sink);
    let Compressed {
        mut summary,
        member_hashes,
        last,
        cipher,
    } = encrypt(members, &mut sink, options, watch)?;
    let place = (last, cipher.as_ref());
    summary.archive_bytes += sink.sign(key, &summary.root_hash, &member_hashes, place)?;
    Ok(summary)
}

/// Compresses, and encrypts the archive if the options say for whom.
fn encrypt(
    members: Vec<MemberInput>,
    sink: &mut dyn Sink,
    options: &CompressOptions,
    watch: &dyn Watch,
) -> Result<Compressed> {
    let Some(encryption) = &options.encryption else {
        return compress_in_runs(members, sink, options, RUN_BYTES_MAX, watch);
    };
    let memory_bytes = Tuning::new(options)?.memory_bytes;
    let mut sink = EnvelopeSink::begin(sink, encryption, memory_bytes)?;
    let compressed = compress_in_runs(members, &mut sink, options, RUN_BYTES_MAX, watch)?;
    Ok(Compressed {
        summary: CompressSummary {
            archive_bytes: sink.archive_bytes(),
            ..compressed.summary
        },
        last: sink.last_frame(),
        cipher: sink.appendix_cipher().cloned(),
        ..compressed
    })
}

/// As [`compress`], behind an archive. The sums are those of the new members; the sink has the
/// archive already.
pub(crate) fn compress_behind(
    members: Vec<MemberInput>,
    sink: &mut dyn Sink,
    options: &CompressOptions,
    continuation: Continuation,
    watch: &dyn Watch,
) -> Result<CompressSummary> {
    let before = continuation.plan.base.end;
    let run_bytes_max = RUN_BYTES_MAX;
    let compressed = compress_members(
        members,
        sink,
        options,
        run_bytes_max,
        Some(continuation),
        watch,
    )?;
    Ok(sums_behind(&before, compressed.summary))
}

/// The sums of what follows an end.
fn sums_behind(before: &ArchiveEnd, all: CompressSummary) -> CompressSummary {
    CompressSummary {
        archive_bytes: all.archive_bytes - before.archive_bytes,
        store_bytes: all.store_bytes - before.store_bytes,
        matched_bytes: all.matched_bytes - before.totals.matched_bytes,
        run_bytes: all.run_bytes - before.totals.fill_bytes,
        members: all.members - before.member_count as usize,
        fallbacks: all.fallbacks - before.fallback_count,
        ..all
    }
}

/// Members of another archive, as [`compress_behind`] writes them.
pub(crate) struct CopiedContent {
    pub members: Box<dyn CopiedMembers>,
    /// The bytes of their content that are new, in the order of their first occurrence.
    pub new: Arc<dyn Source>,
    pub new_bytes: u64,
    /// The length of all content.
    pub content_bytes: u64,
}

/// As [`compress_behind`], copying members of another archive.
pub(crate) fn copy_behind(
    content: CopiedContent,
    sink: &mut dyn Sink,
    options: &CompressOptions,
    continuation: Continuation,
    watch: &dyn Watch,
) -> Result<CompressSummary> {
    let before = continuation.plan.base.end;
    let tuning = Tuning::new(options)?;
    let mut prepared =
        PreparedMembers::new(tuning.memory_bytes, RUN_BYTES_MAX, &options.digests, false);
    prepared.add_bytes(content.new, content.new_bytes, content.content_bytes);
    let members = Some(content.members);
    let planned = (prepared, members);
    let compressed = compress_prepared(planned, tuning, sink, options, Some(continuation), watch)?;
    Ok(sums_behind(&before, compressed.summary))
}

/// As [`compress`], writing entries at least every `run_bytes_max` bytes of content.
pub(crate) fn compress_in_runs(
    members: Vec<MemberInput>,
    sink: &mut dyn Sink,
    options: &CompressOptions,
    run_bytes_max: u64,
    watch: &dyn Watch,
) -> Result<Compressed> {
    compress_members(members, sink, options, run_bytes_max, None, watch)
}

fn compress_members(
    members: Vec<MemberInput>,
    sink: &mut dyn Sink,
    options: &CompressOptions,
    run_bytes_max: u64,
    mut continuation: Option<Continuation>,
    watch: &dyn Watch,
) -> Result<Compressed> {
    let tuning = Tuning::new(options)?;
    if tuning.level != options.level.0 {
        watch.notice(&format!(
            "{} bytes of memory are too few for the codec of level {}: compressing as level {}",
            tuning.memory_bytes, options.level.0, tuning.level
        ));
    }
    let mut prepared =
        PreparedMembers::new(tuning.memory_bytes, run_bytes_max, &options.digests, false);
    prepared.names_files = watch.names_files();
    prepared.code_bytes_min = options.rebased_code_bytes_min;
    if let Some(continuation) = &mut continuation {
        prepared.first_member = continuation.plan.base.end.member_count;
        prepared.earlier_trees = std::mem::take(&mut continuation.trees);
    }
    prepared.add_all(members)?;
    compress_prepared((prepared, None), tuning, sink, options, continuation, watch)
}

/// Compresses what was prepared; or with it, as their new bytes, members that are copied.
fn compress_prepared(
    (prepared, copied): (PreparedMembers, Option<Box<dyn CopiedMembers>>),
    tuning: Tuning,
    sink: &mut dyn Sink,
    options: &CompressOptions,
    continuation: Option<Continuation>,
    watch: &dyn Watch,
) -> Result<Compressed> {
    let inputs = HistoryInputs {
        members: prepared.member_sources(),
        sink_reads_back: sink.read_back().is_some(),
        decodes_slowly: is_slow_to_decode(tuning.plan.codec),
        has_temporary: options.temporary.is_some(),
    };
    let history = HistoryPolicy::decide(inputs);
    let Reach {
        reach_bytes,
        epoch_bytes,
    } = reach(options, &tuning, inputs, history)?;
    let frames_bytes = if history.retains_frames() { reach_bytes } else { 0 };
    let read_bytes = continuation.as_ref();
    let read_bytes = read_bytes.map_or(0, |earlier| earlier.read_bytes + earlier.cache_bytes);
    let retained_bytes =
        prepared.tree_bytes() + frames_bytes + references_bytes(tuning.memory_bytes) + read_bytes;
    let run = Run {
        tuning,
        budget: Budget {
            epoch_bytes,
            ..Budget::new(
                &tuning,
                options.threads,
                retained_bytes,
                history,
                inputs.spills(),
                prepared.reads_later_members(),
            )?
        },
        inputs,
        temporary: options.temporary.as_ref().filter(|_| inputs.spills()),
        reach_bytes,
        decoders_bytes: decoders_bytes_max(options),
        carries_decoders: options.carry_decoders,
        sparse_bytes: prepared.sparse_bytes,
        block_hashes: options.block_hashes,
        digests: &options.digests,
        watch,
    };
    crew(options.threads.max(1), |crew| {
        run.compress(crew, (prepared, copied), sink, continuation)
    })
}

struct Reach {
    /// How many of the archive's latest bytes a decoder that cannot seek has to keep.
    reach_bytes: u64,
    /// The content bytes that fill an epoch, so that its own bytes are within that.
    epoch_bytes: u64,
}

/// Decides how far extents may refer.
///
/// What this side can read again, from its sources or its own output, can be referred to at any
/// distance. From a stream to a sink that cannot be read back, both sides stay within their memory.
/// A directory written to such a sink is limited in the same way although it can be read again,
/// because it is often restored at the other end of a pipe.
fn reach(
    options: &CompressOptions,
    tuning: &Tuning,
    inputs: HistoryInputs,
    history: HistoryPolicy,
) -> Result<Reach> {
    let is_limited = !inputs.sink_reads_back && inputs.members != MemberSources::Seekable;
    let default = if is_limited {
        piped_reach_bytes(tuning.memory_bytes)
    } else {
        REACH_UNLIMITED
    };
    let reach = options.reach_bytes.unwrap_or(default);
    let reach_max = tuning.memory_bytes / 2;
    if history.retains_frames() && reach > reach_max {
        return Err(Error::limit(format!(
            "a reach of {} does not fit into half of the memory budget, which is {}; from a stream to a stream the reach is \
             buffered in memory: raise the memory limit or lower the reach",
            mebibytes(reach),
            mebibytes(reach_max)
        )));
    }
    Ok(Reach {
        reach_bytes: reach,
        epoch_bytes: epoch_bytes(options, reach, tuning.rules.block_bytes)?,
    })
}

/// The content bytes that fill an epoch, so that its own bytes are within the reach.
fn epoch_bytes(options: &CompressOptions, reach: u64, block_bytes: u64) -> Result<u64> {
    let decoders_bytes = decoders_bytes_max(options);
    let reach_min = (block_bytes * 4).max(reach_bytes_min(block_bytes)) + decoders_bytes;
    let epoch_bytes = epoch_bytes_within(reach - decoders_bytes.min(reach), block_bytes)
        .filter(|_| reach >= reach_min);
    epoch_bytes.ok_or_else(|| {
        Error::limit(format!(
            "a reach of {} is too small: with these blocks it must be at least {}",
            mebibytes(reach),
            mebibytes(reach_min)
        ))
    })
}

/// An upper bound on the decoders that the archive carries, in bytes; 0 for none.
fn decoders_bytes_max(options: &CompressOptions) -> u64 {
    let codec = options.codec.as_ref();
    let codec = codec.and_then(|choice| by_name(&choice.name));
    let codec = codec.filter(|codec| codec.describe().id.is_plugin());
    let filters = options.filters.unwrap_or_default();
    let is_plugin = |step: &FilterStep| FilterStep::PLUGINS.contains(&step.id());
    let plugins = codec.iter().count() + filters.steps().filter(is_plugin).count();
    let modules_bytes = if options.carry_decoders { carried::decoders_bytes_max() } else { 0 };
    modules_bytes + plugins as u64 * carried::PLUGIN_BYTES_MAX
}

/// The default reach from pipe to pipe, where both sides keep that much of the archive in memory:
/// three eighths of an ordinary budget, a quarter of a small one, which has less left for the rest.
///
/// A reader with its default memory keeps up to half a GiB. With 384 MiB, four kernel trees (233
/// MB) and two copies of a disk image (352 MB each) are no larger than from a file; with 256 MiB
/// the copies were not found. Half of the memory would leave too little to encode with.
fn piped_reach_bytes(memory_bytes: u64) -> u64 {
    const ORDINARY_BYTES: u64 = 1 << 30;
    if memory_bytes >= ORDINARY_BYTES {
        memory_bytes / 8 * 3
    } else {
        memory_bytes / 4
    }
}

struct Run<'a> {
    tuning: Tuning,
    budget: Budget,
    inputs: HistoryInputs,
    /// Where old pages go that no source can supply.
    temporary: Option<&'a TemporarySpace>,
    reach_bytes: u64,
    /// An upper bound on the decoders that the archive carries, in bytes; 0 for none.
    decoders_bytes: u64,
    carries_decoders: bool,
    /// The size of the largest sparse member.
    sparse_bytes: u64,
    /// Whether the index states hashes of blocks.
    block_hashes: bool,
    /// Further digests of every member.
    digests: &'a [DigestAlgorithm],
    watch: &'a dyn Watch,
}

impl Run<'_> {
    fn compress(
        &self,
        crew: &Crew<'_, '_, PipelineEvent<NativeEncoding>>,
        (mut prepared, copied): (PreparedMembers, Option<Box<dyn CopiedMembers>>),
        sink: &mut dyn Sink,
        mut continuation: Option<Continuation>,
    ) -> Result<Compressed> {
        let content_bytes_total = prepared.content_bytes_total();
        let read_sources = prepared.take_read_sources();
        let PreparedMembers {
            intake,
            members,
            sources,
            problems,
            duplicate_bytes,
            ..
        } = prepared;
        let memory_bytes = self.tuning.memory_bytes;
        let history = self.budget.history;
        let written = history.block_frames().map(|frames| {
            let archive = match frames {
                BlockFrames::InArchive => sink.read_back(),
                BlockFrames::InMemory => None,
            };
            Arc::new(WrittenBlocks::new(archive, memory_bytes))
        });
        let blocks = written.clone().map(|written| written as Arc<_>);
        let spill = self.spill();
        let earlier = continuation
            .as_ref()
            .and_then(|earlier| earlier.store.clone());
        let cache_bytes = continuation
            .as_ref()
            .map_or(0, |earlier| earlier.cache_bytes);
        let pages = earlier
            .clone()
            .map(|store| EarlierStore::new(store, cache_bytes));
        let store = store_history(
            &self.budget,
            sources,
            blocks,
            spill.clone(),
            pages.transpose()?,
        )?;
        let trails = continuation.as_mut();
        let trails = trails.map(|earlier| earlier.trails(&members, memory_bytes));
        let context = pipeline_context(self.tuning, &self.budget, spill.clone(), trails);
        let block_bytes = self.tuning.rules.block_bytes;
        let limits = ReachLimits {
            // Wherever decoders are, what extents refer to is within the rest.
            stated_bytes: Some(self.reach_bytes)
                .filter(|&bytes| bytes != REACH_UNLIMITED)
                .map(|bytes| bytes - self.decoders_bytes.min(bytes)),
            copies_bytes: (history.makes_copies()).then_some(self.budget.copies_bytes),
            store_bytes: (self.temporary)
                .filter(|_| self.inputs.decodes_slowly)
                .map(|temporary| temporary.bytes_max(memory_bytes)),
        };
        let reach = ReachFloors::new(limits, block_bytes, self.budget.epoch_bytes);
        let writer = |(number, plan)| {
            let mut writer = MemberWriter::new(plan, self.digests);
            let pieces = context
                .trails
                .as_ref()
                .and_then(|trails| trails.pieces_writer(number));
            pieces
                .into_iter()
                .for_each(|pieces| writer.keep_pieces(pieces));
            writer
        };
        let members = members.into_iter().enumerate().map(writer);
        let base = continuation.as_ref().map(|earlier| earlier.plan.base);
        let mut window = reference_window(memory_bytes);
        let (output, anchors) = match continuation {
            None => {
                let output = Output::new(sink, &self.header(), self.block_hashes);
                let is_carrying = self.carries_decoders;
                let output =
                    if is_carrying { output.carrying_decoders(block_bytes) } else { output };
                (output, None)
            }
            Some(earlier) => {
                window = window.min(earlier.plan.base.archive.reference_window);
                let mut output = Output::of_generation(sink, earlier.plan, &earlier.edges)?;
                if let Some(decoders) = &earlier.decoders {
                    output = output.carrying_decoders_behind(decoders)?;
                }
                (output, Some(earlier.anchors))
            }
        };
        let mut assembler = Assembler::new(
            output,
            members.collect(),
            context.clone(),
            reach,
            written,
            window,
            ProgressCounts {
                content_bytes_total,
                duplicate_bytes,
            },
            self.watch,
        );
        if let Some(base) = &base {
            assembler = assembler.behind(base);
        }
        let is_copy = copied.is_some();
        if let Some(copied) = copied {
            assembler = assembler.copying(copied);
        }
        let rules = &self.tuning.rules;
        let prepare = |state: &mut MatchState, assembler: &mut Assembler<'_>| match anchors {
            None => Ok(()),
            Some(known) => known.fill(state, assembler, earlier, rules, self.watch),
        };
        let mut assembler = run(
            crew,
            &context,
            self.budget,
            intake,
            store,
            prepare,
            assembler,
            self.watch,
        )?;
        if is_copy {
            assembler.copy_rest()?;
        }
        let (files, unchanged_files) = (assembler.file_count(), assembler.unchanged_count());
        let mut compressed = self.finish(assembler.output)?;
        compressed.summary.files = files;
        compressed.summary.unchanged_files = unchanged_files;
        if let Some(reason) = spill.and_then(|spill| spill.failure()) {
            let text = "old content was decoded again, which takes long, because it could not be written to a temporary file";
            self.watch.notice(&format!("{text}: {reason}"));
        }
        read_sources.report_changes();
        compressed.summary.problems = send_problems(&problems, self.watch);
        Ok(compressed)
    }

    fn spill(&self) -> Option<Arc<PageSpill>> {
        let temporary = self.temporary?;
        Some(Arc::new(PageSpill::new(SpillSpace {
            directory: temporary.directory.clone(),
            bytes_max: temporary.bytes_max(self.tuning.memory_bytes),
            waiting_bytes_max: self.budget.spill_waiting_bytes,
        })))
    }

    fn header(&self) -> ArchiveHeader {
        ArchiveHeader {
            version: (FORMAT_MAJOR, FORMAT_MINOR),
            required_features: 0,
            level: self.tuning.level,
            segment_bytes: SEGMENT_BYTES as u64,
            epoch_bytes: epoch_bytes_max(
                self.budget.epoch_bytes + SEGMENT_BYTES as u64,
                self.sparse_bytes,
            ),
            block_bytes_max: self.tuning.rules.block_bytes,
            memory_budget_bytes: self.tuning.memory_bytes,
            reach_bytes: self.reach_bytes,
            reference_window: reference_window(self.tuning.memory_bytes),
        }
    }

    /// Writes the index and the end, and publishes.
    fn finish(&self, output: Output<'_>) -> Result<Compressed> {
        let (archive_bytes, archive) = output.publish()?;
        let (content_bytes, end) = (archive.view_bytes, &archive.end);
        self.watch.progress(&Progress {
            content_bytes_done: content_bytes,
            content_bytes_total: Some(content_bytes),
            archive_bytes,
        });
        let summary = CompressSummary {
            content_bytes,
            archive_bytes,
            store_bytes: end.store_bytes,
            matched_bytes: end.totals.matched_bytes,
            run_bytes: end.totals.fill_bytes,
            members: end.member_count as usize,
            files: 0,
            unchanged_files: 0,
            blocks: archive.block_count as usize,
            fallbacks: end.fallback_count,
            reach_bytes: end.totals.reach_needed_bytes,
            root_hash: end.root_hash,
            problems: 0,
        };
        // A Whole frame is the only one.
        let is_whole = archive_bytes != end.archive_bytes;
        Ok(Compressed {
            summary,
            last: LastFrame {
                archive_id: archive.archive_id,
                sequence: if is_whole { 0 } else { end.frame_count.saturating_sub(1) },
                generation: 0,
            },
            member_hashes: archive.member_hashes,
            cipher: None,
        })
    }
}
