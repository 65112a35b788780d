//! Puts frames in order for a writer: sets their sequence numbers, collects the index, and rejects
//! what a reader would reject.
//!
//! It does no input or output: every call returns, or completes in place, the bytes to write next,
//! strictly forward.

use crate::archive::ArchiveHeader;
use crate::block::BlockHeader;
use crate::end::{ArchiveEnd, Tail};
use crate::entries::EntriesHeader;
use crate::error::{FormatError, Result};
use crate::extents::ExtentsHeader;
use crate::frame::{FLAG_SKIPPABLE, UntrustedFrameHeader, complete_frame, finish_header};
use crate::index::{Index, IndexEntries, IndexMember};
use crate::layout::{FRAME_HEADER_BYTES, FrameKind, MAGIC, TAIL_BYTES};
use crate::limits::Limits;
use crate::member::{MemberEnd, MemberStart};
use crate::order::{EpochSums, StreamChecker};
use crate::payload::Payload;

/// A member that has started and not ended.
#[derive(Debug, Clone)]
struct OpenMember {
    start_frame_offset: u64,
    start: MemberStart,
    entries: Vec<IndexEntries>,
}

/// Orders the frames of one archive. Memory: the index to be written (some 40 bytes per block, 56
/// per epoch).
#[derive(Debug, Clone)]
pub struct ArchiveAssembler {
    checker: StreamChecker,
    index: Index,
    open_members: std::collections::VecDeque<OpenMember>,
    archive_id: u32,
    /// The totals to state instead of the sums of the extents.
    stated_totals: Option<ExtentTotals>,
}

/// The totals that depend on the extents of all epochs, which an assembler of coded extents does
/// not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ExtentTotals {
    /// The number of content bytes of all copies.
    pub matched_bytes: u64,
    /// The number of content bytes of all fills.
    pub fill_bytes: u64,
    /// The largest reach that an epoch needs.
    pub reach_needed_bytes: u64,
}

