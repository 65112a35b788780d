//! [`StreamChecker`]: the state machine.

use super::epoch_sums::EpochSums;
use super::held_frames::HeldFrames;
use super::index_check::IndexCheck;
use super::reach::NeededReach;
use std::collections::VecDeque;

use crate::archive::{ArchiveHeader, REACH_UNLIMITED};
use crate::block::BlockHeader;
use crate::check::{check_equal, check_limit, check_own_limit};
use crate::constants::{FrameKind, MAGIC, TAIL_BYTES};
use crate::end::{ArchiveEnd, Tail};
use crate::entries::EntriesHeader;
use crate::error::{FormatError, Result};
use crate::extents::ExtentsHeader;
use crate::frame::{FrameHeader, UntrustedFrameHeader};
use crate::generation::start::check_number;
use crate::generation::{GenerationEnd, GenerationStart};
use crate::index::{
    IndexBlock, IndexEntries, IndexEpoch, IndexName, IndexNode, IndexSlice, NAMES_FROM,
};
use crate::limits::{EPOCH_BYTES_MAX, FRAMES_MAX, Limits, OPEN_MEMBERS_MAX};
use crate::member::{MemberEnd, MemberStart};
use crate::payload::Payload;
use crate::root_hash::{RootHasher, member_hash};

#[derive(Debug, Clone)]
struct OpenMember {
    start: MemberStart,
    first_path: Vec<u8>,
    first_paths_ascend: bool,
    start_frame_offset: u64,
    start_checksum: u64,
    entry_count: u64,
    /// The number of its first frame of entries.
    first_entries_frame: Option<u64>,
    /// The sum of the fingerprints of its frames of entries as whole slices.
    fingerprint: u64,
}

/// Checks that the frames of an archive are in order and agree with one another.
#[derive(Debug, Clone)]
pub struct StreamChecker {
    limits: Limits,
    offset: u64,
    next_sequence: u64,
    archive_id: Option<u32>,
    archive: Option<ArchiveHeader>,

    block_count: u64,
    store_bytes: u64,
    fallback_count: u64,
    epoch_count: u64,
    content_bytes: u64,
    introduced_bytes: u64,
    members_started: u64,
    members_ended: u64,
    /// The end of the latest ended member in the content space.
    last_member_end: u64,
    open_members: VecDeque<OpenMember>,

    /// Measures how much a reader must hold back.
    held: HeldFrames<()>,
    measures_any_reach: bool,
    reach: NeededReach,
    observed_epochs: u64,
    observed: EpochSums,

    index: IndexCheck,
    /// Whether a frame of the index was fed; then only others and End may follow.
    index_begun: bool,
    root: RootHasher,
    last_entries_member: u64,
    entries_frames: u64,
    end_frame_bytes: Option<u64>,
    complete: bool,

    generation: u16,
    /// The first member of this generation.
    first_member: u64,
    /// Where the catalog of this generation begins, and its size.
    catalog: Option<(u64, u64)>,
}

/// Where a generation ends that another one follows: what the checker knows at that point.
#[derive(Debug, Clone, Copy)]
pub struct GenerationBase {
    /// The first frame.
    pub archive: ArchiveHeader,
    /// The archive's id.
    pub archive_id: u32,
    /// The number of the generation.
    pub generation: u16,
    /// Its End frame.
    pub end: ArchiveEnd,
    /// The numbers of blocks, epochs and frames of entries so far.
    pub row_counts: [u64; 3],
}

