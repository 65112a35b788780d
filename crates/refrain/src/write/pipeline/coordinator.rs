//! The coordinator: receives the results of jobs, decides which jobs start next, and passes epochs
//! to the assembly in order.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use refrain_longmatch::{Match, find_in_epoch, has_repeats, match_segment, table_slots};
use refrain_pool::stages::stage;
use refrain_pool::trace::{MEMORY, count, waiting};
use refrain_pool::{Crew, Lane};

use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Watch, is_cancelled, next_event};
use crate::store::exact_read::read_full;
use crate::store::memory::{reserve, with_capacity};
use crate::store::source_stream::read_source;
use crate::write::pipeline::assembly::{Assembly, Encoding, PipelineEvent};
use crate::write::pipeline::budget::Budget;
use crate::write::pipeline::commit::{CommittedEpoch, EpochCommit, MatchState, commit_epoch};
use crate::write::pipeline::context::PipelineContext;
use crate::write::pipeline::encode_queue::EncodeQueue;
use crate::write::pipeline::history::EncodedPages;
use crate::write::pipeline::intake::{Intake, NextSegment, SegmentFeed};
use crate::write::pipeline::refused_jobs::{RefusedJob, RefusedJobs, SegmentRead};
use crate::write::pipeline::segments::{
    EarlierPart, EpochData, OpenEpoch, ReadSegment, SegmentPlan,
};

/// An epoch that was read and waits to be matched.
struct WaitingEpoch {
    id: u64,
    data: Arc<EpochData>,
    candidates: Option<Arc<Vec<Vec<u32>>>>,
}

pub(crate) struct Coordinator<'c, 'scope, 'env, A: Assembly> {
    crew: &'c Crew<'scope, 'env, PipelineEvent<A::Encoding>>,
    context: Arc<PipelineContext>,
    budget: Budget,
    intake: Intake,
    intake_done: bool,
    assembly: A,
    encoders: EncodeQueue<'c, 'scope, 'env, A::Encoding>,
    refused: RefusedJobs,
    has_been_refused: bool,
    /// Refusals of buffers so far, and whether reading pauses because of the last one.
    buffer_refusals: u64,
    pauses_reading: bool,
    /// Whether the epoch that was matched waits for memory to be committed.
    commit_waits: bool,
    watch: &'c dyn Watch,
    /// Epochs being read, starting with number `first_open`.
    open: VecDeque<OpenEpoch>,
    first_open: u64,
    /// Number of the next epoch with content.
    next_epoch: u64,
    /// Epochs that were read, in order.
    waiting: VecDeque<WaitingEpoch>,
    /// Content bytes read, or being read, and not committed.
    uncommitted_bytes: u64,
    /// `None` while an epoch is being committed.
    state: Option<Arc<MatchState>>,
    matching: Option<Matching>,
    spare_tables: Vec<Vec<u64>>,
    encoded: Vec<EncodedPages>,
}

/// What remains when all content was committed.
type Finished<'c, 'scope, 'env, A> = (
    A,
    MatchState,
    EncodeQueue<'c, 'scope, 'env, <A as Assembly>::Encoding>,
);

/// The epoch that is being matched.
struct Matching {
    epoch: WaitingEpoch,
    matches: Vec<Vec<Match>>,
    /// How many jobs must be done before the commit.
    jobs_left: usize,
    reach_floor: u64,
}

impl<'c, 'scope, 'env, A: Assembly> Coordinator<'c, 'scope, 'env, A> {
    pub(crate) fn new(
        crew: &'c Crew<'scope, 'env, PipelineEvent<A::Encoding>>,
        context: Arc<PipelineContext>,
        budget: Budget,
        intake: Intake,
        state: MatchState,
        assembly: A,
        watch: &'c dyn Watch,
    ) -> Self {
        let encoders = EncodeQueue::new(crew, context.clone(), budget.encoders);
        Coordinator {
            crew,
            context,
            budget,
            intake,
            intake_done: false,
            assembly,
            encoders,
            refused: RefusedJobs::default(),
            has_been_refused: false,
            buffer_refusals: 0,
            pauses_reading: false,
            commit_waits: false,
            watch,
            open: VecDeque::new(),
            first_open: 0,
            next_epoch: 0,
            waiting: VecDeque::new(),
            uncommitted_bytes: 0,
            state: Some(Arc::new(state)),
            matching: None,
            spare_tables: Vec::new(),
            encoded: Vec::new(),
        }
    }

