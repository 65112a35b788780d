//! `list`: one line per entry of an archive.
//!
//! | file | what |
//! |---|---|
//!
//! `row`
//! an entry, or a member other than a directory, to be listed
//!
//! `columns`
//! the line of `list -l`, similar to `ls -l`
//! | `json` | the line of `list --json` |

mod columns;
mod json;
mod row;

use std::io::{self, BufWriter, Write};

pub use json::add_bytes;
pub use row::Row;

use crate::failure::{Failure, Result};
use crate::standard::TextOutput;
use crate::text::{escaped, json_text};
use columns::Columns;

/// The form of a list's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListFormat {
    /// The path, escaped to fit on one line.
    Paths,
    /// The bytes of the path, followed by NUL.
    RawPaths,
    /// Type, mode, owner, group, size, time, path and link target.
    Long {
        /// Whether owners are shown as numbers even if the archive has their names.
        numeric_owner: bool,
    },
    /// A JSON object.
    Json,
}

/// Writes the lines of a list to standard output as they come.
pub struct Listing {
    format: ListFormat,
    columns: Columns,
    output: BufWriter<TextOutput>,
}

impl Listing {
    /// An empty list.
    pub fn new(format: ListFormat) -> Listing {
        Listing {
            format,
            columns: Columns::default(),
            output: BufWriter::with_capacity(1 << 16, TextOutput),
        }
    }

    /// Writes a line.
    ///
    /// # Errors
    /// `Io`.
    pub fn add(&mut self, row: &Row) -> Result<()> {
        let written = match self.format {
            ListFormat::Paths => writeln!(self.output, "{}", escaped(row.path)),
            ListFormat::RawPaths => {
                let written = self.output.write_all(row.path);
                written.and_then(|()| self.output.write_all(b"\0"))
            }
            ListFormat::Long { numeric_owner } => {
                writeln!(self.output, "{}", self.columns.line(row, numeric_owner))
            }
            ListFormat::Json => writeln!(self.output, "{}", json_text(json::row_json(row))),
        };
        written.map_err(write_failure)
    }

    /// Writes what is still in memory.
    ///
    /// # Errors
    /// `Io`.
    pub fn finish(mut self) -> Result<()> {
        self.output.flush().map_err(write_failure)
    }
}

fn write_failure(error: io::Error) -> Failure {
    Failure::Io {
        file: "standard output".into(),
        action: "write",
        error,
    }
}
