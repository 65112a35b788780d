//! `refrain compress --unpack`: the content of files of other formats.

use refrain::foreign::unpacked;
use refrain::{Content, Dialect, Input, ReadOptions};

use super::input::first_bytes;
use super::recognize::PREFIX_BYTES;
use crate::failure::{Failure, Result};
use crate::files;
use crate::paths::label;
use crate::plan::CompressInput;

/// The content of an input, decoded if it is a file of another format.
///
/// # Errors
/// `Usage` for a file that contains files; errors of reading its first bytes.
pub fn unpack(content: Content, input: &CompressInput, options: &ReadOptions) -> Result<Content> {
    let (dialect, content) = match content {
        Content::Directory(directory) => (None, Content::Directory(directory)),
        Content::Source(source) => {
            let dialect = Dialect::from_prefix(&first_bytes(&*source)?);
            (dialect, Content::Source(source))
        }
        Content::Stream(stream) | Content::Pipe(stream) => {
            let (first, stream) = files::peek(&input.path, stream, PREFIX_BYTES)?;
            (Dialect::from_prefix(&first), Content::Pipe(stream))
        }
    };
    let Some(format) = dialect.and_then(Dialect::format) else {
        return Ok(content);
    };
    let label = label(&input.path);
    if !format.is_stream() {
        let text = format!(
            "is a {format} file, which contains files: decompress it, and compress the directory"
        );
        return Err(Failure::usage(label, text));
    }
    let is_pipe = matches!(content, Content::Pipe(_));
    let packed = match content {
        Content::Source(source) => Input::Source(source),
        Content::Stream(stream) | Content::Pipe(stream) => Input::Stream(stream),
        directory => return Ok(directory),
    };
    let reader = unpacked(packed, format, options);
    let reader = reader.map_err(|error| Failure::engine(&label, error))?;
    Ok(if is_pipe { Content::Pipe(reader) } else { Content::Stream(reader) })
}
