//! `refrain serve`: one archive, or several under their names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain::{PasswordSource, ReadOptions, SharedMemory};
use refrain_cache::Tiers;
use refrain_server::name_problem;

use super::inputs::SeekableInput;
use super::tiers::tiers;
use crate::args::ServeArgs;
use crate::failure::{Failure, Result};
use crate::paths::{is_dash, label};
use crate::text::quoted;
use crate::{names, urls, volumes};

/// With several archives: what one cannot give back while it is open takes a part of the memory of
/// at least this many bytes, and there are so many parts at most.
const PART_BYTES: u64 = 64 << 20;
const PARTS_MAX: u64 = 8;

/// What to serve.
pub struct ServePlan {
    pub options: ReadOptions,
    /// What is asked before all archives.
    pub tiers: Option<Arc<Tiers>>,
    /// The budget of all archives that are open.
    pub memory: Arc<SharedMemory>,
    pub served: ServedInput,
}

/// One archive, or several.
#[derive(Debug)]
pub enum ServedInput {
    One(Box<SeekableInput>),
    Several(SeveralInputs),
}

/// Archives that are served under names.
#[derive(Debug)]
pub struct SeveralInputs {
    pub operands: Vec<ServedOperand>,
    /// About so many archives are open at once.
    pub open_max: usize,
}

/// A file, a URL or a directory of archives.
#[derive(Debug)]
pub struct ServedOperand {
    /// The name of the archive; `None` for a directory.
    pub name: Option<Vec<u8>>,
    pub path: PathBuf,
}

impl ServePlan {
    /// Plans a run of `serve`.
    ///
    /// # Errors
    /// `Usage` for a pipe, a useless name, or `--scan` with several archives; `Io` if the only file
    /// does not exist, or the file with the password.
    pub fn new(args: &ServeArgs) -> Result<ServePlan> {
        let options = (args.generation)
            .with((args.limits).with(args.secrets.with(args.resources.read_options())?));
        let tiers = tiers(&args.caching)?;
        if let [path] = &args.archives[..]
            && split_name(path).0.is_none()
            && (!path.is_dir() || volumes::at_path(path).is_some())
        {
            let input = SeekableInput::new(path, &options, &args.secrets)?.behind(tiers.clone());
            return Ok(ServePlan {
                tiers,
                served: ServedInput::One(Box::new(input)),
                memory: SharedMemory::new(options.memory_bytes),
                options,
            });
        }
        if args.opening.scan {
            let text = "--scan concerns a single archive: leave it out, or serve that alone";
            return Err(Failure::usage("", text));
        }
        let operands = args.archives.iter().map(|path| operand(path));
        let operands = operands.collect::<Result<_>>()?;
        let parts = (options.memory_bytes / PART_BYTES).clamp(2, PARTS_MAX) as usize;
        let options = ReadOptions {
            // Many archives are opened at any time: nobody is asked for a password then.
            password: stated_password(args, &options)?,
            memory_parts: parts,
            ..options
        };
        Ok(ServePlan {
            tiers,
            memory: SharedMemory::new(options.memory_bytes),
            options,
            served: ServedInput::Several(SeveralInputs {
                operands,
                open_max: parts,
            }),
        })
    }
}

/// The password that an option gives, read once: a descriptor cannot be read again.
fn stated_password(args: &ServeArgs, options: &ReadOptions) -> Result<Option<PasswordSource>> {
    let is_stated = args.secrets.password.given().is_some();
    let Some(source) = options.password.as_ref().filter(|_| is_stated) else {
        return Ok(None);
    };
    source.password().map_err(Failure::Storage)?;
    Ok(Some(source.clone()))
}

