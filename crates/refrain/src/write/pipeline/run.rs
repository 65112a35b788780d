//! One run of the pipeline, from the first byte of content to the last block, for any dialect.

use std::sync::Arc;

use refrain_pool::{BufferPool, Crew, Lock};
use refrain_protect::SEGMENT_BYTES;
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Watch, is_cancelled, next_event};
use crate::store::page::{PAGE_BYTES, pages};
use crate::store::workspaces::Workspaces;
use crate::tuning::Tuning;
use crate::write::pipeline::assembly::{Assembly, PipelineEvent};
use crate::write::pipeline::budget::Budget;
use crate::write::pipeline::commit::MatchState;
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::coordinator::Coordinator;
use crate::write::pipeline::earlier_store::EarlierStore;
use crate::write::pipeline::encode_queue::EncodeQueue;
use crate::write::pipeline::history::{BlockReader, ReadAgain, StoreHistory};
use crate::write::pipeline::history_policy::HistoryPolicy;
use crate::write::pipeline::intake::{Intake, IntakeMember};
use crate::write::pipeline::page_spill::PageSpill;
use crate::write::pipeline::trails::Trails;

/// The memory for old pages, in bytes, if all of them can be read again from their sources. First
/// touch of memory costs more than reading a page again, especially on a virtual machine whose host
/// reclaims unused memory. Match stage of two kernel trees (1.1 GB of pages), medians of eleven:
/// 512 MiB 1.77 s, 256 MiB 1.60 s, 128 MiB and 64 MiB 1.47 s; level 1 of them 3.04, 2.96, 2.92,
/// 2.95 s. (Another machine, where clearing pages was cheap, preferred 512 MiB by a tenth of the
/// processor time.) Two disk images at levels 1 and 3: 128 MiB 2.99 and 4.33 s, 64 MiB 2.46 and
/// 3.90, 32 MiB 2.61 at level 1.
const REREAD_CACHE_BYTES: u64 = 64 << 20;

/// Caches of small budgets have fewer bytes than this.
const SMALL_CACHE_BYTES: u64 = 16 << 20;

/// The context for the jobs of a run, within a budget.
pub(crate) fn pipeline_context(
    tuning: Tuning,
    budget: &Budget,
    spill: Option<Arc<PageSpill>>,
    trails: Option<Trails>,
) -> Arc<PipelineContext> {
    let segments_ahead = (budget.read_ahead_bytes / SEGMENT_BYTES as u64) as usize;
    Arc::new(PipelineContext {
        tuning,
        buffers: Arc::new(BufferPool::new(SEGMENT_BYTES, segments_ahead)),
        scans: Lock::default(),
        workspaces: Workspaces::default(),
        small_workspaces: Workspaces::default(),
        history: budget.history,
        spill,
        trails,
    })
}

/// The store at the start of a run. `blocks` decodes what `sources` cannot supply, if the policy
/// allows. `earlier` is the store of earlier generations.
pub(crate) fn store_history(
    budget: &Budget,
    sources: Vec<Option<Arc<dyn Source>>>,
    blocks: Option<Arc<dyn BlockReader>>,
    spill: Option<Arc<PageSpill>>,
    earlier: Option<EarlierStore>,
) -> Result<StoreHistory> {
    // Reading a page again from its source costs little more than a copy; keeping all pages would
    // mostly touch fresh memory.
    let cache_bytes = if budget.history.rereads_sources() {
        budget.cache_bytes.min(REREAD_CACHE_BYTES)
    } else {
        budget.cache_bytes
    };
    // Compressed copies replace pages over time, so the buffers of evicted pages must not be kept
    // in addition.
    let buffers_bytes = match (budget.history, &spill) {
        _ if cache_bytes < SMALL_CACHE_BYTES => 0,
        (HistoryPolicy::Sources, _) => cache_bytes,
        (_, Some(_)) => cache_bytes / 4,
        _ => 0,
    };
    // A small cache cannot afford many empty buffers.
    let buffers_least = if cache_bytes < SMALL_CACHE_BYTES { 32 } else { 128 };
    let buffers = pages(buffers_bytes).max(buffers_least);
    StoreHistory::new(
        budget.history,
        cache_bytes,
        budget.known_bytes_max,
        ReadAgain {
            sources,
            blocks,
            spill,
            earlier,
        },
        Arc::new(BufferPool::new(PAGE_BYTES, buffers)),
    )
}

/// Compresses all content. Returns the assembly when all parts are written except those that end
/// the archive. `prepare` fills the index with what earlier generations have.
#[allow(clippy::too_many_arguments)]
pub(crate) fn run<A: Assembly>(
    crew: &Crew<'_, '_, PipelineEvent<A::Encoding>>,
    context: &Arc<PipelineContext>,
    budget: Budget,
    intake: Vec<IntakeMember>,
    history: StoreHistory,
    prepare: impl FnOnce(&mut MatchState, &mut A) -> Result<()>,
    mut assembly: A,
    watch: &dyn Watch,
) -> Result<A> {
    let mut state = MatchState::new(budget.index_words, budget.continuations_bytes, history)?;
    prepare(&mut state, &mut assembly)?;
    let coordinator = Coordinator::new(
        crew,
        context.clone(),
        budget,
        Intake::new(intake),
        state,
        assembly,
        watch,
    );
    let (mut assembly, mut state, mut encoders) = coordinator.run()?;
    assembly.finish_content(state.history.take_last_page()?, &mut |job| {
        encoders.push(job);
    })?;
    drop(state);
    drain(crew, &mut encoders, &mut assembly, watch)?;
    Ok(assembly)
}

/// Waits for all jobs in flight and writes their results.
fn drain<A: Assembly>(
    crew: &Crew<'_, '_, PipelineEvent<A::Encoding>>,
    encoders: &mut EncodeQueue<'_, '_, '_, A::Encoding>,
    assembly: &mut A,
    watch: &dyn Watch,
) -> Result<()> {
    let internal = |what: &str| Err(Error::new(ErrorKind::Internal, what.to_owned()));
    loop {
        assembly.write_ready()?;
        match next_event(crew, watch)? {
            Some(event) => match event? {
                PipelineEvent::Encoded(outcome) => {
                    if let Some(encoded) = encoders.take(outcome, watch)? {
                        assembly.encoded(encoded);
                        encoders.retry();
                    }
                }
                _ => return internal("content was read after its end"),
            },
            None if assembly.is_all_written() => return Ok(()),
            None => return internal("a frame was never encoded"),
        }
        if is_cancelled(watch) {
            return Err(Error::cancelled());
        }
    }
}
