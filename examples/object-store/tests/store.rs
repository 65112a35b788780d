//! A directory as an archive answers like a store in memory with the same files, which is the
//! reference implementation.

use std::error::Error as StdError;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path as FilePath;
use std::sync::Arc;

use futures_util::stream::{StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload,
};
use refrain::directory::WalkOptions;
use refrain::storage::{MemorySink, MemorySource};
use refrain::{
    Archive, CompressOptions, Content, DirectoryContent, MemberInput, ReadOptions, Unwatched,
    compress,
};
use refrain_object_store::ArchiveStore;

type Outcome = Result<(), Box<dyn StdError>>;

const BLOCK_BYTES: u64 = 1 << 16;

/// Names and lengths: in one block and in many, nested, and names that sort around a directory's.
const FILES: &[(&str, usize)] = &[
    ("readme.txt", 100),
    ("empty", 0),
    ("year=2026", 5),
    ("years/2025/a.bin", 70_000),
    ("years/2026/a.bin", 2_500_000),
    ("years/2026/b.bin", 65_536),
    ("years/2026/deep/er/c.bin", 10),
    ("years/2026.bin", 3),
    ("years-of/x", 1),
    ("odd names/50% ~ [x].bin", 40),
    ("odd names/größe.bin", 41),
];

/// Bytes without repeats, so that every block is stored with its own.
fn content(name: &str, length: usize) -> Vec<u8> {
    let mix = |state: u64, byte: u8| state.wrapping_mul(31).wrapping_add(u64::from(byte));
    let mut state = name.bytes().fold(1, mix);
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn directory_member(path: &FilePath, name: &str) -> MemberInput {
    MemberInput {
        name: name.into(),
        mode: None,
        modified: None,
        content: Content::directory(DirectoryContent {
            walk: WalkOptions::default(),
            ..DirectoryContent::all(path)
        }),
    }
}

fn archive(members: Vec<MemberInput>) -> Result<Arc<Archive>, Box<dyn StdError>> {
    let mut sink = MemorySink::new();
    let output = sink.output();
    let options = CompressOptions {
        block_bytes: Some(BLOCK_BYTES),
        ..CompressOptions::default()
    };
    compress(members, &mut sink, &options, &Unwatched)?;
    let bytes = output.published().ok_or("the archive is not complete")?;
    let archive = Archive::open(Arc::new(MemorySource::new(bytes)), &ReadOptions::default())?;
    Ok(Arc::new(archive))
}

/// The same files in an archive of a directory and in memory.
async fn both() -> Result<(ArchiveStore, InMemory), Box<dyn StdError>> {
    let directory = tempfile::tempdir()?;
    let model = InMemory::new();
    for (name, length) in FILES {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().ok_or("a file is in a directory")?)?;
        fs::write(path, content(name, *length))?;
        model
            .put(&Path::from(*name), content(name, *length).into())
            .await?;
    }
    fs::hard_link(
        directory.path().join("readme.txt"),
        directory.path().join("years/linked"),
    )?;
    model
        .put(
            &Path::from("years/linked"),
            content("readme.txt", 100).into(),
        )
        .await?;
    symlink("readme.txt", directory.path().join("symbolic"))?;
    fs::create_dir(directory.path().join("years/nothing"))?;
    let store = ArchiveStore::new(archive(vec![directory_member(directory.path(), "tree")])?)?;
    Ok((store, model))
}

fn run(test: impl Future<Output = Outcome>) -> Outcome {
    tokio::runtime::Builder::new_current_thread()
        .build()?
        .block_on(test)
}

fn names_and_sizes(mut found: Vec<ObjectMeta>) -> Vec<(Path, u64)> {
    found.sort_by(|left, right| left.location.cmp(&right.location));
    found
        .into_iter()
        .map(|meta| (meta.location, meta.size))
        .collect()
}

const PREFIXES: &[&str] = &[
    "",
    "years",
    "years/2026",
    "year",
    "years/2026/a.bin",
    "odd names",
    "none",
    "years/nothing",
];

#[test]
fn lists_are_those_of_the_reference() -> Outcome {
    run(async {
        let (store, model) = both().await?;
        let everything = names_and_sizes(store.list(None).try_collect().await?);
        assert_eq!(everything.len(), FILES.len() + 1);
        for prefix in PREFIXES.iter().map(|prefix| Path::from(*prefix)) {
            let prefix = Some(&prefix);
            let listed = |store: &dyn ObjectStore| store.list(prefix).try_collect::<Vec<_>>();
            assert_eq!(
                names_and_sizes(listed(&store).await?),
                names_and_sizes(listed(&model).await?),
                "below {prefix:?}"
            );
            let (ours, theirs) = (
                store.list_with_delimiter(prefix).await?,
                model.list_with_delimiter(prefix).await?,
            );
            assert_eq!(
                ours.common_prefixes, theirs.common_prefixes,
                "in {prefix:?}"
            );
            assert_eq!(
                names_and_sizes(ours.objects),
                names_and_sizes(theirs.objects),
                "in {prefix:?}"
            );
            for (offset, _) in &everything {
                let after = |store: &dyn ObjectStore| {
                    store
                        .list_with_offset(prefix, offset)
                        .try_collect::<Vec<_>>()
                };
                assert_eq!(
                    names_and_sizes(after(&store).await?),
                    names_and_sizes(after(&model).await?),
                    "below {prefix:?} after {offset}"
                );
            }
        }
        Ok(())
    })
}

