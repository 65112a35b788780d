//! `refrain compress`: which archives are made from what, with which names, in which format.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain::foreign::Format;
use refrain::{CompressOptions, Dialect, ReadOptions, SigningKey};

use super::effects::{self, InputKind};
use super::inputs::or_stdin;
use crate::args::{
    AddArgs, CompressArgs, CompressionArgs, EncryptionArgs, LrzipArgs, NewSignatureArgs,
    OutputArgs, WalkArgs,
};
use crate::failure::{Failure, Result};
use crate::keys;
use crate::lrzip::format::LrzipFormat;
use crate::memory_limit::{self, Budget};
use crate::names;
use crate::paths::{self, NewFile, is_dash, is_directory, label};
use crate::temporary;
use crate::terminal::check_stdout;
use crate::text::quoted;
use crate::urls;

/// The archives of a run.
#[derive(Debug)]
pub struct CompressPlan {
    pub format: ArchiveFormat,
    /// What the user should know about the memory budget.
    pub remark: Option<String>,
    /// One per archive; a refused one does not stop the others.
    pub archives: Vec<Result<ArchivePlan>>,
    /// Options for storing directories.
    pub walk: WalkArgs,
    /// Whether sources are removed once their archive is complete.
    pub removes_sources: bool,
    /// With `--unpack`: how to read files of other formats, whose content is compressed.
    pub unpack: Option<ReadOptions>,
}

/// The format of the archives, with its options.
#[derive(Debug)]
pub enum ArchiveFormat {
    Native(Box<CompressOptions>),
    Lrzip(LrzipFormat),
}

/// An archive to create.
#[derive(Debug)]
pub struct ArchivePlan {
    /// The name in messages: the only input's, or the archive's.
    pub label: String,
    pub inputs: Vec<CompressInput>,
    /// Inputs that were not found, if there are others.
    pub left_out: Vec<LeftOut>,
    pub output: ArchiveOutput,
}

/// An input that is not stored, and why.
#[derive(Debug)]
pub struct LeftOut {
    pub path: PathBuf,
    pub failure: Failure,
}

/// Where an archive goes.
#[derive(Debug)]
pub enum ArchiveOutput {
    Stdout,
    File {
        path: PathBuf,
        /// Its directory, which may have to be created.
        directory: Option<PathBuf>,
        new: NewFile,
    },
}

/// The path of an archive, and its directory, which may have to be created.
struct OutputPath {
    path: PathBuf,
    directory: Option<PathBuf>,
}

/// A member to compress.
#[derive(Debug)]
pub struct CompressInput {
    pub path: PathBuf,
    /// The name of the member, as bytes.
    pub name: Vec<u8>,
    /// `None` is standard input.
    pub metadata: Option<Metadata>,
}

impl CompressInput {
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
    /// `Usage` for contradictory options, `Limit` for a memory budget that is too small for them.
    pub fn new(args: &CompressArgs) -> Result<CompressPlan> {
        effects::check_output(&args.output, &args.files)?;
        effects::check_stdin_is_read_once(&args.walk, &args.files)?;
        if args.lrzip.is_lrzip() && args.signature.sign.is_some() {
            let text =
                "--sign has no place in lrzip's format: sign its files with minisign or ssh-keygen";
            return Err(Failure::usage("", text));
        }
        if args.lrzip.is_lrzip() && args.recovery.is_some() {
            let text = "--recovery has no place in lrzip's format: use `refrain protect` later";
            return Err(Failure::usage("", text));
        }
        if args.lrzip.is_lrzip() && args.carry_decoders {
            let text = "--carry-decoders has no place in lrzip's format";
            return Err(Failure::usage("", text));
        }
        let (format, remark) = match LrzipFormat::from_args(args)? {
            Some((format, remark)) => (ArchiveFormat::Lrzip(format), remark),
            None => {
                let (options, remark) = options(args)?;
                (ArchiveFormat::Native(Box::new(options)), remark)
            }
        };
        let files = if args.files.is_empty() && args.walk.files_from.is_some() {
            vec![PathBuf::from(".")]
        } else {
            or_stdin(&args.files)?
        };
        effects::check_names(args, &files)?;
        let archives: Vec<_> = match &args.output.output {
            Some(output) if !is_dash(output) && is_directory(output) => {
                archives_below(output, &files, args)?
            }
            Some(output) => {
                let archives = archive_of_all(&files, output, args);
                archives.unwrap_or_else(|failure| vec![Err(failure)])
            }
            None => {
                let given = given_names(args);
                let files = files.iter().zip(given);
                files
                    .map(|(path, name)| archive_beside(path, name, args))
                    .collect()
            }
        };
        effects::check_compress(args, kinds(&archives).as_deref())?;
        Ok(CompressPlan {
            format,
            remark,
            archives,
            walk: args.walk.clone(),
            removes_sources: args.output.rm,
            unpack: args.unpack.then(|| args.resources.read_options()),
        })
    }
}

