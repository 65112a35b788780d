//! The one declaration of lrzip's options; parser, help and manual pages come from it.
//!
//! The options are those of lrzip 0.651 and 0.7.1, learned from their manual pages and help. lrzip and lrz share the long names
//! and differ in the letters: `lrz` has gzip's.

use super::program::Program;

/// An option, whatever its spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
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

/// What follows an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// A value: the rest of the word, or the next word.
    Value(&'static str),
    /// A value behind `=`, or nothing. The letter takes none.
    Optional(&'static str),
}

/// Where the help lists an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    General,
    Output,
    Compression,
    LowLevel,
}

impl Section {
    /// In the order of the help.
    pub const ALL: [Section; 4] = [
        Section::General,
        Section::Output,
        Section::Compression,
        Section::LowLevel,
    ];

    /// As lrzip's help has it.
    pub fn title(self) -> &'static str {
        match self {
            Section::General => "General options",
            Section::Output => "Options affecting output",
            Section::Compression => "Options affecting compression",
            Section::LowLevel => "Low level options",
        }
    }
}

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct OptionRow {
    pub choice: Choice,
    /// Letters when the program is lrzip, lrunzip, lrzcat, lrztar or lrzuntar.
    lrzip: &'static str,
    /// Letters when it is lrz.
    lrz: &'static str,
    pub long: &'static str,
    pub takes: Takes,
    pub section: Section,
    pub help: &'static str,
}

impl OptionRow {
    /// The letters that this program has for it.
    pub fn letters(&self, program: Program) -> &'static str {
        match program {
            Program::Lrz => self.lrz,
            _ => self.lrzip,
        }
    }

    /// Whether the program's help shows it: under a letter, or because it is a word in both.
    pub fn is_shown(&self, program: Program) -> bool {
        !self.letters(program).is_empty() || (self.lrzip.is_empty() && self.lrz.is_empty())
    }
}

