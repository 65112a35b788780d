use super::*;
use crate::{AtomicFile, MemorySink, MemorySource, OutputOptions};

fn data() -> Vec<u8> {
    (0..20_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

#[test]
fn short_and_interrupted_transfers_change_nothing() {
    let mut transfers = 0;
    for seed in 0..10 {
        let plan = FaultPlan::new(seed).short_transfers().interruptions();
        let source = FaultySource::new(MemorySource::new(data()), plan.clone());
        let mut buffer = vec![0; 30_000];
        assert_eq!(source.read_at(5, &mut buffer).unwrap(), 19_995);
        assert_eq!(buffer[..19_995], data()[5..]);
        transfers += source.counters.transfers.load(Ordering::Relaxed);

        let memory = MemorySink::new();
        let output = memory.output();
        let mut sink = FaultySink::new(memory, plan);
        sink.write_all(&data()).unwrap();
        sink.write_zeros(10).unwrap();
        sink.publish().unwrap();
        assert_eq!(
            output.published().unwrap(),
            [&data()[..], &[0; 10]].concat()
        );
        transfers += sink.counters.transfers.load(Ordering::Relaxed);
    }
    assert!(transfers > 100, "the storm happened: {transfers}");
}

#[test]
fn the_same_seed_fails_the_same_way() {
    let transfers = |seed| {
        let plan = FaultPlan::new(seed).short_transfers().interruptions();
        let mut stream = FaultyStream::new(&[7; 1000][..], plan);
        let mut buffer = [0; 100];
        let results = (0..50).map(|_| stream.read(&mut buffer).map_err(|error| error.kind()));
        results.collect::<Vec<_>>()
    };
    assert_eq!(transfers(3), transfers(3));
    assert_ne!(transfers(3), transfers(4));
    assert!(transfers(3).contains(&Err(ErrorKind::Interrupted)));
}

#[test]
fn the_nth_call_fails_and_the_others_do_not() {
    let plan = FaultPlan::new(0)
        .fail_read(2, ErrorKind::TimedOut)
        .fail_write(1, ErrorKind::Other);
    let source = FaultySource::new(MemorySource::new(data()), plan.clone());
    let mut buffer = [0; 10];
    let reads = (0..5).map(|_| source.read_at(0, &mut buffer).map_err(|error| error.kind()));
    let reads: Vec<_> = reads.collect();
    assert_eq!(
        reads,
        [Ok(10), Ok(10), Err(ErrorKind::TimedOut), Ok(10), Ok(10)]
    );
    assert_eq!(source.calls(), 5);
    let mut sink = FaultySink::new(MemorySink::new(), plan);
    assert!(sink.write_zeros(1).is_ok());
    assert!(
        sink.write_zeros(1)
            .unwrap_err()
            .to_string()
            .contains("call 1")
    );
    assert!(sink.write_all(b"x").is_ok());
    assert_eq!(sink.calls(), 3);
}

#[test]
fn a_full_disk_takes_what_fits() {
    let memory = MemorySink::new();
    let view = memory.read_back().unwrap();
    let mut sink = FaultySink::new(memory, FaultPlan::new(0).full_after(100));
    sink.write_all(&[1; 60]).unwrap();
    sink.write_all(b"").unwrap();
    assert_eq!(
        sink.write_all(&[2; 50]).unwrap_err().kind(),
        ErrorKind::StorageFull
    );
    assert_eq!(view.size_bytes().unwrap(), 100);
    assert_eq!(
        sink.write_zeros(1).unwrap_err().kind(),
        ErrorKind::StorageFull
    );
    sink.write_zeros(0).unwrap();

    let mut stream = FaultyStream::new(Vec::new(), FaultPlan::new(0).full_after(7));
    let error = Write::write_all(&mut stream, b"0123456789").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(stream.into_inner(), b"0123456");
}

#[test]
fn a_source_grows_and_shrinks_at_its_calls() {
    let plan = FaultPlan::new(0)
        .resize_at(0, 10)
        .resize_at(2, 1_000_000)
        .resize_at(3, 4);
    let source = FaultySource::new(MemorySource::new(data()), plan);
    assert_eq!(source.size_bytes().unwrap(), 10);
    let mut buffer = vec![0; 50_000];
    let counts = (0..5).map(|_| source.read_at(2, &mut buffer).unwrap());
    assert_eq!(counts.collect::<Vec<_>>(), [8, 8, 19_998, 2, 2]);
    assert_eq!(source.size_bytes().unwrap(), 4);
    assert_eq!(source.next_data(1).unwrap(), Some((1, 4)));
    assert_eq!(source.next_data(4).unwrap(), None);
}

/// Every write and the publishing fail in turn: never a trace under the final name.
#[test]
fn a_real_file_behind_faults_appears_only_when_all_went_well() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let attempt = |plan: FaultPlan| -> io::Result<()> {
        let file = AtomicFile::create(&path, &OutputOptions::default())?;
        let mut sink = FaultySink::new(file, plan);
        for piece in data().chunks(3000) {
            sink.write_all(piece)?;
            sink.write_zeros(5000)?;
        }
        sink.publish()
    };
    let mut plans: Vec<FaultPlan> = (0..14)
        .map(|call| FaultPlan::new(call).fail_write(call, ErrorKind::Other))
        .collect();
    plans.push(FaultPlan::new(0).fail_publish(ErrorKind::StorageFull));
    plans.push(FaultPlan::new(0).full_after(30_000));
    for plan in plans {
        assert!(attempt(plan.clone()).is_err(), "{plan:?}");
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            0,
            "{plan:?}"
        );
    }
    attempt(FaultPlan::new(1).short_transfers().interruptions()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 20_000 + 7 * 5000);
}