impl CompressPlan {
    /// Plans what is added to an archive: as if it were compressed to the same file.
    ///
    /// # Errors
    /// As [`CompressPlan::new`].
    pub fn for_add(args: &AddArgs) -> Result<CompressPlan> {
        // Volumes are no single file that could be planned: as if they went to a pipe.
        let output = if is_in_volumes(args) { Path::new("-") } else { &args.archive };
        let mut plan = CompressPlan::new(&CompressArgs {
            files: args.files.clone(),
            unpack: false,
            name: args.name.clone(),
            recovery: args.recovery,
            carry_decoders: args.carry_decoders,
            output: OutputArgs {
                output: Some(output.to_path_buf()),
                force: true,
                ..OutputArgs::default()
            },
            compression: CompressionArgs {
                level: args.level,
                ..CompressionArgs::default()
            },
            walk: args.walk.clone(),
            lrzip: LrzipArgs::default(),
            encryption: EncryptionArgs::default(),
            signature: NewSignatureArgs::default(),
            resources: args.resources.clone(),
            report: args.report.clone(),
        })?;
        for archive in plan.archives.iter_mut().flatten() {
            if archive.inputs.len() != 1 {
                archive.label = label(&args.archive);
            }
            archive.output = ArchiveOutput::File {
                path: args.archive.clone(),
                directory: None,
                new: NewFile::default(),
            };
        }
        Ok(plan)
    }
}

/// Whether an archive that is added to consists of volumes, or is to.
pub fn is_in_volumes(args: &AddArgs) -> bool {
    args.volume.is_some() || urls::is_url(&args.archive) || args.archive.is_dir()
}

fn kinds(archives: &[Result<ArchivePlan>]) -> Option<Vec<InputKind>> {
    let mut kinds = Vec::new();
    for archive in archives {
        let archive = (archive.as_ref().ok()).filter(|archive| archive.left_out.is_empty())?;
        kinds.extend(archive.inputs.iter().map(CompressInput::kind));
    }
    Some(kinds)
}

/// The engine's options, and what the user should know about the memory budget.
fn options(args: &CompressArgs) -> Result<(CompressOptions, Option<String>)> {
    let options = args.compression.options();
    let threads = args.resources.thread_count();
    let levels = refrain::levels(options.purpose);
    let of_level = levels.iter().find(|row| row.number == options.level.0);
    let asked = args.resources.memory.map(|size| size.bytes);
    // Nonexistent levels are refused below.
    let budget = match of_level {
        Some(row) => memory_limit::for_compressing(asked, row.memory_bytes, threads)?,
        None => Budget::default(),
    };
    memory_limit::prepare_allocator(budget.bytes.unwrap_or(u64::MAX));
    let options = CompressOptions {
        threads,
        memory_bytes: budget.bytes,
        recovery: args.recovery,
        carry_decoders: args.carry_decoders,
        temporary: temporary::space(
            args.resources.temporary.as_deref(),
            args.output.output.as_deref().filter(|path| !is_dash(path)),
        ),
        encryption: args.encryption.options()?,
        signing_key: signing_key(args)?,
        ..options
    };
    options.check().map_err(Failure::Engine)?;
    Ok((options, budget.remark))
}

/// Who signs the archives.
fn signing_key(args: &CompressArgs) -> Result<Option<Arc<SigningKey>>> {
    let NewSignatureArgs {
        sign,
        key_password_file,
    } = &args.signature;
    let key = sign
        .as_deref()
        .map(|path| keys::signing_key(path, key_password_file.as_deref()));
    Ok(key.transpose()?.map(Arc::new))
}

