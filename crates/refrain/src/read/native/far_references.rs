//! References of a generation to the content of earlier ones, which no window limits: a forward
//! pass reads the frames that describe it again.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use refrain_codec::Workspace;
use refrain_format::{ExtentsHeader, FrameKind, Limits};
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::read::epoch_map::EpochMap;
use crate::read::native::packed_map::PackedMap;
use crate::read::native::resolve::resolve_range;
use crate::store::decoders::Decoders;
use crate::store::frames::read_frame_at;

/// How many maps are kept: content of one member comes in order.
const MAPS_MAX: usize = 8;

/// Where the Extents frames before the present generation are.
pub(crate) struct FarReferences {
    /// `None` for a pipe.
    source: Option<Arc<dyn Source>>,
    limits: Limits,
    decoders: Arc<Decoders>,
    workspace: Workspace,
    /// For each frame, where its content begins and where it is in the file.
    frames: Vec<(u64, u64)>,
    /// The content of earlier generations, in bytes.
    earlier_content_bytes: u64,
    /// The latest maps, by the numbers of their frames.
    maps: VecDeque<(usize, Arc<PackedMap>)>,
}

impl FarReferences {
    pub(crate) fn new(
        source: Option<Arc<dyn Source>>,
        limits: Limits,
        decoders: Arc<Decoders>,
    ) -> FarReferences {
        FarReferences {
            source,
            limits,
            decoders,
            workspace: Workspace::new(),
            frames: Vec::new(),
            earlier_content_bytes: 0,
            maps: VecDeque::new(),
        }
    }

    /// Whether there is a file to read again.
    pub(crate) fn can_reread(&self) -> bool {
        self.source.is_some()
    }

    /// A generation begins behind this much content.
    pub(crate) fn generation_begins(&mut self, content_bytes: u64) {
        self.earlier_content_bytes = content_bytes;
    }

    /// A frame at this offset of the file describes the content from `content_start` on.
    pub(crate) fn add(&mut self, content_start: u64, frame_offset: u64) {
        self.frames.push((content_start, frame_offset));
    }

    /// The extents of a range; `None` if not all of it is of earlier generations, unless `is_any`.
    /// They may be reached through at most `depth_max` references.
    ///
    /// # Errors
    /// `Unsupported` for a pipe; otherwise from reading the frames and resolving the references.
    pub(crate) fn resolve(
        &mut self,
        range: Range<u64>,
        depth_max: u8,
        is_any: bool,
    ) -> Result<Option<EpochMap>> {
        if range.end > self.earlier_content_bytes && !is_any {
            return Ok(None);
        }
        let extents_max = self.limits.extents_per_frame_max;
        let map_of = &mut |at| self.map_of(at);
        resolve_range(range, depth_max, extents_max, map_of).map(Some)
    }

    fn map_of(&mut self, content_at: u64) -> Result<Arc<PackedMap>> {
        let number = (self.frames).partition_point(|&(start, _)| start <= content_at);
        let missing = || Error::damaged("no frame describes this content").at_content(content_at);
        let number = number.checked_sub(1).ok_or_else(missing)?;
        if let Some((_, map)) = self.maps.iter().find(|(kept, _)| *kept == number) {
            return Ok(map.clone());
        }
        let Some(source) = &self.source else {
            let text = "the archive refers to content of earlier generations, which is read again: \
                        it must be a file";
            return Err(Error::new(ErrorKind::Unsupported, text));
        };
        let (_, offset) = self.frames[number];
        let frame = read_frame_at(&**source, offset, FrameKind::Extents, None, &self.limits)?;
        let (head, data) = ExtentsHeader::parse(&frame.payload, &self.limits)?;
        let parsed = PackedMap::parse(&mut self.workspace, &self.decoders, &head, data);
        let map = Arc::new(parsed?);
        if !map.content().contains(&content_at) {
            return Err(missing());
        }
        if self.maps.len() == MAPS_MAX
            && let Some((_, oldest)) = self.maps.pop_front()
        {
            oldest.forget_expanded();
        }
        self.maps.push_back((number, map.clone()));
        Ok(map)
    }
}
