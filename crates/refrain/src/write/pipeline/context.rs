//! What the jobs of a run share.

use std::sync::Arc;

use refrain_longmatch::{SegmentScan, scan_segment};
use refrain_pool::stages::stage;
use refrain_pool::{BufferPool, Lock};
use refrain_protect::{SEGMENT_BYTES, segment_hash};

use crate::error::{Error, ErrorKind, Result};
use crate::store::workspaces::Workspaces;
use crate::tuning::Tuning;
use crate::write::pipeline::intake::SegmentPlan;
use crate::write::pipeline::segments::{EpochData, ReadSegment};

/// What workers share.
pub(crate) struct PipelineContext {
    pub tuning: Tuning,
    pub buffers: Arc<BufferPool>,
    pub scans: Lock<Vec<SegmentScan>>,
    pub workspaces: Workspaces,
    /// For whatever is no block. A workspace keeps the memory of the densest codec that it ever worked for, so those of blocks must be no
    /// more than there are blocks at once: level 8 with 512 MiB and 7 threads had 0.92 GB in use when extents were packed in them, too.
    pub small_workspaces: Workspaces,
    /// Blocks are packed as soon as they are encoded: they could be opened again only slowly.
    pub packs_blocks: bool,
}

impl PipelineContext {
    /// A buffer filled by `read`, cut to what it gave.
    pub(crate) fn read(
        &self,
        length_bytes: usize,
        read: impl FnOnce(&mut [u8]) -> std::io::Result<usize>,
    ) -> Result<Vec<u8>> {
        let mut bytes = if length_bytes == SEGMENT_BYTES {
            self.buffers.get_full()?
        } else {
            vec![0; length_bytes]
        };
        let mut stage = stage("read", 0);
        let count = read(&mut bytes)?;
        stage.add_bytes(count as u64);
        drop(stage);
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Hashes and scans a segment while it is in the cache.
    pub(crate) fn scan(&self, plan: &SegmentPlan, bytes: Vec<u8>) -> Result<ReadSegment> {
        let _stage = stage("scan", bytes.len() as u64);
        let mut scan = self.scans.lock().pop().unwrap_or_default();
        scan_segment(&bytes, &self.tuning.rules, &mut scan);
        let hash = segment_hash(plan.offset_in_member, &bytes)
            .map_err(|error| Error::new(ErrorKind::Internal, error))?;
        Ok(ReadSegment {
            member: plan.member,
            offset_in_member: plan.offset_in_member,
            bytes,
            scan,
            hash,
        })
    }

    /// Gives the memory of an epoch back.
    pub(crate) fn recycle(&self, data: EpochData) {
        let mut scans = self.scans.lock();
        for segment in data.segments {
            self.buffers.put(segment.bytes);
            scans.push(segment.scan);
        }
    }
}
