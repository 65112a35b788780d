//! Properties of the whole engine for arbitrary bytes, for property tests and fuzz targets.

pub mod envelope;
pub mod lrzip;
pub mod repair;

use std::io::Cursor;
use std::sync::Arc;

use refrain_protect::ContentHash;

use crate::storage::{MemoryOutput, MemorySink, MemorySource, Sink};
use crate::{
    Archive, CodecChoice, CompressOptions, Content, ErrorKind, Level, Member, MemberInput,
    MemberKind, MemberStart, Purpose, ReadOptions, Result, Target, Targets, Unwatched, codec_names,
    extract, recover,
};

/// The maximum content bytes accepted from an archive of arbitrary bytes: forged fills can be
/// endless.
const CONTENT_BYTES_MAX: u64 = 8 << 20;

/// The maximum content bytes generated for a round trip: its structure matters, not its size.
const MADE_BYTES_MAX: usize = 3 << 20;

/// The maximum number of members generated for a round trip.
const MEMBERS_MAX: usize = 8;

/// Options of a reader of arbitrary bytes: little memory, so that violations of the limits show.
const SMALL: ReadOptions = ReadOptions {
    threads: 1,
    memory_bytes: 32 << 20,
    password: None,
    identities: Vec::new(),
    content_bytes_max: None,
    temporary: None,
    work_max: crate::WORK_MAX_DEFAULT,
    memory_parts: 1,
    generation: crate::GenerationChoice::Latest,
    decoders: crate::DecoderChoice::Own,
    decoder_listener: crate::DecoderListener::SILENT,
};

/// Options of a reader with as much memory as the writer had.
const AS_MADE: ReadOptions = ReadOptions {
    threads: 1,
    memory_bytes: crate::MEMORY_BYTES_MIN,
    password: None,
    identities: Vec::new(),
    content_bytes_max: None,
    temporary: None,
    work_max: crate::WORK_MAX_DEFAULT,
    memory_parts: 1,
    generation: crate::GenerationChoice::Latest,
    decoders: crate::DecoderChoice::Own,
    decoder_listener: crate::DecoderListener::SILENT,
};

/// Collects closed members; fails at more than [`CONTENT_BYTES_MAX`].
#[derive(Default)]
struct CollectedMembers {
    members: Vec<(Member, Vec<u8>)>,
    open: Option<MemoryOutput>,
    bytes: u64,
    is_pipe: bool,
}

impl Targets for CollectedMembers {
    fn open(&mut self, _member: &MemberStart) -> Result<Target> {
        let sink = MemorySink::with_limit(CONTENT_BYTES_MAX - self.bytes);
        self.open = Some(sink.output());
        Ok(Target::Sink(if self.is_pipe {
            Box::new(sink.as_pipe())
        } else {
            Box::new(sink)
        }))
    }

    fn spill(&mut self) -> Result<Box<dyn Sink>> {
        Ok(Box::new(MemorySink::with_limit(CONTENT_BYTES_MAX)))
    }

    fn close(&mut self, member: &Member, target: Target) -> Result<()> {
        if let Some(mut sink) = target.into_sink() {
            sink.publish()?;
        }
        let content = self.open.take().and_then(|output| output.published());
        let content = content.unwrap_or_default();
        self.bytes += content.len() as u64;
        self.members.push((member.clone(), content));
        Ok(())
    }
}

/// The members that an extraction published, and whether it succeeded.
fn walked(archive: &[u8], as_pipe: bool, options: &ReadOptions) -> (Vec<(Member, Vec<u8>)>, bool) {
    let mut taken = CollectedMembers {
        is_pipe: as_pipe,
        ..CollectedMembers::default()
    };
    let result = if as_pipe {
        let stream = Box::new(Cursor::new(archive.to_vec()));
        extract(stream, &mut taken, options, &Unwatched)
    } else {
        let source = Arc::new(MemorySource::new(archive.to_vec()));
        extract(source, &mut taken, options, &Unwatched)
    };
    (taken.members, result.is_ok())
}

/// Every way of reading either reads arbitrary bytes as an archive or refuses them, and all agree
/// on the content.
///
/// # Panics
/// If the property does not hold.
pub fn archive_survives(bytes: &[u8]) {
    survives(bytes, &SMALL);
}

