//! `refrain compress --unpack`: the content of files of other formats.

use refrain::foreign::{Contents, ForeignFeed};
use refrain::{Content, ReadOptions};

use super::super::input::first_bytes;
use super::super::recognise::{self, PREFIX_BYTES};
use crate::failure::{Failure, Result};
use crate::files;
use crate::paths::label;
use crate::plan::CompressInput;

/// The content of an input, decoded if it is a file of another format.
///
/// # Errors
/// `Usage` for a file that holds files; those of its first bytes.
pub fn unpack(content: Content, input: &CompressInput, options: &ReadOptions) -> Result<Content> {
    let (format, content) = match content {
        Content::Directory(directory) => (None, Content::Directory(directory)),
        Content::Source(source) => {
            let format = recognise::foreign(&first_bytes(&*source)?);
            (format, Content::Source(source))
        }
        Content::Stream(stream) | Content::Pipe(stream) => {
            let (first, stream) = files::peek(&input.path, stream, PREFIX_BYTES)?;
            (recognise::foreign(&first), Content::Pipe(stream))
        }
    };
    let Some(format) = format else {
        return Ok(content);
    };
    let label = label(&input.path);
    if !format.is_stream() {
        let text = format!(
            "is a {format} file, which holds files: decompress it, and compress the directory"
        );
        return Err(Failure::usage(label, text));
    }
    let is_pipe = matches!(content, Content::Pipe(_));
    let feed = match content {
        Content::Source(source) => ForeignFeed::Source(source),
        Content::Stream(stream) | Content::Pipe(stream) => ForeignFeed::Stream(stream),
        directory => return Ok(directory),
    };
    let contents = Contents::open(feed, format, options);
    let contents = contents.map_err(|error| Failure::engine(&label, error))?;
    let reader = contents.into_reader();
    Ok(if is_pipe { Content::Pipe(reader) } else { Content::Stream(reader) })
}
