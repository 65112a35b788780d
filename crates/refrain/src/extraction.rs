//! A forward extraction: where the members' content is written.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use refrain_filesystem::Problem;
use refrain_format::{MemberEnd, MemberStart};
use refrain_storage::{Sink, Source};

use crate::archive_info::{member, member_start};
use crate::damage::DamagedFile;
use crate::error::{Error, ErrorKind, Result};
use crate::going_on::{GoingOn, close_broken};
use crate::options::ReadOptions;
use crate::progress::Watch;
use crate::read::content_limit::{ContentLimit, ContentMeter};
use crate::read::content_visitor::{ContentVisitor, EntriesPayload};
use crate::read::tree::recovery::Recovery;
use crate::read::tree::restore::{RestorePlan, restore_entries};
use crate::read::tree::spill::SpilledContent;
use crate::read::tree::view::{ViewOutput, write_view};
use crate::store::pipe_copy::PipeCopy;
use crate::targets::{Target, Targets};

/// A member whose content is arriving.
pub(crate) struct OpenMember {
    start: MemberStart,
    target: Target,
    /// How much of its content has arrived.
    arrived_bytes: u64,
    /// Holds a directory's content until its entries are known.
    spill: Option<Box<dyn Sink>>,
}

impl OpenMember {
    /// The target, and how much of the content is in it: none of what waits for entries.
    pub(crate) fn into_target(self) -> (Target, u64) {
        let waits = self.spill.is_some();
        (self.target, if waits { 0 } else { self.arrived_bytes })
    }

    /// The sink of the content, if it is written.
    fn sink(&mut self) -> Option<&mut dyn Sink> {
        match (&mut self.spill, &mut self.target) {
            (Some(spill), _) => Some(spill.as_mut()),
            (None, Target::Sink(sink)) => Some(sink.as_mut()),
            (None, _) => None,
        }
    }
}

pub(crate) struct Extraction<'a> {
    targets: &'a mut dyn Targets,
    options: &'a ReadOptions,
    watch: &'a dyn Watch,
    /// Counts what is delivered of directories, in addition to the content spilled first.
    of_trees: ContentMeter,
    open: Option<OpenMember>,
    closed: usize,
    /// How to close members cut short by damage; `None`: do not.
    going_on: Option<&'a GoingOn>,
    /// The copy of a pipe, with which the extraction continues, so that no member is closed.
    copy: Option<Arc<PipeCopy>>,
}

impl<'a> Extraction<'a> {
    pub(crate) fn new(
        targets: &'a mut dyn Targets,
        options: &'a ReadOptions,
        limit: &ContentLimit,
        watch: &'a dyn Watch,
    ) -> Extraction<'a> {
        Extraction {
            targets,
            options,
            watch,
            of_trees: ContentMeter::new(limit.clone()),
            open: None,
            closed: 0,
            going_on: None,
            copy: None,
        }
    }

    /// Also closes members cut short by damage, unless there is a copy of the pipe.
    pub(crate) fn closing_broken(
        self,
        going_on: &'a GoingOn,
        copy: Option<Arc<PipeCopy>>,
    ) -> Extraction<'a> {
        Extraction {
            going_on: Some(going_on),
            copy,
            ..self
        }
    }

    /// The number of closed members, and the open one, after damage.
    pub(crate) fn into_state(self) -> (usize, Option<OpenMember>) {
        (self.closed, self.open)
    }

    /// Closes the open member, of which no more will come.
    pub(crate) fn close_open(&mut self) -> Result<()> {
        let start = self.open.as_ref().map(|open| open.start.clone());
        start.map_or(Ok(()), |start| self.broken(&start, Vec::new()))
    }

    /// Passes a directory to its target: its content and entries as far as known.
    fn deliver_tree(
        &self,
        target: &mut Target,
        content: &SpilledContent,
        end: &MemberEnd,
        recovery: Option<&Recovery<'_>>,
    ) -> Result<()> {
        // The progress shown is the archive's.
        let watch = &CancelOnly(self.watch);
        match target {
            Target::Tree(tree) => {
                let plan = RestorePlan {
                    content,
                    target: &tree.restore,
                    selection: tree.selection.as_ref(),
                    threads: self.options.threads.max(1),
                    memory_bytes: self.options.memory_bytes,
                    // The hash was compared when the content was spilled.
                    blake3: None,
                    meter: &self.of_trees,
                    recovery,
                };
                restore_entries(&plan, watch)?;
            }
            Target::Sink(sink) => {
                let output = ViewOutput {
                    sink: sink.as_mut(),
                    threads: self.options.threads.max(1),
                    total_bytes: end.view_bytes,
                    memory_bytes: self.options.memory_bytes,
                    // As above.
                    blake3: None,
                    meter: &self.of_trees,
                    recovery,
                };
                write_view(content, output, watch)?;
            }
            Target::Nowhere | Target::Skipped => {}
        }
        Ok(())
    }

    /// Closes a directory cut short by damage.
    fn close_broken_tree(
        &mut self,
        mut open: OpenMember,
        spill: Box<dyn Sink>,
        entries: Vec<EntriesPayload>,
        going_on: &GoingOn,
    ) -> Result<()> {
        let (start, bytes) = (&open.start, open.arrived_bytes);
        let content = SpilledContent::partial(&*spill, start, bytes, entries, self.options)?;
        let recovery = going_on.recovery(start.member_id as usize, &start.name);
        let end = MemberEnd::of_content(start.member_id, bytes);
        self.deliver_tree(&mut open.target, &content, &end, Some(&recovery))?;
        let closed = member(start, &end);
        match open.target {
            Target::Tree(_) => self.targets.close(&closed, open.target),
            target => close_broken(self.targets, &closed, target, going_on),
        }
    }
}

