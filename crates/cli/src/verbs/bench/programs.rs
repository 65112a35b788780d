//! The command lines of well-known compressors, so that users need to write only their options.

/// The command line conventions of one program.
#[derive(Debug)]
pub(super) struct Program {
    /// The name by which it is called (the last component of its path).
    pub(super) name: &'static str,
    /// The suffix of its archives; some programs require it.
    pub(super) suffix: &'static str,
    /// What follows the user's options to compress `{}`.
    pub(super) compress: &'static str,
    /// The whole command that decompresses `{}`; `{program}` is the name as the user wrote it,
    /// `{original}` the name of the compressed file.
    pub(super) decompress: &'static str,
}

/// A program that writes to standard output with `-c`, like gzip.
const fn gzip_like(name: &'static str, suffix: &'static str) -> Program {
    Program {
        name,
        suffix,
        compress: "-q -c {}",
        decompress: "{program} -q -dc {}",
    }
}

/// All programs with known conventions.
pub(super) const PROGRAMS: &[Program] = &[
    Program {
        name: "zstd",
        suffix: ".zst",
        compress: "-q -c {}",
        // The largest window of the format: archives made with --long=31 need it.
        decompress: "{program} -q -dc --long=31 {}",
    },
    Program {
        name: "lrzip",
        suffix: ".lrz",
        compress: "-q -f -o {out} {}",
        decompress: "{program} -q -d -f -o {out} {}",
    },
    Program {
        name: "7zz",
        suffix: ".7z",
        compress: "-bd -bso0 {out} {}",
        decompress: "{program} e -bd -so {}",
    },
    Program {
        name: "zpaq",
        suffix: ".zpaq",
        compress: "",
        decompress: "{program} x {} {original} -to {out} -f",
    },
    Program {
        name: "xz",
        suffix: ".xz",
        compress: "-q -c {}",
        decompress: "{program} -q -T0 -dc {}",
    },
    gzip_like("gzip", ".gz"),
    gzip_like("pigz", ".gz"),
    gzip_like("bzip2", ".bz2"),
    gzip_like("lbzip2", ".bz2"),
    gzip_like("lz4", ".lz4"),
];

/// A predefined peer: its name for `--peers`, and the command line (`{threads}` is filled in).
pub(super) const PRESETS: &[(&str, &str)] = &[
    ("zstd", "zstd -1 --long=31 -T{threads}"),
    ("zstd", "zstd -3 --long=31 -T{threads}"),
    ("zstd", "zstd -9 --long=31 -T{threads}"),
    ("lrzip", "lrzip -l -p {threads}"),
    ("lrzip", "lrzip -p {threads}"),
    ("xz", "xz -6 -T{threads}"),
    ("7zz", "7zz a -mx5 -mmt{threads}"),
    ("zpaq", "zpaq a {out} {} -m1 -t{threads}"),
];

/// The conventions of `program`, if known.
pub(super) fn known(program: &str) -> Option<&'static Program> {
    let name = program.rsplit('/').next().unwrap_or(program);
    PROGRAMS.iter().find(|p| p.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_known_program_and_no_program_is_listed_twice() {
        for (name, command) in PRESETS {
            let program = command.split(' ').next().unwrap();
            assert_eq!(*name, program);
            assert!(known(program).is_some(), "{program}");
        }
        for (i, p) in PROGRAMS.iter().enumerate() {
            assert!(PROGRAMS[..i].iter().all(|q| q.name != p.name), "{}", p.name);
        }
    }

    #[test]
    fn a_path_before_the_name_does_not_matter() {
        assert_eq!(known("/opt/bin/zstd").unwrap().name, "zstd");
        assert!(known("zstdx").is_none());
    }
}
