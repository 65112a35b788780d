//! The interface of the kernels.

use super::super::block::Block;

/// The number of inputs that the widest kernel takes at a time, on any processor.
pub const LANES_MAX: usize = 32;

/// The states of all lanes: the first words of all lanes, the second words, and so on.
pub(super) type LaneStates<const LANES: usize> = [[u32; LANES]; 4];

/// Compresses the first `count` blocks of the input of each lane into its state.
pub(super) type Kernel<const LANES: usize> = fn(&mut LaneStates<LANES>, [&[Block]; LANES], usize);
