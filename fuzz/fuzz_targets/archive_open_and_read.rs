//! Door: any bytes taken for an archive that is opened by its index and read at any place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use refrain::{Archive, Unwatched, verify};
use refrain_fuzz::{READ_OPTIONS, resealed, source};

fuzz_target!(|input: (Vec<(u64, u16)>, &[u8])| {
    let (reads, data) = input;
    for bytes in [data.to_vec(), resealed(data)] {
        let verified = verify(source(bytes.clone()), &READ_OPTIONS, &Unwatched).is_ok();
        let Ok(archive) = Archive::open(source(bytes), &READ_OPTIONS) else {
            assert!(!verified, "an archive that passes the test can be opened");
            continue;
        };
        let _ = archive.info();
        let _ = archive.blocks();
        for (index, member) in archive.members().iter().enumerate().take(8) {
            let _ = archive.entries(index);
            for &(offset, length) in reads.iter().take(8) {
                let offset = offset % member.content_bytes.saturating_add(1);
                let mut buffer = vec![0; usize::from(length)];
                let read = archive.read_at(index, offset, &mut buffer);
                let expected = (member.content_bytes - offset).min(u64::from(length));
                if verified || read.is_ok() {
                    assert_eq!(read.expect("verified bytes can be read") as u64, expected);
                }
            }
        }
    }
});
