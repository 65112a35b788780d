//! Golden archives: every version reads the archives of all previous versions, and this version
//! writes the same bytes as ever. See `golden/README.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::appendix::appendix;
use crate::common::holes::Holey;
use crate::common::one_block::archive_of_block;
use crate::common::*;
use refrain::Timestamp;
use refrain::{
    Archive, CodecChoice, CompressOptions, Content, DirectoryContent, Error, ErrorKind, Member,
    MemberInput, MemberKind, Purpose, Result, SecretKeyFile, Unwatched,
};
use refrain_format::{Coding, FrameKind, content_hash, walk_archive};
use refrain_testkit::{data, mutations, sample_archive, signing_keys};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden")
}

/// The directory of this version's archives.
fn own() -> PathBuf {
    golden().join("archives").join(env!("CARGO_PKG_VERSION"))
}

/// The recipe of a golden archive.
struct Recipe {
    name: String,
    members: Vec<MemberInput>,
    options: CompressOptions,
    to_pipe: bool,
}

impl Recipe {
    fn new(name: &str, members: Vec<MemberInput>, options: CompressOptions) -> Recipe {
        Recipe {
            name: name.into(),
            members,
            options,
            to_pipe: false,
        }
    }

    fn bytes(self) -> (String, Vec<u8>) {
        let archive = if self.to_pipe {
            piped_archive_of(self.members, &self.options)
        } else {
            archive_of(self.members, &self.options)
        };
        (self.name, archive.0)
    }
}

/// Content for every codec, filter and kind of extent, in some tens of KiB.
fn mixture() -> Vec<u8> {
    let mut all = data::versions(3_000, 3, 2, 1);
    all.extend(data::executable(20_000, 2));
    all.extend(data::zeros(10_000));
    all.extend(data::periodic(5_000, 7, 3));
    all.extend(data::text(20_000, 4));
    all.extend_from_within(100..8_000);
    all
}

/// A chain of filters that no level finds.
const NAMED_FILTERS: &str = "transpose:24|delta:1";

