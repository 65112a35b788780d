//! The files inside an archive as objects of the crate [`object_store`], which DataFusion, delta-rs
//! and others read from. A copy of this file is a start for stores of your own.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use object_store::{ObjectStoreExt, path::Path};
//! use refrain::{Archive, ReadOptions, storage::FileSource};
//! use refrain_object_store::ArchiveStore;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let source = Arc::new(FileSource::open("tables.rfn")?);
//! let store = ArchiveStore::new(Arc::new(Archive::open(source, &ReadOptions::default())?))?;
//! let footer = store.get_range(&Path::from("2026/01.parquet"), 4096..8192).await?;
//! # Ok(())
//! # }
//! ```

mod index;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use refrain::Archive;

use index::{Index, Object};

/// What a stream delivers at once, in bytes: large enough that changing threads costs little.
const CHUNK_BYTES: u64 = 1 << 20;

/// The files of an archive, to be read only.
///
/// The paths of objects are those of the files in a directory or tar stream that is alone in its
/// archive. Elsewhere they begin with the member's name. Hard links are objects of their own;
/// symbolic links, devices and empty directories are none. Bytes that [`Path`] does not allow are
/// percent-encoded, also those of names that are not UTF-8.
///
/// The list of files is in memory, with some hundred bytes for each. Content is read when it is
/// asked for, on tokio's threads for blocking work, so methods are called within its runtime.
#[derive(Clone)]
pub struct ArchiveStore {
    archive: Arc<Archive>,
    index: Arc<Index>,
}

impl ArchiveStore {
    /// Reads the archive's list of files; blocks.
    ///
    /// # Errors
    /// If the list cannot be read: those of [`Archive::for_each_entry`].
    pub fn new(archive: Arc<Archive>) -> refrain::Result<Self> {
        let index = Arc::new(Index::new(&archive)?);
        Ok(Self { archive, index })
    }

    fn find(&self, location: &Path) -> Result<Object> {
        let found = self.index.objects.get(location).cloned();
        found.ok_or_else(|| Error::NotFound {
            path: location.to_string(),
            source: "no file of the archive has this path".into(),
        })
    }

    fn stream(&self, object: Object, range: Range<u64>) -> BoxStream<'static, Result<Bytes>> {
        let archive = Arc::clone(&self.archive);
        stream::try_unfold(range.start, move |at| {
            let (archive, object) = (Arc::clone(&archive), object.clone());
            let end = range.end.min(at + CHUNK_BYTES);
            async move {
                if at == end {
                    return Ok(None);
                }
                let reading = tokio::task::spawn_blocking(move || read(&archive, &object, at..end));
                let chunk = reading.await.map_err(generic)??;
                Ok(Some((chunk, end)))
            }
        })
        .boxed()
    }
}

/// Reads a range of at most [`CHUNK_BYTES`] that is inside the object.
fn read(archive: &Archive, object: &Object, range: Range<u64>) -> Result<Bytes> {
    let wanted = usize::try_from(range.end - range.start).map_err(generic)?;
    let mut buffer = vec![0; wanted];
    let place = (object.member, object.entry.as_deref());
    let read = archive
        .read_at(place, range.start, &mut buffer)
        .map_err(generic)?;
    if read < wanted {
        let text = format!(
            "the file ends {read} bytes after {}, not {wanted}",
            range.start
        );
        return Err(generic(text));
    }
    Ok(buffer.into())
}

fn generic(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic {
        store: "Archive",
        source: source.into(),
    }
}

fn read_only<T>() -> Result<T> {
    Err(Error::NotSupported {
        source: "archives are read only".into(),
    })
}

#[async_trait::async_trait]
impl ObjectStore for ArchiveStore {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let object = self.find(location)?;
        let meta = self.index.meta(location, &object);
        options.check_preconditions(&meta)?;
        let range = match options.range {
            Some(range) => range.as_range(meta.size).map_err(generic)?,
            None => 0..meta.size,
        };
        Ok(GetResult {
            payload: GetResultPayload::Stream(self.stream(object, range.clone())),
            meta,
            range,
            attributes: Default::default(),
            extensions: Default::default(),
        })
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        // In pieces, so that a list of millions of files is not made at once.
        let (index, prefix) = (Arc::clone(&self.index), prefix.cloned().unwrap_or_default());
        let pieces = stream::unfold(None, move |last: Option<Path>| {
            let found = index.below(&prefix, last.as_ref());
            let last = found.last().map(|meta| meta.location.clone());
            async move { last.map(|last| (found, Some(last))) }
        });
        pieces
            .flat_map(|found| stream::iter(found.into_iter().map(Ok)))
            .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        Ok(self.index.children(&prefix.cloned().unwrap_or_default()))
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        read_only()
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        read_only()
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        locations
            .map(|location| location.and_then(|_| read_only()))
            .boxed()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        read_only()
    }
}

impl fmt::Display for ArchiveStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an archive of {} files", self.index.objects.len())
    }
}

impl fmt::Debug for ArchiveStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
