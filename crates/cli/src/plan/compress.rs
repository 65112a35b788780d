//! `refrain compress`: which archives are made of what, under which names, in which format.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};

use refrain::foreign::Format;
use refrain::{CompressOptions, Dialect, ReadOptions};

use super::effects::{self, InputKind};
use super::inputs::or_stdin;
use crate::args::{CompressArgs, WalkArgs};
use crate::failure::{Failure, Result};
use crate::lrzip::format::LrzipFormat;
use crate::names;
use crate::paths::{self, NewFile, ends_with_slash, is_dash, label};
use crate::temporary;
use crate::terminal::check_stdout;
use crate::text::quoted;

/// The archives of a run.
#[derive(Debug)]
pub struct CompressPlan {
    pub format: ArchiveFormat,
    /// One per archive; a refused one does not stop the others.
    pub archives: Vec<Result<ArchivePlan>>,
    /// What of directories is stored.
    pub walk: WalkArgs,
    /// Whether sources are removed when their archive is complete.
    pub removes_sources: bool,
    /// With `--unpack`: how files of other formats are read, whose content is compressed.
    pub unpack: Option<ReadOptions>,
}

/// The format of the archives, with its options.
#[derive(Debug)]
pub enum ArchiveFormat {
    Native(Box<CompressOptions>),
    Lrzip(LrzipFormat),
}

/// One archive to make.
#[derive(Debug)]
pub struct ArchivePlan {
    /// The name in messages: of the only input, or of the archive.
    pub label: String,
    pub inputs: Vec<CompressInput>,
    pub output: ArchiveOutput,
}

/// Where an archive goes.
#[derive(Debug)]
pub enum ArchiveOutput {
    Stdout,
    File { path: PathBuf, new: NewFile },
}

/// One member to compress.
#[derive(Debug)]
pub struct CompressInput {
    pub path: PathBuf,
    /// The name of the member, as bytes.
    pub name: Vec<u8>,
    /// `None` is standard input.
    pub metadata: Option<Metadata>,
}

impl CompressInput {
    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.metadata.as_ref().is_some_and(Metadata::is_dir)
    }

    fn kind(&self) -> InputKind {
        match &self.metadata {
            Some(found) if found.is_file() => InputKind::File,
            Some(found) if found.is_dir() => InputKind::Directory,
            _ => InputKind::Other,
        }
    }
}

impl CompressPlan {
    /// Plans a run.
    ///
    /// # Errors
    /// `Usage` for options that contradict each other, `Limit` for a memory budget that is too
    /// small for them.
    pub fn new(args: &CompressArgs) -> Result<CompressPlan> {
        effects::check_output(&args.output, &args.files)?;
        effects::check_stdin_is_read_once(&args.walk, &args.files)?;
        let format = match LrzipFormat::of(args)? {
            Some(format) => ArchiveFormat::Lrzip(format),
            None => ArchiveFormat::Native(Box::new(options(args)?)),
        };
        let files = match args.files.is_empty() && args.walk.files_from.is_some() {
            true => vec![PathBuf::from(".")],
            false => or_stdin(&args.files)?,
        };
        let archives: Vec<_> = match &args.output.output {
            Some(output) => vec![archive_of_all(&files, output, args)],
            None => files
                .iter()
                .map(|path| archive_beside(path, args))
                .collect(),
        };
        effects::check_compress(args, kinds(&archives).as_deref())?;
        Ok(CompressPlan {
            format,
            archives,
            walk: args.walk.clone(),
            removes_sources: args.output.rm,
            unpack: args.unpack.then(|| args.resources.read_options()),
        })
    }
}

/// The kinds of all inputs, if all exist.
fn kinds(archives: &[Result<ArchivePlan>]) -> Option<Vec<InputKind>> {
    let mut kinds = Vec::new();
    for archive in archives {
        kinds.extend(
            archive
                .as_ref()
                .ok()?
                .inputs
                .iter()
                .map(CompressInput::kind),
        );
    }
    Some(kinds)
}

fn options(args: &CompressArgs) -> Result<CompressOptions> {
    let options = CompressOptions {
        threads: args.resources.thread_count(),
        memory_bytes: args.resources.memory.map(|size| size.bytes),
        temporary: temporary::space(
            args.resources.temporary.as_deref(),
            args.output.output.as_deref().filter(|path| !is_dash(path)),
        ),
        ..args.compression.options()
    };
    options.check().map_err(Failure::Engine)?;
    Ok(options)
}

