//! The programs of lrzip, selected by name.

/// A program of lrzip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Compresses, and with `-d` decompresses.
    Lrzip,
    /// Decompresses.
    Lrunzip,
    /// Decompresses to standard output.
    Lrzcat,
    /// lrzip with gzip's conventions: quiet, and deletes sources.
    Lrz,
    /// Archives a directory.
    Lrztar,
    /// Extracts a directory.
    Lrzuntar,
}

impl Program {
    pub const ALL: [Program; 6] = [
        Program::Lrzip,
        Program::Lrunzip,
        Program::Lrzcat,
        Program::Lrz,
        Program::Lrztar,
        Program::Lrzuntar,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Program::Lrzip => "lrzip",
            Program::Lrunzip => "lrunzip",
            Program::Lrzcat => "lrzcat",
            Program::Lrz => "lrz",
            Program::Lrztar => "lrztar",
            Program::Lrzuntar => "lrzuntar",
        }
    }

    pub fn from_name(name: &str) -> Option<Program> {
        Program::ALL
            .into_iter()
            .find(|program| program.name() == name)
    }

    /// Its purpose in one line.
    pub fn about(self) -> &'static str {
        match self {
            Program::Lrzip => {
                "Compress files with repeats at any distance into .lrz archives, as lrzip does"
            }
            Program::Lrunzip => "Decompress .lrz archives",
            Program::Lrzcat => "Decompress .lrz archives to standard output",
            Program::Lrz => {
                "lrzip with the conventions of gzip: quiet, and each source is deleted when its output is complete"
            }
            Program::Lrztar => "Archive a directory as .tar.lrz",
            Program::Lrzuntar => "Extract a .tar.lrz archive",
        }
    }

    /// Whether it processes directories as tar streams.
    pub fn is_tar(self) -> bool {
        matches!(self, Program::Lrztar | Program::Lrzuntar)
    }
}
