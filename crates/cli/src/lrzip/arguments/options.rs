//! The table of lrzip's options, from which the parser, help and manual pages are generated.
//!
//! The options of lrzip 0.651 and 0.7.1, according to their manual pages and help. lrzip and lrz
//! share the long names but not the letters: `lrz` follows gzip.

use super::program::Program;

/// An option, independent of its spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionId {
    Check,
    Stdout,
    Decompress,
    Encrypt,
    LegacyEncrypt,
    Aes256,
    PasswordFile,
    PasswordFd,
    Help,
    Hash,
    Info,
    License,
    Progress,
    Quiet,
    VeryQuiet,
    Recursive,
    Test,
    Verbose,
    Version,
    Delete,
    Keep,
    KeepBroken,
    Force,
    Outfile,
    Outdir,
    Suffix,
    Lzma,
    Bzip2,
    Gzip,
    Lzo,
    NoCompress,
    Zpaq,
    Level,
    Fast,
    Best,
    Nice,
    Threads,
    Maxram,
    Threshold,
    Ultra,
    Filter,
    Unlimited,
    Window,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionValue {
    Nothing,
    /// Requires a value: the rest of the argument, or the next argument.
    Required(&'static str),
    /// May have a value after `=`. The letter takes none.
    Optional(&'static str),
}

/// The section of the help that lists an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    General,
    Output,
    Compression,
    LowLevel,
}

impl Section {
    /// All sections, in the order of the help.
    pub const ALL: [Section; 4] = [
        Section::General,
        Section::Output,
        Section::Compression,
        Section::LowLevel,
    ];

    /// The title in lrzip's help.
    pub fn title(self) -> &'static str {
        match self {
            Section::General => "General options",
            Section::Output => "Options affecting output",
            Section::Compression => "Options affecting compression",
            Section::LowLevel => "Low level options",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct OptionRow {
    pub id: OptionId,
    /// Its letters in lrzip, lrunzip, lrzcat, lrztar and lrzuntar.
    lrzip: &'static str,
    /// Its letters in lrz.
    lrz: &'static str,
    pub long: &'static str,
    pub takes: OptionValue,
    pub section: Section,
    pub help: &'static str,
}

impl OptionRow {
    pub fn letters(&self, program: Program) -> &'static str {
        match program {
            Program::Lrz => self.lrz,
            _ => self.lrzip,
        }
    }

    /// Whether the program's help lists it: it has a letter there, or no letter in any program.
    pub fn is_shown(&self, program: Program) -> bool {
        !self.letters(program).is_empty() || (self.lrzip.is_empty() && self.lrz.is_empty())
    }
}

const fn row(
    id: OptionId,
    (lrzip, lrz, long): (&'static str, &'static str, &'static str),
    takes: OptionValue,
    section: Section,
    help: &'static str,
) -> OptionRow {
    OptionRow {
        id,
        lrzip,
        lrz,
        long,
        takes,
        section,
        help,
    }
}

/// All options, in the order of the help.
pub const OPTIONS: &[OptionRow] = {
    use OptionId as Id;
    use OptionValue::{Nothing, Optional, Required};
    use Section::{Compression, General, LowLevel, Output};
    &[
        row(
            Id::Stdout,
            ("", "c", "stdout"),
            Nothing,
            General,
            "Write to standard output",
        ),
        row(
            Id::Check,
            ("cC", "C", "check"),
            Nothing,
            General,
            "Read back from the disk what was written, and compare",
        ),
        row(
            Id::Decompress,
            ("d", "d", "decompress"),
            Nothing,
            General,
            "Decompress",
        ),
        row(
            Id::Encrypt,
            ("e", "e", "encrypt"),
            Optional("PASSWORD"),
            General,
            "Encrypt with a password from a prompt (-e) or from the option (--encrypt=PASSWORD); also the password for reading",
        ),
        row(
            Id::LegacyEncrypt,
            ("E", "", "legacy-encrypt"),
            Nothing,
            General,
            "With -e, encrypt with the cipher that lrzip 0.6 can read (AES-128-CBC)",
        ),
        row(
            Id::Aes256,
            ("", "", "aes256"),
            Nothing,
            General,
            "With -e, encrypt with AES-256-GCM, which lrzip 0.7 can read (the default; Refrain only)",
        ),
        row(
            Id::PasswordFile,
            ("", "", "password-file"),
            Required("FILE"),
            General,
            "Read the password from the first line of FILE (Refrain only)",
        ),
        row(
            Id::PasswordFd,
            ("", "", "password-fd"),
            Required("N"),
            General,
            "Read the password from an open file descriptor (Refrain only)",
        ),
        row(
            Id::Help,
            ("h?", "h?", "help"),
            Nothing,
            General,
            "Show this help",
        ),
        row(
            Id::Hash,
            ("H", "H", "hash"),
            Nothing,
            General,
            "Show the MD5 of the content",
        ),
        row(
            Id::Info,
            ("i", "i", "info"),
            Nothing,
            General,
            "Show the structure of an archive; -v and -vv show more",
        ),
        row(
            Id::License,
            ("", "L", "license"),
            Nothing,
            General,
            "Show version and license",
        ),
        row(
            Id::Progress,
            ("P", "P", "progress"),
            Nothing,
            General,
            "Show progress",
        ),
        row(
            Id::Quiet,
            ("q", "", "quiet"),
            Nothing,
            General,
            "Do not show progress",
        ),
        row(
            Id::VeryQuiet,
            ("Q", "", "very-quiet"),
            Nothing,
            General,
            "Print errors only",
        ),
        row(
            Id::Recursive,
            ("r", "r", "recursive"),
            Nothing,
            General,
            "Process all files below the given directories",
        ),
        row(
            Id::Test,
            ("t", "t", "test"),
            Nothing,
            General,
            "Test archives without writing anything",
        ),
        row(
            Id::Verbose,
            ("v", "v", "verbose"),
            Nothing,
            General,
            "Print more messages; twice prints most",
        ),
        row(
            Id::Version,
            ("V", "V", "version"),
            Nothing,
            General,
            "Show the version",
        ),
        row(
            Id::Delete,
            ("D", "", "delete"),
            Nothing,
            Output,
            "Delete each source when its output is complete",
        ),
        row(
            Id::Force,
            ("f", "f", "force"),
            Nothing,
            Output,
            "Overwrite existing files, read and write terminals",
        ),
        row(
            Id::Keep,
            ("", "k", "keep"),
            Nothing,
            Output,
            "Keep sources, which lrz deletes by default",
        ),
        row(
            Id::KeepBroken,
            ("Kk", "K", "keep-broken"),
            Nothing,
            Output,
            "Keep output that is damaged or incomplete",
        ),
        row(
            Id::Outfile,
            ("o", "o", "outfile"),
            Required("FILE"),
            Output,
            "Write to FILE; '-' is standard output",
        ),
        row(
            Id::Outdir,
            ("O", "O", "outdir"),
            Required("DIR"),
            Output,
            "Write to files in DIR",
        ),
        row(
            Id::Suffix,
            ("S", "S", "suffix"),
            Required("SUFFIX"),
            Output,
            "Suffix of archives (default '.lrz')",
        ),
        row(
            Id::Lzma,
            ("", "", "lzma"),
            Nothing,
            Compression,
            "Compress with LZMA (default)",
        ),
        row(
            Id::Bzip2,
            ("b", "b", "bzip2"),
            Nothing,
            Compression,
            "Compress with bzip2",
        ),
        row(
            Id::Gzip,
            ("g", "g", "gzip"),
            Nothing,
            Compression,
            "Compress with zlib",
        ),
        row(
            Id::Lzo,
            ("l", "l", "lzo"),
            Nothing,
            Compression,
            "Compress with LZO, the fastest",
        ),
        row(
            Id::NoCompress,
            ("n", "n", "no-compress"),
            Nothing,
            Compression,
            "Only remove repeats, as input for another compressor",
        ),
        row(
            Id::Zpaq,
            ("z", "z", "zpaq"),
            Nothing,
            Compression,
            "Compress with ZPAQ, the densest and slowest",
        ),
        row(
            Id::Level,
            ("L", "", "level"),
            Required("LEVEL"),
            LowLevel,
            "Level, 1 to 9 (default 7); with lrz -1 to -9",
        ),
        row(Id::Fast, ("", "", "fast"), Nothing, LowLevel, "Level 1"),
        row(Id::Best, ("", "", "best"), Nothing, LowLevel, "Level 9"),
        row(
            Id::Nice,
            ("N", "N", "nice-level"),
            Required("VALUE"),
            LowLevel,
            "Nice value, -20 to 19 (default 19, 0 with lrz)",
        ),
        row(
            Id::Threads,
            ("p", "p", "threads"),
            Required("N"),
            LowLevel,
            "Threads (default: one per processor)",
        ),
        row(
            Id::Maxram,
            ("m", "m", "maxram"),
            Required("SIZE"),
            LowLevel,
            "Memory limit, in hundreds of MiB",
        ),
        row(
            Id::Threshold,
            ("T", "T", "threshold"),
            Nothing,
            LowLevel,
            "Also compress blocks that LZ4 finds incompressible",
        ),
        row(
            Id::Unlimited,
            ("U", "U", "unlimited"),
            Nothing,
            LowLevel,
            "Window as large as the file",
        ),
        row(
            Id::Window,
            ("w", "w", "window"),
            Required("SIZE"),
            LowLevel,
            "Window, in hundreds of MiB",
        ),
        row(
            Id::Ultra,
            ("u", "", "ultra"),
            Nothing,
            LowLevel,
            "Densest settings of the back end (lrzip 0.7)",
        ),
        row(
            Id::Filter,
            ("", "", "filter"),
            Optional("FILTER"),
            LowLevel,
            "Filter before LZMA: auto, x86, arm64, delta1 to delta4, none (lrzip 0.7)",
        ),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_every_option() {
        let table = include_str!("../../../../../docs/lrzip-command.md");
        for row in OPTIONS {
            let long = format!("`--{}", row.long);
            assert!(table.contains(&long), "docs/lrzip-command.md lacks {long}");
            for letter in row.lrzip.chars() {
                assert!(table.contains(&format!("`-{letter}`")), "lacks -{letter}");
            }
        }
    }

    #[test]
    fn spellings_are_unique() {
        for program in [Program::Lrzip, Program::Lrz] {
            let mut letters: Vec<char> = OPTIONS
                .iter()
                .flat_map(|row| row.letters(program).chars())
                .collect();
            let count = letters.len();
            letters.sort_unstable();
            letters.dedup();
            assert_eq!(letters.len(), count, "{program:?}");
        }
        let mut longs: Vec<&str> = OPTIONS.iter().map(|row| row.long).collect();
        longs.sort_unstable();
        longs.dedup();
        assert_eq!(longs.len(), OPTIONS.len());
    }
}
