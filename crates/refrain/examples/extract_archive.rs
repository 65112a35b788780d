//! Restores every member of an archive below a directory: `extract_archive ARCHIVE DIRECTORY`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use refrain::directory::{RestoreOptions, TreeRestore};
use refrain::storage::{AtomicFile, FileSource, OutputOptions, Sink};
use refrain::{
    Error, ErrorKind, Member, MemberKind, MemberStart, ReadOptions, Target, Targets, TreeTarget,
    Unwatched, extract,
};

/// Puts members below a directory.
struct Below {
    directory: PathBuf,
}

impl Below {
    /// Names in an archive are untrusted: only plain names may become paths.
    fn path_of(&self, name: &[u8]) -> refrain::Result<PathBuf> {
        let name = Path::new(OsStr::from_bytes(name));
        match name.components().collect::<Vec<_>>()[..] {
            [Component::Normal(_)] => Ok(self.directory.join(name)),
            _ => Err(Error::new(
                ErrorKind::Usage,
                format!("{} is not a plain file name", name.display()),
            )),
        }
    }
}

impl Targets for Below {
    fn open(&mut self, member: &MemberStart) -> refrain::Result<Target> {
        let path = self.path_of(&member.name)?;
        if member.kind == MemberKind::Tree {
            let restore = TreeRestore::create(&path, RestoreOptions::default())?;
            let selection = None;
            return Ok(Target::Tree(Box::new(TreeTarget { restore, selection })));
        }
        let options = OutputOptions {
            mode: member.mode,
            modified: member.modified.and_then(refrain::Timestamp::to_system_time),
            ..OutputOptions::default()
        };
        Ok(Target::Sink(Box::new(AtomicFile::create(&path, &options)?)))
    }

    fn close(&mut self, member: &Member, target: Target) -> refrain::Result<()> {
        // The output gets its name only now, when all bytes are written and their hash is correct.
        match target {
            Target::Sink(mut sink) => sink.publish()?,
            Target::Tree(tree) => {
                for problem in tree.restore.finish()?.problems {
                    eprintln!("{problem}");
                }
            }
            Target::Nowhere | Target::Skipped => {}
        }
        let name = String::from_utf8_lossy(&member.name);
        println!("{} bytes  {name}", member.content_bytes);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, archive, directory] = &arguments[..] else {
        return Err("usage: extract_archive ARCHIVE DIRECTORY".into());
    };
    std::fs::create_dir_all(directory)?;
    let mut targets = Below {
        directory: PathBuf::from(directory),
    };
    let source = Arc::new(FileSource::open(archive)?);
    let summary = extract(source, &mut targets, &ReadOptions::default(), &Unwatched)?;
    println!("{summary:?}");
    Ok(())
}
