//! The names that the drop-in answers to.

/// A program of lrzip's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Compresses, and with `-d` decompresses.
    Lrzip,
    /// Decompresses.
    Lrunzip,
    /// Decompresses to standard output.
    Lrzcat,
    /// lrzip with the habits of gzip: quiet, and sources go.
    Lrz,
    /// Packs a directory.
    Lrztar,
    /// Unpacks one.
    Lrzuntar,
}

impl Program {
    /// All of them.
    pub const ALL: [Program; 6] = [
        Program::Lrzip,
        Program::Lrunzip,
        Program::Lrzcat,
        Program::Lrz,
        Program::Lrztar,
        Program::Lrzuntar,
    ];

    /// Its name.
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

    /// The program of this name.
    pub fn of(name: &str) -> Option<Program> {
        Program::ALL
            .into_iter()
            .find(|program| program.name() == name)
    }

    /// What it is for, in a line.
    pub fn about(self) -> &'static str {
        match self {
            Program::Lrzip => {
                "Compress files with repeats at any distance into .lrz archives, as lrzip does"
            }
            Program::Lrunzip => "Decompress .lrz archives",
            Program::Lrzcat => "Decompress .lrz archives to standard output",
            Program::Lrz => {
                "lrzip with the habits of gzip: quiet, and sources are deleted when their output is in place"
            }
            Program::Lrztar => "Pack a directory into a .tar.lrz archive",
            Program::Lrzuntar => "Unpack a .tar.lrz archive",
        }
    }

    /// Whether it works on directories as tar streams.
    pub fn is_tar(self) -> bool {
        matches!(self, Program::Lrztar | Program::Lrzuntar)
    }
}
