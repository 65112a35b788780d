//! Memory that is reused from block to block.

use std::any::Any;

use crate::error::Result;
use crate::host::Host;
use crate::id::CodecId;

/// The contexts and buffers that one worker reuses from block to block. Results never depend on
/// earlier calls. Takes no memory until first used; `Send`, one per worker.
#[derive(Default)]
pub struct Workspace {
    pub(crate) host: Host,
    /// One for each type of state in use.
    states: Vec<CodecState>,
    /// A filtered copy of the block.
    pub(crate) filtered: Vec<u8>,
    /// The sample of a block, and a filtered copy of it.
    pub(crate) sample: Vec<u8>,
    pub(crate) sample_filtered: Vec<u8>,
    /// The output of trials, which is discarded.
    trial: Vec<u8>,
}

/// What a codec retains between blocks.
struct CodecState {
    state: Box<dyn Any + Send>,
    /// The codec, if its state is large.
    large_state_of: Option<CodecId>,
}

impl Workspace {
    /// An empty workspace.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty workspace for codecs that check in with `host`.
    #[must_use]
    pub fn for_host(host: Host) -> Self {
        Self {
            host,
            ..Self::default()
        }
    }

    /// What the caller does while a codec works.
    #[must_use]
    pub fn host(&self) -> Host {
        self.host
    }

    /// Releases the retained memory, for a worker that becomes idle.
    pub fn clear(&mut self) {
        *self = Self::for_host(self.host);
    }

    /// The state of type `S` that a codec retains; a new one at the first call.
    pub(crate) fn state<S: Default + Send + 'static>(&mut self) -> &mut S {
        self.find_state(None)
    }

    /// Like `state`, for tens of megabytes and more: see `release_large_states_except`.
    pub(crate) fn large_state<S: Default + Send + 'static>(&mut self, codec: CodecId) -> &mut S {
        self.find_state(Some(codec))
    }

    /// Releases the large states of all codecs but this one. Memory budgets count the state of one
    /// codec at a time.
    pub(crate) fn release_large_states_except(&mut self, codec: CodecId) {
        self.states
            .retain(|entry| entry.large_state_of.is_none_or(|owner| owner == codec));
    }

    /// The number of bytes that `encode` appends to a buffer that is discarded.
    pub(crate) fn trial_bytes(
        &mut self,
        encode: impl FnOnce(&mut Self, &mut Vec<u8>) -> Result<()>,
    ) -> Result<usize> {
        let mut trial = std::mem::take(&mut self.trial);
        trial.clear();
        let result = encode(self, &mut trial);
        let size = trial.len();
        self.trial = trial;
        result.map(|()| size)
    }

    fn find_state<S: Default + Send + 'static>(
        &mut self,
        large_state_of: Option<CodecId>,
    ) -> &mut S {
        let found = self.states.iter().position(|entry| entry.state.is::<S>());
        let index = found.unwrap_or_else(|| {
            self.states.push(CodecState {
                state: Box::<S>::default(),
                large_state_of,
            });
            self.states.len() - 1
        });
        match self.states[index].state.downcast_mut() {
            Some(state) => state,
            None => unreachable!("the entry at `index` has type `S`"),
        }
    }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").finish_non_exhaustive()
    }
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Workspace>();
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_the_same_state_until_it_is_released() {
        let mut workspace = Workspace::new();
        workspace.state::<Vec<u8>>().push(1);
        workspace.large_state::<Vec<u16>>(CodecId(1)).push(2);
        workspace.large_state::<Vec<u32>>(CodecId(2)).push(3);
        assert_eq!(*workspace.large_state::<Vec<u16>>(CodecId(1)), [2]);
        workspace.release_large_states_except(CodecId(2));
        assert_eq!(*workspace.state::<Vec<u8>>(), [1]);
        assert!(workspace.large_state::<Vec<u16>>(CodecId(1)).is_empty());
        assert_eq!(*workspace.large_state::<Vec<u32>>(CodecId(2)), [3]);
        workspace.clear();
        assert!(workspace.state::<Vec<u8>>().is_empty());
    }
}
