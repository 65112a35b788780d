//! Compression and decompression of streams, piece by piece.

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use refrain::lrzip::compress_lrzip;
use refrain::storage::Sink;
use refrain::{
    Content, Input, Member, MemberInput, MemberStart, Progress, Target, Targets, Watch, compress,
    spill_in,
};
use refrain_pool::{SignalDelivery, start_detached};
use refrain_sync::{Mutex, lock};

use crate::exchange::{Buffers, Ending, Exchange, InputReader, OutputSink};
use crate::failure::{Failure, Result};
use crate::numbers::{
    REFRAIN_CONTINUE, REFRAIN_END, REFRAIN_ERROR_DAMAGED, REFRAIN_ERROR_LIMIT, REFRAIN_ERROR_USAGE,
    REFRAIN_FLUSH,
};
use crate::restoring::restore_all;
use crate::settings::{Damaged, Format, Settings};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Compress,
    Decompress,
}

/// What the input buffer is to the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directive {
    Continue,
    Flush,
    End,
}

/// A stream. Calls on several threads take turns.
#[derive(Debug)]
pub(crate) struct Stream {
    direction: Direction,
    settings: Settings,
    progress: Arc<StreamProgress>,
    caller: Mutex<Caller>,
    /// What the engine runs with now, to stop it during a call.
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    exchange: Option<Arc<Exchange>>,
    is_closed: bool,
}

/// The caller's side.
#[derive(Debug, Default)]
struct Caller {
    /// What the engine runs with now.
    run: Option<Arc<Exchange>>,
    /// Whether anything was written.
    has_begun: bool,
    is_complete: bool,
    failure: Option<Failure>,
}

/// The numbers of a [`Progress`] of all runs, for any thread.
#[derive(Debug, Default)]
struct StreamProgress {
    is_cancelled: AtomicBool,
    /// What was counted is all.
    is_complete: AtomicBool,
    content_bytes: AtomicU64,
    archive_bytes: AtomicU64,
    /// Of the runs that have ended.
    before: Mutex<Totals>,
}

/// What runs have read and written.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    content_bytes: u64,
    archive_bytes: u64,
}

impl Watch for StreamProgress {
    fn progress(&self, progress: &Progress) {
        let mut all = *lock(&self.before);
        all.content_bytes += progress.content_bytes_done;
        all.archive_bytes += progress.archive_bytes;
        self.content_bytes
            .fetch_max(all.content_bytes, Ordering::Relaxed);
        self.archive_bytes
            .fetch_max(all.archive_bytes, Ordering::Relaxed);
    }

    fn cancel_flag(&self) -> Option<&AtomicBool> {
        Some(&self.is_cancelled)
    }
}

impl StreamProgress {
    /// A run has ended. The engine tells of its progress now and then, not of its end, and counts a
    /// small archive as long as it is without its last compression.
    fn run_ended(&self, run: Totals) {
        let mut before = lock(&self.before);
        before.content_bytes += run.content_bytes;
        before.archive_bytes += run.archive_bytes;
        let (content_bytes, archive_bytes) = (before.content_bytes, before.archive_bytes);
        self.content_bytes.store(content_bytes, Ordering::Relaxed);
        self.archive_bytes.store(archive_bytes, Ordering::Relaxed);
    }

    fn to_progress(&self) -> Progress {
        // Read first: what is counted before it is set is all.
        let is_complete = self.is_complete.load(Ordering::Acquire);
        let content_bytes_done = self.content_bytes.load(Ordering::Relaxed);
        Progress {
            content_bytes_done,
            content_bytes_total: is_complete.then_some(content_bytes_done),
            archive_bytes: self.archive_bytes.load(Ordering::Relaxed),
        }
    }
}