/// Recipes whose bytes depend only on this version. The test fails when the bytes of an archive
/// change.
fn recipes() -> Vec<Recipe> {
    let mixture = mixture();
    let mut recipes = vec![];
    for codec in refrain::codec_names() {
        let choice = CodecChoice {
            name: codec.into(),
            level: None,
        };
        let options = CompressOptions {
            codec: Some(choice),
            ..options(1, 1)
        };
        let name = format!("codec-{codec}");
        recipes.push(Recipe::new(&name, vec![file("mixture", &mixture)], options));
    }
    for (purpose, word) in [(Purpose::Archive, "level"), (Purpose::Serve, "serve")] {
        for level in refrain::levels(purpose) {
            let name = format!("{word}-{}", level.number);
            let members = vec![file("mixture", &mixture)];
            let options = CompressOptions {
                purpose,
                ..options(level.number, 2)
            };
            recipes.push(Recipe::new(&name, members, options));
        }
    }
    // Filters are tried on blocks of 64 KiB and more.
    let ramp = |at: u32| ((at * at / 512) as u16).to_le_bytes();
    let samples: Vec<u8> = (0..40_000).flat_map(ramp).collect();
    for (name, bytes) in [
        ("x86", x86_code_of_32_bits()),
        ("x86-64", data::executable(70_000, 7)),
        ("arm64", arm64_code()),
        ("delta", samples),
    ] {
        let lzma = CompressOptions {
            codec: "lzma".parse().ok(),
            ..options(1, 1)
        };
        let members = vec![file("m", &bytes)];
        recipes.push(Recipe::new(&format!("filter-{name}"), members, lzma));
    }
    // One filter that the level finds, and a chain that the user names.
    let table = table();
    let named = CompressOptions {
        filters: Some(NAMED_FILTERS.parse().unwrap()),
        ..options(3, 1)
    };
    for (name, options) in [("transpose", options(8, 1)), ("named", named)] {
        let members = vec![file("table", &table)];
        recipes.push(Recipe::new(&format!("filter-{name}"), members, options));
    }
    let dated = MemberInput {
        mode: Some(0o640),
        modified: Some(Timestamp {
            seconds: -86_400,
            nanoseconds: 999_999_999,
        }),
        ..file("with mode and time", b"old")
    };
    let members = vec![
        dated,
        file("", b""),
        pipe("pipe", &mixture[..5_000]),
        file(
            "name with a \u{fc} and\na line feed",
            &mixture[2_000..9_000],
        ),
        pipe("empty pipe", b""),
    ];
    recipes.push(Recipe::new("members", members, options(3, 2)));
    recipes.push(Recipe::new("nothing", vec![], options(3, 1)));
    // Too many rows for the End frame: the lists of members and of names have Index frames.
    let many = (0..600_u32).map(|number| {
        let name = format!("one of very many members, number {number}");
        file(&name, &number.to_le_bytes())
    });
    recipes.push(Recipe::new("index-frames", many.collect(), options(3, 1)));
    // Two epochs and several blocks that take few bytes.
    let mut long = data::periodic(9 * MIB, 3_000, 5);
    long.extend(data::zeros(28 * MIB));
    long.extend_from_within(MIB..2 * MIB);
    let small = small_options("zstd");
    recipes.push(Recipe::new(
        "epochs-and-blocks",
        vec![file("long", &long)],
        small.clone(),
    ));
    recipes.push(Recipe {
        to_pipe: true,
        ..Recipe::new("limited-reach", vec![pipe("long", &long)], small)
    });
    // Tar streams of two programs, taken apart: GNU tar's own dialect and pax.
    let tars = Path::new(env!("CARGO_MANIFEST_DIR")).join("../entries/tests/data/tars");
    let members = ["gnutar-gnu.tar", "bsdtar-pax.tar"].map(|name| {
        let bytes = fs::read(tars.join(name)).unwrap();
        file(name, &bytes)
    });
    recipes.push(Recipe::new("tars", members.into(), options(3, 1)));
    // A program whose calls reach far, twice.
    let program = data::program((4 << 20) + 9, 70_000, 3);
    let tar = [
        tar_entry("one", &program),
        tar_entry("two", &program),
        vec![0; 1024],
    ]
    .concat();
    recipes.push(Recipe::new(
        "machine-code",
        vec![file("tar", &tar)],
        CompressOptions {
            rebased_code_bytes_min: 1 << 16,
            ..options(3, 1)
        },
    ));
    // Holes before, between and after data, and an ordinary file beside it.
    let data = [
        (700_000, mixture[..9_000].to_vec()),
        (3 << 20, vec![7; 70_000]),
    ];
    let holes = Holey::new((5 << 20) + 9, data.into());
    let members = vec![
        file("dense", &mixture[..3_000]),
        member("sparse", Content::Source(holes)),
    ];
    recipes.push(Recipe::new("sparse", members, options(1, 2)));
    let protected = CompressOptions {
        recovery: "10%".parse().ok(),
        ..options(1, 2)
    };
    let random = data::random(20_000, 12);
    recipes.push(Recipe::new(
        "recovery",
        vec![file("random", &random)],
        protected,
    ));
    // So many members that a tree proves single ones.
    let key = SecretKeyFile::parse(signing_keys::MINISIGN).unwrap();
    let signed = CompressOptions {
        signing_key: Some(Arc::new(key.unlock(None).unwrap())),
        ..options(3, 1)
    };
    let many = (0..300_u32).map(|number| file(&format!("{number}"), &number.to_le_bytes()));
    recipes.push(Recipe::new("signature", many.collect(), signed));
    recipes
}

/// A file in a tar stream.
fn tar_entry(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = [0; 512];
    let size = format!("{:011o}", bytes.len());
    for (at, field) in [
        (0, name),
        (100, "0000755"),
        (108, "0000000"),
        (116, "0000000"),
        (124, &size),
        (136, "00000000000"),
        (148, "        "),
        (156, "0"),
        (257, "ustar\x0000"),
    ] {
        header[at..at + field.len()].copy_from_slice(field.as_bytes());
    }
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let padding = vec![0; bytes.len().next_multiple_of(512) - bytes.len()];
    [&header[..], bytes, &padding].concat()
}

/// Archives joined from others, or embedded in them.
fn joined() -> Vec<(String, Vec<u8>)> {
    let mixture = mixture();
    let small = |name: &str, bytes: &[u8]| {
        let members = vec![file(name, bytes)];
        archive_of(members, &options(1, 1)).0
    };
    let (first, second) = (small("a", &mixture[..9_000]), small("b", b"second"));
    let mut inside = data::random(3_000, 8);
    inside.extend_from_slice(&first);
    inside.extend(data::random(3_000, 9));
    let stored = CompressOptions {
        codec: "none".parse().ok(),
        ..options(1, 1)
    };
    let outer = archive_of(vec![file("outer", &inside)], &stored).0;
    let frames = [&[2, 0, 0, 1, 2, 3][..], &[2, 0, 0]];
    let appended = [first.clone(), appendix(&first, &frames, 1)].concat();
    vec![
        ("appendix".into(), appended),
        ("concatenated".into(), [first, second].concat()),
        ("embedded".into(), outer),
    ]
}

