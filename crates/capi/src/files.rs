//! Whole files and descriptors: compressed, decompressed, opened.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use refrain::lrzip::compress_lrzip;
use refrain::storage::{DescriptorReader, FileSource, RemoteSource, Sink, Source};
use refrain::volumes::{holds_archive, open_volumes};
use refrain::{
    Archive, Content, Dialect, DirectoryContent, Input, MemberInput, NotedProblems, RestoreTo,
    Timestamp, Watch, compress, verify,
};
use refrain_storage::{Location, VolumeFolder, VolumePlace, create_output, descriptor_output};

use refrain_sync::{Mutex, lock};

use crate::archive::OpenArchive;
use crate::failure::{Failure, Result};
use crate::numbers::REFRAIN_ERROR_IO;
use crate::restoring::{Done, restore_all};
use crate::settings::{Damaged, Format, Settings};
use crate::stream::AllToSink;

/// Compresses a file, or a directory, into a file.
pub(crate) fn compress_path(
    input: &Path,
    output: &Path,
    settings: &Settings,
    watch: &dyn Watch,
) -> Result<Done> {
    let member = path_member(input, output, settings)?;
    let mut sink = create_output(output, &settings.output_options())?;
    compress_member(member, &mut sink, settings, watch)
}

/// Compresses what a descriptor has from its offset on (a file: all of it) into another one.
pub(crate) fn compress_descriptor(
    input: BorrowedFd<'_>,
    output: BorrowedFd<'_>,
    settings: &Settings,
    watch: &dyn Watch,
) -> Result<Done> {
    let content = match opened(input)? {
        Opened::Source(source) => Content::Source(source),
        Opened::Stream(stream) => Content::Stream(stream),
    };
    let member = MemberInput {
        name: settings.member_name(),
        mode: None,
        modified: None,
        content,
    };
    let mut sink = descriptor_sink(output)?;
    compress_member(member, &mut sink, settings, watch)
}

/// Restores an archive, which may be a URL, at a path.
pub(crate) fn decompress_path(
    input: &Path,
    output: &Path,
    settings: &Settings,
    watch: &dyn Watch,
) -> Result<Done> {
    let archive = open_archive(source(input, settings)?, settings)?;
    let restore = settings.restore_options();
    let mut targets = match archive.member_count() {
        0 | 1 => RestoreTo::at(output, restore),
        _ => RestoreTo::below(output, restore)?,
    };
    let mut done = restore_all(archive, &mut targets, settings, watch)?;
    done.exceptions += targets.problem_count();
    let first = targets.problems().first().map(ToString::to_string);
    done.first_exception = done.first_exception.or(first);
    Ok(done)
}

/// Decompresses what a descriptor has into another one, like a stream.
pub(crate) fn decompress_descriptor(
    input: BorrowedFd<'_>,
    output: BorrowedFd<'_>,
    settings: &Settings,
    watch: &dyn Watch,
) -> Result<Done> {
    let input = match opened(input)? {
        Opened::Source(source) => Input::Source(source),
        Opened::Stream(stream) => Input::Stream(stream),
    };
    let mut targets = AllToSink {
        sink: Arc::new(Mutex::new(descriptor_sink(output)?)),
        settings,
    };
    let done = restore_all(input, &mut targets, settings, watch)?;
    lock(&targets.sink).publish()?;
    Ok(done)
}

fn compress_member(
    member: MemberInput,
    sink: &mut dyn Sink,
    settings: &Settings,
    watch: &dyn Watch,
) -> Result<Done> {
    let watch = NotedProblems::new(watch);
    let mut done = match settings.format {
        Format::Native => {
            let options = settings.compress_options();
            let summary = compress(vec![member], sink, &options, &watch)?;
            Done {
                content_bytes: summary.content_bytes,
                archive_bytes: summary.archive_bytes,
                exceptions: summary.problems,
                first_exception: None,
            }
        }
        Format::Lrzip => {
            let summary = compress_lrzip(member, sink, &settings.lrzip_options()?, &watch)?;
            Done {
                content_bytes: summary.content_bytes,
                archive_bytes: summary.archive_bytes,
                exceptions: summary.problems,
                first_exception: None,
            }
        }
    };
    done.first_exception = watch.into_problems().1.first().map(ToString::to_string);
    Ok(done)
}

