//! The verb for lrzip archives: one content in, one `.lrz` out.

use std::sync::Arc;

use refrain_format::lrzip::{Cipher, DigestKind, Header, LzmaProperties, Version};
use refrain_lrzip_codec::LrzipPlan;
use refrain_pool::{Crew, crew};
use refrain_protect::DigestValue;
use refrain_protect::lrzip::{SEED_BYTES, SeededRandom};
use refrain_storage::Sink;

use crate::error::{Error, ErrorKind, Result};
use crate::lrzip::options::{
    LrzipBackEnd, LrzipCipher, LrzipEncryption, LrzipOptions, LrzipTuning,
};
use crate::progress::{Progress, Watch};
use crate::store::lrzip::keys::make_keys;
use crate::tuning::RUN_BYTES_MAX;
use crate::write::input::{MemberInput, PreparedMembers, send_problems};
use crate::write::lrzip::assemble::{BlockHistory, LrzipAssembler, Totals};
use crate::write::lrzip::encode::LrzipEncoding;
use crate::write::lrzip::encryption::ItemEncryption;
use crate::write::lrzip::retained_blocks::RetainedBlocks;
use crate::write::pipeline::assembly::PipelineEvent;
use crate::write::pipeline::budget::{Budget, Load};
use crate::write::pipeline::history_policy::{
    BlockFrames, HistoryInputs, HistoryPolicy, MemberSources,
};
use crate::write::pipeline::reach::{ReachFloors, ReachLimits};
use crate::write::pipeline::run::{pipeline_context, run, store_history};

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LrzipSummary {
    /// Bytes of the content.
    pub content_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Bytes of the store, without runs: the unique bytes that the back end compressed.
    pub store_bytes: u64,
    /// Content bytes that records copy.
    pub matched_bytes: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of blocks, of records and literals.
    pub blocks: u64,
    /// MD5 of the content, as stored at the end of the archive.
    pub md5: DigestValue,
    /// Number of files that the archive lacks, or has not as they were at one moment.
    /// [`Watch::problem`] named each.
    pub problems: u64,
}

/// Compresses one content into an archive of version 6 of the format, as lrzip 0.6 does, and
/// publishes `sink`. A directory is stored as a tar stream. Name, mode and time of the member are
/// not stored, because the format has no fields for them.
///
/// The same content and options (except `threads`) give the same bytes, except for the random
/// numbers of encryption. Memory stays within the options' budget for any length.
///
/// # Errors
/// `Usage` for invalid options, `Io` for failed reads and writes and for a file whose length
/// changes while it is read, `Limit` if the memory budget is too small, `Cancelled` if the watch
/// cancelled the run. Then the sink is not published.
pub fn compress_lrzip(
    member: MemberInput,
    sink: &mut dyn Sink,
    options: &LrzipOptions,
    watch: &dyn Watch,
) -> Result<LrzipSummary> {
    let tuning = LrzipTuning::new(options)?;
    if tuning.lowered_from.is_some() {
        watch.notice(LOWERED_NOTICE);
    }
    let mut prepared = PreparedMembers::new(tuning.tuning.memory_bytes, RUN_BYTES_MAX, &[], true);
    prepared.add(member)?;
    let history = history_policy(&prepared, sink, options);
    let reach_bytes = retained_reach_bytes(history, tuning.tuning.memory_bytes);
    let load = Load {
        memory_bytes: tuning.tuning.memory_bytes,
        block_bytes: tuning.cut.block_bytes,
        encode_bytes: tuning.cut.plan.memory_bytes(),
        retained_bytes: tuning.waiting_bytes + reach_bytes.unwrap_or(0) + prepared.tree_bytes(),
        continuations_bytes: 0,
        history,
        spills: false,
        reads_later_members: false,
    };
    let mut header = header(tuning.cut.plan);
    let item_encryption = match &options.encryption {
        None => ItemEncryption::none(),
        Some(encryption) => item_encryption(encryption, &mut header, watch)?,
    };
    let run = Run {
        budget: Budget::for_load(&load, options.threads),
        tuning,
        watch,
    };
    crew(options.threads.max(1), |crew| {
        run.compress(crew, prepared, sink, (header, item_encryption))
    })
}

/// Where store bytes are read again. A directory is read only from its log. ZPAQ blocks are instead
/// kept in memory as a copy in another form, because decoding ZPAQ takes as long as encoding it,
/// and encrypted blocks are not read back.
fn history_policy(
    prepared: &PreparedMembers,
    sink: &dyn Sink,
    options: &LrzipOptions,
) -> HistoryPolicy {
    let is_readable = options.encryption.is_none() && options.back_end != LrzipBackEnd::Zpaq;
    HistoryPolicy::decide(HistoryInputs {
        members: match prepared.member_sources() {
            MemberSources::Directories => MemberSources::Seekable,
            members => members,
        },
        sink_reads_back: is_readable && sink.read_back().is_some(),
        decodes_slowly: false,
        has_temporary: false,
    })
}