impl Stream {
    /// # Errors
    /// Usage, or a limit, for contradictory options.
    pub(crate) fn new(direction: Direction, settings: Settings) -> Result<Stream> {
        match (direction, settings.format) {
            (Direction::Compress, Format::Native) => settings.compress_options().check()?,
            (Direction::Compress, Format::Lrzip) => drop(settings.lrzip_options()?),
            (Direction::Decompress, _) => {}
        }
        Ok(Stream {
            direction,
            settings,
            progress: Arc::default(),
            caller: Mutex::new(Caller::default()),
            running: Mutex::new(Running::default()),
        })
    }

    /// Takes input and gives output. Returns 0 when what the directive asks for is done, otherwise
    /// how many bytes of output wait, plus 1.
    pub(crate) fn step(&self, buffers: &mut Buffers<'_>, directive: i32) -> Result<u64> {
        let directive = match directive {
            REFRAIN_CONTINUE => Directive::Continue,
            REFRAIN_FLUSH => Directive::Flush,
            REFRAIN_END => Directive::End,
            _ => return Err(Failure::usage(format!("there is no directive {directive}"))),
        };
        let mut caller = lock(&self.caller);
        if let Some(failure) = &caller.failure {
            return Err(failure.clone());
        }
        let result = self.step_locked(&mut caller, buffers, directive);
        if let Err(failure) = &result
            && failure.number != REFRAIN_ERROR_USAGE
        {
            caller.failure = Some(failure.clone());
            caller.run = None;
        }
        result
    }

    fn step_locked(
        &self,
        caller: &mut Caller,
        buffers: &mut Buffers<'_>,
        directive: Directive,
    ) -> Result<u64> {
        self.check_directive(directive)?;
        if caller.is_complete {
            return if buffers.is_input_read() {
                Ok(0)
            } else {
                Err(Failure::usage("the stream has ended"))
            };
        }
        if caller.run.is_none() {
            let has_nothing = buffers.is_input_read();
            match directive {
                Directive::Continue if has_nothing => return Ok(1),
                Directive::Flush if has_nothing => return Ok(0),
                // What was flushed is complete.
                Directive::End if has_nothing && caller.has_begun => {
                    self.complete(caller);
                    return Ok(0);
                }
                _ => caller.run = Some(self.start()?),
            }
            caller.has_begun = true;
        }
        let Some(run) = &caller.run else {
            return Ok(1);
        };
        let left = run.step(buffers, directive != Directive::Continue)?;
        if left == 0 {
            caller.run = None;
            lock(&self.running).exchange = None;
            if directive == Directive::End || self.direction == Direction::Decompress {
                self.complete(caller);
            }
        }
        Ok(left)
    }

    fn complete(&self, caller: &mut Caller) {
        caller.is_complete = true;
        self.progress.is_complete.store(true, Ordering::Release);
    }

    fn check_directive(&self, directive: Directive) -> Result<()> {
        if directive != Directive::Flush {
            return Ok(());
        }
        match (self.direction, self.settings.format) {
            (Direction::Decompress, _) => Err(Failure::usage(
                "decompression gives what it has without a flush",
            )),
            (_, Format::Lrzip) => Err(Failure::usage("archives of lrzip cannot follow each other")),
            _ => Ok(()),
        }
    }

    /// Starts the engine.
    fn start(&self) -> Result<Arc<Exchange>> {
        let exchange = Arc::new(Exchange::new(self.direction == Direction::Decompress));
        {
            let mut running = lock(&self.running);
            if running.is_closed {
                return Err(Failure::cancelled());
            }
            running.exchange = Some(Arc::clone(&exchange));
        }
        let ending = Ending::new(&exchange);
        let (direction, settings) = (self.direction, self.settings.clone());
        let (engine, watch) = (Arc::clone(&exchange), Arc::clone(&self.progress));
        let work = move || {
            let work = AssertUnwindSafe(|| match direction {
                Direction::Compress => compress_stream(&engine, &settings, &*watch),
                Direction::Decompress => decompress_stream(&engine, &settings, &*watch),
            });
            let outcome = catch_unwind(work);
            let outcome = outcome.map(|outcome| outcome.map(|run| watch.run_ended(run)));
            ending.with(outcome.unwrap_or_else(|payload| Err(Failure::from_panic(&*payload))));
        };
        if !start_detached("stream", SignalDelivery::OwnFaults, work) {
            let text = "the system allows no more threads";
            return Err(Failure::new(REFRAIN_ERROR_LIMIT, text));
        }
        Ok(exchange)
    }