/// Records of 24 bytes: a counter, two numbers that wander, and noise.
fn table() -> Vec<u8> {
    let mut rng = refrain_testkit::Rng::new(5);
    let (mut near, mut far) = (1_000_u64, 1_u64 << 40);
    let record = |number: u64| {
        near += rng.below(9);
        far += rng.below(70_000);
        let words = [number << 32 | rng.below(16), near, far];
        words.map(u64::to_le_bytes).concat()
    };
    (0..6_000).flat_map(record).collect()
}

/// Calls of a few functions, each after an instruction that 64-bit code does not have (PUSHA), so
/// that the filter x86-64 converts none.
fn x86_code_of_32_bits() -> Vec<u8> {
    let mut rng = refrain_testkit::Rng::new(7);
    let function = |at: u32| {
        let target = 4_000 * rng.below(16) as u32;
        let [a, b, c, d] = target.wrapping_sub(at * 10 + 6).to_le_bytes();
        [0x60, 0xe8, a, b, c, d, 0x83, 0xc0, at as u8 % 8, 0xc3]
    };
    (0..7_000).flat_map(function).collect()
}

/// Instructions of arm64, among them calls of a few functions, in little endian.
fn arm64_code() -> Vec<u8> {
    let mut rng = refrain_testkit::Rng::new(11);
    let instruction = |at: u32| match at % 4 {
        0 => 0x9400_0000 | (1000 * rng.below(4) as u32).wrapping_sub(at) & 0x03ff_ffff,
        1 => 0x9000_0000 | (rng.below(32) as u32),
        _ => 0xf940_0000 | (rng.below(16) as u32) << 10,
    };
    (0..20_000)
        .map(instruction)
        .flat_map(u32::to_le_bytes)
        .collect()
}

/// What the filter arm64 does to these bytes: its calls and page addresses, as in section 5.3 of
/// docs/format.md.
fn filtered_by_arm64(bytes: &[u8]) -> Vec<u8> {
    let instruction = |(index, word): (usize, &[u8])| {
        let (at, word) = (index as u32, u32::from_le_bytes(word.try_into().unwrap()));
        let word = match word {
            call if call >> 26 == 0b10_0101 => {
                call & 0xfc00_0000 | call.wrapping_add(at) & 0x03ff_ffff
            }
            page if page & 0x9f00_0000 == 0x9000_0000 => {
                let offset = page >> 29 & 3 | (page >> 5 & 0x7_ffff) << 2;
                let is_small = (offset.wrapping_add(1 << 17) & 0x1f_ffff) < 1 << 18;
                let sum = offset.wrapping_add(at / 1024) & 0x3_ffff;
                let extended = if sum >> 17 == 1 { sum | 0x1c_0000 } else { sum };
                if is_small {
                    page & 0x9f00_001f | (extended & 3) << 29 | (extended >> 2) << 5
                } else {
                    page
                }
            }
            other => other,
        };
        word.to_le_bytes()
    };
    bytes
        .chunks_exact(4)
        .enumerate()
        .flat_map(instruction)
        .collect()
}

/// What the filter delta with this distance does to these bytes.
fn filtered_by_delta(bytes: &[u8], distance: usize) -> Vec<u8> {
    let before = |at: usize| at.checked_sub(distance).map_or(0, |at| bytes[at]);
    let difference = |(at, byte): (usize, &u8)| byte.wrapping_sub(before(at));
    bytes.iter().enumerate().map(difference).collect()
}

/// Archives of frames and codings that the engine does not write: two filters in a row, skippable
/// frames, members that are open at the same time, blocks that end anywhere, an index of many small
/// nodes.
fn assembled() -> Vec<(String, Vec<u8>)> {
    let code = arm64_code();
    let filters = [(2, 0), (3, 4)];
    let filtered = filtered_by_delta(&filtered_by_arm64(&code), 4);
    let coding = Coding::new(0, &filters, &[], 0).unwrap();
    let mut archives = vec![(
        "two-filters".into(),
        archive_of_block(&code, coding, &filtered),
    )];
    let samples = (0..).map(|seed| sample_archive(seed).bytes);
    let rich = samples.filter(|archive| has_skippable_and_index_frames(archive));
    for (number, archive) in rich.take(3).enumerate() {
        archives.push((format!("frames-{number}"), archive));
    }
    archives
}

