use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use refrain_format::volumes::HEAD_PREFIX;
use refrain_storage::{
    Alone, FaultPlan, FaultySink, GrowingSink, JoinedVolume, Sink, VolumeFolder, VolumeLock,
};
use refrain_testkit::{data, scaled};

use super::*;

/// A folder in which one operation fails.
struct FaultyPlace {
    inner: VolumeFolder,
    operations: AtomicU64,
    failing: u64,
    /// Whether the one that fails was done nevertheless, as by a store that answers too late.
    is_done: bool,
}

impl FaultyPlace {
    fn fails(&self) -> io::Result<()> {
        if self.operations.fetch_add(1, Ordering::Relaxed) == self.failing {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "planned"));
        }
        Ok(())
    }
}

impl VolumePlace for FaultyPlace {
    fn label(&self) -> &str {
        self.inner.label()
    }

    fn names(&self, prefix: &str, count_max: usize) -> io::Result<Vec<String>> {
        self.fails()?;
        self.inner.names(prefix, count_max)
    }

    fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.fails()?;
        self.inner.read(name, bytes_max)
    }

    fn joined(&self, volumes: Vec<JoinedVolume>) -> io::Result<Arc<dyn Source>> {
        self.inner.joined(volumes)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Sink>> {
        self.fails()?;
        let mut plan = FaultPlan::new(0);
        if self.fails().is_err() {
            plan = plan.fail_write(0, io::ErrorKind::StorageFull);
        }
        if self.fails().is_err() {
            plan = plan.fail_publish(io::ErrorKind::TimedOut);
        }
        Ok(Box::new(FaultySink::new(self.inner.create(name)?, plan)))
    }

    fn create_alone(&self, name: &str, bytes: &[u8]) -> io::Result<Alone> {
        match self.fails() {
            Err(error) if !self.is_done => Err(error),
            failed => {
                let alone = self.inner.create_alone(name, bytes)?;
                failed.map(|()| alone)
            }
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.fails()?;
        self.inner.remove(name)
    }

    fn lock(&self) -> io::Result<VolumeLock> {
        self.inner.lock()
    }
}

fn grow(place: Arc<dyn VolumePlace>, volume_bytes: u64, pieces: &[&[u8]]) -> Result<()> {
    let mut growing = GrowingVolumes::open(place, volume_bytes)?;
    growing.append_behind(growing.source()?.size_bytes()?)?;
    for piece in pieces {
        growing.write_all(piece)?;
    }
    growing.publish()?;
    Ok(())
}

fn all_of(source: &dyn Source) -> Vec<u8> {
    let mut bytes = vec![0; source.size_bytes().unwrap() as usize];
    let count = source.read_at(0, &mut bytes).unwrap();
    assert_eq!(count, bytes.len());
    bytes
}

/// Each operation of a run fails once: the archive is as before, or has grown, and the next run
/// goes on.
#[test]
fn a_run_that_fails_anywhere_changes_nothing() {
    let earlier = data::text(30_000, 1);
    let added = data::text(20_000, 2);
    for is_done in [false, true] {
        let mut failing = 0;
        loop {
            let directory = tempfile::tempdir().unwrap();
            let folder = VolumeFolder::new(directory.path());
            let shared: Arc<dyn VolumePlace> = Arc::new(folder.clone());
            grow(shared.clone(), 8000, &[&earlier]).unwrap();
            let before = folder.names("", 100).unwrap();
            let place = Arc::new(FaultyPlace {
                inner: folder.clone(),
                operations: AtomicU64::new(0),
                failing,
                is_done,
            });
            let grown = grow(place.clone(), 8000, &[&added[..7], &added[7..]]);
            let found = all_of(&*open_volumes(&shared, None).unwrap());
            let is_grown = found.len() > earlier.len();
            let expected = if is_grown { [&earlier[..], &added].concat() } else { earlier.clone() };
            assert!(found == expected, "{failing}");
            if grown.is_ok() {
                assert!(is_grown, "{failing}");
                break;
            }
            // Volumes are removed unless a head may list them.
            let names = folder.names("", 100).unwrap();
            let left = names.len() - before.len();
            let head_failed = left == 3 + usize::from(is_grown);
            assert!(left == 0 || head_failed, "{failing}: {names:?}");
            grow(Arc::new(folder.clone()), 8000, &[&added]).unwrap();
            let found = all_of(&*open_volumes(&shared, None).unwrap());
            assert!(found == [&expected[..], &added].concat(), "{failing}");
            let orphans = orphans(&folder).unwrap();
            assert_eq!(orphans.len(), if head_failed && !is_grown { 3 } else { 0 });
            failing += 1;
        }
        assert!(failing > 10, "{failing}");
    }
}

#[test]
fn the_second_writer_is_refused_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let place: Arc<dyn VolumePlace> = Arc::new(VolumeFolder::new(directory.path()));
    let mut first = GrowingVolumes::open(place.clone(), 4096).unwrap();
    assert!(first.is_new());
    let refused = GrowingVolumes::open(place.clone(), 4096).err().unwrap();
    assert!(refused.to_string().contains("another program"), "{refused}");
    first.write_all(&[1; 5000]).unwrap();
    // Somebody on another machine, where the lock is not seen.
    let head = Heads::next(None, Vec::new()).unwrap().to_bytes();
    place.create_alone(&head_name(1), &head).unwrap();
    let error = first.publish().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    assert!(
        error.to_string().contains("nothing of this run was added"),
        "{error}"
    );
    drop(first);
    assert_eq!(place.names("", 9).unwrap(), [head_name(1)]);
}