#[test]
fn ranges_are_those_of_the_reference() -> Outcome {
    run(async {
        let (store, model) = both().await?;
        for location in model
            .list(None)
            .map_ok(|meta| meta.location)
            .collect::<Vec<_>>()
            .await
        {
            let location = location?;
            let size = model.head(&location).await?.size;
            assert_eq!(store.head(&location).await?.size, size);
            let whole = store.get(&location).await?.bytes().await?;
            assert_eq!(
                whole,
                model.get(&location).await?.bytes().await?,
                "{location}"
            );

            let block = BLOCK_BYTES;
            let ranges = [
                GetRange::Bounded(0..1),
                GetRange::Bounded(block - 1..block + 1),
                GetRange::Bounded(block / 2..9 * block),
                GetRange::Bounded(size.saturating_sub(3)..size + 1000),
                GetRange::Bounded(size..size + 1),
                GetRange::Bounded(7..7),
                GetRange::Offset(size / 2),
                GetRange::Offset(size),
                GetRange::Suffix(11),
                GetRange::Suffix(size + 1),
            ];
            for range in ranges {
                let get = async |store: &dyn ObjectStore| {
                    let options = GetOptions::new().with_range(Some(range.clone()));
                    let result = store.get_opts(&location, options).await?;
                    let stated = result.range.clone();
                    Ok::<_, Error>((stated, result.bytes().await?))
                };
                match (get(&store).await, get(&model).await) {
                    (Ok(ours), Ok(theirs)) => assert!(ours == theirs, "{location} {range:?}"),
                    (Err(_), Err(_)) => {}
                    (ours, theirs) => {
                        panic!("{location} {range:?}: {:?}, {:?}", ours.err(), theirs.err())
                    }
                }
            }
        }
        let location = Path::from("years/2026/a.bin");
        let ranges = [
            0..10,
            100_000..300_000,
            2_499_999..2_500_000,
            1_000_000..1_000_001,
        ];
        assert!(
            store.get_ranges(&location, &ranges).await?
                == model.get_ranges(&location, &ranges).await?
        );
        Ok(())
    })
}

#[test]
fn what_is_missing_and_what_would_write_fails_with_its_error() -> Outcome {
    run(async {
        let (store, _) = both().await?;
        for missing in ["none", "years", "symbolic", "years/nothing", "readme.txt/x"] {
            let error = store.get(&Path::from(missing)).await.err();
            assert!(
                matches!(error, Some(Error::NotFound { .. })),
                "{missing}: {error:?}"
            );
        }
        let readme = Path::from("readme.txt");
        let refused = [
            store
                .put(&readme, PutPayload::from_static(b"new"))
                .await
                .err(),
            store.put_multipart(&readme).await.err(),
            store.delete(&readme).await.err(),
            store.copy(&readme, &Path::from("copy")).await.err(),
            store.rename(&readme, &Path::from("other")).await.err(),
        ];
        for error in refused {
            assert!(
                matches!(error, Some(Error::NotSupported { .. })),
                "{error:?}"
            );
        }
        assert_eq!(
            store.get(&readme).await?.bytes().await?,
            content("readme.txt", 100)
        );
        Ok(())
    })
}

#[test]
fn tags_are_those_of_the_archive() -> Outcome {
    run(async {
        let (store, _) = both().await?;
        let readme = Path::from("readme.txt");
        let tag = store.head(&readme).await?.e_tag.ok_or("there is a tag")?;
        let if_match = |tag: &str| GetOptions::new().with_if_match(Some(tag.to_string()));
        assert!(store.get_opts(&readme, if_match(&tag)).await.is_ok());
        let error = store.get_opts(&readme, if_match("other")).await.err();
        assert!(
            matches!(error, Some(Error::Precondition { .. })),
            "{error:?}"
        );
        Ok(())
    })
}

#[test]
fn several_members_have_their_names_before_the_paths() -> Outcome {
    run(async {
        let directory = tempfile::tempdir()?;
        fs::write(directory.path().join("a"), b"first")?;
        let table = MemberInput {
            name: "data/table".into(),
            mode: None,
            modified: None,
            content: Content::Source(Arc::new(MemorySource::new(b"second".to_vec()))),
        };
        let members = vec![directory_member(directory.path(), "tree"), table];
        let store = ArchiveStore::new(archive(members)?)?;
        let listed = names_and_sizes(store.list(None).try_collect().await?);
        assert_eq!(listed, [("data/table".into(), 6), ("tree/a".into(), 5)]);
        let table = store.get(&Path::from("data/table")).await?;
        assert_eq!(table.bytes().await?.as_ref(), b"second");
        Ok(())
    })
}