fn has_skippable_and_index_frames(archive: &[u8]) -> bool {
    let (mut skippable, mut index) = (0, 0);
    walk_archive(
        archive,
        &refrain_format::Limits::default(),
        |_, frame, _| {
            skippable += usize::from(frame.skippable);
            index += usize::from(frame.kind == FrameKind::Index);
            Ok(())
        },
    )
    .unwrap();
    skippable > 1 && index > 5
}

/// Not among the recipes, because the tar stream records the owners of the files, which differ
/// between machines.
fn tree() -> (String, Vec<u8>) {
    let root = tempfile::tempdir().unwrap();
    let sub = root.path().join("sub");
    fs::create_dir(&sub).unwrap();
    for (number, (_, content)) in data::source_tree(5, 6).iter().enumerate() {
        fs::write(sub.join(format!("file-{number}.rs")), content).unwrap();
    }
    std::os::unix::fs::symlink("sub/file-1.rs", root.path().join("link")).unwrap();
    fs::hard_link(sub.join("file-2.rs"), root.path().join("again")).unwrap();
    let members = vec![member(
        "tree",
        Content::directory(DirectoryContent::all(root.path())),
    )];
    Recipe::new("tree", members, options(3, 1)).bytes()
}

/// A description of an archive, with a line for each member and entry.
fn described(archive: &[u8]) -> String {
    let archive = Archive::open(source(archive), &read_options(1)).unwrap();
    let text = String::from_utf8_lossy;
    let mut lines = String::new();
    for (index, member) in archive.members().unwrap().iter().enumerate() {
        lines += &member_line(member);
        if has_entries(member) || member.is_sparse {
            // The member's tar stream; for a sparse file all bytes, including those that its hash
            // leaves out.
            let mut view = vec![0; member.content_bytes as usize];
            let count = archive.read_at(index, 0, &mut view).unwrap();
            assert_eq!(count, view.len());
            lines += &format!("  view {}\n", hex(&content_hash(&view)));
        }
        for entry in archive.entries(index).unwrap() {
            let link = text(entry.link_target.as_deref().unwrap_or(b"-"));
            let path = text(&entry.path);
            lines += &format!(
                "  {:?} {:o} {} at {} {:?} {link:?}\n",
                entry.kind, entry.mode, entry.size_bytes, entry.content_offset, path
            );
        }
    }
    lines
}

