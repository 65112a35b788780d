//! Codec workspaces and buffers that workers use again.

use refrain_codec::Workspace;
use refrain_pool::Lock;

/// What one worker needs to encode.
#[derive(Default)]
pub(crate) struct EncodeSpace {
    pub codec: Workspace,
    /// A block's pages, joined.
    pub joined: Vec<u8>,
    /// A block's pages, packed.
    pub packed: Vec<u8>,
}

/// Workspaces and buffers wait here for the next job: as many as ever ran at once.
#[derive(Default)]
pub(crate) struct Workspaces {
    idle: Lock<Vec<EncodeSpace>>,
    frames: Lock<Vec<Vec<u8>>>,
}

/// Buffers of written frames that are kept for the next ones.
const FRAMES_KEPT_MAX: usize = 2;

impl Workspaces {
    pub(crate) fn with<R>(&self, body: impl FnOnce(&mut EncodeSpace) -> R) -> R {
        let mut space = self.idle.lock().pop().unwrap_or_default();
        let result = body(&mut space);
        self.idle.lock().push(space);
        result
    }

    /// Keeps the buffer of a frame that was written.
    pub(crate) fn keep_frame(&self, frame: Vec<u8>) {
        let mut frames = self.frames.lock();
        if frames.len() < FRAMES_KEPT_MAX {
            frames.push(frame);
        }
    }

    /// A buffer for a frame, perhaps one that was used before.
    pub(crate) fn frame(&self) -> Vec<u8> {
        self.frames.lock().pop().unwrap_or_default()
    }
}