/// Passes on problems and the request to stop, but no progress.
struct CancelOnly<'a>(&'a dyn Watch);

impl Watch for CancelOnly<'_> {
    fn problem(&self, member: usize, problem: &Problem) {
        self.0.problem(member, problem);
    }

    fn cancel_flag(&self) -> Option<&AtomicBool> {
        self.0.cancel_flag()
    }
}

/// The error of a sink. `InvalidData` means that the sink refuses the content itself, as a
/// directory's sink refuses a path that leaves its root.
fn sink_error(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData => Error::new(ErrorKind::Damaged, error),
        _ => Error::from(error),
    }
}

impl ContentVisitor for Extraction<'_> {
    fn start(&mut self, start: &MemberStart) -> Result<Option<Arc<dyn Source>>> {
        let target = self.targets.open(&member_start(start))?;
        let is_tree = start.kind.has_entries();
        let spill = match target {
            Target::Nowhere | Target::Skipped => None,
            _ if is_tree => Some(self.targets.spill()?),
            _ => None,
        };
        let read_back = match &target {
            Target::Sink(sink) if spill.is_none() => sink.read_back(),
            _ => None,
        };
        self.open = Some(OpenMember {
            start: start.clone(),
            target,
            arrived_bytes: 0,
            spill,
        });
        Ok(read_back)
    }

    fn content(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if let Some(sink) = open.sink() {
            sink.write_all(bytes).map_err(sink_error)?;
        }
        open.arrived_bytes += bytes.len() as u64;
        Ok(())
    }

    fn zeros(&mut self, length_bytes: u64) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if let Some(sink) = open.sink() {
            sink.write_zeros(length_bytes).map_err(sink_error)?;
        }
        open.arrived_bytes = open.arrived_bytes.saturating_add(length_bytes);
        Ok(())
    }

    fn end(
        &mut self,
        start: &MemberStart,
        end: &MemberEnd,
        entries: Vec<EntriesPayload>,
    ) -> Result<()> {
        let Some(mut open) = self.open.take() else {
            return Err(Error::damaged("a member ends that has not begun"));
        };
        if let Some(spill) = open.spill.take() {
            let content = SpilledContent::new(&*spill, start, end, entries, self.options)?;
            self.deliver_tree(&mut open.target, &content, end, None)?;
        }
        self.targets.close(&member(start, end), open.target)?;
        self.closed += 1;
        Ok(())
    }

    fn takes_broken(&self) -> bool {
        self.going_on.is_some() && !self.copy.as_ref().is_some_and(|copy| copy.is_there())
    }

    fn broken(&mut self, start: &MemberStart, entries: Vec<EntriesPayload>) -> Result<()> {
        let Some(going_on) = self.going_on else {
            return Ok(());
        };
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        if let Some(spill) = open.spill.take() {
            return self.close_broken_tree(open, spill, entries, going_on);
        }
        let stated = start.content_bytes_hint;
        let delivered_bytes = open.arrived_bytes;
        let missing = delivered_bytes..stated.unwrap_or(u64::MAX);
        going_on.add_file(DamagedFile {
            member: start.member_id as usize,
            member_name: start.name.clone(),
            path: None,
            size_bytes: stated.unwrap_or(delivered_bytes),
            missing: vec![missing],
            is_kept: false,
            delivered_bytes,
        });
        let closed = member(
            start,
            &MemberEnd::of_content(start.member_id, delivered_bytes),
        );
        close_broken(self.targets, &closed, open.target, going_on)
    }
}
