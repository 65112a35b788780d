#![doc = include_str!("../README.md")]
//!
//! # Verbs
//!
//! One file per verb: [`compress`](compress()), [`extract`](extract()), [`verify`]. An [`Archive`]
//! reads any range, from many threads at once, and describes an archive's contents. Bytes come from
//! a [`storage::Source`] or any [`std::io::Read`] and go to a [`storage::Sink`]: files, pipes,
//! memory, or the caller's own implementation. A [`Watch`] receives progress and can cancel a run.
//! An [`Error`] has a kind and a location. `refrain_pool::stages` measures the stages of the work.
//!
//! The work of all runs of a process shares one pool of threads, which starts with the first run
//! and has a worker for each processor. Called inside `refrain_pool::install` a verb uses another
//! `refrain_pool::pool::Pool`, in any latency or scheduling class; inside
//! `refrain_pool::install_on` it uses the threads of another pool, such as rayon's; inside
//! `refrain_pool::in_background` it uses only the processor time that others leave, so that a
//! program can compress while it answers urgent reads.
//!
//! The same input and options give the same bytes, for any number of threads. Memory stays within
//! the options' budget for any size of input. The directory `examples` has a program for each of
//! these uses.

#![forbid(unsafe_code)]

mod add;
mod archive;
mod archive_entries;
mod archive_frames;
mod archive_generations;
mod archive_info;
mod archive_layout;
mod archive_passes;
mod archive_serving;
mod compact;
mod compress;
mod damage;
mod decoder_choice;
mod dialect;
mod digests;
pub mod directory;
mod earlier_decoders;
mod earlier_members;
mod earlier_trees;
mod error;
mod extract;
mod extraction;
mod file_extraction;
pub mod foreign;
mod generation;
mod going_on;
mod hash;
mod identity;
mod input;
mod key_slots;
mod levels;
pub mod lrzip;
mod member_check;
mod member_extraction;
mod merge;
mod options;
mod place;
mod progress;
#[cfg(any(test, feature = "property"))]
pub mod property;
mod read;
mod recover;
mod recovery;
mod recovery_share;
mod restore_to;
mod signing;
pub mod storage;
mod store;
mod survey;
mod targets;
mod tuning;
mod verify;
pub mod volumes;
mod write;
mod writer_state;

pub use add::{AddSummary, AddTo, add, forget, is_rewritten};
pub use archive::Archive;
pub use archive_entries::EntryList;
pub use archive_frames::RawFrame;
pub use archive_info::{
    ArchiveInfo, BlockInfo, CodecUse, LrzipInfo, Member, MemberKind, MemberStart,
};
pub use archive_layout::{ContentExtent, EachMemberContent, ExtentOrigin, Layout, StoreBlock};
pub use archive_serving::{BeforeWaiting, Deadline, ReadControl, Run};
pub use compact::{CompactNumbers, CompactSummary, Compaction};
pub use compress::{CompressSummary, compress};
pub use damage::{CutOff, Damage, DamagedFile, DamagedPart, DamagedPlace, GivenBack};
pub use decoder_choice::{DecoderChoice, DecoderInfo, DecoderListener, DecoderRole};
pub use dialect::Dialect;
pub use error::{Error, ErrorKind, Location, Result};
pub use extract::{ExtractSummary, Target, Targets, TreeTarget, extract, verify};
pub use generation::{GenerationChoice, GenerationInfo, GenerationLabel};
pub use hash::{HashInputs, hash};
pub use identity::archive_identity;
pub use input::Input;
pub use key_slots::{ChangedSlots, KeySlots, SlotKind};
pub use levels::{LevelRow, levels};
pub use merge::{Merge, MergeSource, MergeSummary};
pub use options::{
    CodecChoice, CompressOptions, Encryption, Level, PasswordSource, Purpose, ReadOptions,
    TemporarySpace, WORK_MAX_DEFAULT, codec_names, codec_usages,
};
pub use place::Place;
pub use progress::{NotedProblems, Progress, Unwatched, Watch};
pub use read::content_check::ContentCheck;
pub use read::read_statistics::ReadStatistics;
pub use read::shared_memory::SharedMemory;
pub use recover::{damaged_places, recover};
pub use recovery::{
    ProtectSummary, RecoveryInfo, RecoveryOptions, RecoveryState, RepairPlan, RepairSummary,
    plan_repair, protect, recovery_goes_apart, recovery_info, recovery_state,
};
pub use recovery_share::RecoveryShare;
pub use refrain_codec::{FilterChain, FilterTextError};
pub use refrain_entries::{Entry, EntryKind, ExtendedAttribute, Owner, Timestamp};
pub use refrain_protect::envelope::{Identity, KeyTextError, Recipient};
pub use refrain_protect::signature::{
    PublicKey, SecretKeyFile, Signature, SignatureKeyError, SignatureTextError, SignerName,
    SigningKey, TrustedSigner, trusted_signers,
};
pub use refrain_protect::{DigestAlgorithm, DigestHasher, DigestValue};
pub use restore_to::{RestoreTo, RestoreToOptions};

pub use refrain_filesystem::TarSink;
pub use signing::{
    ArchiveSignature, Authenticated, SignSummary, SignatureState, Trust, append_signature,
    attached_signature,
};
pub use store::envelope::keys::new_identity;
pub use survey::damaged_files;
pub use targets::spill_in;
pub use tuning::MEMORY_BYTES_MIN;
pub use verify::verify_root;
pub use verify::{FrameTotals, verify_frames};
pub use write::input::{Content, DirectoryContent, MemberInput};
pub use writer_state::WriterState;
