//! The families of tables of a block: one definition for both directions.

use super::symbols::{Contexts, DISTANCE_CONTEXTS, DISTANCES, LENGTH_CONTEXTS, LENGTHS, LOWS};

macro_rules! model {
    ($(#[$comment:meta])* $name:ident, $family:ident) => {
        $(#[$comment])*
        pub(super) struct $name {
            pub literals: super::table::$family<256>,
            pub commands: super::table::$family<256>,
            pub lengths: super::table::$family<LENGTHS>,
            pub distances: super::table::$family<DISTANCES>,
            pub lows: super::table::$family<LOWS>,
        }

        impl $name {
            pub(super) fn new(contexts: Contexts) -> Self {
                use super::table::$family as Family;
                Self {
                    literals: Family::new(contexts.literals()),
                    commands: Family::new(contexts.commands()),
                    lengths: Family::new(LENGTH_CONTEXTS),
                    distances: Family::new(DISTANCE_CONTEXTS),
                    lows: Family::new(1),
                }
            }
        }
    };
}

model!(
    /// What a decoder knows of the symbols.
    DecoderModel,
    DecoderFamily
);
model!(
    /// What an encoder knows of the symbols.
    EncoderModel,
    EncoderFamily
);

/// More than the tables of either direction take, in bytes.
pub(super) fn memory_bytes(contexts: Contexts) -> u64 {
    const TABLE_BYTES: u64 = 6 << 10;
    let others = LENGTH_CONTEXTS + DISTANCE_CONTEXTS + 16;
    (contexts.literals() + contexts.commands() + others) as u64 * TABLE_BYTES
}
