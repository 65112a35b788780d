//! Blocks: encoded from pages into frames, and decoded from them.

use refrain_codec::{
    BlockDescription, BlockPlan, CodecId, FallbackReason, encode_block, is_slow_to_decode,
    looks_incompressible,
};
use refrain_format::{BlockHeader, Coding};
use refrain_protect::{CHECKSUM_CHUNK_BYTES, checksum64, join_chunk_checksums};

use crate::error::Result;
use crate::store::coding::coding;
use crate::store::packed::Packed;
use crate::store::page::{PAGE_BYTES, Page};
use crate::store::workspaces::{EncodeSpace, Workspaces};

// The checksum of a block is made of those of its pages.
const _: () = assert!(PAGE_BYTES == CHECKSUM_CHUNK_BYTES);

/// A block to be encoded.
pub(crate) struct BlockJob {
    pub block_id: u64,
    pub store_start: u64,
    pub pages: Vec<Page>,
    /// The match stage saw repeats around here that it may have left to the codec.
    pub has_repeats: bool,
    /// The match stage left many repeats around here to the codec, which should see their source itself.
    pub has_near_repeats: bool,
}

/// The frame of a block: in one piece, or, if the block is stored as it is, its heads and its pages.
pub(crate) struct BlockFrame {
    pub bytes: Vec<u8>,
    pub stored: Vec<Page>,
}

impl BlockFrame {
    /// Bytes that are not in `bytes`.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.stored.iter().map(|page| page.len() as u64).sum()
    }

    pub(crate) fn frame_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.stored_bytes()
    }

    /// The frame in one piece.
    pub(crate) fn joined(mut self) -> Vec<u8> {
        self.stored
            .iter()
            .for_each(|page| self.bytes.extend_from_slice(page));
        self.bytes
    }
}

/// A block that was encoded.
pub(crate) struct EncodedBlock {
    pub frame: BlockFrame,
    pub head: BlockHeader,
    pub page_checksums: Vec<u64>,
    /// A copy that opens fast, where one was asked for and the block itself would open slowly.
    pub packed: Option<Packed>,
}

impl BlockJob {
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.pages.iter().map(|page| page.len() as u64).sum()
    }

    /// Encodes the block and builds its frame, all but the sequence number. `packs` asks for a packed copy as well.
    pub(crate) fn encode(
        self,
        workspaces: &Workspaces,
        plan: &BlockPlan,
        packs: bool,
    ) -> Result<EncodedBlock> {
        let page_checksums: Vec<_> = self.pages.iter().map(|page| checksum64(page)).collect();
        let mut head = BlockHeader {
            block_id: self.block_id,
            store_start: self.store_start,
            raw_bytes: self.raw_bytes(),
            raw_checksum: join_chunk_checksums(&page_checksums),
            coding: Coding::none(),
        };
        let plan = &self.plan(plan);
        let is_stored = plan.codec == CodecId::NONE || self.is_noise(workspaces, plan)?;
        let mut packed = None;
        let frame = if is_stored {
            let is_fallback = plan.codec != CodecId::NONE;
            let reason = is_fallback.then_some(FallbackReason::Incompressible);
            head.coding = coding(&BlockDescription::stored(reason))?;
            BlockFrame {
                bytes: head.finish_detached(&page_checksums)?,
                stored: self.pages,
            }
        } else {
            let mut builder = BlockHeader::builder(workspaces.frame());
            let squeezed = workspaces.with(|space| self.squeeze(space, plan, builder.payload()))?;
            head.coding = coding(&squeezed)?;
            if packs && is_slow_to_decode(squeezed.codec) {
                packed = Some(workspaces.with(|space| self.pack(space))?);
            }
            BlockFrame {
                bytes: head.finish(builder)?,
                stored: vec![],
            }
        };
        Ok(EncodedBlock {
            frame,
            head,
            page_checksums,
            packed,
        })
    }

    /// The plan for this block: long-distance matching, if it is planned at all, is for blocks with many near repeats.
    fn plan(&self, plan: &BlockPlan) -> BlockPlan {
        let mut plan = *plan;
        plan.settings.long_distance &= self.has_near_repeats;
        plan
    }

    /// Whether no codec would find anything. The match stage has seen the whole, so a sample is enough; and what is stored is
    /// neither joined nor copied.
    fn is_noise(&self, workspaces: &Workspaces, plan: &BlockPlan) -> Result<bool> {
        if self.has_repeats {
            return Ok(false);
        }
        let parts: Vec<&[u8]> = self.pages.iter().map(|page| &page[..]).collect();
        let look = |space: &mut EncodeSpace| {
            looks_incompressible(&mut space.codec, &parts, plan.filter_trial)
        };
        Ok(workspaces.with(look)?)
    }

    fn squeeze(
        &self,
        space: &mut EncodeSpace,
        plan: &BlockPlan,
        out: &mut Vec<u8>,
    ) -> Result<BlockDescription> {
        if let [page] = &self.pages[..] {
            return Ok(encode_block(&mut space.codec, page, plan, out)?);
        }
        space.joined.clear();
        self.pages
            .iter()
            .for_each(|page| space.joined.extend_from_slice(page));
        Ok(encode_block(&mut space.codec, &space.joined, plan, out)?)
    }

    fn pack(&self, space: &mut EncodeSpace) -> Result<Packed> {
        let pages = self.pages.iter().map(|page| &page[..]);
        Ok(Packed::of_pages(
            &mut space.codec,
            pages,
            &mut space.packed,
        )?)
    }
}