fn survives(bytes: &[u8], options: &ReadOptions) {
    let (by_file, file_is_sound) = walked(bytes, false, options);
    let (by_pipe, pipe_is_sound) = walked(bytes, true, options);
    // A stream may need more memory for the archive's latest bytes, but whatever it accepts, a file
    // accepts too.
    assert!(file_is_sound || !pipe_is_sound);
    if pipe_is_sound {
        assert!(by_file == by_pipe, "file and stream differ");
    }
    scan_survives(bytes, options);
    let source = Arc::new(MemorySource::new(bytes.to_vec()));
    let Ok(archive) = Archive::open(source, options) else {
        assert!(!file_is_sound, "an intact archive cannot be opened");
        return;
    };
    let is_lrzip = archive.info().is_ok_and(|info| info.lrzip.is_some());
    let _ = archive.blocks();
    if file_is_sound {
        assert_eq!(archive.member_count(), by_file.len());
    }
    let members = archive.members().unwrap_or_default();
    for (index, member) in members.iter().enumerate().take(64) {
        let _ = archive.entries(index);
        let mut content = vec![0; member.content_bytes.min(1 << 16) as usize];
        for offset in [0, member.content_bytes / 3, member.content_bytes, u64::MAX] {
            let read = archive.read_at(index, offset, &mut content);
            if file_is_sound {
                let known = &by_file[index].1;
                let start = known
                    .len()
                    .min(usize::try_from(offset).unwrap_or(usize::MAX));
                let count = match read {
                    // Matches of matches in an lrzip archive may take more memory as maps than when
                    // they are replayed in order.
                    Err(error) if error.kind == ErrorKind::Limit && is_lrzip => continue,
                    read => read.unwrap_or(usize::MAX),
                };
                assert!(
                    known.get(start..).and_then(|rest| rest.get(..count)) == content.get(..count),
                    "member {index} differs from {offset} on"
                );
            }
        }
    }
}

/// Anything that a scan finds in arbitrary bytes can be read without a panic.
fn scan_survives(bytes: &[u8], options: &ReadOptions) {
    let source = Arc::new(MemorySource::new(bytes.to_vec()));
    let Ok(archive) = Archive::open_by_scan(source, options) else {
        return;
    };
    let _ = (archive.info(), archive.blocks());
    let mut content = vec![0; 1 << 16];
    let members = archive.members().unwrap_or_default();
    for (index, member) in members.iter().enumerate().take(16) {
        let _ = archive.entries(index);
        for offset in [0, member.content_bytes / 2] {
            let _ = archive.read_at(index, offset, &mut content);
        }
    }
}

/// Anything recovered from arbitrary bytes matches its hash, and a damaged archive is not taken for
/// a complete one.
///
/// # Panics
/// If the property does not hold.
pub fn recovery_survives(bytes: &[u8]) {
    for (as_pipe, keep_broken) in [(false, false), (false, true), (true, false)] {
        let mut taken = CollectedMembers {
            is_pipe: as_pipe,
            ..CollectedMembers::default()
        };
        let recovered = if as_pipe {
            let stream = Box::new(Cursor::new(bytes.to_vec()));
            recover(stream, &mut taken, keep_broken, &SMALL, &Unwatched)
        } else {
            let source = Arc::new(MemorySource::new(bytes.to_vec()));
            recover(source, &mut taken, keep_broken, &SMALL, &Unwatched)
        };
        for (member, content) in &taken.members {
            let is_content = matches!(member.kind, MemberKind::File | MemberKind::Stream);
            if is_content && member.blake3 != [0; 32] {
                let mut hash = ContentHash::new();
                hash.update(content);
                assert_eq!(hash.value(), member.blake3, "other content was recovered");
            }
        }
        if recovered.is_ok_and(|(_, damage)| damage.is_none()) {
            let (members, is_sound) = walked(bytes, as_pipe, &SMALL);
            assert!(is_sound, "a damaged archive was taken for whole");
            assert!(members == taken.members, "another content was recovered");
        }
    }
}

/// Instructions from arbitrary bytes; zeros at the end.
struct Instructions<'a>(&'a [u8]);