#[test]
fn volumes_are_not_cut_and_not_too_small() {
    let directory = tempfile::tempdir().unwrap();
    let place: Arc<dyn VolumePlace> = Arc::new(VolumeFolder::new(directory.path()));
    assert!(GrowingVolumes::open(place.clone(), VOLUME_BYTES_MIN - 1).is_err());
    grow(place.clone(), 4096, &[b"12345"]).unwrap();
    let mut growing = GrowingVolumes::open(place.clone(), 4096).unwrap();
    let error = growing.append_behind(4).unwrap_err().to_string();
    assert!(error.contains("after 4 of 5 bytes"), "{error}");
    let dropped = place.names(HEAD_PREFIX, 9).unwrap();
    drop(growing);
    assert_eq!(dropped.len(), 1);
    let error = open_volumes(&place, Some("head-1")).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Usage);
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(scaled(24)))]
    /// Compared with the same bytes in memory, also while they are written.
    #[test]
    fn volumes_are_the_bytes_that_were_written(
        runs in proptest::collection::vec(
            proptest::collection::vec((0_usize..9000, any::<bool>()), 1..8),
            1..4,
        ),
        volume_bytes in 4096_u64..20_000,
        reads in proptest::collection::vec((0_usize..60_000, 0_usize..20_000), 8),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let place: Arc<dyn VolumePlace> = Arc::new(VolumeFolder::new(directory.path()));
        let mut expected: Vec<u8> = Vec::new();
        for (number, run) in runs.iter().enumerate() {
            let mut growing = GrowingVolumes::open(place.clone(), volume_bytes).unwrap();
            growing.append_behind(expected.len() as u64).unwrap();
            let back = growing.read_back().unwrap();
            for (length, is_zero) in run {
                if *is_zero {
                    growing.write_zeros(*length as u64).unwrap();
                    expected.resize(expected.len() + length, 0);
                } else {
                    let bytes = data::text(*length, number as u64);
                    growing.write_all(&bytes).unwrap();
                    expected.extend(bytes);
                }
                prop_assert!(all_of(&*back) == expected);
            }
            growing.publish().unwrap();
            drop(growing);
            let source = open_volumes(&place, None).unwrap();
            prop_assert_eq!(source.size_bytes().unwrap(), expected.len() as u64);
            for (offset, length) in &reads {
                let mut buffer = vec![0xEE; *length];
                let count = source.read_at(*offset as u64, &mut buffer).unwrap();
                let from = (*offset).min(expected.len());
                let to = (from + length).min(expected.len());
                prop_assert!(buffer[..count] == expected[from..to]);
                let mut again = vec![0xEE; *length];
                let count = back.read_at(*offset as u64, &mut again).unwrap();
                prop_assert!(again[..count] == expected[from..to]);
            }
        }
        let names = place.names(VOLUME_PREFIX, 1000).unwrap();
        prop_assert!(names.iter().all(|name| place.read(name, volume_bytes).is_ok()));
    }
}