impl ArchiveAssembler {
    /// Starts an archive. Returns the assembler and the first bytes of the file: magic number and
    /// Archive frame.
    ///
    /// # Errors
    /// Settings that a reader rejects.
    pub fn new(header: &ArchiveHeader, archive_id: u32) -> Result<(Self, Vec<u8>)> {
        let mut assembler = Self::empty(archive_id);
        let frame = header.to_frame(archive_id)?;
        assembler.feed(&frame, &Payload::Archive(*header))?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&frame);
        Ok((assembler, bytes))
    }

    fn empty(archive_id: u32) -> Self {
        Self {
            checker: StreamChecker::measuring_reach(&Limits::default()),
            index: Index::default(),
            open_members: std::collections::VecDeque::new(),
            archive_id,
            stated_totals: None,
        }
    }

    /// Starts an archive of frames that exist already ([`transfer`](Self::transfer)), the Archive
    /// frame included. Its index states these totals.
    pub(crate) fn for_transfer(archive_id: u32, totals: ExtentTotals) -> Self {
        Self {
            stated_totals: Some(totals),
            ..Self::empty(archive_id)
        }
    }

    /// Adds a frame with the payload of a frame of another archive. Returns the frame.
    ///
    /// # Errors
    /// The payload is damaged, or the frame is not allowed here.
    pub(crate) fn transfer(&mut self, kind: FrameKind, payload: &[u8]) -> Result<Vec<u8>> {
        if !kind.is_known() {
            return Err(FormatError::Kind { kind: kind.id() });
        }
        let sequence = self.checker.frame_count();
        let mut frame = complete_frame(kind, 0, payload, self.archive_id, sequence);
        match Payload::parse(kind, payload, &Limits::default())? {
            archive @ Payload::Archive(_) => self.feed(&frame, &archive)?,
            Payload::MemberStart(start) => self.add_member_start(&frame, start)?,
            Payload::Block { header, .. } => self.block(&header, &mut frame, 0)?,
            Payload::Extents { header, .. } => self.add_extents(&header, &mut frame)?,
            Payload::Entries { header, .. } => self.entries(&header, &mut frame)?,
            Payload::MemberEnd(end) => self.add_member_end(&frame, end)?,
            Payload::Index(_) | Payload::End(_) | Payload::Skipped => {
                return Err(FormatError::Order {
                    kind,
                    rule: "a Whole frame holds frames of the kinds Archive to MemberEnd",
                });
            }
        }
        Ok(frame)
    }

    /// Returns the number of bytes of the archive so far, which is the offset of the next frame.
    #[must_use]
    pub fn archive_bytes(&self) -> u64 {
        self.checker.offset()
    }

    /// Returns the index so far.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Starts a member. Returns the frame.
    ///
    /// # Errors
    /// The frame is not allowed here, or a field is out of its range.
    pub fn member_start(&mut self, start: &MemberStart) -> Result<Vec<u8>> {
        let frame = start.to_frame(self.archive_id, self.checker.frame_count())?;
        self.add_member_start(&frame, start.clone())?;
        Ok(frame)
    }

    fn add_member_start(&mut self, frame: &[u8], start: MemberStart) -> Result<()> {
        let start_frame_offset = self.archive_bytes();
        self.feed(frame, &Payload::MemberStart(start.clone()))?;
        self.open_members.push_back(OpenMember {
            start_frame_offset,
            start,
            entries: Vec::new(),
        });
        Ok(())
    }

    /// Completes a frame that [`BlockHeader::finish`] has made of `header`; or one of
    /// [`BlockHeader::finish_detached`], with `detached_bytes` of data to be written after it.
    ///
    /// # Errors
    /// The frame is not allowed here.
    pub fn block(
        &mut self,
        header: &BlockHeader,
        frame: &mut [u8],
        detached_bytes: u64,
    ) -> Result<()> {
        let (frame_offset, frame_bytes) = self.number_frame(frame);
        let span = (frame_offset, frame_bytes.saturating_add(detached_bytes));
        let payload = Payload::Block {
            header: *header,
            data: &[],
        };
        self.feed_detached(frame, detached_bytes, &payload)?;
        let coding = &header.coding;
        self.index
            .push_block(span, header.raw_bytes, coding.codec(), coding.filter_ids());
        self.index.totals.fallback_count += u64::from(coding.fallback() != 0);
        Ok(())
    }

    /// Completes a frame that [`ExtentsHeader::finish`] has made of `header`. `sums` are the sums
    /// of its extents.
    ///
    /// # Errors
    /// The frame is not allowed here, or exceeds the promised reach.
    pub fn extents(
        &mut self,
        header: &ExtentsHeader,
        sums: &EpochSums,
        frame: &mut [u8],
    ) -> Result<()> {
        self.add_extents(header, frame)?;
        self.checker.observe_epoch(sums)?;
        let totals = &mut self.index.totals;
        totals.matched_bytes += sums.matched_bytes;
        totals.run_bytes += sums.run_bytes;
        Ok(())
    }

    fn add_extents(&mut self, header: &ExtentsHeader, frame: &mut [u8]) -> Result<()> {
        let span = self.number_frame(frame);
        let payload = Payload::Extents {
            header: *header,
            data: &[],
        };
        self.feed(frame, &payload)?;
        self.index.push_epoch(
            span,
            header.content_bytes,
            header.fresh_bytes,
            header.extent_count,
        );
        Ok(())
    }

    /// Completes a frame that [`EntriesHeader::finish`] has made of `header`.
    ///
    /// # Errors
    /// The frame is not allowed here.
    pub fn entries(&mut self, header: &EntriesHeader, frame: &mut [u8]) -> Result<()> {
        let (frame_offset, frame_bytes) = self.number_frame(frame);
        let payload = Payload::Entries {
            header: header.clone(),
            data: &[],
        };
        self.feed(frame, &payload)?;
        let member = self
            .open_members
            .iter_mut()
            .find(|member| member.start.member_id == header.member_id);
        // The checker has made sure that it exists.
        if let Some(member) = member {
            let row = IndexEntries::new(frame_offset, frame_bytes, header);
            member.entries.push(row);
        }
        Ok(())
    }

    /// Ends the oldest open member. Returns the frame.
    ///
    /// # Errors
    /// The frame is not allowed here, or a field is out of its range.
    pub fn member_end(&mut self, end: &MemberEnd) -> Result<Vec<u8>> {
        let frame = end.to_frame(self.archive_id, self.checker.frame_count())?;
        self.add_member_end(&frame, end.clone())?;
        Ok(frame)
    }

    fn add_member_end(&mut self, frame: &[u8], end: MemberEnd) -> Result<()> {
        let end_frame_offset = self.archive_bytes();
        self.feed(frame, &Payload::MemberEnd(end.clone()))?;
        if let Some(member) = self.open_members.pop_front() {
            self.index.members.push(IndexMember {
                start_frame_offset: member.start_frame_offset,
                end_frame_offset,
                start: member.start,
                end,
                entries: member.entries,
            });
        }
        Ok(())
    }

    /// Returns a frame that readers skip: padding, or a reserved kind. `payload` begins with a
    /// head.
    ///
    /// # Errors
    /// A kind that readers do not skip.
    pub fn skippable(&mut self, kind: FrameKind, payload: &[u8]) -> Result<Vec<u8>> {
        let sequence = self.checker.frame_count();
        let frame = complete_frame(kind, FLAG_SKIPPABLE, payload, self.archive_id, sequence);
        self.feed(&frame, &Payload::Skipped)?;
        Ok(frame)
    }

    /// Ends the archive. Returns its last bytes, the Index and End frames, and the index.
    ///
    /// # Errors
    /// A member has not ended, or the index is above its limit.
    pub fn finish(mut self) -> Result<(Vec<u8>, Index)> {
        let index_frame_offset = self.archive_bytes();
        self.index.totals.reach_bytes = self.checker.reach_needed_bytes();
        if let Some(stated) = self.stated_totals {
            let totals = &mut self.index.totals;
            totals.matched_bytes = stated.matched_bytes;
            totals.run_bytes = stated.fill_bytes;
            totals.reach_bytes = stated.reach_needed_bytes;
        }
        let mut bytes = self
            .index
            .to_frame(self.archive_id, self.checker.frame_count())?;
        let index_frame_bytes = bytes.len() as u64;
        let payload = Payload::Index(Box::new(std::mem::take(&mut self.index)));
        self.feed(&bytes, &payload)?;
        let (end, frame) = self.end_frame((index_frame_offset, index_frame_bytes))?;
        self.feed(&frame, &Payload::End(end))?;
        bytes.extend_from_slice(&frame);
        let tail = Tail {
            back_bytes: frame.len() as u64,
        };
        self.checker.tail(&tail.to_bytes())?;
        bytes.extend(tail.to_bytes());
        match payload {
            Payload::Index(index) => {
                index.check(&end)?;
                Ok((bytes, *index))
            }
            _ => Ok((bytes, Index::default())),
        }
    }

    /// Returns the End frame for an index at this location, and what it states.
    fn end_frame(&self, index_span: (u64, u64)) -> Result<(ArchiveEnd, Vec<u8>)> {
        let sequence = self.checker.frame_count();
        // The frame's size depends on the archive's, which includes it.
        let mut frame_bytes = FRAME_HEADER_BYTES as u64;
        loop {
            let before_tail = self.archive_bytes().saturating_add(frame_bytes);
            let end = ArchiveEnd {
                index_frame_offset: index_span.0,
                index_frame_bytes: index_span.1,
                frame_count: sequence.saturating_add(1),
                content_bytes: self.checker.content_bytes(),
                store_bytes: self.checker.store_bytes(),
                archive_bytes: before_tail.saturating_add(TAIL_BYTES as u64),
                root_hash: self.checker.root_hash(),
            };
            let frame = end.to_frame(self.archive_id, sequence)?;
            if frame.len() as u64 == frame_bytes {
                return Ok((end, frame));
            }
            frame_bytes = frame.len() as u64;
        }
    }

    /// Completes the next frame and returns its location.
    fn number_frame(&self, frame: &mut [u8]) -> (u64, u64) {
        finish_header(frame, self.archive_id, self.checker.frame_count());
        (self.archive_bytes(), frame.len() as u64)
    }

    fn feed(&mut self, frame: &[u8], payload: &Payload<'_>) -> Result<()> {
        self.feed_detached(frame, 0, payload)
    }

    fn feed_detached(
        &mut self,
        frame: &[u8],
        detached_bytes: u64,
        payload: &Payload<'_>,
    ) -> Result<()> {
        let remaining =
            (frame.len() as u64 + detached_bytes).saturating_sub(FRAME_HEADER_BYTES as u64);
        let header =
            UntrustedFrameHeader::parse(frame)?.check(&Limits::default(), Some(remaining))?;
        if header.payload_bytes != remaining {
            return Err(FormatError::Trailing {
                what: "a complete frame",
                extra_bytes: remaining.saturating_sub(header.payload_bytes),
            });
        }
        self.checker.feed(&header, payload)
    }
}