const fn row(
    choice: Choice,
    (lrzip, lrz, long): (&'static str, &'static str, &'static str),
    takes: Takes,
    section: Section,
    help: &'static str,
) -> OptionRow {
    OptionRow {
        choice,
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
    use Choice as C;
    use Section::{Compression, General, LowLevel, Output};
    use Takes::{Nothing, Optional, Value};
    &[
        row(
            C::Stdout,
            ("", "c", "stdout"),
            Nothing,
            General,
            "Write to standard output",
        ),
        row(
            C::Check,
            ("cC", "C", "check"),
            Nothing,
            General,
            "Read the file again that was written, and compare its MD5",
        ),
        row(
            C::Decompress,
            ("d", "d", "decompress"),
            Nothing,
            General,
            "Decompress",
        ),
        row(
            C::Encrypt,
            ("e", "e", "encrypt"),
            Optional("PASSWORD"),
            General,
            "Encrypt with a password, which is asked for (-e) or given (--encrypt=PASSWORD); also the password for reading",
        ),
        row(
            C::LegacyEncrypt,
            ("E", "", "legacy-encrypt"),
            Nothing,
            General,
            "Encrypt so that lrzip 0.6 can read it (AES-128-CBC)",
        ),
        row(
            C::Aes256,
            ("", "", "aes256"),
            Nothing,
            General,
            "With -e, encrypt with AES-256-GCM, which lrzip reads from 0.7 on (Refrain's)",
        ),
        row(
            C::PasswordFile,
            ("", "", "password-file"),
            Value("FILE"),
            General,
            "Read the password from the first line of FILE (Refrain's)",
        ),
        row(
            C::PasswordFd,
            ("", "", "password-fd"),
            Value("N"),
            General,
            "Read the password from an open file descriptor (Refrain's)",
        ),
        row(
            C::Help,
            ("h?", "h?", "help"),
            Nothing,
            General,
            "Show this help",
        ),
        row(
            C::Hash,
            ("H", "H", "hash"),
            Nothing,
            General,
            "Show the MD5 of the content",
        ),
        row(
            C::Info,
            ("i", "i", "info"),
            Nothing,
            General,
            "Show what an archive is made of; -v and -vv show more",
        ),
        row(
            C::License,
            ("", "L", "license"),
            Nothing,
            General,
            "Show version and licence",
        ),
        row(
            C::Progress,
            ("P", "P", "progress"),
            Nothing,
            General,
            "Show progress",
        ),
        row(
            C::Quiet,
            ("q", "", "quiet"),
            Nothing,
            General,
            "Do not show progress",
        ),
        row(
            C::VeryQuiet,
            ("Q", "", "very-quiet"),
            Nothing,
            General,
            "Show errors only",
        ),
        row(
            C::Recursive,
            ("r", "r", "recursive"),
            Nothing,
            General,
            "Take every file below the directories that are given",
        ),
        row(
            C::Test,
            ("t", "t", "test"),
            Nothing,
            General,
            "Check archives and write nothing",
        ),
        row(
            C::Verbose,
            ("v", "v", "verbose"),
            Nothing,
            General,
            "Tell more; twice: tell most",
        ),
        row(
            C::Version,
            ("V", "V", "version"),
            Nothing,
            General,
            "Show the version",
        ),
        row(
            C::Delete,
            ("D", "", "delete"),
            Nothing,
            Output,
            "Delete each source when its output is in place",
        ),
        row(
            C::Force,
            ("f", "f", "force"),
            Nothing,
            Output,
            "Overwrite existing files, read and write terminals",
        ),
        row(
            C::Keep,
            ("", "k", "keep"),
            Nothing,
            Output,
            "Keep sources, which lrz deletes otherwise",
        ),
        row(
            C::KeepBroken,
            ("Kk", "K", "keep-broken"),
            Nothing,
            Output,
            "Keep output that is damaged or incomplete",
        ),
        row(
            C::Outfile,
            ("o", "o", "outfile"),
            Value("FILE"),
            Output,
            "Write to FILE; '-' is standard output",
        ),
        row(
            C::Outdir,
            ("O", "O", "outdir"),
            Value("DIR"),
            Output,
            "Write to files in DIR",
        ),
        row(
            C::Suffix,
            ("S", "S", "suffix"),
            Value("SUFFIX"),
            Output,
            "Suffix of archives (default '.lrz')",
        ),
        row(
            C::Lzma,
            ("", "", "lzma"),
            Nothing,
            Compression,
            "Compress with LZMA (default)",
        ),
        row(
            C::Bzip2,
            ("b", "b", "bzip2"),
            Nothing,
            Compression,
            "Compress with bzip2",
        ),
        row(
            C::Gzip,
            ("g", "g", "gzip"),
            Nothing,
            Compression,
            "Compress with zlib",
        ),
        row(
            C::Lzo,
            ("l", "l", "lzo"),
            Nothing,
            Compression,
            "Compress with LZO, the fastest",
        ),
        row(
            C::NoCompress,
            ("n", "n", "no-compress"),
            Nothing,
            Compression,
            "Only take out repeats, for another compressor to go on",
        ),
        row(
            C::Zpaq,
            ("z", "z", "zpaq"),
            Nothing,
            Compression,
            "Compress with ZPAQ, the densest and slowest",
        ),
        row(
            C::Level,
            ("L", "", "level"),
            Value("LEVEL"),
            LowLevel,
            "Level, 1 to 9 (default 7); with lrz -1 to -9",
        ),
        row(C::Fast, ("", "", "fast"), Nothing, LowLevel, "Level 1"),
        row(C::Best, ("", "", "best"), Nothing, LowLevel, "Level 9"),
        row(
            C::Nice,
            ("N", "N", "nice-level"),
            Value("VALUE"),
            LowLevel,
            "Nice value, -20 to 19 (default 19, 0 with lrz)",
        ),
        row(
            C::Threads,
            ("p", "p", "threads"),
            Value("N"),
            LowLevel,
            "Threads (default: one per processor)",
        ),
        row(
            C::Maxram,
            ("m", "m", "maxram"),
            Value("SIZE"),
            LowLevel,
            "Memory that may be used, in hundreds of MiB",
        ),
        row(
            C::Threshold,
            ("T", "T", "threshold"),
            Nothing,
            LowLevel,
            "Compress blocks too that LZ4 finds incompressible",
        ),
        row(
            C::Unlimited,
            ("U", "U", "unlimited"),
            Nothing,
            LowLevel,
            "Window as large as the file",
        ),
        row(
            C::Window,
            ("w", "w", "window"),
            Value("SIZE"),
            LowLevel,
            "Window, in hundreds of MiB",
        ),
        row(
            C::Ultra,
            ("u", "", "ultra"),
            Nothing,
            LowLevel,
            "Densest settings of the back end (lrzip 0.7)",
        ),
        row(
            C::Filter,
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
    fn the_table_of_the_manual_names_every_option() {
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
    fn no_spelling_means_two_things() {
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