fn operand(path: &Path) -> Result<ServedOperand> {
    let (name, path) = split_name(path);
    if is_dash(&path) && name.is_none() {
        let text = "standard input has no name among several archives: NAME=- gives it one";
        return Err(Failure::usage("", text));
    }
    if path.is_dir() && volumes::at_path(&path).is_none() {
        return match name {
            None => Ok(ServedOperand { name: None, path }),
            Some(name) => {
                let text = format!(
                    "is a directory, whose archives have names of their own: leave {}= out",
                    quoted(&name)
                );
                Err(Failure::usage(label(&path), text))
            }
        };
    }
    let name = name.unwrap_or_else(|| archive_name(&path));
    match name_problem(&name) {
        None => Ok(ServedOperand {
            name: Some(name),
            path,
        }),
        Some(problem) => {
            let text = format!(
                "cannot be called {}: the name {problem}; NAME=ARCHIVE gives another",
                quoted(&name)
            );
            Err(Failure::usage(label(&path), text))
        }
    }
}

/// The name of an archive among others: its file's without suffix.
pub fn archive_name(path: &Path) -> Vec<u8> {
    names::of_member(&urls::local_name(path), b"")
}

/// `NAME=ARCHIVE` in its parts. A path that exists, a URL, and what has a slash before the equals
/// sign have no name.
fn split_name(path: &Path) -> (Option<Vec<u8>>, PathBuf) {
    let bytes = path.as_os_str().as_bytes();
    let equals = bytes.iter().position(|&byte| byte == b'=');
    let named = equals.map(|at| (&bytes[..at], &bytes[at + 1..]));
    match named.filter(|(name, _)| !name.is_empty() && !name.contains(&b'/')) {
        Some((name, file)) if !urls::is_url(path) && !path.exists() => {
            (Some(name.to_vec()), PathBuf::from(OsStr::from_bytes(file)))
        }
        _ => (None, path.to_path_buf()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_the_first_equals_sign() {
        let split = |text: &str| {
            let (name, path) = split_name(Path::new(text));
            let name = name.map(|name| String::from_utf8(name).unwrap());
            (name, path.to_string_lossy().into_owned())
        };
        let named = |name: &str, path: &str| (Some(name.to_owned()), path.to_owned());
        let plain = |path: &str| (None, path.to_owned());
        assert_eq!(split("week=/a/b=c.rfn"), named("week", "/a/b=c.rfn"));
        assert_eq!(split("a b\n'=x"), named("a b\n'", "x"));
        assert_eq!(split("x=https://h/a?b=c"), named("x", "https://h/a?b=c"));
        assert_eq!(split("https://h/a?b=c"), plain("https://h/a?b=c"));
        assert_eq!(split("./week=a"), plain("./week=a"));
        assert_eq!(split("=a"), plain("=a"));
        assert_eq!(split("a.rfn"), plain("a.rfn"));
        let directory = tempfile::tempdir().unwrap();
        let there = directory.path().join("a=b");
        std::fs::write(&there, b"").unwrap();
        assert_eq!(split_name(&there), (None, there));
    }

    #[test]
    fn an_archive_is_called_like_its_file_without_suffix() {
        let name = |path: &str| archive_name(Path::new(path));
        assert_eq!(name("/srv/disk.img.rfn"), b"disk.img");
        assert_eq!(name("a/x.tar.lrz"), b"x.tar");
        assert_eq!(name("plain"), b"plain");
        assert_eq!(name("https://host/dir/p.rfn?secret"), b"p");
        let odd = Path::new(OsStr::from_bytes(b"d/\xff'\n.rfn"));
        assert_eq!(archive_name(odd), b"\xff'\n");
    }

    #[test]
    fn names_that_no_path_can_have_are_refused_with_the_remedy() {
        for (wrong, why) in [
            ("..=a.rfn", "another directory"),
            (".refrain=a.rfn", "own pages"),
            ("-", "standard input"),
        ] {
            let message = operand(Path::new(wrong)).unwrap_err().to_string();
            assert!(
                message.contains(why) && message.contains("NAME="),
                "{message}"
            );
        }
        let directory = tempfile::tempdir().unwrap();
        let named = [b"x=", directory.path().as_os_str().as_bytes()].concat();
        let message = operand(Path::new(OsStr::from_bytes(&named))).unwrap_err();
        assert!(message.to_string().contains("is a directory"), "{message}");
    }
}