/// How far back extents may refer if blocks are kept in memory, which may take 1/4 of the memory
/// budget.
fn retained_reach_bytes(history: HistoryPolicy, memory_bytes: u64) -> Option<u64> {
    history.retains_frames().then_some(memory_bytes / 4)
}

struct Run<'a> {
    tuning: LrzipTuning,
    budget: Budget,
    watch: &'a dyn Watch,
}

impl Run<'_> {
    fn compress(
        &self,
        crew: &Crew<'_, '_, PipelineEvent<LrzipEncoding>>,
        mut prepared: PreparedMembers,
        sink: &mut dyn Sink,
        (header, item_encryption): (Header, ItemEncryption),
    ) -> Result<LrzipSummary> {
        let content_bytes_total = prepared.content_bytes_total();
        let read_sources = prepared.take_read_sources();
        let PreparedMembers {
            intake,
            sources,
            problems,
            ..
        } = prepared;
        let history = self.budget.history;
        let blocks = history.block_frames().map(|frames| {
            let archive = match frames {
                BlockFrames::InArchive => sink.read_back(),
                BlockFrames::InMemory => None,
            };
            Arc::new(RetainedBlocks::new(archive))
        });
        let reader = blocks.clone().map(|blocks| blocks as Arc<_>);
        let store = store_history(&self.budget, sources, reader, None, None)?;
        let limits = ReachLimits {
            stated_bytes: retained_reach_bytes(history, self.tuning.tuning.memory_bytes),
            copies_bytes: None,
            store_bytes: None,
        };
        let block_bytes = self.tuning.cut.block_bytes;
        let reach = ReachFloors::new(limits, block_bytes, self.budget.epoch_bytes);
        let context = pipeline_context(self.tuning.tuning, &self.budget, None, None);
        let assembler = LrzipAssembler::new(
            sink,
            header,
            self.tuning.cut,
            item_encryption,
            blocks.map(|blocks| BlockHistory { blocks, reach }),
            content_bytes_total,
            self.watch,
        );
        let assembler = run(
            crew,
            &context,
            self.budget,
            intake,
            store,
            |_, _| Ok(()),
            assembler,
            self.watch,
        )?;
        let (totals, md5) = assembler.finish()?;
        read_sources.report_changes();
        let problem_count = send_problems(&problems, self.watch);
        self.watch.progress(&Progress {
            content_bytes_done: totals.content_bytes,
            content_bytes_total: Some(totals.content_bytes),
            archive_bytes: totals.archive_bytes,
        });
        Ok(summary(&totals, md5, problem_count))
    }
}

fn header(plan: LrzipPlan) -> Header {
    let lzma = match plan {
        LrzipPlan::Lzma {
            dictionary_bytes, ..
        } => LzmaProperties {
            packed: refrain_lrzip_codec::LZMA_PROPERTIES,
            dictionary_bytes,
        },
        _ => LzmaProperties {
            packed: 0,
            dictionary_bytes: 0,
        },
    };
    Header {
        version: Version::V6,
        content_bytes: None,
        lzma,
        digest: DigestKind::Md5,
        cipher: None,
        is_streaming: false,
        length_bytes: 0,
    }
}

/// The notice if the budget is too small for the level of ZPAQ.
const LOWERED_NOTICE: &str =
    "the memory budget is too small for this level of ZPAQ: a lower one is used";

/// The iterations of the second cipher's key derivation, as in lrzip 0.7.
const GCM_ITERATIONS: u32 = 600_000;

/// The notice about the first cipher.
const CBC_NOTICE: &str = "AES-128-CBC as in lrzip 0.6 is WEAK protection: changes are not detected, and trying a password takes \
     about a second; choose a long random password, or encrypt with another program";

/// The encryption of the items, also recorded in `header`.
fn item_encryption(
    encryption: &LrzipEncryption,
    header: &mut Header,
    watch: &dyn Watch,
) -> Result<ItemEncryption> {
    let mut seed = [0; SEED_BYTES];
    getrandom::fill(&mut seed).map_err(|error| {
        let cause = format!("the system supplies no random numbers: {error}");
        Error::new(ErrorKind::Io, cause)
    })?;
    let mut draw = SeededRandom::new(seed);
    let cipher = match encryption.cipher {
        LrzipCipher::Aes128Cbc => {
            watch.notice(CBC_NOTICE);
            Cipher::cbc_written_at(encryption.written_unix_seconds, draw.bytes())
        }
        LrzipCipher::Aes256Gcm => {
            header.version = Version::V7;
            Cipher::Gcm {
                salt: draw.bytes(),
                iterations: GCM_ITERATIONS,
            }
        }
    };
    let keys = make_keys(&cipher, header.version, Some(&encryption.password))?;
    header.cipher = Some(cipher);
    Ok(ItemEncryption::new(&cipher, keys, draw))
}

fn summary(totals: &Totals, md5: DigestValue, problems: u64) -> LrzipSummary {
    LrzipSummary {
        content_bytes: totals.content_bytes,
        archive_bytes: totals.archive_bytes,
        store_bytes: totals.store_bytes,
        matched_bytes: totals.matched_bytes,
        chunks: totals.chunks,
        blocks: totals.blocks,
        md5,
        problems,
    }
}
