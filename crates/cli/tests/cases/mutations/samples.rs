//! Small archives of every kind and format.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::{Case, EntryState, expect, incompressible, mixture, snapshot};

/// A valid archive, and what the verbs produce from it.
pub struct Sample {
    pub file_name: String,
    pub bytes: Vec<u8>,
    /// The output of `decompress`: a directory for anything with a name.
    pub output: &'static str,
    /// What `decompress` restores.
    pub restored: Vec<EntryState>,
    /// What `decompress -o -` writes; `None` for a zip, which is not a stream.
    pub written: Option<Vec<u8>>,
    /// What `list` prints.
    pub listed: Vec<u8>,
    /// Whether names, modes and times are covered by checksums.
    pub protects_names: bool,
}

/// An archive: its name, and the command that makes it.
const NATIVE: [(&str, &str); 10] = [
    ("one.rfn", "compress x -o one.rfn"),
    ("tiny.rfn", "compress tiny -o tiny.rfn"),
    ("empty.rfn", "compress empty -o empty.rfn"),
    ("several.rfn", "compress x tiny zeros -o several.rfn"),
    ("lz4.rfn", "compress -1 x -o lz4.rfn"),
    ("dense.rfn", "compress -8 x -o dense.rfn"),
    ("densest.rfn", "compress -9 text -o densest.rfn"),
    ("tree.rfn", "compress tree -o tree.rfn"),
    ("tar.rfn", "compress t.tar -o tar.rfn"),
    ("both.rfn", "compress tree x -o both.rfn"),
];

/// Archives of other formats: the program, its arguments, and the file that it makes.
const FOREIGN: [(&str, &str, &str); 6] = [
    ("gzip", "-k text", "text.gz"),
    ("xz", "-k text", "text.xz"),
    ("zstd", "-q text", "text.zst"),
    ("bzip2", "-k text", "text.bz2"),
    ("lz4", "-q -f text text.lz4", "text.lz4"),
    ("zip", "-q -r tree.zip tree", "tree.zip"),
];

/// Makes all of them.
pub fn samples(case: &Case) -> Vec<Sample> {
    sources(case);
    let mut found = vec![];
    for (name, line) in NATIVE {
        case.ok(&format!("{line} -q"));
        found.push(sample(case, name, true));
    }
    let joined = [case.read("one.rfn"), case.read("tree.rfn")].concat();
    case.write("joined.rfn", &joined);
    found.push(sample(case, "joined.rfn", true));
    for (program, line, name) in FOREIGN {
        expect(case.command(program, line).output().unwrap(), 0, program);
        found.push(sample(case, name, false));
    }
    #[cfg(feature = "lrzip")]
    {
        case.ok("compress -q --format lrz x -o x.lrz");
        found.push(sample(case, "x.lrz", false));
    }
    found
}

fn sources(case: &Case) {
    case.write("x", &mixture(60_000));
    case.write("text", &mixture(4_000));
    case.write("tiny", b"a few bytes\n");
    case.write("empty", b"");
    case.write("zeros", &[0; 100_000]);
    for number in 0..30 {
        let name = format!("tree/d{}/f{number}", number % 4);
        case.write(&name, &incompressible(number, 100 * number as usize));
    }
    case.write("tree/big", &mixture(40_000));
    fs::hard_link(case.path("tree/big"), case.path("tree/d0/link")).unwrap();
    symlink("../big", case.path("tree/d1/soft")).unwrap();
    let line = "-cf t.tar tree";
    expect(case.command("tar", line).output().unwrap(), 0, line);
}

fn sample(case: &Case, name: &str, protects_names: bool) -> Sample {
    let output = if protects_names { "out/" } else { "out" };
    case.ok(&format!("decompress -q {name} -o {name}.{output}"));
    Sample {
        output,
        file_name: name.to_owned(),
        bytes: case.read(name),
        restored: below(&case.path(&format!("{name}.out"))),
        written: (!name.ends_with(".zip"))
            .then(|| case.ok(&format!("decompress -q {name} -o -")).stdout),
        listed: case.ok(&format!("list {name}")).stdout,
        protects_names,
    }
}

/// What is restored there. Of a directory only its contents: the run may have created it.
pub fn below(output: &Path) -> Vec<EntryState> {
    if !output.exists() {
        return vec![];
    }
    let mut found = snapshot(output);
    if output.is_dir() {
        found.retain(|entry| !entry.path.is_empty());
    }
    found
}
