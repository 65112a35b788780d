//! Members that are copied from other archives: what of their content the archive has already is
//! referred to, and only what is new passes through the pipeline.
//!
//! The pipeline reads the new bytes as one source, in the order of their first occurrence. The
//! extents that it finds for them are put between those that are known, member by member.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_format::limits::EPOCH_BYTES_MAX;
use refrain_format::{MemberEnd, MemberStart, PiecesFrame};
use refrain_longmatch::Extent;

use crate::error::{Error, ErrorKind, Result};
use crate::write::native::extents::EpochExtents;
use crate::write::native::holes::{EpochPart, LONE_BYTES_MIN, split};
use crate::write::native::output::Frame;
use crate::write::tree::order::EntriesFrame;

/// An epoch ends with this much content, in bytes, or so many extents.
const PART_BYTES: u64 = 16 << 20;
const PART_EXTENTS: usize = 1 << 14;

/// The members to be copied, step by step.
pub(crate) trait CopiedMembers {
    /// What follows.
    ///
    /// # Errors
    /// From reading the other archive.
    fn next(&mut self) -> Result<CopyStep>;

    /// The next bytes of the last [`CopyStep::New`] became this extent, which is not fresh.
    fn stored(&mut self, extent: &Extent);
}

/// A step of copying.
pub(crate) enum CopyStep {
    /// A member begins; where its content starts is filled in.
    Start(Box<MemberStart>),
    /// Content that the archive has: not fresh.
    Known(Extent),
    /// So many bytes of content that come from the pipeline.
    New(u64),
    Entries(EntriesFrame),
    End(Box<MemberEnd>),
    Pieces(PiecesFrame),
    Done,
}

/// What is to be written next.
pub(crate) enum CopiedPart {
    Extents(EpochPart),
    Frame(Frame),
}

/// Puts the content of copied members together.
pub(crate) struct Copying {
    members: Box<dyn CopiedMembers>,
    /// The extents of new bytes that were not asked for yet.
    fed: VecDeque<Extent>,
    /// How many new bytes the last step still needs.
    new_left: u64,
    content_at: u64,
    /// Where the next fresh byte is in the store.
    store_at: u64,
    /// The incomplete epoch: where its content and its fresh bytes start.
    starts: (u64, u64),
    extents: Vec<Extent>,
    /// What is complete and was not taken.
    ready: VecDeque<CopiedPart>,
    is_done: bool,
}

impl Copying {
    /// Behind so much content, and so many bytes of the store.
    pub(crate) fn new(
        members: Box<dyn CopiedMembers>,
        content_bytes: u64,
        store_bytes: u64,
    ) -> Copying {
        Copying {
            members,
            fed: VecDeque::new(),
            new_left: 0,
            content_at: content_bytes,
            store_at: store_bytes,
            starts: (content_bytes, store_bytes),
            extents: Vec::new(),
            ready: VecDeque::new(),
            is_done: false,
        }
    }

    /// The pipeline found these extents for the next new bytes.
    pub(crate) fn feed(&mut self, extents: Vec<Extent>) {
        self.fed.extend(extents);
    }