fn has_entries(member: &Member) -> bool {
    matches!(member.kind, MemberKind::Tree | MemberKind::Tar)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn member_line(member: &Member) -> String {
    let hash = hex(&member.blake3);
    let mode = member.mode.map_or("-".into(), |mode| format!("{mode:o}"));
    let modified = member.modified.map_or("-".into(), |modified| {
        format!("{}+{:09}ns", modified.seconds, modified.nanoseconds)
    });
    format!(
        "{hash} {} {:?} {mode} {modified} {:?}\n",
        member.content_bytes,
        member.kind,
        String::from_utf8_lossy(&member.name)
    )
}

fn files_of(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

#[test]
fn reads_every_golden_archive() {
    let mut count = 0;
    for version in fs::read_dir(golden().join("archives")).unwrap() {
        for path in files_of(&version.unwrap().path(), "rfn") {
            let archive = fs::read(&path).unwrap();
            let known = fs::read_to_string(path.with_extension("members")).unwrap();
            assert_eq!(described(&archive), known, "{path:?}");
            let options = read_options(2);
            let by_file = extracted(&archive, &options).unwrap();
            assert_reads(&archive, &by_file, &format!("{path:?}"));
            let opened = Archive::open(source(&archive), &options).unwrap();
            for (index, (member, read)) in
                opened.members().unwrap().iter().zip(&by_file).enumerate()
            {
                if !has_entries(member) && !member.is_sparse {
                    assert_eq!(content_hash(&read.content), member.blake3, "{path:?}");
                }
                let start = read.content.len() / 3;
                let mut range = vec![0; (read.content.len() - start).min(1_000)];
                opened.read_at(index, start as u64, &mut range).unwrap();
                assert!(
                    range == read.content[start..start + range.len()],
                    "{path:?}"
                );
            }
            count += 1;
        }
    }
    assert!(count >= 20, "{count} archives");
    for (name, filters) in [
        ("x86", "x86"),
        ("x86-64", "x86-64"),
        ("arm64", "arm64"),
        ("delta", "delta"),
        ("transpose", "transpose"),
        ("named", "transpose+delta"),
    ] {
        let filtered = fs::read(own().join(format!("filter-{name}.rfn"))).unwrap();
        let opened = Archive::open(source(&filtered), &read_options(1)).unwrap();
        assert_eq!(opened.info().unwrap().codecs[0].filters, filters);
    }
}

#[test]
fn writes_the_same_bytes_as_the_golden_archives() {
    let recipes = recipes().into_iter().map(Recipe::bytes);
    let archives: Vec<_> = recipes.chain(joined()).chain(assembled()).collect();
    let own_files = files_of(&own(), "rfn").len();
    assert_eq!(own_files, archives.len() + 1, "recipes and the tree");
    for (name, bytes) in archives {
        let path = own().join(format!("{name}.rfn"));
        let known = fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let differs = first_difference(&bytes, &known);
        assert!(
            bytes == known,
            "{name}: {} bytes, {} known, differ from {differs:?} on: see golden/README.md",
            bytes.len(),
            known.len()
        );
    }
}

#[test]
fn refuses_every_broken_archive_with_its_error() {
    let files = files_of(&golden().join("broken"), "rfn");
    assert!(files.len() >= 5);
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let kind = match name.split('-').next() {
            Some("damaged") => ErrorKind::Damaged,
            Some("unsupported") => ErrorKind::Unsupported,
            Some("limit") => ErrorKind::Limit,
            other => panic!("{name}: what is {other:?}?"),
        };
        let archive = fs::read(&path).unwrap();
        let by_file: Result<_> = extracted(&archive, &read_options(1));
        let by_pipe = extracted_from_pipe(&archive, &read_options(1));
        let verified = refrain::verify(source(&archive), &read_options(1), &Unwatched);
        let errors: [Error; 3] = [
            by_file.unwrap_err(),
            by_pipe.unwrap_err(),
            verified.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind, kind, "{name}: {error}");
            assert_has_location(&error, &name);
        }
    }
}

/// Broken forms of a small archive, by the name of their file.
fn broken() -> Vec<(String, Vec<u8>)> {
    let members = vec![file("mixture", &mixture()[..8_000]), file("b", b"second")];
    let (whole, _) = archive_of(members, &options(1, 1));
    // The archive is small; its frames are the subject here.
    let archive = refrain_format::whole::expand(&whole).unwrap();
    let futures = [
        ("major version 2", "unsupported-version-2"),
        ("unknown required feature", "unsupported-feature"),
        ("an encrypted frame", "unsupported-envelope"),
        ("a byte after the end", "damaged-byte-after-the-end"),
        ("the archive and half of it again", "damaged-second-cut-off"),
    ];
    let all: Vec<_> = mutations(&archive, 1).collect();
    let find = |what: &str| all.iter().find(|found| found.description == what).unwrap();
    let mut broken: Vec<_> = futures
        .iter()
        .map(|(what, name)| ((*name).to_owned(), find(what).bytes.clone()))
        .collect();
    broken.push((
        "damaged-cut-off".into(),
        archive[..archive.len() - 1].to_vec(),
    ));
    let mut flipped = archive.clone();
    flipped[archive.len() / 2] ^= 1;
    broken.push(("damaged-bit".into(), flipped));
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    broken.push(("damaged-bit-of-a-whole-frame".into(), flipped));
    broken
}

/// Writes the missing files of this version. Not a test; see `golden/README.md` for when to use it.
#[test]
#[ignore = "writes golden files"]
fn make_golden() {
    let write = |path: PathBuf, bytes: &[u8]| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Existing golden files are never changed.
        if !path.exists() {
            fs::write(path, bytes).unwrap();
        }
    };
    let archives = recipes().into_iter().map(Recipe::bytes);
    let archives = archives.chain(joined()).chain(assembled()).chain([tree()]);
    for (name, bytes) in archives {
        write(
            own().join(format!("{name}.members")),
            described(&bytes).as_bytes(),
        );
        write(own().join(format!("{name}.rfn")), &bytes);
    }
    for (name, bytes) in broken() {
        write(golden().join("broken").join(format!("{name}.rfn")), &bytes);
    }
}
