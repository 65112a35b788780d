//! Runs pieces of work on many threads and delivers their results in order. Decodes the needed
//! blocks ahead, so that no worker waits for a block that another one decodes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use refrain_pool::{Crew, Lane, crew};

use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Watch, is_cancelled, next_event};
use crate::read::tree::content::TreeContent;

/// A piece of work.
pub(crate) struct Work<'env, T> {
    /// The content that it reads; usually each continues where the last one ended.
    pub content: Range<u64>,
    /// The memory that it holds until it is done, in bytes.
    pub held_bytes: u64,
    pub run: Box<dyn FnOnce() -> Result<T> + Send + 'env>,
}

/// Work that reads less content decodes its blocks itself.
const PREFETCH_BYTES_MIN: u64 = 1 << 20;

/// The content for which blocks are decoded ahead, in bytes.
const AHEAD_BYTES: u64 = 64 << 20;

/// The memory that waiting work may hold, in bytes. Entries with long paths and no content need
/// megabytes for their headers, but no blocks.
const HELD_BYTES_MAX: u64 = 8 << 20;

enum Event<T> {
    Decoded { decoding: u64, result: Result<()> },
    Done { number: u64, result: Result<T> },
}

struct WaitingWork<'env, T> {
    work: Work<'env, T>,
    /// Jobs with lower numbers decode the blocks that it needs.
    after_decoding: u64,
}

struct Runner<'a, 'scope, 'env, T: Send + 'env> {
    crew: &'a Crew<'scope, 'env, Event<T>>,
    content: &'env dyn TreeContent,
    in_flight_max: u64,
    waiting: VecDeque<WaitingWork<'env, T>>,
    waiting_bytes: u64,
    held_bytes: u64,
    /// The blocks being decoded, by job number.
    decoding: BTreeMap<u64, u64>,
    next_decoding: u64,
    /// The end of the content whose blocks were looked up.
    prefetched_to: u64,
    next_work: u64,
    next_delivered: u64,
    done: BTreeMap<u64, Result<T>>,
}

/// Runs what `next` returns, until it returns `None`, on `threads` threads. `deliver` receives the
/// results in order, on this thread: all before an error of the work or of `next`.
///
/// # Errors
/// The first error of the work, of `next` and of `deliver`; `Cancelled`.
pub(crate) fn run_in_order<'env, T: Send + 'env>(
    content: &'env dyn TreeContent,
    threads: usize,
    watch: &dyn Watch,
    next: &mut dyn FnMut() -> Result<Option<Work<'env, T>>>,
    deliver: &mut dyn FnMut(T) -> Result<()>,
) -> Result<()> {
    crew(threads, |crew| {
        let mut runner = Runner {
            crew,
            content,
            in_flight_max: 2 * threads as u64 + 2,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            held_bytes: 0,
            decoding: BTreeMap::new(),
            next_decoding: 0,
            prefetched_to: 0,
            next_work: 0,
            next_delivered: 0,
            done: BTreeMap::new(),
        };
        let mut is_complete = false;
        let mut failed = Ok(());
        loop {
            while !is_complete && runner.has_room() {
                match next() {
                    Ok(Some(work)) => runner.plan(work)?,
                    Ok(None) => is_complete = true,
                    Err(error) => {
                        is_complete = true;
                        failed = Err(error);
                    }
                }
            }
            runner.start();
            match next_event(crew, watch)? {
                Some(event) => runner.handle(event?)?,
                None if is_complete && runner.waiting.is_empty() => return failed,
                None => {}
            }
            while let Some(done) = runner.done.remove(&runner.next_delivered) {
                runner.next_delivered += 1;
                deliver(done?)?;
            }
            if is_cancelled(watch) {
                return Err(Error::cancelled());
            }
        }
    })
}

impl<'env, T: Send + 'env> Runner<'_, '_, 'env, T> {
    fn has_room(&self) -> bool {
        self.waiting.is_empty()
            || (self.waiting_bytes < AHEAD_BYTES
                && self.held_bytes < HELD_BYTES_MAX
                && (self.waiting.len() as u64) < 8 * self.in_flight_max)
    }

    fn plan(&mut self, work: Work<'env, T>) -> Result<()> {
        let length_bytes = work.content.end - work.content.start;
        if work.content.end > self.prefetched_to && length_bytes >= PREFETCH_BYTES_MIN {
            let from = work.content.start.max(self.prefetched_to);
            self.prefetched_to = work.content.end;
            no_damage(self.decode_ahead(from..work.content.end))?;
        }
        self.waiting_bytes += length_bytes;
        self.held_bytes = self.held_bytes.saturating_add(work.held_bytes);
        self.waiting.push_back(WaitingWork {
            work,
            after_decoding: self.next_decoding,
        });
        Ok(())
    }

    fn decode_ahead(&mut self, content: Range<u64>) -> Result<()> {
        let in_flight: BTreeSet<u64> = self.decoding.values().copied().collect();
        for block in self.content.blocks_to_prefetch(content)? {
            if in_flight.contains(&block) {
                continue;
            }
            let (source, decoding) = (self.content, self.next_decoding);
            self.next_decoding += 1;
            self.decoding.insert(decoding, block);
            self.crew.submit(Lane::Normal, move || Event::Decoded {
                decoding,
                result: source.decode_block(block),
            });
        }
        Ok(())
    }

    /// Starts the work whose blocks are decoded.
    fn start(&mut self) {
        while self.next_work - self.next_delivered < self.in_flight_max {
            let first_decoding = self.decoding.keys().next().copied().unwrap_or(u64::MAX);
            let is_ready = |next: &mut WaitingWork<'_, T>| next.after_decoding <= first_decoding;
            let Some(next) = self.waiting.pop_front_if(is_ready) else {
                return;
            };
            self.waiting_bytes -= next.work.content.end - next.work.content.start;
            self.held_bytes = self.held_bytes.saturating_sub(next.work.held_bytes);
            let number = self.next_work;
            self.next_work += 1;
            self.crew.submit(Lane::Normal, move || Event::Done {
                number,
                result: (next.work.run)(),
            });
        }
    }

    fn handle(&mut self, event: Event<T>) -> Result<()> {
        match event {
            Event::Decoded { decoding, result } => {
                self.decoding.remove(&decoding);
                no_damage(result)
            }
            Event::Done { number, result } => {
                self.done.insert(number, result);
                Ok(())
            }
        }
    }
}

/// The result of decoding ahead, ignoring damage: the work that needs the bytes meets it again, and
/// knows what is lost.
fn no_damage(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind == ErrorKind::Damaged => Ok(()),
        result => result,
    }
}