/// Without `-o`: the archive of `path` is created beside it.
fn archive_beside(path: &Path, args: &CompressArgs) -> Result<ArchivePlan> {
    if is_dash(path) {
        return archive(vec![stdin_input()], None, args);
    }
    let content_path = content_path(path, args);
    let input = path_input(path, names::base_name(&content_path)?)?;
    let suffix = suffix(args, &input);
    if content_path.extension() == Some(OsStr::new(suffix)) && !args.output.force {
        let text = format!("already ends in .{suffix} (--force compresses it again)");
        return Err(Failure::usage(label(path), text));
    }
    let output = names::with_suffix(&content_path, suffix);
    archive(vec![input], Some(output), args)
}

/// The path that the content of an input has: its own, or with `--unpack` that of what is in it.
fn content_path(path: &Path, args: &CompressArgs) -> PathBuf {
    let is_unpacked = args.unpack && packed_format(path).is_some();
    let without = || names::without_suffix(path).ok();
    let inside = is_unpacked.then(without).flatten();
    inside.unwrap_or_else(|| path.to_path_buf())
}

/// The format of another program that a regular file has.
fn packed_format(path: &Path) -> Option<Format> {
    paths::metadata(path).ok().filter(Metadata::is_file)?;
    let mut first = Vec::with_capacity(Format::PREFIX_BYTES);
    let file = File::open(path).ok()?;
    let mut start = file.take(Format::PREFIX_BYTES as u64);
    start.read_to_end(&mut first).ok()?;
    match Dialect::of_prefix(&first) {
        Some(_) => None,
        None => Format::of_prefix(&first),
    }
}

/// The suffix of the archive of an input. Archives of lrzip do not distinguish a directory from a
/// file.
fn suffix(args: &CompressArgs, input: &CompressInput) -> &'static str {
    match (args.lrzip.is_lrzip(), input.is_directory()) {
        (false, _) => names::SUFFIX,
        (true, false) => names::LRZIP_SUFFIX,
        (true, true) => names::TAR_LRZIP_SUFFIX,
    }
}

/// With `-o`: all paths become members of one archive.
fn archive_of_all(paths: &[PathBuf], output: &Path, args: &CompressArgs) -> Result<ArchivePlan> {
    let name = match paths {
        [_] => names::own_name,
        _ => names::relative_name,
    };
    let mut inputs = Vec::new();
    let mut taken = BTreeSet::new();
    for path in paths {
        let input = match is_dash(path) {
            true => stdin_input(),
            false => path_input(path, name(&content_path(path, args))?)?,
        };
        if !taken.insert(input.name.clone()) {
            let text = format!(
                "a second member would have the name {}",
                quoted(&input.name)
            );
            return Err(Failure::usage(label(path), text));
        }
        inputs.push(input);
    }
    let output = (!is_dash(output)).then(|| output.to_path_buf());
    archive(inputs, output, args)
}

fn stdin_input() -> CompressInput {
    CompressInput {
        path: PathBuf::from("-"),
        name: names::STDIN_MEMBER.to_vec(),
        metadata: None,
    }
}

fn path_input(path: &Path, name: Vec<u8>) -> Result<CompressInput> {
    let metadata = Some(paths::metadata(path)?);
    Ok(CompressInput {
        path: path.to_path_buf(),
        name,
        metadata,
    })
}

/// An archive of `inputs`; without `path` it goes to standard output.
fn archive(
    inputs: Vec<CompressInput>,
    path: Option<PathBuf>,
    args: &CompressArgs,
) -> Result<ArchivePlan> {
    let label = match (inputs.as_slice(), &path) {
        ([input], _) => label(&input.path),
        (_, Some(path)) => label(path),
        (_, None) => "standard output".to_string(),
    };
    let output = match path {
        None => {
            check_stdout(args.output.force)?;
            ArchiveOutput::Stdout
        }
        Some(path) => file_output(&inputs, path, args)?,
    };
    Ok(ArchivePlan {
        label,
        inputs,
        output,
    })
}

fn file_output(
    inputs: &[CompressInput],
    path: PathBuf,
    args: &CompressArgs,
) -> Result<ArchiveOutput> {
    if ends_with_slash(&path) {
        let text = "names a directory; the output must be a file";
        return Err(Failure::usage(label(&path), text));
    }
    let mut read = inputs.iter().filter_map(|input| input.metadata.as_ref());
    read.try_for_each(|read| paths::check_other_than(read, &path))?;
    paths::check_free(&path, args.output.force)?;
    // Like gzip and xz: the archive of a single file has the mode and the time of the file. Any
    // other is as closed as its most closed source.
    let only = match inputs {
        [input] => input.metadata.as_ref().filter(|found| found.is_file()),
        _ => None,
    };
    let new = NewFile {
        overwrite: args.output.force,
        mode: only.and_then(paths::mode),
        mode_limit: paths::mode_limit(inputs.iter().filter_map(|input| input.metadata.as_ref())),
        modified: only.and_then(paths::modified),
        synced: args.output.is_synced(),
    };
    Ok(ArchiveOutput::File { path, new })
}