/// A file, a directory or a pipe as a member with its name, mode and time, for an archive at
/// `output`.
fn path_member(path: &Path, output: &Path, settings: &Settings) -> Result<MemberInput> {
    let failed = |error: std::io::Error| {
        Failure::new(REFRAIN_ERROR_IO, format!("{}: {error}", path.display()))
    };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    let own_name = path.file_name().map(|name| name.as_bytes().to_vec());
    let name = own_name.unwrap_or_else(|| settings.member_name());
    let content = if metadata.is_dir() {
        Content::directory(DirectoryContent::all(path).without_output(output))
    } else if metadata.is_file() {
        Content::Source(Arc::new(FileSource::open(path)?))
    } else {
        let file = File::open(path).map_err(failed)?;
        Content::Stream(Box::new(DescriptorReader::new(file)?))
    };
    Ok(MemberInput {
        name,
        mode: Some(metadata.permissions().mode() & 0o7777),
        modified: Some(Timestamp {
            seconds: metadata.mtime(),
            nanoseconds: u32::try_from(metadata.mtime_nsec()).unwrap_or(0),
        }),
        content,
    })
}

enum Opened {
    Source(Arc<dyn Source>),
    Stream(Box<dyn Read + Send>),
}

/// The file behind a descriptor, which stays the caller's: a regular file at its beginning can be
/// read at any offset.
fn opened(descriptor: BorrowedFd<'_>) -> Result<Opened> {
    let mut file = File::from(descriptor.try_clone_to_owned()?);
    let is_file = file.metadata()?.is_file();
    if is_file && file.stream_position()? == 0 {
        return Ok(Opened::Source(Arc::new(FileSource::from_file(
            file,
            "the input",
        )?)));
    }
    Ok(Opened::Stream(Box::new(DescriptorReader::new(file)?)))
}

fn descriptor_sink(descriptor: BorrowedFd<'_>) -> Result<Box<dyn Sink>> {
    let file = File::from(descriptor.try_clone_to_owned()?);
    Ok(descriptor_output(file, "the output"))
}

/// Opens an archive by a path or URL: a file, a folder of volumes, an object.
pub(crate) fn open_path(path: &Path, settings: &Settings) -> Result<OpenArchive> {
    opened_archive(source(path, settings)?, &path.to_string_lossy(), settings)
}

/// Opens an archive by a descriptor of a file.
pub(crate) fn open_descriptor(
    descriptor: BorrowedFd<'_>,
    settings: &Settings,
) -> Result<OpenArchive> {
    let file = File::from(descriptor.try_clone_to_owned()?);
    let source = Arc::new(FileSource::from_file(file, "the archive")?);
    opened_archive(source, "the archive", settings)
}

fn opened_archive(source: Arc<dyn Source>, name: &str, settings: &Settings) -> Result<OpenArchive> {
    let dialect = Dialect::from_source(&*source)?;
    let archive = open_archive(source, settings);
    let archive = archive.map_err(|error| error.in_file(name))?;
    archive.use_memory_for_serving();
    Ok(OpenArchive {
        archive: Arc::new(archive),
        dialect,
    })
}

/// Opens an archive by its index or, as the settings say, by what is left of it.
fn open_archive(source: Arc<dyn Source>, settings: &Settings) -> refrain::Result<Archive> {
    let options = settings.read_options();
    match settings.damaged {
        Damaged::Refuse => Archive::open(source, &options),
        Damaged::Omit | Damaged::Keep => Archive::open_or_scan(source, &options),
    }
}

/// Reads and checks everything in an archive.
pub(crate) fn verify_path(path: &Path, settings: &Settings, watch: &dyn Watch) -> Result<Done> {
    let watch = NotedProblems::new(watch);
    let checked = verify(source(path, settings)?, &settings.read_options(), &watch)?;
    watch.into_result()?;
    Ok(Done {
        content_bytes: checked.content_bytes,
        archive_bytes: checked.archive_bytes,
        ..Done::default()
    })
}

fn source(path: &Path, settings: &Settings) -> Result<Arc<dyn Source>> {
    if let Some(location) = location(path, settings)? {
        let options = settings.remote_options()?;
        return Ok(Arc::new(RemoteSource::open(location, &options)?));
    }
    if path.is_dir() {
        let place: Arc<dyn VolumePlace> = Arc::new(VolumeFolder::new(path));
        if holds_archive(&*place)? {
            return Ok(open_volumes(&place, None)?);
        }
    }
    Ok(Arc::new(FileSource::open(path)?))
}

/// The object that a URL leads to; `None` for a path.
fn location(path: &Path, settings: &Settings) -> Result<Option<Location>> {
    let Some(text) = path.to_str() else {
        return Ok(None);
    };
    let Some((scheme, rest)) = text.split_once("://") else {
        return Ok(None);
    };
    let refused = |error: std::io::Error| Failure::usage(error.to_string());
    match &*scheme.to_ascii_lowercase() {
        "http" | "https" => Ok(Some(Location::http(text).map_err(refused)?)),
        "s3" => {
            let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
            let location = Location::s3(bucket, key, &settings.store_options()?);
            Ok(Some(location.map_err(refused)?))
        }
        // A path may look like a URL.
        _ if path.exists() => Ok(None),
        _ => Err(Failure::usage(format!(
            "{text}: no such file, and of URLs only https://, http:// and s3:// are read"
        ))),
    }
}