impl StreamChecker {
    /// Creates a checker for the first frame, which follows the magic number.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            limits: limits.capped(),
            offset: MAGIC.len() as u64,
            next_sequence: 0,
            archive_id: None,
            archive: None,
            block_count: 0,
            store_bytes: 0,
            fallback_count: 0,
            epoch_count: 0,
            content_bytes: 0,
            introduced_bytes: 0,
            members_started: 0,
            members_ended: 0,
            last_member_end: 0,
            open_members: VecDeque::new(),
            held: HeldFrames::new(limits),
            measures_any_reach: false,
            reach: NeededReach::unmeasured(),
            observed_epochs: 0,
            observed: EpochSums::default(),
            index: IndexCheck::default(),
            index_begun: false,
            root: RootHasher::new(),
            last_entries_member: 0,
            entries_frames: 0,
            end_frame_bytes: None,
            complete: false,
            generation: 0,
            first_member: 0,
            catalog: None,
        }
    }

    /// Creates a checker for the frames behind the tail of a generation.
    #[must_use]
    pub fn after(base: &GenerationBase) -> Self {
        let end = &base.end;
        let [block_count, epoch_count, entries_frames] = base.row_counts;
        Self {
            offset: end.archive_bytes,
            next_sequence: end.frame_count,
            archive_id: Some(base.archive_id),
            archive: Some(base.archive),
            block_count,
            store_bytes: end.store_bytes,
            fallback_count: end.fallback_count,
            epoch_count,
            content_bytes: end.content_bytes,
            introduced_bytes: end.store_bytes,
            members_started: end.member_count,
            members_ended: end.member_count,
            last_member_end: end.content_bytes,
            held: HeldFrames::after(&Limits::default(), end.store_bytes),
            observed_epochs: epoch_count,
            observed: EpochSums {
                matched_bytes: end.totals.matched_bytes,
                run_bytes: end.totals.fill_bytes,
                ..EpochSums::default()
            },
            root: RootHasher::known(end.root_hash),
            last_entries_member: end.member_count,
            entries_frames,
            end_frame_bytes: Some(0),
            complete: true,
            generation: base.generation,
            ..Self::new(&Limits::default())
        }
    }

    /// Skips an appendix of the generation that is complete: the next frame is that of another one,
    /// and begins at this offset in the archive.
    pub fn skip_appendix(&mut self, offset: u64) {
        if self.complete {
            self.offset = self.offset.max(offset);
        }
    }

    /// Begins the generation of this frame, behind the tail of another.
    fn begin_generation(&mut self, header: &FrameHeader, start: &GenerationStart) -> Result<()> {
        if !self.complete {
            return Err(order(header.kind, "a generation begins behind a tail"));
        }
        check_number(header.generation, self.generation)?;
        check_equal("start of a generation", start.previous_bytes, self.offset)?;
        check_root_hash(&self.root.value(), &start.previous_root_hash)?;
        self.generation = header.generation;
        self.root = RootHasher::after(start.previous_root_hash);
        self.first_member = self.members_ended;
        self.catalog = None;
        self.index = IndexCheck::off();
        self.index_begun = false;
        self.end_frame_bytes = None;
        self.complete = false;
        // Only a reader that can seek reads what is added later: no reach is promised for it.
        self.measures_any_reach = false;
        self.reach = NeededReach::unmeasured();
        if let Some(archive) = &mut self.archive {
            archive.reach_bytes = REACH_UNLIMITED;
            archive.epoch_bytes = EPOCH_BYTES_MAX;
        }
        Ok(())
    }

    fn catalog(&mut self, header: &FrameHeader) -> Result<()> {
        self.check_all_has_come(header.kind)?;
        if self.generation == 0 || self.catalog.is_some() {
            return Err(order(
                header.kind,
                "each generation from 1 on has one catalog",
            ));
        }
        self.catalog = Some((self.offset, header.frame_bytes()));
        Ok(())
    }

    /// The generation of the frames so far.
    #[must_use]
    pub fn generation(&self) -> u16 {
        self.generation
    }

    /// What the End frame of this generation states besides the sums; `None` for generation 0, or
    /// before the catalog was fed.
    #[must_use]
    pub fn generation_end(&self) -> Option<GenerationEnd> {
        Some(GenerationEnd {
            first_member: self.first_member,
            catalog: self.catalog?,
            previous_root_hash: self.root.previous()?,
        })
    }

    /// Creates a checker that measures the required reach even if the archive promises none, in 16
    /// bytes of memory for each block.
    #[must_use]
    pub fn measuring_reach(limits: &Limits) -> Self {
        Self {
            measures_any_reach: true,
            ..Self::new(limits)
        }
    }

    /// Returns the offset of the next frame in the archive.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the archive's settings, after its first frame was fed.
    #[must_use]
    pub fn archive(&self) -> Option<&ArchiveHeader> {
        self.archive.as_ref()
    }

    /// Returns the number of content bytes that the extents so far cover.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Returns the number of raw bytes of the blocks so far.
    #[must_use]
    pub fn store_bytes(&self) -> u64 {
        self.store_bytes
    }

    /// Returns the number of frames so far.
    #[must_use]
    pub fn frame_count(&self) -> u64 {
        self.next_sequence
    }

    /// Returns the reach that the observed epochs needed, if the archive promises a limited one or
    /// the checker measures it anyway (else 0).
    #[must_use]
    pub fn reach_needed_bytes(&self) -> u64 {
        self.reach.needed_bytes()
    }

    /// Returns the number of members that have ended.
    #[must_use]
    pub fn member_count(&self) -> u64 {
        self.members_ended
    }

    /// Returns the hashes of the members that have ended.
    #[must_use]
    pub fn member_hashes(&self) -> &[[u8; 32]] {
        self.root.member_hashes()
    }

    /// Returns the root hash of the members that have ended.
    #[must_use]
    pub fn root_hash(&self) -> [u8; 32] {
        self.root.value()
    }

    /// Checks the tail, the bytes after the End frame.
    ///
    /// # Errors
    /// It does not lead to the End frame.
    pub fn tail(&mut self, tail: &[u8]) -> Result<()> {
        let found = Tail::parse(tail)?.back_bytes;
        let expected = self.end_frame_bytes.unwrap_or_default();
        check_equal("distance from the tail to the end frame", found, expected)?;
        self.offset = self.offset.saturating_add(TAIL_BYTES as u64);
        self.complete = true;
        Ok(())
    }

    /// Returns whether the End frame was fed; the tail follows.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.end_frame_bytes.is_some()
    }

    /// Returns whether the End frame and the tail were fed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Checks that nothing but a generation follows the End frame. `rest` is what was read after
    /// the frames fed so far.
    ///
    /// # Errors
    /// [`FormatError::Trailing`] if something else does.
    pub fn check_what_follows(&self, rest: &[u8]) -> Result<()> {
        if !self.complete || rest.is_empty() {
            return Ok(());
        }
        match UntrustedFrameHeader::parse(rest) {
            Ok(header) if header.is_generation() => Ok(()),
            _ => Err(FormatError::Trailing {
                what: "the End frame",
                extra_bytes: rest.len() as u64,
            }),
        }
    }

    /// Checks the next frame in file order.
    ///
    /// # Errors
    /// Its kind is not allowed here, or it contradicts an earlier frame.
    pub fn feed(&mut self, header: &FrameHeader, payload: &Payload<'_>) -> Result<()> {
        if let Payload::Generation(start) = payload {
            self.begin_generation(header, start)?;
        }
        if self.is_ended() {
            return Err(order(header.kind, "only the tail may follow the End frame"));
        }
        check_equal(
            "generation of a frame",
            u64::from(header.generation),
            u64::from(self.generation),
        )?;
        check_equal("frame sequence number", header.sequence, self.next_sequence)?;
        check_limit("frames", self.next_sequence, FRAMES_MAX)?;
        let archive_id = u64::from(*self.archive_id.get_or_insert(header.archive_id));
        check_equal("archive id", u64::from(header.archive_id), archive_id)?;
        self.check_stage(header.kind, payload)?;
        let frame_end = self.offset.saturating_add(header.frame_bytes());
        self.reach.forget_complete();
        match payload {
            Payload::Archive(settings) => self.archive_settings(settings),
            Payload::MemberStart(start) => self.member_start(header, start)?,
            Payload::Block { header: block, .. } => self.block(header, block)?,
            Payload::Extents { header: epoch, .. } => self.extents(header, epoch)?,
            Payload::MemberEnd(end) => self.member_end(header, end)?,
            Payload::Entries { header: batch, .. } => self.entries(header, batch)?,
            Payload::Index(node) => self.index_node(header, node)?,
            Payload::End { end, roots } => self.end(header, end, roots)?,
            Payload::Catalog(_) => self.catalog(header)?,
            Payload::Generation(_) | Payload::Skipped => {}
        }
        self.held.feed(header, payload, ())?;
        while self.held.next().is_some() {}
        self.offset = frame_end;
        self.next_sequence = self.next_sequence.saturating_add(1);
        Ok(())
    }

    fn archive_settings(&mut self, settings: &ArchiveHeader) {
        self.archive = Some(*settings);
        if self.measures_any_reach || settings.reach_bytes != REACH_UNLIMITED {
            self.reach.measure(settings.reach_bytes);
        }
    }

    /// Archive is the first frame and the only one of its kind. After the index only skippable
    /// frames and End are allowed.
    fn check_stage(&self, kind: FrameKind, payload: &Payload<'_>) -> Result<()> {
        match (payload, &self.archive) {
            (Payload::Archive(_), Some(_)) => {
                return Err(order(kind, "an archive has one Archive frame"));
            }
            (Payload::Archive(_), None) | (_, Some(_)) => {}
            (_, None) => return Err(order(kind, "the first frame must be Archive")),
        }
        match (payload, self.index_begun) {
            (Payload::Skipped | Payload::Index(_) | Payload::End { .. }, _) | (_, false) => Ok(()),
            (_, true) => Err(order(kind, "only End may follow the index")),
        }
    }

    fn block(&mut self, header: &FrameHeader, block: &BlockHeader) -> Result<()> {
        check_equal("block id", block.block_id, self.block_count)?;
        check_equal(
            "start of a block in the store",
            block.store_start,
            self.store_bytes,
        )?;
        if let Some(archive) = &self.archive {
            check_own_limit(
                "raw bytes of a block",
                block.raw_bytes,
                archive.block_bytes_max,
            )?;
        }
        if block.store_end() > self.introduced_bytes {
            return Err(order(
                header.kind,
                "the extents of a block's bytes must come before it",
            ));
        }
        let frame = self.offset..self.offset.saturating_add(header.frame_bytes());
        self.reach
            .block(block.store_start..block.store_end(), frame)?;
        self.index.block(&IndexBlock {
            frame_offset: self.offset,
            frame_bytes: header.frame_bytes(),
            store_start: block.store_start,
            raw_bytes: block.raw_bytes,
            codec: block.coding.codec(),
            filter_ids: block.coding.filter_ids(),
            hash: None,
        });
        self.block_count += 1;
        self.store_bytes = block.store_end();
        self.fallback_count += u64::from(block.coding.fallback() != 0);
        Ok(())
    }

    fn extents(&mut self, header: &FrameHeader, epoch: &ExtentsHeader) -> Result<()> {
        check_equal("epoch id", epoch.epoch_id, self.epoch_count)?;
        check_equal(
            "start of an epoch in the content",
            epoch.content_start,
            self.content_bytes,
        )?;
        check_equal(
            "store bytes introduced before an epoch",
            epoch.store_start,
            self.introduced_bytes,
        )?;
        if let Some(archive) = &self.archive {
            check_own_limit("epoch bytes", epoch.content_bytes, archive.epoch_bytes)?;
        }
        if self.open_members.is_empty() {
            return Err(order(
                header.kind,
                "content must belong to a member that has started",
            ));
        }
        self.index.epoch(&IndexEpoch {
            frame_offset: self.offset,
            frame_bytes: header.frame_bytes(),
            content_start: epoch.content_start,
            content_bytes: epoch.content_bytes,
            store_start: epoch.store_start,
            fresh_bytes: epoch.fresh_bytes,
            extent_count: epoch.extent_count,
        });
        self.epoch_count += 1;
        self.content_bytes = epoch.content_end();
        self.introduced_bytes = epoch.store_end();
        self.reach
            .epoch(epoch, self.offset.saturating_add(header.frame_bytes()));
        Ok(())
    }

    /// Checks the sums of the next epoch's extents against the promised reach, and adds them to the
    /// totals, which are compared with the index. Optional, for a reader that unpacks the extents
    /// anyway. Call it once per epoch, in order, before feeding the frame after the one that
    /// completes the epoch.
    ///
    /// # Errors
    /// The epoch refers to bytes beyond the promised reach, or its sums contradict its header.
    pub fn observe_epoch(&mut self, sums: &EpochSums) -> Result<()> {
        let Some(epoch) = self.reach.observe(sums)? else {
            return Ok(());
        };
        let sum = sums
            .matched_bytes
            .saturating_add(sums.run_bytes)
            .saturating_add(epoch.fresh_bytes);
        check_equal(
            "fresh, matched and run bytes of an epoch",
            sum,
            epoch.content_bytes,
        )?;
        self.observed_epochs += 1;
        self.observed.matched_bytes += sums.matched_bytes;
        self.observed.run_bytes += sums.run_bytes;
        Ok(())
    }

    /// Compares the slices of the index with the path order of a tree whose frames of entries are
    /// not in path order. Optional, for a reader that unpacks the entries anyway. Call it for the
    /// members in order, after feeding their ends. The slices name frames by their numbers in the
    /// member.
    pub fn observe_slices(&mut self, member_id: u64, slices: &[IndexSlice]) {
        self.index.observe_slices(member_id, slices);
    }

    /// Compares the observed slices with the index's, after the index was fed.
    ///
    /// # Errors
    /// They differ.
    pub fn check_observed_slices(&self) -> Result<()> {
        self.index.check_observed_slices()
    }

    fn member_start(&mut self, header: &FrameHeader, start: &MemberStart) -> Result<()> {
        check_equal("member id", start.member_id, self.members_started)?;
        check_limit("members", self.members_started + 1, self.limits.members_max)?;
        match self.open_members.back() {
            // Its end is not known yet; it is compared with this start later.
            Some(before) if start.content_start < before.start.content_start => {
                return Err(order(header.kind, "members must start in content order"));
            }
            Some(_) => {}
            None => check_equal(
                "start of a member",
                start.content_start,
                self.last_member_end,
            )?,
        }
        check_limit(
            "members that have not ended",
            self.open_members.len() as u64 + 1,
            OPEN_MEMBERS_MAX as u64,
        )?;
        if start.content_start < self.content_bytes {
            return Err(order(
                header.kind,
                "a member must start before the extents of its content",
            ));
        }
        self.open_members.push_back(OpenMember {
            start: start.clone(),
            first_path: Vec::new(),
            first_paths_ascend: true,
            start_frame_offset: self.offset,
            start_checksum: header.payload_checksum,
            entry_count: 0,
            first_entries_frame: None,
            fingerprint: 0,
        });
        self.members_started += 1;
        Ok(())
    }

    fn member_end(&mut self, header: &FrameHeader, end: &MemberEnd) -> Result<()> {
        check_equal("member id", end.member_id, self.members_ended)?;
        let Some(member) = self.open_members.pop_front() else {
            return Err(order(header.kind, "a member must start before it ends"));
        };
        let content_end = member.start.content_start.saturating_add(end.content_bytes);
        // The member ends where the next one starts, or where the content so far ends.
        let expected = self
            .open_members
            .front()
            .map_or(self.content_bytes, |next| next.start.content_start);
        check_equal("end of a member in the content", content_end, expected)?;
        if content_end > self.content_bytes {
            return Err(order(
                header.kind,
                "a member must end after the extents of its content",
            ));
        }
        check_equal("entries of a member", end.entry_count, member.entry_count)?;
        end.check_kind(member.start.kind, member.first_paths_ascend)?;
        if member.start.kind.has_slices(end) {
            let first = member.first_entries_frame.unwrap_or_default();
            (self.index).sliced_member(end.member_id, first, member.fingerprint);
        }
        self.index.member(
            [member.start_frame_offset, self.offset],
            [member.start_checksum, header.payload_checksum],
            IndexName::new(&member.start.name, end.member_id),
        );
        self.root.push(&member_hash(&member.start, end));
        self.members_ended += 1;
        self.last_member_end = content_end;
        Ok(())
    }

    fn entries(&mut self, header: &FrameHeader, batch: &EntriesHeader) -> Result<()> {
        let row = IndexEntries::new(self.offset, header.frame_bytes(), batch);
        let member = batch
            .member_id
            .checked_sub(self.members_ended)
            .and_then(|at| usize::try_from(at).ok())
            .and_then(|at| self.open_members.get_mut(at))
            .filter(|member| member.start.kind.has_entries())
            .ok_or(order(
                header.kind,
                "entries must be between the start and the end of their member, a tree or a tar stream",
            ))?;
        check_equal(
            "first entry of a batch",
            batch.first_entry,
            member.entry_count,
        )?;
        member.entry_count = member.entry_count.saturating_add(batch.entry_count);
        let slice = IndexSlice::whole(self.entries_frames, batch.entry_count);
        member.fingerprint = member.fingerprint.wrapping_add(slice.fingerprint());
        (member.first_entries_frame).get_or_insert(self.entries_frames);
        self.entries_frames += 1;
        member.first_paths_ascend &= row.follows(&mut member.first_path);
        if batch.member_id < self.last_entries_member {
            return Err(order(
                header.kind,
                "frames of entries must be in the order of their members",
            ));
        }
        self.last_entries_member = batch.member_id;
        self.index.entries(&row);
        Ok(())
    }

    fn index_node(&mut self, header: &FrameHeader, node: &IndexNode) -> Result<()> {
        self.check_all_has_come(header.kind)?;
        self.index_begun = true;
        self.index.node(node, (self.offset, header.frame_bytes()))
    }

    fn check_all_has_come(&self, kind: FrameKind) -> Result<()> {
        if !self.open_members.is_empty() {
            return Err(order(kind, "all members must end before the index"));
        }
        check_equal(
            "store bytes introduced by all epochs",
            self.introduced_bytes,
            self.store_bytes,
        )?;
        check_equal(
            "content bytes of all members",
            self.last_member_end,
            self.content_bytes,
        )
    }

    fn end(&mut self, header: &FrameHeader, end: &ArchiveEnd, roots: &[IndexNode]) -> Result<()> {
        self.check_all_has_come(header.kind)?;
        let frame_end = self.offset.saturating_add(header.frame_bytes());
        let sums = [
            (
                "frame count",
                end.frame_count,
                self.next_sequence.saturating_add(1),
            ),
            ("content bytes", end.content_bytes, self.content_bytes),
            ("store bytes", end.store_bytes, self.store_bytes),
            ("members", end.member_count, self.members_ended),
            (
                "archive bytes",
                end.archive_bytes,
                frame_end.saturating_add(TAIL_BYTES as u64),
            ),
            (
                "blocks that were not coded as planned",
                end.fallback_count,
                self.fallback_count,
            ),
        ];
        for (what, found, expected) in sums {
            check_equal(what, found, expected)?;
        }
        if end.generation != self.generation_end() {
            return Err(order(
                header.kind,
                "the End frame of a generation states its first member, its catalog and the root \
                 hash before it",
            ));
        }
        let lists_names = self.members_ended - self.first_member >= NAMES_FROM as u64;
        self.index.roots(roots, self.offset, lists_names)?;
        self.check_extent_totals(end)?;
        check_root_hash(&self.root.value(), &end.root_hash)?;
        self.end_frame_bytes = Some(frame_end.saturating_sub(self.offset));
        Ok(())
    }

    fn check_extent_totals(&self, end: &ArchiveEnd) -> Result<()> {
        let totals = &end.totals;
        if let Some(archive) = &self.archive {
            check_own_limit(
                "needed reach in bytes",
                totals.reach_needed_bytes,
                archive.reach_bytes,
            )?;
        }
        // Only a reader that observed every epoch knows these sums.
        if self.observed_epochs == self.epoch_count {
            check_equal(
                "matched bytes",
                totals.matched_bytes,
                self.observed.matched_bytes,
            )?;
            check_equal("fill bytes", totals.fill_bytes, self.observed.run_bytes)?;
            if self.reach.is_measured() {
                check_equal(
                    "needed reach in bytes",
                    totals.reach_needed_bytes,
                    self.reach.needed_bytes(),
                )?;
            }
        }
        Ok(())
    }
}

fn check_root_hash(found: &[u8; 32], expected: &[u8; 32]) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(FormatError::Checksum {
        what: "root hash (its first 8 bytes)",
        found: first_bytes(found),
        expected: first_bytes(expected),
    })
}

fn first_bytes(hash: &[u8; 32]) -> u64 {
    hash.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

fn order(kind: FrameKind, rule: &'static str) -> FormatError {
    FormatError::Order { kind, rule }
}

#[cfg(test)]
mod tests;