    /// Runs until all content is committed.
    pub(crate) fn run(mut self) -> Result<Finished<'c, 'scope, 'env, A>> {
        loop {
            // Write first: that releases memory for the jobs started next.
            let written = self.assembly.write_ready()?;
            self.encoded.extend(written);
            self.start_reading()?;
            self.start_matching()?;
            self.trace_memory();
            let waits_for_memory = self.is_short_of_memory().then(|| waiting(MEMORY));
            let next = next_event(self.crew, self.watch)?;
            drop(waits_for_memory);
            match next {
                Some(event) => {
                    let is_refusal = self.take(event?)?;
                    if is_refusal {
                        self.plan_with_less_memory();
                    } else {
                        self.refused.another_job_ended();
                    }
                    // What the job has freed may be what was missing.
                    if !is_refusal || self.crew.in_flight() == 0 {
                        self.try_again()?;
                    }
                }
                None if self.intake_done && self.waiting.is_empty() && self.open.is_empty() => {
                    break;
                }
                None => {
                    return Err(Error::new(
                        ErrorKind::Internal,
                        "the pipeline has no job left to wait for",
                    ));
                }
            }
            if is_cancelled(self.watch) {
                return Err(Error::cancelled());
            }
        }
        let state = self.state.take().and_then(Arc::into_inner);
        let state = state
            .ok_or_else(|| Error::new(ErrorKind::Internal, "the match state is still shared"))?;
        Ok((self.assembly, state, self.encoders))
    }

    /// Records how much of the budget is in use.
    fn trace_memory(&self) {
        count("bytes read and not yet matched", || self.uncommitted_bytes);
        count("blocks in flight", || {
            self.assembly.blocks_in_flight() as u64
        });
        count("blocks being encoded", || self.encoders.running() as u64);
    }

    /// Whether only the budget keeps workers from available work.
    fn is_short_of_memory(&self) -> bool {
        let has_no_block = self.assembly.blocks_in_flight() >= self.budget.blocks_in_flight;
        (has_no_block && !self.intake_done) || self.encoders.is_held_back(self.crew.threads())
    }

    /// The system refused memory: from now on less is read ahead and fewer blocks are in flight.
    fn plan_with_less_memory(&mut self) {
        if !std::mem::replace(&mut self.has_been_refused, true) {
            self.watch.notice(SMALLER_PLAN_NOTICE);
        }
        let budget = &mut self.budget;
        budget.read_ahead_bytes = (budget.read_ahead_bytes / 2).max(budget.epoch_bytes);
        budget.blocks_in_flight = (budget.blocks_in_flight / 2).max(1);
    }

    /// Starts again what was refused memory.
    fn try_again(&mut self) -> Result<()> {
        self.pauses_reading = false;
        self.encoders.retry();
        for job in self.refused.take() {
            self.submit_again(job);
        }
        if std::mem::take(&mut self.commit_waits) {
            self.commit()?;
        }
        Ok(())
    }

    fn submit_again(&mut self, job: RefusedJob) {
        self.context.release_idle_memory();
        self.spare_tables.clear();
        match job {
            RefusedJob::Segment(segment) => self.submit_reading(segment),
            RefusedJob::Candidates { epoch, data } => self.submit_search(epoch, data),
        }
    }

    /// Whether jobs that were refused memory wait for others to end: nothing new is started.
    fn waits_for_memory(&self) -> bool {
        let is_refused = self.encoders.waits_for_memory() || !self.refused.is_empty();
        is_refused || self.pauses_reading || self.commit_waits
    }

    /// How many content bytes may be read beyond those in segments.
    fn room_bytes(&self) -> u64 {
        if self.assembly.blocks_in_flight() < self.budget.blocks_in_flight {
            (self.budget.read_ahead_bytes).saturating_sub(self.uncommitted_bytes)
        } else {
            0
        }
    }

    /// The bytes for members read before their turn. Without threads, or without stacks for waiting
    /// jobs, no member is read while the one before it is silent.
    fn ahead_bytes(&self) -> u64 {
        if self.crew.suspends_input() { self.budget.later_members_bytes } else { 0 }
    }

    /// Reads ahead as far as the budget allows.
    fn start_reading(&mut self) -> Result<()> {
        while !self.intake_done && !self.waits_for_memory() {
            let (room_bytes, ahead_bytes) = (self.room_bytes(), self.ahead_bytes());
            let next = (self.intake).next(room_bytes, ahead_bytes, &self.context)?;
            self.note_refused_buffers();
            match next {
                NextSegment::Segment(plan, feed) => self.read_segment(plan, feed),
                NextSegment::Filled(plan, bytes, earlier) => {
                    self.scan_segment(plan, bytes, earlier)
                }
                NextSegment::Job(lane, job) => {
                    let context = self.context.clone();
                    self.crew.submit(lane, move || {
                        job(&context);
                        PipelineEvent::FeedJob
                    });
                }
                NextSegment::Wait => break,
                NextSegment::Done => {
                    self.intake_done = true;
                    self.close_epochs();
                }
            }
        }
        Ok(())
    }

    /// A feed that was refused a buffer took it from the program's reserve: reading pauses until a
    /// job ends.
    fn note_refused_buffers(&mut self) {
        let refusals = self.context.buffers.refusals();
        if std::mem::replace(&mut self.buffer_refusals, refusals) < refusals {
            self.plan_with_less_memory();
            self.context.release_idle_memory();
            self.pauses_reading = self.crew.in_flight() > 0;
        }
    }

    /// Reserves the place of the next segment: its epoch and slot.
    fn reserve_slot(&mut self, plan: &SegmentPlan) -> (u64, usize) {
        let epoch_bytes = self.budget.epoch_bytes;
        if (self.open.back()).is_none_or(|open| open.is_full(epoch_bytes)) {
            self.open.push_back(OpenEpoch::default());
        }
        let epoch = self.first_open + self.open.len() as u64 - 1;
        self.uncommitted_bytes += plan.length_bytes as u64;
        let slot = self.open.back_mut().map(|open| open.plan(plan));
        (epoch, slot.unwrap_or_default())
    }

    fn scan_segment(&mut self, plan: SegmentPlan, bytes: Vec<u8>, earlier: Vec<EarlierPart>) {
        let (epoch, slot) = self.reserve_slot(&plan);
        let context = self.context.clone();
        self.crew
            .submit(Lane::Normal, move || PipelineEvent::Segment {
                epoch,
                slot,
                segment: (context.scan(&plan, bytes))
                    .map(|segment| ReadSegment { earlier, ..segment }),
            });
    }

    fn read_segment(&mut self, plan: SegmentPlan, feed: SegmentFeed) {
        let (epoch, slot) = self.reserve_slot(&plan);
        self.submit_reading(SegmentRead {
            epoch,
            slot,
            plan,
            feed,
        });
    }

    fn submit_reading(&mut self, segment: SegmentRead) {
        let context = self.context.clone();
        let SegmentRead {
            epoch, slot, plan, ..
        } = segment;
        match segment.feed.clone() {
            SegmentFeed::Source(source) => {
                self.crew.submit(Lane::Normal, move || {
                    let Ok(buffer) = context.segment_buffer(plan.length_bytes) else {
                        return PipelineEvent::Refused(RefusedJob::Segment(segment));
                    };
                    let bytes = context.read(buffer, |buffer| {
                        read_source(&*source, plan.offset_in_member, buffer)
                    });
                    let segment = bytes.and_then(|bytes| context.scan(&plan, bytes));
                    PipelineEvent::Segment {
                        epoch,
                        slot,
                        segment,
                    }
                });
            }
            SegmentFeed::Stream(stream) => {
                self.crew.submit(Lane::Input, move || {
                    let Ok(buffer) = context.segment_buffer(plan.length_bytes) else {
                        return PipelineEvent::Refused(RefusedJob::Segment(segment));
                    };
                    // No lock is held during the read: the job may be suspended.
                    let taken = stream.lock().take();
                    let bytes = context.read(buffer, |buffer| {
                        let mut taken = taken.ok_or_else(|| io::Error::other("no stream"))?;
                        let read = read_full(&mut *taken, buffer);
                        *stream.lock() = Some(taken);
                        read
                    });
                    PipelineEvent::StreamRead {
                        epoch,
                        slot,
                        plan,
                        bytes,
                    }
                });
            }
        }
    }

    /// Returns whether the job of the event was refused memory.
    fn take(&mut self, event: PipelineEvent<A::Encoding>) -> Result<bool> {
        match event {
            PipelineEvent::StreamRead {
                epoch,
                slot,
                plan,
                bytes,
            } => self.stream_read(epoch, slot, plan, bytes?),
            PipelineEvent::Segment {
                epoch,
                slot,
                segment,
            } => self.segment_read(epoch, slot, segment?)?,
            // The intake finds its result.
            PipelineEvent::FeedJob => {}
            PipelineEvent::Candidates {
                epoch,
                candidates,
                table,
            } => {
                self.spare_tables.push(table);
                if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.id == epoch) {
                    waiting.candidates = Some(Arc::new(candidates));
                }
            }
            PipelineEvent::Matched { batch, matches } => self.batch_matched(batch, matches)?,
            PipelineEvent::Committed(committed) => self.epoch_committed(*committed?)?,
            PipelineEvent::Digested(digests) => {
                self.assembly.digested(digests);
                self.matching_job_done()?;
            }
            PipelineEvent::Refused(job) => {
                self.refused.add(job, self.crew.in_flight() == 0)?;
                return Ok(true);
            }
            PipelineEvent::Encoded(outcome) => {
                let Some(encoded) = self.encoders.take(outcome, self.watch)? else {
                    return Ok(true);
                };
                self.assembly.encoded(encoded);
            }
        }
        Ok(false)
    }

    fn stream_read(&mut self, epoch: u64, slot: usize, plan: SegmentPlan, bytes: Vec<u8>) {
        self.intake.stream_read(bytes.len());
        let missing = plan.length_bytes - bytes.len();
        self.uncommitted_bytes -= missing as u64;
        if let Some(open) = self.open.get_mut((epoch - self.first_open) as usize) {
            open.shrink(missing);
        }
        let context = self.context.clone();
        self.crew
            .submit(Lane::Normal, move || PipelineEvent::Segment {
                epoch,
                slot,
                segment: context.scan(&plan, bytes),
            });
    }

    fn segment_read(&mut self, epoch: u64, slot: usize, segment: ReadSegment) -> Result<()> {
        if let Some(open) = self.open.get_mut((epoch - self.first_open) as usize) {
            open.put(slot, segment);
        }
        self.close_epochs();
        Ok(())
    }

    /// Moves complete epochs to the list of epochs waiting to be matched.
    fn close_epochs(&mut self) {
        let epoch_bytes = self.budget.epoch_bytes;
        while self.open.front().is_some_and(|open| {
            open.is_complete() && (self.intake_done || open.is_full(epoch_bytes))
        }) {
            let Some(open) = self.open.pop_front() else {
                return;
            };
            self.first_open += 1;
            let planned_bytes = open.planned_bytes();
            let data = Arc::new(EpochData::new(self.in_sequence(open)));
            self.uncommitted_bytes -= planned_bytes - data.length_bytes();
            // A stream that ends together with an epoch leaves an epoch without content.
            if data.segments.is_empty() {
                continue;
            }
            let id = self.next_epoch;
            self.next_epoch += 1;
            self.waiting.push_back(WaitingEpoch {
                id,
                data: data.clone(),
                candidates: None,
            });
            self.submit_search(id, data);
        }
    }

    /// Submits the search for repeats inside an epoch.
    fn submit_search(&mut self, epoch: u64, data: Arc<EpochData>) {
        let mut table = self.spare_tables.pop().unwrap_or_default();
        self.crew.submit(Lane::Urgent, move || {
            let _stage = stage("find repeats", data.length_bytes());
            table.clear();
            let slots = data.with(table_slots);
            if reserve(&mut table, slots as u64).is_err() {
                return PipelineEvent::Refused(RefusedJob::Candidates { epoch, data });
            }
            let mut candidates = vec![];
            data.with(|epoch| find_in_epoch(epoch, &mut table, &mut candidates));
            PipelineEvent::Candidates {
                epoch,
                candidates,
                table,
            }
        });
    }

    /// The segments of an epoch, without those that follow an early end of their member.
    fn in_sequence(&mut self, open: OpenEpoch) -> Vec<ReadSegment> {
        let accept = |segment: &ReadSegment| {
            let end = segment.offset_in_member + segment.bytes.len() as u64;
            let start = segment.offset_in_member - segment.hole_bytes;
            self.intake.accept(segment.member, start..end)
        };
        open.into_segments().filter(accept).collect()
    }

    fn start_matching(&mut self) -> Result<()> {
        // A commit fills pages.
        if self.encoders.waits_for_memory() {
            return Ok(());
        }
        let next = self.waiting.front();
        let next = next.filter(|epoch| epoch.candidates.is_some() && self.matching.is_none());
        let Some(next) = next.filter(|epoch| self.assembly.may_begin(&epoch.data)) else {
            return Ok(());
        };
        let (id, content_bytes) = (next.id, next.data.length_bytes());
        let Some(reach_floor) = self.assembly.floor_for(id, content_bytes) else {
            return Ok(());
        };
        let state = self.state.clone().ok_or_else(not_matching)?;
        let epoch = self.waiting.pop_front().ok_or_else(not_matching)?;
        self.assembly.epoch_read(&epoch.data)?;
        let mut jobs_left = 0;
        if let Some(mut digests) = self.assembly.take_digests() {
            let data = epoch.data.clone();
            jobs_left += 1;
            self.crew.submit(Lane::Urgent, move || {
                let _stage = stage("hash", data.length_bytes());
                A::Encoding::digest(&mut digests, &data);
                drop(data);
                PipelineEvent::Digested(digests)
            });
        }
        let candidates = epoch.candidates.clone().unwrap_or_default();
        let batches = epoch.data.batches();
        let matches = vec![vec![]; epoch.data.segments.len()];
        jobs_left += batches.len();
        for batch in batches {
            let (data, candidates, state, context) = (
                epoch.data.clone(),
                candidates.clone(),
                state.clone(),
                self.context.clone(),
            );
            self.crew.submit(Lane::Urgent, move || {
                let segments = data.segments[batch.clone()].iter();
                let _stage = stage(
                    "match",
                    segments.map(|segment| segment.bytes.len() as u64).sum(),
                );
                let matches = data.with(|epoch| {
                    let rules = &context.tuning.rules;
                    let one = |number: usize| {
                        let trail = context.trail(&data.segments[number]);
                        match_segment(
                            epoch,
                            number,
                            &candidates[number],
                            &state.index,
                            &state.continuations,
                            &state.history,
                            reach_floor,
                            &trail,
                            rules,
                        )
                    };
                    batch.clone().map(one).collect()
                });
                PipelineEvent::Matched { batch, matches }
            });
        }
        self.matching = Some(Matching {
            epoch,
            matches,
            jobs_left,
            reach_floor,
        });
        Ok(())
    }

    fn batch_matched(&mut self, batch: Range<usize>, found: Vec<Vec<Match>>) -> Result<()> {
        let matching = self.matching.as_mut().ok_or_else(not_matching)?;
        for (matches, found) in matching.matches[batch].iter_mut().zip(found) {
            *matches = found;
        }
        self.matching_job_done()
    }

    /// One of the jobs that the commit waits for is done.
    fn matching_job_done(&mut self) -> Result<()> {
        let matching = self.matching.as_mut().ok_or_else(not_matching)?;
        matching.jobs_left -= 1;
        match matching.jobs_left {
            0 => self.commit(),
            _ => Ok(()),
        }
    }

    /// Commits the epoch whose matches were found. Its pages are new memory, and tables may grow:
    /// if the system refuses that much, the commit waits until another job has ended.
    fn commit(&mut self) -> Result<()> {
        let matching = self.matching.as_ref().ok_or_else(not_matching)?;
        let growth_bytes = self.state.as_ref().map_or(0, |state| state.growth_bytes());
        let new_bytes = matching.epoch.data.length_bytes() as usize + growth_bytes;
        if self.crew.in_flight() > 0 && with_capacity(new_bytes).is_err() {
            self.commit_waits = true;
            self.plan_with_less_memory();
            self.context.release_idle_memory();
            return Ok(());
        }
        let matching = self.matching.as_mut().ok_or_else(not_matching)?;
        let state = self.state.take().and_then(Arc::into_inner);
        let state = state
            .ok_or_else(|| Error::new(ErrorKind::Internal, "the match state is still shared"))?;
        let step = EpochCommit {
            state,
            data: matching.epoch.data.clone(),
            matches: std::mem::take(&mut matching.matches),
            block_start: self.assembly.block_start(),
            rules: self.context.tuning.rules,
            near_one_in: self.context.tuning.near_one_in,
            encoded: std::mem::take(&mut self.encoded),
            has_repeats: (matching.epoch.candidates.as_deref())
                .is_some_and(|candidates| has_repeats(candidates)),
            reach_floor: matching.reach_floor,
        };
        self.crew.submit(Lane::Urgent, move || {
            let _stage = stage("commit", step.data.length_bytes());
            PipelineEvent::Committed(commit_epoch(step).map(Box::new))
        });
        Ok(())
    }

    fn epoch_committed(&mut self, mut committed: CommittedEpoch) -> Result<()> {
        let Matching { epoch, .. } = self.matching.take().ok_or_else(not_matching)?;
        self.uncommitted_bytes -= epoch.data.length_bytes();
        let encoders = &mut self.encoders;
        self.assembly
            .epoch_committed(epoch.id, &mut committed, &mut |job| encoders.push(job))?;
        self.state = Some(Arc::new(committed.state));
        if let Some(data) = Arc::into_inner(epoch.data) {
            self.context.recycle(data);
        }
        Ok(())
    }
}

/// The notice when the system refuses memory.
const SMALLER_PLAN_NOTICE: &str =
    "the system refuses memory: fewer blocks are in flight from now on, which takes more time";

/// The result of a job of matching came while no epoch was being matched.
fn not_matching() -> Error {
    Error::new(ErrorKind::Internal, "no epoch is being matched")
}