/// The names given by `--name`; none for further inputs.
fn given_names(args: &CompressArgs) -> impl Iterator<Item = Option<Vec<u8>>> + '_ {
    let given = args.name.iter().map(|name| Some(name.as_bytes().to_vec()));
    given.chain(std::iter::repeat(None))
}

/// Without `-o`: creates the archive of `path` beside it.
fn archive_beside(path: &Path, name: Option<Vec<u8>>, args: &CompressArgs) -> Result<ArchivePlan> {
    if is_dash(path) {
        return archive(vec![stdin_input(name)], None, args);
    }
    if names::is_descriptor(path) {
        let text = "is a pipe without a place of its own: name the output with -o";
        return Err(Failure::usage(label(path), text));
    }
    let content_path = content_path(path, args);
    let own_name = || names::base_name(&content_path);
    let input = path_input(path, name.map_or_else(own_name, Ok)?)?;
    let suffix = suffix(args, &input);
    check_suffix(path, &content_path, suffix, args)?;
    let path = names::with_suffix(&content_path, suffix);
    archive(
        vec![input],
        Some(OutputPath {
            path,
            directory: None,
        }),
        args,
    )
}

/// Refuses to compress what is an archive by its name.
fn check_suffix(path: &Path, content_path: &Path, suffix: &str, args: &CompressArgs) -> Result<()> {
    if content_path.extension() == Some(OsStr::new(suffix)) && !args.output.force {
        let text = format!("already ends in .{suffix} (--force compresses it again)");
        return Err(Failure::usage(label(path), text));
    }
    Ok(())
}

/// With `-o DIR/`: each input becomes an archive in that directory, which is created.
fn archives_below(
    directory: &Path,
    paths: &[PathBuf],
    args: &CompressArgs,
) -> Result<Vec<Result<ArchivePlan>>> {
    paths::check_no_url(directory)?;
    let mut taken = BTreeSet::new();
    let mut below = |path: &Path, given: Option<Vec<u8>>| {
        let content_path = content_path(path, args);
        let name = match given {
            Some(name) => name,
            None if is_dash(path) || names::is_descriptor(path) => names::of_pipe(&taken),
            None => names::own_name(&content_path)?,
        };
        taken.insert(name.clone());
        let input = if is_dash(path) { stdin_input(Some(name)) } else { path_input(path, name)? };
        let suffix = suffix(args, &input);
        check_suffix(path, &content_path, suffix, args)?;
        let file_name = Path::new(OsStr::from_bytes(&input.name)).file_name();
        let path = directory.join(file_name.unwrap_or_default());
        let path = names::with_suffix(&path, suffix);
        Ok((
            input,
            OutputPath {
                path,
                directory: Some(directory.to_path_buf()),
            },
        ))
    };
    let pairs = paths.iter().zip(given_names(args));
    let planned: Vec<Result<(CompressInput, OutputPath)>> =
        pairs.map(|(path, name)| below(path, name)).collect();
    let mut outputs = BTreeSet::new();
    for (input, output) in planned.iter().flatten() {
        if !outputs.insert(output.path.clone()) {
            let text = format!(
                "a second archive would be {}: {NAME_REMEDY}",
                output.path.display()
            );
            return Err(Failure::usage(label(&input.path), text));
        }
    }
    let archives = planned.into_iter().map(|planned| {
        let (input, output) = planned?;
        archive(vec![input], Some(output), args)
    });
    Ok(archives.collect())
}

/// What to do about duplicate names.
const NAME_REMEDY: &str = "give each input a name with --name";

/// The path of an input's content: its own, or with `--unpack` that of the unpacked content.
fn content_path(path: &Path, args: &CompressArgs) -> PathBuf {
    let is_unpacked = args.unpack && packed_format(path).is_some();
    let without = || names::without_suffix(path).ok();
    let inside = is_unpacked.then(without).flatten();
    inside.unwrap_or_else(|| path.to_path_buf())
}

/// The other program's format of a regular file, if any.
fn packed_format(path: &Path) -> Option<Format> {
    paths::metadata(path).ok().filter(Metadata::is_file)?;
    let mut first = Vec::with_capacity(Dialect::PREFIX_BYTES);
    let file = File::open(path).ok()?;
    let mut start = file.take(Dialect::PREFIX_BYTES as u64);
    start.read_to_end(&mut first).ok()?;
    Dialect::from_prefix(&first)?.format()
}

