//! Single sparse files.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};

use crate::support::{Case, REFRAIN, expect, json};

const SIZE_BYTES: u64 = 100 << 30;
const DATA_AT: u64 = 60_000_000_000;

/// A file of 100 GiB with four bytes of data.
fn huge(case: &Case, name: &str) {
    let file = File::create(case.path(name)).unwrap();
    file.set_len(SIZE_BYTES).unwrap();
    file.write_all_at(b"data", DATA_AT).unwrap();
}

fn assert_is_huge(case: &Case, name: &str) {
    let file = File::open(case.path(name)).unwrap();
    let metadata = file.metadata().unwrap();
    assert_eq!(metadata.len(), SIZE_BYTES, "{name}");
    assert!(metadata.blocks() < 2000, "{name}: {}", metadata.blocks());
    let mut around = [1; 8];
    file.read_exact_at(&mut around, DATA_AT - 2).unwrap();
    assert_eq!(&around, b"\0\0data\0\0", "{name}");
}

#[test]
fn holes_of_a_single_file_remain_holes() {
    let case = Case::new();
    huge(&case, "disk.img");
    case.ok("compress -q disk.img");
    let archive = case.read("disk.img.rfn");
    assert!(archive.len() < 1000, "{} bytes", archive.len());
    case.ok("test -q disk.img.rfn");
    case.ok("decompress -q -o from-file disk.img.rfn");
    assert_is_huge(&case, "from-file");
    let piped = case.pipe(REFRAIN, "decompress -q -o from-pipe -", &archive);
    expect(piped, 0, "from a pipe");
    assert_is_huge(&case, "from-pipe");
    let range = format!("cat disk.img.rfn --range {}+6", DATA_AT - 1);
    assert_eq!(case.ok(&range).stdout, b"\0data\0");
    let info = json(&case.ok("info --json disk.img.rfn").stdout);
    let member = &info["results"][0]["members"][0];
    assert_eq!(member["content_bytes"], SIZE_BYTES);
    assert!(member["blake3"].is_null() && member["blake3_sparse"].is_string());
    // A directory beside it is read by its entries, and the file by the index.
    case.write("d/a", b"a\n");
    case.ok("compress -q d disk.img -o both.rfn");
    case.ok("decompress -q -o both both.rfn");
    assert_is_huge(&case, "both/disk.img");
    assert_eq!(case.read("both/d/a"), b"a\n");
    // Damage is found and reported.
    let mut broken = archive.clone();
    let middle = broken.len() / 2;
    broken[middle] ^= 1;
    fs::write(case.path("broken.rfn"), broken).unwrap();
    case.fails("test -q broken.rfn", 2);
}
