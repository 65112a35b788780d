//! Reports of the program: progress, summaries, the description of archives, JSON.
//!
//! | file | what |
//! |---|---|
//! | `run` | the report of a run: outcomes, the JSON document, the exit code |
//!
//! `outcome`
//! what was requested, delivered and left out: exit code, summary, `--rm`
//! | `progress` | what the engine reports while it works |
//! | `progress_line`, `line_text`, `position` | the progress line on a terminal |
//! | `size_estimate` | the expected size of directories |
//!
//! `damage`
//! an archive's damage, and the affected files
//! | `problems` | files that are missing in a result |
//! | `summary` | the line about a finished item |
//!
//! `archive`
//! `info`: describes an archive
//! | `description` | `info`: describes a file of another format |
//! | `member`, `block` | one member, one block |
//! | `generation` | the generations of an archive |
//! | `listing` | `list`: one line per entry |
//! | `read_back` | what `--check` found |
//! | `recovery` | recovery data |
//! | `signature` | signatures |

mod archive;
mod block;
mod damage;
mod description;
mod generation;
mod line_text;
mod listing;
mod member;
mod outcome;
mod position;
mod problems;
mod progress;
mod progress_line;
mod read_back;
mod recovery;
mod run;
mod signature;
mod size_estimate;
mod summary;

pub use archive::{
    archive_json, archive_text, block_text, has_md5, member_text, table_head, table_line,
};
pub use block::block_json;
pub use damage::{DamageReport, place_lines, place_texts};
pub use description::{description_json, description_text};
pub use generation::{generation_json, generation_lines, time_text};
pub use listing::{ListFormat, Listing, Row};
pub use outcome::{Copied, FileCount, Outcome};
pub use position::Total;
pub use problems::{FileProblem, FileProblemKind};
pub use progress::{FileNamer, Meter};
pub use progress_line::ProgressLine;
pub use read_back::{read_back_remark, tell_read_back};
pub use recovery::{
    incomplete_text, recovery_json, recovery_share_text, recovery_state_json, unprotected_text,
};
pub use run::{DataTo, Report, clear_screen, print};
pub use signature::{KnownSignature, signature_json};
pub use size_estimate::SizeEstimate;
pub use summary::{
    Sizes, added_line, checksums_line, compressed_line, decompressed_line, restored_part_line,
    tested_line,
};