/// The suffix of an input's archive. lrzip archives do not distinguish directories from files.
/// file.
fn suffix(args: &CompressArgs, input: &CompressInput) -> &'static str {
    match (args.lrzip.is_lrzip(), input.is_directory()) {
        (false, _) => names::SUFFIX,
        (true, false) => names::LRZIP_SUFFIX,
        (true, true) => names::TAR_LRZIP_SUFFIX,
    }
}

/// With `-o`: all paths become members of one archive. If none can be stored, returns why for each.
fn archive_of_all(
    paths: &[PathBuf],
    output: &Path,
    args: &CompressArgs,
) -> Result<Vec<Result<ArchivePlan>>> {
    let name = match paths {
        [_] => names::own_name,
        _ => names::relative_name,
    };
    let (mut inputs, mut left_out) = (Vec::new(), Vec::new());
    let mut taken: BTreeSet<Vec<u8>> = given_names(args).map_while(|name| name).collect();
    let is_given = !taken.is_empty();
    for (path, given) in paths.iter().zip(given_names(args)) {
        let own_name = || {
            if names::is_descriptor(path) {
                Ok(names::of_pipe(&taken))
            } else {
                name(&content_path(path, args))
            }
        };
        let input = match (is_dash(path), given) {
            (true, given) => Ok(stdin_input(given)),
            (false, Some(given)) => path_input(path, given),
            (false, None) => path_input(path, own_name()?),
        };
        let input = match input {
            Err(failure @ Failure::Io { .. }) if !args.walk.strict => {
                let path = path.clone();
                left_out.push(LeftOut { path, failure });
                continue;
            }
            input => input?,
        };
        if !taken.insert(input.name.clone()) && !is_given {
            let text = format!(
                "a second member would have the name {}: {NAME_REMEDY}",
                quoted(&input.name)
            );
            return Err(Failure::usage(label(path), text));
        }
        inputs.push(input);
    }
    if inputs.is_empty() && !left_out.is_empty() {
        let failures = left_out.into_iter();
        return Ok(failures.map(|left_out| Err(left_out.failure)).collect());
    }
    let output = (!is_dash(output)).then(|| OutputPath {
        path: output.to_path_buf(),
        directory: None,
    });
    let archive = archive(inputs, output, args)?;
    Ok(vec![Ok(ArchivePlan {
        left_out,
        ..archive
    })])
}

fn stdin_input(name: Option<Vec<u8>>) -> CompressInput {
    CompressInput {
        path: PathBuf::from("-"),
        name: name.unwrap_or_else(|| names::STDIN_MEMBER.to_vec()),
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

/// An archive of `inputs`; without `output` it goes to standard output.
fn archive(
    inputs: Vec<CompressInput>,
    output: Option<OutputPath>,
    args: &CompressArgs,
) -> Result<ArchivePlan> {
    if args.lrzip.is_lrzip() && inputs.len() > 1 {
        let text = "--format lrz holds one file, or one directory as a tar stream: make several archives, \
                    without -o or with -o DIR/";
        return Err(Failure::usage("", text));
    }
    let label = match (inputs.as_slice(), &output) {
        ([input], _) => label(&input.path),
        (_, Some(output)) => label(&output.path),
        (_, None) => "standard output".to_string(),
    };
    let output = match output {
        None => {
            check_stdout(args.output.force)?;
            ArchiveOutput::Stdout
        }
        Some(output) => file_output(&inputs, output, args)?,
    };
    Ok(ArchivePlan {
        label,
        inputs,
        left_out: Vec::new(),
        output,
    })
}

fn file_output(
    inputs: &[CompressInput],
    OutputPath { path, directory }: OutputPath,
    args: &CompressArgs,
) -> Result<ArchiveOutput> {
    let mut read = inputs.iter().filter_map(|input| input.metadata.as_ref());
    read.try_for_each(|read| paths::check_other_than(read, &path))?;
    paths::check_free(&path, args.output.force)?;
    // Like gzip and xz: the archive of a single file gets the file's mode and time. Any other
    // archive is as restricted as its most restricted source.
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
        checking: paths::checking(args.output.check),
    };
    Ok(ArchiveOutput::File {
        path,
        directory,
        new,
    })
}