    /// Bytes of content and of the archive so far.
    pub(crate) fn progress(&self) -> Progress {
        self.progress.to_progress()
    }

    /// Stops the engine, and waits until it has stopped. A call on another thread fails.
    pub(crate) fn close(&self) {
        self.progress.is_cancelled.store(true, Ordering::Relaxed);
        let exchange = {
            let mut running = lock(&self.running);
            running.is_closed = true;
            running.exchange.take()
        };
        if let Some(exchange) = exchange {
            exchange.abandon();
            exchange.wait_for_end();
        }
    }
}

fn compress_stream(
    exchange: &Arc<Exchange>,
    settings: &Settings,
    watch: &dyn Watch,
) -> Result<Totals> {
    let member = MemberInput {
        name: settings.member_name(),
        mode: None,
        modified: None,
        content: Content::Stream(Box::new(InputReader::new(exchange))),
    };
    let mut sink = OutputSink::new(exchange);
    let (content_bytes, archive_bytes) = match settings.format {
        Format::Native => {
            let done = compress(vec![member], &mut sink, &settings.compress_options(), watch)?;
            (done.content_bytes, done.archive_bytes)
        }
        Format::Lrzip => {
            let done = compress_lrzip(member, &mut sink, &settings.lrzip_options()?, watch)?;
            (done.content_bytes, done.archive_bytes)
        }
    };
    Ok(Totals {
        content_bytes,
        archive_bytes,
    })
}

fn decompress_stream(
    exchange: &Arc<Exchange>,
    settings: &Settings,
    watch: &dyn Watch,
) -> Result<Totals> {
    let stream: Box<dyn Read + Send> = Box::new(InputReader::new(exchange));
    let mut targets = AllToSink {
        sink: Arc::new(Mutex::new(Box::new(OutputSink::new(exchange)))),
        settings,
    };
    let done = restore_all(Input::Stream(stream), &mut targets, settings, watch)?;
    lock(&targets.sink).publish()?;
    // The last call has no other way to tell it.
    if let Some(damage) = done.first_exception {
        return Err(Failure::new(REFRAIN_ERROR_DAMAGED, damage));
    }
    Ok(Totals {
        content_bytes: done.content_bytes,
        archive_bytes: done.archive_bytes,
    })
}

/// Everything goes to one sink, one member after the other; a directory as a tar stream.
pub(crate) struct AllToSink<'a> {
    /// Shared with the target of the member that is open.
    pub sink: Arc<Mutex<Box<dyn Sink>>>,
    pub settings: &'a Settings,
}

/// A member's part of the sink.
struct Part(Arc<Mutex<Box<dyn Sink>>>);

impl Sink for Part {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        lock(&self.0).write_all(bytes)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        lock(&self.0).write_zeros(length_bytes)
    }

    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Targets for AllToSink<'_> {
    fn open(&mut self, _member: &MemberStart) -> refrain::Result<Target> {
        Ok(Target::Sink(Box::new(Part(Arc::clone(&self.sink)))))
    }

    fn close(&mut self, _member: &Member, _target: Target) -> refrain::Result<()> {
        Ok(())
    }

    /// What follows could not be told from what is missing.
    fn ends_at_damage(&self) -> bool {
        self.settings.damaged != Damaged::Keep
    }

    fn spill(&mut self) -> refrain::Result<Box<dyn Sink>> {
        spill_in(self.settings.temporary().as_deref())
    }
}
