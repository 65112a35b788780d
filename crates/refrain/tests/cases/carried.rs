//! Archives that carry the decoders of what they use.

use crate::common::*;
use refrain::{CodecChoice, CompressOptions, ErrorKind};
use refrain_format::{
    DecoderHeader, DecoderRole, FrameKind, Limits, Payload, content_hash, walk_archive,
};
use refrain_testkit::data;

fn carrying(options: CompressOptions) -> CompressOptions {
    CompressOptions {
        carry_decoders: true,
        ..options
    }
}

fn with_codec(name: &str) -> CompressOptions {
    let choice = CodecChoice {
        name: name.into(),
        level: None,
    };
    CompressOptions {
        codec: Some(choice),
        ..options(1, 2)
    }
}

/// The roles of the decoders that an archive carries, and of the codings that need one, in order;
/// every decoder comes first, once.
fn carried_and_used(archive: &[u8]) -> Vec<DecoderRole> {
    let mut carried = Vec::new();
    let mut last = 0;
    walk_archive(archive, &Limits::default(), |offset, header, payload| {
        if header.kind == FrameKind::Decoder {
            assert!(header.skippable && header.keep);
            let start = offset as usize + refrain_format::FRAME_HEADER_BYTES;
            let payload = &archive[start..start + header.payload_bytes as usize];
            let (back_bytes, decoder) = DecoderHeader::parse(payload)?;
            let (decoder, module) = decoder.expect("a module");
            assert_eq!(decoder.module_hash, content_hash(module));
            assert_eq!(
                offset - back_bytes,
                if back_bytes == 0 { offset } else { last }
            );
            assert!(!carried.contains(&decoder.role));
            carried.push(decoder.role);
            last = offset;
        }
        let coding = match &payload {
            Payload::Block { header, .. } => Some(header.coding),
            Payload::Extents { header, .. } => Some(header.coding),
            Payload::Entries { header, .. } => Some(header.coding),
            Payload::End { end, .. } => {
                assert_eq!(end.last_decoder, (last > 0).then_some(last));
                None
            }
            _ => None,
        };
        if let Some(coding) = coding {
            let codec = (coding.codec() > 0).then_some(DecoderRole::Codec(coding.codec()));
            let filters = coding.filters().iter();
            let filters = filters.map(|&(id, _)| DecoderRole::Filter(id));
            for role in codec.into_iter().chain(filters) {
                assert!(
                    carried.contains(&role),
                    "{role:?} is used before it is carried"
                );
            }
        }
        Ok(())
    })
    .unwrap();
    carried
}

#[test]
fn every_decoder_comes_before_what_needs_it() {
    let content = [data::text(200_000, 1), data::executable(300_000, 2)].concat();
    for codec in refrain::codec_names() {
        let members = || vec![file("member", &content)];
        let (plain, _) = archive_of(members(), &with_codec(codec));
        let (archive, _) = archive_of(members(), &carrying(with_codec(codec)));
        assert!(plain.len() < archive.len() || codec == "none");
        let roles = carried_and_used(&archive);
        assert!(
            roles.len() >= usize::from(codec != "none"),
            "{codec}: {roles:?}"
        );
        assert_reads(&archive, &[as_published("member", &content)], "carried");
        let (again, _) = archive_of(
            members(),
            &carrying(CompressOptions {
                threads: 1,
                ..with_codec(codec)
            }),
        );
        assert!(
            again == archive,
            "{codec}: the same bytes for any number of threads"
        );
    }
}

#[test]
fn decoders_fit_into_a_stated_reach() {
    let content = [
        data::text(3_000_000, 1),
        data::random(9_000_000, 2),
        data::text(3_000_000, 1),
    ]
    .concat();
    let options = carrying(CompressOptions {
        reach_bytes: Some(6 << 20),
        block_bytes: Some(1 << 20),
        ..with_codec("bwt")
    });
    let (archive, _) = piped_archive_of(vec![pipe("member", &content)], &options);
    assert!(!carried_and_used(&archive).is_empty());
    assert_reads(&archive, &[as_published("member", &content)], "carried");
}

#[test]
fn what_is_stored_needs_none() {
    let content = data::random(100_000, 1);
    let (archive, _) = archive_of(vec![file("noise", &content)], &carrying(options(1, 1)));
    assert_eq!(carried_and_used(&archive), []);
}

#[test]
fn the_golden_archive_reads_as_any_other() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/carried/lz.rfn");
    let archive = std::fs::read(path).unwrap();
    let roles = [DecoderRole::Codec(9)];
    assert_eq!(carried_and_used(&archive), roles);
    let found = extracted(&archive, &read_options(1)).unwrap();
    let names: Vec<_> = found.iter().map(|read| read.name.as_str()).collect();
    assert_eq!(names, ["text.txt", "wave.bin"]);
}

#[test]
fn wanted_filters_are_recorded_and_their_decoders_carried() {
    let numbers: Vec<u8> = (0..60_000_u32)
        .flat_map(|i| i.wrapping_mul(77_777).to_be_bytes())
        .collect();
    let options = |filters: Option<&str>| CompressOptions {
        filters: filters.map(|text| text.parse().unwrap()),
        ..with_codec("lz")
    };
    let (archive, _) = archive_of(
        vec![file("numbers", &numbers)],
        &carrying(options(Some("transpose:4|xor:1"))),
    );
    let roles = carried_and_used(&archive);
    for id in [5, 6] {
        assert!(roles.contains(&DecoderRole::Filter(id)), "{roles:?}");
    }
    assert_reads(&archive, &[as_published("numbers", &numbers)], "filtered");
    let [plain, filtered] = [None, Some("transpose:4|delta:1")].map(|filters| {
        archive_of(vec![file("numbers", &numbers)], &options(filters))
            .0
            .len()
    });
    assert!(filtered < plain * 2 / 3, "{filtered} {plain}");
    let without_codec = CompressOptions {
        codec: with_codec("none").codec,
        ..options(Some("xor:1"))
    };
    assert_eq!(without_codec.check().unwrap_err().kind, ErrorKind::Usage);
}