    /// The next part; `None` if it needs more new bytes, or everything was copied. With
    /// `only_fed`, also when all new bytes that are there are in complete epochs.
    ///
    /// # Errors
    /// From the members.
    pub(crate) fn next(&mut self, only_fed: bool) -> Result<Option<CopiedPart>> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Ok(Some(part));
            }
            if self.is_done {
                return self.check_end();
            }
            let waits = self.fed.is_empty() && (only_fed || self.new_left > 0);
            if waits {
                self.end_epoch();
                return Ok(self.ready.pop_front());
            }
            if self.new_left == 0 {
                self.step()?;
            } else if let Some(extent) = self.fed.pop_front() {
                self.add_new(extent);
            }
        }
    }

    /// Checks that all members are complete.
    ///
    /// # Errors
    /// `Internal` if they are not.
    pub(crate) fn check_done(&self) -> Result<()> {
        if self.is_done {
            return Ok(());
        }
        let text = "the new bytes of a copied member are missing";
        Err(Error::new(ErrorKind::Internal, text))
    }

    fn check_end(&self) -> Result<Option<CopiedPart>> {
        if !self.fed.is_empty() {
            let text = "new bytes are left that no member has";
            return Err(Error::new(ErrorKind::Internal, text));
        }
        Ok(None)
    }

    /// Adds an extent of new bytes, or as much of it as is needed.
    fn add_new(&mut self, extent: Extent) {
        let mut extent = extent;
        if extent.length() > self.new_left {
            let (first, rest) = split(&extent, self.new_left);
            self.fed.push_front(rest);
            extent = first;
        }
        self.new_left -= extent.length();
        match extent {
            Extent::Fresh { length } => {
                self.members.stored(&Extent::Copy {
                    length,
                    offset_in_store: self.store_at,
                });
                self.store_at += length;
            }
            ref other => self.members.stored(other),
        }
        self.push(extent);
    }

    fn step(&mut self) -> Result<()> {
        let frame = match self.members.next()? {
            CopyStep::Known(extent) => {
                self.push(extent);
                return Ok(());
            }
            CopyStep::New(bytes) => {
                self.new_left = bytes;
                return Ok(());
            }
            CopyStep::Start(mut start) => {
                start.content_start = self.content_at;
                Frame::MemberStart(*start)
            }
            CopyStep::Entries(frame) => Frame::Entries(frame.header, frame.bytes),
            CopyStep::End(end) => Frame::MemberEnd(*end, Vec::new()),
            CopyStep::Pieces(pieces) => Frame::Pieces(pieces),
            CopyStep::Done => {
                self.end_epoch();
                self.is_done = true;
                return Ok(());
            }
        };
        self.end_epoch();
        self.ready.push_back(CopiedPart::Frame(frame));
        Ok(())
    }

    fn push(&mut self, extent: Extent) {
        if extent.length() == 0 {
            return;
        }
        let is_fill = matches!(extent, Extent::Fill { .. });
        if is_fill && extent.length() >= LONE_BYTES_MIN {
            return self.push_hole(extent);
        }
        let mut rest = extent;
        // References are found by 32-bit offsets.
        while rest.length() > LONE_BYTES_MIN {
            let (first, second) = split(&rest, LONE_BYTES_MIN);
            self.push_one(first);
            rest = second;
        }
        self.push_one(rest);
    }

    fn push_one(&mut self, extent: Extent) {
        self.content_at += extent.length();
        self.extents.push(extent);
        let content_bytes = self.content_at - self.starts.0;
        if content_bytes >= PART_BYTES || self.extents.len() >= PART_EXTENTS {
            self.end_epoch();
        }
    }

    /// A long fill has frames of its own.
    fn push_hole(&mut self, extent: Extent) {
        self.end_epoch();
        let mut rest = Some(extent);
        while let Some(extent) = rest.take() {
            let hole = if extent.length() > EPOCH_BYTES_MAX {
                let (first, second) = split(&extent, EPOCH_BYTES_MAX);
                rest = Some(second);
                first
            } else {
                extent
            };
            self.content_at += hole.length();
            let epoch = self.take(vec![hole]);
            let part = CopiedPart::Extents(EpochPart::Hole(epoch));
            self.ready.push_back(part);
        }
    }

    fn end_epoch(&mut self) {
        let extents = std::mem::take(&mut self.extents);
        if !extents.is_empty() {
            let epoch = self.take(extents);
            let part = CopiedPart::Extents(EpochPart::Extents(epoch));
            self.ready.push_back(part);
        }
    }

    fn take(&mut self, extents: Vec<Extent>) -> EpochExtents {
        let (content_start, store_start) = self.starts;
        self.starts = (self.content_at, self.store_at);
        EpochExtents {
            content_start,
            store_start,
            fresh_bytes: self.store_at - store_start,
            extents: Arc::new(extents),
        }
    }
}
