//! Puts an archive together from damaged copies without recovery data: the checksums of its frames
//! say which of them are intact, and copies that are damaged at different places have them all.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use refrain_format::limits::Limits;
use refrain_format::{FRAME_HEADER_BYTES, FrameKind, MAGIC, TAIL_BYTES, Tail, find_frame};
use refrain_storage::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::progress::{Watch, is_cancelled};
use crate::store::frames::{limits_for, read_any_frame_at};

/// What a scan reads at a time.
const WINDOW_BYTES: usize = 1 << 20;

/// What can be between two frames: the tail of one archive, and the magic of the next.
const BETWEEN_BYTES_MAX: u64 = (TAIL_BYTES + MAGIC.len()) as u64;

/// An archive that is put together from copies, whose bytes are at the same offsets.
pub(crate) struct Merged {
    /// The ends of pieces, and the input that each is read from.
    pieces: Vec<(u64, usize)>,
    inputs: Vec<Arc<dyn Source>>,
}

impl Merged {
    /// Takes every frame from the first of the copies that has it intact.
    ///
    /// # Errors
    /// `Damaged` if no copy has some part intact, or the archive is encrypted, so that only its key
    /// tells what is; `Usage` if nothing in the first copy is intact; `Io`, `Cancelled`.
    pub(crate) fn new(
        inputs: Vec<Arc<dyn Source>>,
        memory_bytes: u64,
        watch: &dyn Watch,
    ) -> Result<Merged> {
        let mut frames = Frames::default();
        let limits = limits_for(memory_bytes);
        let mut size = 0;
        for (number, input) in inputs.iter().enumerate() {
            frames.scan((number, &**input), &limits, watch)?;
            size = input.size_bytes()?.max(size);
        }
        if !frames.found.values().any(|(_, input)| *input == 0) {
            let text = "nothing in this file is intact that would tell which archive it is";
            return Err(Error::new(ErrorKind::Usage, text));
        }
        if frames.is_encrypted {
            return Err(Error::damaged(
                "has no recovery data, without which copies of encrypted archives are not merged",
            ));
        }
        let mut merged = Merged {
            pieces: Vec::new(),
            inputs,
        };
        let mut lost = Vec::new();
        for (start, (bytes, input)) in frames.found {
            let end = merged.end();
            // Frames of an archive inside a frame that is intact elsewhere.
            if start < end {
                continue;
            }
            merged.bridge(end..start, &mut lost)?;
            merged.pieces.push((start + bytes, input));
        }
        merged.bridge(merged.end()..size, &mut lost)?;
        match lost.first() {
            None => Ok(merged),
            Some(first) => Err(Error::damaged(format!(
                "has no recovery data, and no copy has bytes {}..{} intact{}",
                first.start,
                first.end,
                match lost.len() - 1 {
                    0 => String::new(),
                    others => format!(", nor those at {others} other places"),
                }
            ))),
        }
    }

    fn end(&self) -> u64 {
        self.pieces.last().map_or(0, |(end, _)| *end)
    }

    /// Adds what is between two frames, which has no checksum, from the first copy in which it
    /// looks right.
    fn bridge(&mut self, range: Range<u64>, lost: &mut Vec<Range<u64>>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let mut input = None;
        if range.end - range.start <= BETWEEN_BYTES_MAX {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            for (number, source) in self.inputs.iter().enumerate() {
                let count = source.read_at(range.start, &mut bytes)?;
                if count == bytes.len() && is_between(&bytes) {
                    input = Some(number);
                    break;
                }
            }
        }
        if input.is_none() {
            lost.push(range.clone());
        }
        self.pieces.push((range.end, input.unwrap_or(0)));
        Ok(())
    }

    /// The ranges that are not read from the first input.
    pub(crate) fn ranges_of_others(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut start = 0;
        for (end, input) in &self.pieces {
            match ranges.last_mut() {
                _ if *input == 0 => {}
                Some(last) if last.end == start => last.end = *end,
                _ => ranges.push(start..*end),
            }
            start = *end;
        }
        ranges
    }
}

/// Whether these bytes are a tail, magic, or both.
fn is_between(bytes: &[u8]) -> bool {
    let tail = bytes.strip_suffix(&MAGIC[..]).unwrap_or(bytes);
    (tail.is_empty() && !bytes.is_empty()) || Tail::parse(tail).is_ok()
}

impl Source for Merged {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.end())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut piece = self.pieces.partition_point(|(end, _)| *end <= offset);
        let mut done = 0;
        while let Some((end, input)) = self.pieces.get(piece)
            && done < buffer.len()
        {
            let at = offset + done as u64;
            let count = (end - at).min((buffer.len() - done) as u64) as usize;
            let part = &mut buffer[done..done + count];
            let input = self.inputs.get(*input);
            if input.map_or(Ok(0), |input| input.read_at(at, part))? < count {
                let text = "a file became shorter while it was repaired";
                return Err(io::Error::other(text));
            }
            (done, piece) = (done + count, piece + 1);
        }
        Ok(done)
    }

    fn has_changed(&self) -> io::Result<bool> {
        for input in &self.inputs {
            if input.has_changed()? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Intact frames by their offsets: their sizes, and the first input that has them.
#[derive(Default)]
struct Frames {
    found: BTreeMap<u64, (u64, usize)>,
    is_encrypted: bool,
}

impl Frames {
    /// Adds those of an input. Where an earlier one has a frame, only what follows it is read.
    fn scan(
        &mut self,
        (number, source): (usize, &dyn Source),
        limits: &Limits,
        watch: &dyn Watch,
    ) -> Result<()> {
        let mut window = vec![0; WINDOW_BYTES];
        let (mut at, mut window_bytes) = (0, WINDOW_BYTES);
        loop {
            if is_cancelled(watch) {
                return Err(Error::cancelled());
            }
            if let Some((bytes, _)) = self.found.get(&at) {
                at += bytes;
                continue;
            }
            // Frames mostly follow each other, and then no more than a header is looked at.
            let look = &mut window[..window_bytes];
            let count = source.read_at(at, look)?;
            let known = self.found.range(at + 1..).next();
            let known = known.map_or(u64::MAX, |(offset, _)| *offset);
            let found = find_frame(&look[..count], 0).map(|found| at + found as u64);
            let is_short = window_bytes < WINDOW_BYTES;
            window_bytes = WINDOW_BYTES;
            let Some(found) = found else {
                if is_short {
                    continue;
                }
                if count < WINDOW_BYTES {
                    return Ok(());
                }
                // A header may begin in this window and end in the next.
                at = known.min(at + (count + 1 - FRAME_HEADER_BYTES) as u64);
                continue;
            };
            if known < found {
                at = known;
                continue;
            }
            at = found;
            if self.found.contains_key(&at) {
                continue;
            }
            match read_any_frame_at(source, at, limits) {
                Ok(frame) if !frame.is_mended => {
                    self.is_encrypted |= frame.header.kind == FrameKind::Envelope;
                    self.found.insert(at, (frame.header.frame_bytes(), number));
                    window_bytes = FRAME_HEADER_BYTES + BETWEEN_BYTES_MAX as usize;
                }
                Err(error) if error.kind == ErrorKind::Io => return Err(error),
                Ok(_) | Err(_) => at += 1,
            }
        }
    }
}