impl Instructions<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> usize {
        usize::from(self.byte()) << 8 | usize::from(self.byte())
    }

    fn append_part(&mut self, content: &mut Vec<u8>) {
        let kind = self.byte();
        let length = self.number() << (kind >> 6).min(2);
        let length = length.min(MADE_BYTES_MAX.saturating_sub(content.len()));
        match kind % 5 {
            0 => {
                let (literal, rest) = self.0.split_at(self.0.len().min(length));
                self.0 = rest;
                content.extend_from_slice(literal);
            }
            1 => content.extend(incompressible(length, self.byte())),
            2 => {
                let period: Vec<u8> = (0..1 + self.byte() % 80).map(|_| self.byte()).collect();
                content.extend(period.iter().cycle().take(length));
            }
            _ if content.is_empty() => {}
            kind => {
                let from = (self.number() * 53) % content.len();
                let end = content.len().min(from + length);
                let mut copy = content[from..end].to_vec();
                if kind == 4 {
                    let step = self.number() + 1;
                    copy.iter_mut().step_by(step).for_each(|byte| *byte ^= 1);
                }
                content.extend(copy);
            }
        }
    }
}

/// Incompressible bytes. The same seed gives the same bytes, and so far repeats.
fn incompressible(length: usize, seed: u8) -> impl Iterator<Item = u8> {
    let mut state = u64::from(seed) + 1;
    (0..length).map(move |_| {
        // Knuth's MMIX generator; its upper bits are good enough.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
}

/// Contents described by arbitrary bytes survive compression and every way of reading, and neither
/// the number of threads nor a second run changes a byte of the archive.
///
/// # Panics
/// If the property does not hold.
pub fn round_trips(bytes: &[u8]) {
    let mut instructions = Instructions(bytes);
    let options = options_from(instructions.byte());
    let pipes = instructions.byte();
    let (mut content, mut cuts) = (vec![], vec![0]);
    while !instructions.0.is_empty() {
        instructions.append_part(&mut content);
        if instructions.byte() % 4 == 0 && cuts.len() < MEMBERS_MAX {
            cuts.push(content.len());
        }
    }
    cuts.push(content.len());
    let contents: Vec<&[u8]> = cuts
        .windows(2)
        .map(|cut| &content[cut[0]..cut[1]])
        .collect();

    let archive = made(&contents, pipes, &options);
    let threads = 3;
    let again = made(&contents, pipes, &CompressOptions { threads, ..options });
    assert!(archive == again, "threads change the archive");
    for as_pipe in [false, true] {
        let (members, is_sound) = walked(&archive, as_pipe, &AS_MADE);
        assert!(is_sound, "a fresh archive is refused");
        let read = members.iter().map(|(_, content)| &content[..]);
        assert!(read.eq(contents.iter().copied()), "content differs");
    }
    survives(&archive, &AS_MADE);
}

fn options_from(choice: u8) -> CompressOptions {
    let names: Vec<_> = codec_names().collect();
    let codec = (choice & 8 != 0).then(|| CodecChoice {
        name: names[usize::from(choice >> 4) % names.len()].to_owned(),
        level: None,
    });
    CompressOptions {
        level: Level(1 + choice % 4),
        purpose: match choice & 4 {
            0 => Purpose::Archive,
            _ => Purpose::Serve,
        },
        codec,
        memory_bytes: Some(AS_MADE.memory_bytes),
        ..CompressOptions::default()
    }
}

fn made(contents: &[&[u8]], pipes: u8, options: &CompressOptions) -> Vec<u8> {
    let member = |(index, content): (usize, &&[u8])| MemberInput {
        name: format!("member {index}").into(),
        mode: None,
        modified: None,
        content: match pipes >> (index % 8) & 1 {
            0 => Content::Source(Arc::new(MemorySource::new(content.to_vec()))),
            _ => Content::Stream(Box::new(Cursor::new(content.to_vec()))),
        },
    };
    let members = contents.iter().enumerate().map(member).collect();
    let mut sink = MemorySink::new();
    let output = sink.output();
    let result = crate::compress(members, &mut sink, options, &Unwatched);
    assert!(result.is_ok(), "{result:?}");
    output.published().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use refrain_testkit::{mutations, sample_archive};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn any_content_round_trips(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            round_trips(&bytes);
        }

        #[test]
        fn arbitrary_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            archive_survives(&bytes);
        }

        #[test]
        fn broken_samples_are_read_or_refused(seed in 0_u64..1000, skip in 0_usize..100) {
            let sample = sample_archive(seed);
            archive_survives(&sample.bytes);
            recovery_survives(&sample.bytes);
            for mutation in mutations(&sample.bytes, seed).skip(skip).step_by(100) {
                archive_survives(&mutation.bytes);
                recovery_survives(&mutation.bytes);
            }
        }
    }
}
