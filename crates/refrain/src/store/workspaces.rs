//! Reusable codec workspaces and buffers for workers.

use refrain_codec::{Host, Workspace};
use refrain_pool::Lock;
use refrain_pool::pool::{aside, beside, checkpoint};

/// Codecs let their workers run more urgent work.
pub(crate) const HOST: Host = Host {
    check_in: checkpoint,
    aside: |work| aside(work),
    beside: |work, own| {
        beside(work, own);
    },
};

/// The scratch memory of one worker that encodes or decodes.
pub(crate) struct CodecScratch {
    pub codec: Workspace,
    /// The pages of a block in one piece.
    pub joined: Vec<u8>,
    /// The compressed copy of a block, while it is made.
    pub copy: Vec<u8>,
}

/// A new workspace whose codecs let their worker run more urgent work.
pub(crate) fn new_workspace() -> Workspace {
    Workspace::for_host(HOST)
}

impl Default for CodecScratch {
    fn default() -> Self {
        CodecScratch {
            codec: new_workspace(),
            joined: vec![],
            copy: vec![],
        }
    }
}

/// Free scratch memory and frame buffers: as many as jobs ever ran at once.
#[derive(Default)]
pub(crate) struct Workspaces {
    idle: Lock<Vec<CodecScratch>>,
    frames: Lock<Vec<Vec<u8>>>,
}

/// How many buffers of written frames are kept for the next frames.
const FRAME_BUFFERS_MAX: usize = 2;

impl Workspaces {
    /// Calls `body` with scratch memory to itself.
    pub(crate) fn with<R>(&self, body: impl FnOnce(&mut CodecScratch) -> R) -> R {
        let mut space = self.idle.lock().pop().unwrap_or_default();
        let result = body(&mut space);
        self.idle.lock().push(space);
        result
    }

    /// Frees the scratch memory and buffers that no job uses.
    pub(crate) fn release(&self) {
        let idle = std::mem::take(&mut *self.idle.lock());
        let frames = std::mem::take(&mut *self.frames.lock());
        drop((idle, frames));
    }

    /// Takes a written frame's buffer back for the next one.
    pub(crate) fn recycle_frame(&self, frame: Vec<u8>) {
        let mut frames = self.frames.lock();
        if frames.len() < FRAME_BUFFERS_MAX {
            frames.push(frame);
        }
    }

    pub(crate) fn frame_buffer(&self) -> Vec<u8> {
        self.frames.lock().pop().unwrap_or_default()
    }
}
