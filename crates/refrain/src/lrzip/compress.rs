//! Compress into an archive of lrzip: one content in, one `.lrz` out.

use std::sync::Arc;

use refrain_format::REACH_UNLIMITED;
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
use crate::write::input::{MemberInput, Prepared, tell_late};
use crate::write::lrzip::assemble::{BlockHistory, LrzipAssembler, Totals};
use crate::write::lrzip::encode::LrzipEncoding;
use crate::write::lrzip::reread::KeptBlocks;
use crate::write::lrzip::seal::Sealer;
use crate::write::pipeline::assembly::Event;
use crate::write::pipeline::budget::{Budget, KeptBytes, Load};
use crate::write::pipeline::reach::ReachTracker;
use crate::write::pipeline::run::{run, shared, store_history};

/// What a run made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LrzipSummary {
    /// Bytes of the content.
    pub content_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Unique bytes, without runs: what was left for the back end.
    pub store_bytes: u64,
    /// Content that records copy, in bytes.
    pub matched_bytes: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of blocks, of records and literals.
    pub blocks: u64,
    /// MD5 of the content, which the archive ends with.
    pub md5: DigestValue,
}

/// Compresses one content into an archive of version 6 of the format, that of lrzip 0.6, and publishes `sink`. A directory is packed as a tar stream;
/// name, mode and time of the member are not kept, for the format has no place for them.
///
/// The same content and options (`threads` aside) give the same bytes, but for what encryption draws. Memory stays within the options'
/// budget for any length.
///
/// # Errors
/// `Usage` for options that make no sense, `Io` for failing reads and writes and for a file that changes its length while it is
/// read, `Limit` if the memory budget is too small, `Cancelled` when the watch asked for it. The sink is then not published.
pub fn compress_lrzip(
    member: MemberInput,
    sink: &mut dyn Sink,
    options: &LrzipOptions,
    watch: &dyn Watch,
) -> Result<LrzipSummary> {
    let tuning = LrzipTuning::new(options)?;
    let mut prepared = Prepared::new(tuning.tuning.memory_bytes);
    prepared.add(member)?;
    let older = OlderBlocks::of(&prepared, sink, options, &tuning);
    let kept_bytes = older.as_ref().map_or(0, OlderBlocks::kept_bytes);
    let load = Load {
        memory_bytes: tuning.tuning.memory_bytes,
        block_bytes: tuning.cut.block_bytes,
        encode_bytes: tuning.cut.plan.memory_bytes(),
        kept: KeptBytes {
            frames: tuning.kept_bytes + kept_bytes + prepared.log_bytes(),
            packed: false,
        },
    };
    let mut header = header(tuning.cut.plan);
    let sealer = match &options.encryption {
        None => Sealer::open(),
        Some(encryption) => sealer(encryption, &mut header, watch)?,
    };
    let run = Run {
        budget: Budget::of(&load, options.threads),
        tuning,
        watch,
    };
    crew(options.threads.max(1), |crew| {
        run.compress(crew, prepared, sink, (header, sealer, older))
    })
}

/// Blocks that are opened again, for content that cannot be read twice.
struct OlderBlocks {
    blocks: Arc<KeptBlocks>,
    reach_bytes: u64,
}

impl OlderBlocks {
    /// From the archive at any distance, or, where that is not possible or too slow, from memory, of which a quarter is for that.
    /// `None` when all content can be read twice.
    fn of(
        prepared: &Prepared,
        sink: &dyn Sink,
        options: &LrzipOptions,
        tuning: &LrzipTuning,
    ) -> Option<OlderBlocks> {
        if prepared.sources.iter().all(Option::is_some) {
            return None;
        }
        let is_readable = options.encryption.is_none() && options.back_end != LrzipBackEnd::Zpaq;
        let archive = sink.read_back().filter(|_| is_readable);
        let reach_bytes = match archive {
            Some(_) => REACH_UNLIMITED,
            None => tuning.tuning.memory_bytes / 4,
        };
        Some(OlderBlocks {
            blocks: Arc::new(KeptBlocks::new(archive)),
            reach_bytes,
        })
    }

    /// Memory that they take, in bytes.
    fn kept_bytes(&self) -> u64 {
        match self.reach_bytes {
            REACH_UNLIMITED => 0,
            reach_bytes => reach_bytes,
        }
    }
}

struct Run<'a> {
    tuning: LrzipTuning,
    budget: Budget,
    watch: &'a dyn Watch,
}

impl Run<'_> {
    fn compress(
        &self,
        crew: &Crew<'_, '_, Event<LrzipEncoding>>,
        prepared: Prepared,
        sink: &mut dyn Sink,
        (header, sealer, older): (Header, Sealer, Option<OlderBlocks>),
    ) -> Result<LrzipSummary> {
        let content_bytes_total = prepared.content_bytes_total();
        let Prepared {
            intake,
            sources,
            late_notices,
            ..
        } = prepared;
        let blocks = older.as_ref().map(|older| older.blocks.clone() as Arc<_>);
        let history = store_history(&self.budget, sources, blocks)?;
        let shared = shared(self.tuning.tuning, &self.budget);
        let assembler = LrzipAssembler::new(
            sink,
            header,
            self.tuning.cut,
            sealer,
            older.map(|older| BlockHistory {
                blocks: older.blocks,
                reach: ReachTracker::new(older.reach_bytes, 0, self.tuning.cut.block_bytes),
            }),
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
        let (totals, md5) = assembler.finish()?;
        tell_late(late_notices, self.watch);
        self.watch.progress(&Progress {
            content_bytes_done: totals.content_bytes,
            content_bytes_total: Some(totals.content_bytes),
            archive_bytes: totals.archive_bytes,
        });
        Ok(summary(&totals, md5))
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

/// Rounds of the first cipher's key derivation, as the salt says them: a number and how far it is shifted. 2^24, about what lrzip 0.6
/// takes in 2028; it grows its number by the clock, which here changes nothing.
const CBC_ROUNDS: (u8, u8) = (128, 17);
/// Iterations of the second cipher's key derivation, as lrzip 0.7 has them.
const GCM_ITERATIONS: u32 = 600_000;

/// What is told of the first cipher.
const CBC_NOTICE: &str = "AES-128-CBC as lrzip 0.6 has it is WEAK protection: nothing notices changes, and passwords are tried \
     in about a second each; choose a long random one, or another program to encrypt";

/// What encrypts, and what the header says of it.
fn sealer(encryption: &LrzipEncryption, header: &mut Header, watch: &dyn Watch) -> Result<Sealer> {
    let mut seed = [0; SEED_BYTES];
    getrandom::fill(&mut seed).map_err(|error| {
        let cause = format!("the system gives no random numbers: {error}");
        Error::new(ErrorKind::Io, cause)
    })?;
    let mut draw = SeededRandom::new(seed);
    let cipher = match encryption.cipher {
        LrzipCipher::Aes128Cbc => {
            watch.notice(CBC_NOTICE);
            let (mantissa, shift) = CBC_ROUNDS;
            let mut salt = draw.bytes::<8>();
            (salt[0], salt[1]) = (shift, mantissa);
            Cipher::Cbc {
                salt,
                loops: u64::from(mantissa) << shift,
            }
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
    Ok(Sealer::new(&cipher, keys, draw))
}

fn summary(totals: &Totals, md5: DigestValue) -> LrzipSummary {
    LrzipSummary {
        content_bytes: totals.content_bytes,
        archive_bytes: totals.archive_bytes,
        store_bytes: totals.store_bytes,
        matched_bytes: totals.matched_bytes,
        chunks: totals.chunks,
        blocks: totals.blocks,
        md5,
    }
}
