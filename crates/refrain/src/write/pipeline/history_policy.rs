//! Where the match stage reads store bytes that are no longer in memory.

/// How the members of a run can be read again. The least readable member decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberSources {
    /// At any offset, at any time: files.
    Seekable,
    /// At any offset, as far as the directory's log had room for its entries.
    Directories,
    /// Not at all: at least one member is a non-seekable stream.
    Streams,
}

/// The inputs to the decision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoryInputs {
    pub members: MemberSources,
    /// Whether blocks can be read back from the sink.
    pub sink_reads_back: bool,
    /// Whether the planned codec decodes slowly.
    pub decodes_slowly: bool,
    /// Whether pages may go to a temporary file.
    pub has_temporary: bool,
}

impl HistoryInputs {
    /// Whether store pages without a source go to a temporary file.
    pub(crate) fn spills(self) -> bool {
        self.has_temporary && self.members == MemberSources::Streams
    }
}

/// Where the frames of blocks to decode again are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockFrames {
    /// In the archive: the sink reads them back, at any distance.
    InArchive,
    /// In memory: those within the archive's reach are kept.
    InMemory,
}

/// Where store bytes are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HistoryPolicy {
    /// From the members' sources. What a source cannot supply is not history.
    Sources,
    /// From the members' sources, or by decoding the archive's blocks where no source can supply
    /// the bytes.
    SourcesAndBlocks,
    /// From a temporary file if there is one ([`PageSpill`](super::page_spill::PageSpill)),
    /// otherwise by decoding blocks. Blocks decoded once are kept as compressed copies, as far as
    /// they fit into the memory for pages.
    Blocks(BlockFrames),
    /// From compressed copies made when blocks are encoded, because the blocks themselves decode
    /// slowly. Older copies are evicted, which limits how far back extents may refer. A block
    /// without a copy (a stored one) is decoded from its frame.
    Copies(BlockFrames),
}

impl HistoryPolicy {
    pub(crate) fn decide(inputs: HistoryInputs) -> HistoryPolicy {
        let frames = if inputs.sink_reads_back {
            BlockFrames::InArchive
        } else {
            BlockFrames::InMemory
        };
        match inputs.members {
            MemberSources::Seekable => HistoryPolicy::Sources,
            MemberSources::Directories if inputs.sink_reads_back && !inputs.decodes_slowly => {
                HistoryPolicy::SourcesAndBlocks
            }
            MemberSources::Directories => HistoryPolicy::Sources,
            MemberSources::Streams if inputs.decodes_slowly && !inputs.has_temporary => {
                HistoryPolicy::Copies(frames)
            }
            MemberSources::Streams => HistoryPolicy::Blocks(frames),
        }
    }

    /// Whether every member has a source to read again from.
    pub(crate) fn rereads_sources(self) -> bool {
        matches!(
            self,
            HistoryPolicy::Sources | HistoryPolicy::SourcesAndBlocks
        )
    }

    /// Where the frames of written blocks are, if blocks are decoded again.
    pub(crate) fn block_frames(self) -> Option<BlockFrames> {
        match self {
            HistoryPolicy::Sources => None,
            HistoryPolicy::SourcesAndBlocks => Some(BlockFrames::InArchive),
            HistoryPolicy::Blocks(frames) | HistoryPolicy::Copies(frames) => Some(frames),
        }
    }

    /// Whether the frames of blocks are kept in memory.
    pub(crate) fn retains_frames(self) -> bool {
        self.block_frames() == Some(BlockFrames::InMemory)
    }

    /// Whether a block gets a compressed copy when it is encoded.
    pub(crate) fn makes_copies(self) -> bool {
        matches!(self, HistoryPolicy::Copies(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_inputs_has_its_policy() {
        use BlockFrames::{InArchive, InMemory};
        use HistoryPolicy::{Blocks, Copies, Sources, SourcesAndBlocks};
        use MemberSources::{Directories, Seekable, Streams};
        // Members; then by sink (reads back or not) and codec (decodes quickly or slowly).
        let cases = [
            (Seekable, [[Sources, Sources], [Sources, Sources]]),
            (
                Directories,
                [[SourcesAndBlocks, Sources], [Sources, Sources]],
            ),
            (
                Streams,
                [
                    [Blocks(InArchive), Copies(InArchive)],
                    [Blocks(InMemory), Copies(InMemory)],
                ],
            ),
        ];
        for (members, by_sink) in cases {
            for (sink_reads_back, by_codec) in [true, false].into_iter().zip(by_sink) {
                for (decodes_slowly, expected) in [false, true].into_iter().zip(by_codec) {
                    let inputs = HistoryInputs {
                        members,
                        sink_reads_back,
                        decodes_slowly,
                        has_temporary: false,
                    };
                    assert_eq!(HistoryPolicy::decide(inputs), expected, "{inputs:?}");
                    // With a temporary file, the codec's speed does not matter.
                    let spilling = HistoryInputs {
                        has_temporary: true,
                        ..inputs
                    };
                    let is_stream = members == Streams;
                    let expected = if is_stream {
                        by_sink[usize::from(!sink_reads_back)][0]
                    } else {
                        expected
                    };
                    assert_eq!(HistoryPolicy::decide(spilling), expected, "{spilling:?}");
                    assert_eq!((spilling.spills(), inputs.spills()), (is_stream, false));
                }
            }
        }
    }
}
