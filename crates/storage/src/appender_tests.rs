use std::os::unix::fs::MetadataExt;

use super::*;

fn check(view: &dyn Source, expected: &[u8], seed: u64) {
    assert_eq!(view.size_bytes().unwrap(), expected.len() as u64);
    let mut random = seed;
    for _ in 0..20 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let offset = (random >> 20) % (expected.len() as u64 + 10);
        let mut buffer = vec![0xaa; (random >> 44) as usize % 300_000];
        let count = view.read_at(offset, &mut buffer).unwrap();
        assert_eq!(buffer[..count], *slice_at(expected, offset, buffer.len()));
    }
}

fn appended_equals_model(seed: u64, sparse: bool) {
    let temporary = tempfile::tempfile().unwrap();
    let mut appender = Appender::new(temporary, "test".into(), sparse);
    let view = appender.view();
    let mut model = Vec::new();
    let mut random = seed;
    for step in 0..30u64 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(seed | 1);
        let lengths = [
            0, 1, 40, 4095, 4096, 4097, 10_000, 131_071, 131_072, 131_073, 300_000,
        ];
        let length = lengths[(random >> 33) as usize % lengths.len()];
        match (random >> 50) % 4 {
            0 => {
                appender.write_zeros(length as u64).unwrap();
                model.resize(model.len() + length, 0);
            }
            1 => {
                let mut piece = vec![step as u8 + 1; length];
                let part = length / 3;
                piece[part..part * 2].fill(0);
                appender.write_all(&piece).unwrap();
                model.extend(piece);
            }
            _ => {
                let piece: Vec<u8> = (0..length)
                    .map(|i| ((i as u64).wrapping_mul(random) >> 17) as u8)
                    .collect();
                appender.write_all(&piece).unwrap();
                model.extend(piece);
            }
        }
        if step % 7 == 0 {
            check(&*view, &model, random);
        }
    }
    assert_eq!(appender.finish().unwrap(), model.len() as u64);
    check(&*view, &model, seed);
    let mut in_file = vec![0; model.len() + 1];
    let count = read_full(0, &mut in_file, |at, part| {
        appender.file().read_at(part, at)
    });
    assert_eq!(count.unwrap(), model.len());
    assert_eq!(in_file[..model.len()], model[..]);
}

#[test]
fn matches_a_vector_of_bytes() {
    for seed in 0..20 {
        appended_equals_model(seed, false);
        appended_equals_model(seed, true);
    }
}

/// Allocated bytes after writing a megabyte of zeros between two of data.
fn allocated_bytes(sparse: bool, write_zeros: impl Fn(&mut Appender)) -> u64 {
    let temporary = tempfile::tempfile().unwrap();
    let mut appender = Appender::new(temporary, "test".into(), sparse);
    appender.write_all(&vec![1; 1 << 20]).unwrap();
    write_zeros(&mut appender);
    appender.write_all(&vec![2; 1 << 20]).unwrap();
    appender.finish().unwrap();
    appender.file().metadata().unwrap().blocks() * 512
}

#[test]
fn holes_use_no_disk_space() {
    let as_bytes = |appender: &mut Appender| appender.write_all(&vec![0; 8 << 20]).unwrap();
    let as_zeros = |appender: &mut Appender| appender.write_zeros(8 << 20).unwrap();
    let dense = allocated_bytes(false, as_bytes);
    if dense < 10 << 20 {
        return; // a file system that compresses or does not tell
    }
    for sparse in [
        allocated_bytes(true, as_bytes),
        allocated_bytes(true, as_zeros),
        allocated_bytes(false, as_zeros),
    ] {
        assert!(sparse < 3 << 20, "{sparse}");
    }
}

#[test]
fn a_hole_at_the_end_counts_and_reads_as_zeros() {
    let mut appender = Appender::new(tempfile::tempfile().unwrap(), "test".into(), true);
    appender.write_all(b"x").unwrap();
    appender.write_zeros(1 << 40).unwrap();
    let view = appender.view();
    assert_eq!(view.size_bytes().unwrap(), (1 << 40) + 1);
    let mut buffer = [7; 5];
    assert_eq!(view.read_at(1 << 40, &mut buffer).unwrap(), 1);
    assert_eq!(buffer, [0, 7, 7, 7, 7]);
    assert_eq!(view.read_at(0, &mut buffer).unwrap(), 5);
    assert_eq!(buffer, [b'x', 0, 0, 0, 0]);
    assert_eq!(view.read_at(u64::MAX, &mut buffer).unwrap(), 0);
    assert_eq!(appender.finish().unwrap(), (1 << 40) + 1);
}

#[test]
fn a_write_beyond_the_largest_offset_is_an_error() {
    let mut appender = Appender::new(tempfile::tempfile().unwrap(), "test".into(), true);
    appender.write_all(b"x").unwrap();
    for length in [u64::MAX, OFFSET_MAX] {
        let error = appender.write_zeros(length).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
    assert_eq!(appender.view().size_bytes().unwrap(), 1);
}

#[test]
fn data_ranges_leave_out_whole_aligned_zeros_only() {
    let mut bytes = vec![1; 5 * 4096];
    bytes[4096..2 * 4096].fill(0); // aligned: a hole
    bytes[3 * 4096 + 1..4 * 4096].fill(0); // one byte short
    assert_eq!(data_ranges(0, &bytes), [(0, 4096), (2 * 4096, 5 * 4096)]);
    // Shifted by one, the zeros fill no aligned block.
    assert_eq!(data_ranges(1, &bytes), [(0, 5 * 4096)]);
    assert_eq!(data_ranges(0, &[]), []);
    assert_eq!(data_ranges(0, &[0; 8192]), []);
    // A partial block at the end is data even when it is zero.
    assert_eq!(data_ranges(0, &[0; 4097]), [(4096, 4097)]);
}

#[test]
fn readers_see_a_consistent_prefix_while_it_grows() {
    let mut appender = Appender::new(tempfile::tempfile().unwrap(), "test".into(), true);
    let view = appender.view();
    let byte_at = |offset: u64| (offset / 1000 % 3) as u8; // a third is zero
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut buffer = vec![0; 50_000];
                let mut size = 0;
                while size < 8_000_000 {
                    size = view.size_bytes().unwrap();
                    let offset = size.saturating_sub(40_000);
                    let count = view.read_at(offset, &mut buffer).unwrap();
                    assert!(count as u64 >= size - offset);
                    for (index, byte) in buffer[..count].iter().enumerate() {
                        assert_eq!(*byte, byte_at(offset + index as u64));
                    }
                }
            });
        }
        let mut offset = 0u64;
        for step in (1..).take(400) {
            let length = [13, 70_000, 200_000, 997][step % 4];
            let piece: Vec<u8> = (offset..offset + length).map(byte_at).collect();
            appender.write_all(&piece).unwrap();
            offset += length;
        }
    });
}
