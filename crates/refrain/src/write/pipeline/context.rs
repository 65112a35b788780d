//! The context shared by all jobs of a run.

use std::sync::Arc;

use refrain_longmatch::{SegmentScan, Trail, scan_beside};
use refrain_pool::stages::stage;
use refrain_pool::{BufferPool, Lock, return_free_memory};
use refrain_protect::SEGMENT_BYTES;

use crate::error::{Error, ErrorKind, Result};
use crate::store::memory::zeroed;
use crate::store::workspaces::Workspaces;
use crate::tuning::Tuning;
use crate::write::pipeline::history_policy::HistoryPolicy;
use crate::write::pipeline::page_spill::PageSpill;
use crate::write::pipeline::segments::{EpochData, ReadSegment, SegmentPlan};
use crate::write::pipeline::trails::Trails;

/// Settings, buffers and workspaces of a run.
pub(crate) struct PipelineContext {
    pub tuning: Tuning,
    pub buffers: Arc<BufferPool>,
    pub scans: Lock<Vec<SegmentScan>>,
    pub workspaces: Workspaces,
    /// Workspaces for everything but blocks. A workspace keeps the memory of the densest codec that
    /// used it, so there must not be more workspaces for blocks than blocks in flight: level 8 with
    /// 512 MiB and 7 threads used 0.92 GB when extents were encoded in them too.
    pub small_workspaces: Workspaces,
    pub history: HistoryPolicy,
    /// Where the pages of encoded blocks go.
    pub spill: Option<Arc<PageSpill>>,
    /// What members probably repeat of earlier generations.
    pub trails: Option<Trails>,
}

impl PipelineContext {
    /// A buffer for a segment.
    ///
    /// # Errors
    /// `Limit` if the system refuses memory.
    pub(crate) fn segment_buffer(&self, length_bytes: usize) -> Result<Vec<u8>> {
        if length_bytes == SEGMENT_BYTES {
            Ok(self.buffers.get_full()?)
        } else {
            zeroed(length_bytes)
        }
    }

    /// Calls `read` with a buffer and returns the buffer, truncated to the number of bytes read.
    pub(crate) fn read(
        &self,
        mut bytes: Vec<u8>,
        read: impl FnOnce(&mut [u8]) -> std::io::Result<usize>,
    ) -> Result<Vec<u8>> {
        let mut stage = stage("read", 0);
        let count = read(&mut bytes)?;
        stage.add_bytes(count as u64);
        drop(stage);
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Scans and hashes a segment while it is in the processor's cache.
    pub(crate) fn scan(&self, plan: &SegmentPlan, bytes: Vec<u8>) -> Result<ReadSegment> {
        let _stage = stage("scan", bytes.len() as u64);
        let hash = (plan.hash.segment(plan.offset_in_member, &bytes))
            .map_err(|error| Error::new(ErrorKind::Internal, error))?;
        let (pieces, known) = (self.trails.as_ref())
            .map(|trails| trails.known(plan, &bytes, &hash))
            .unwrap_or_default();
        let mut scan = self.scans.lock().pop().unwrap_or_default();
        scan_beside(&bytes, &known, &self.tuning.rules, &mut scan);
        Ok(ReadSegment {
            member: plan.member,
            offset_in_member: plan.offset_in_member,
            hole_bytes: plan.hole_bytes,
            bytes,
            scan,
            hash,
            pieces,
            earlier: Vec::new(),
        })
    }

    /// What a segment probably repeats.
    pub(crate) fn trail(&self, segment: &ReadSegment) -> Trail {
        (self.trails.as_ref()).map_or_else(Trail::default, |trails| trails.of(segment))
    }

    /// Frees what is retained for later jobs: the system refuses memory.
    pub(crate) fn release_idle_memory(&self) {
        self.workspaces.release();
        self.small_workspaces.release();
        self.buffers.release();
        let scans = std::mem::take(&mut *self.scans.lock());
        drop(scans);
        return_free_memory();
    }

    /// Takes back the memory of an epoch for the next ones.
    pub(crate) fn recycle(&self, data: EpochData) {
        let mut scans = self.scans.lock();
        for segment in data.segments {
            self.buffers.put(segment.bytes);
            scans.push(segment.scan);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::options::CompressOptions;

    /// The context of a run with default options.
    pub(crate) fn test_context() -> PipelineContext {
        PipelineContext {
            tuning: Tuning::new(&CompressOptions::default()).expect("the defaults are valid"),
            buffers: Arc::new(BufferPool::new(SEGMENT_BYTES, 4)),
            scans: Lock::default(),
            workspaces: Workspaces::default(),
            small_workspaces: Workspaces::default(),
            history: HistoryPolicy::Sources,
            spill: None,
            trails: None,
        }
    }
}
