//! What is appended to an encrypted archive: runs of records, each between two frames.
//!
//! ```text
//! … last record | Tail | Run | record 0 | … | last record | RunEnd | Tail | Run | …
//! ```
//!
//! The archive inside goes on from run to run. The RunEnd frame has a table, encrypted, by which a
//! reader finds all runs before: those of its group of [`GROUP_RUNS`], and of each earlier group
//! the last one, whose own table has the rest.

use refrain_protect::envelope::{
    HYBRID_SHARE_BYTES, LINK_BYTES, RECORD_BYTES, RunShare, SALT_BYTES, SEALED_RECORD_BYTES,
};

use super::INNER_BYTES_BYTES;
use crate::bytes::{ByteReader, put_varint, put_varints};
use crate::check::{check_equal, check_limit, check_positive, check_range};
use crate::constants::{FRAME_HEADER_BYTES, FrameKind};
use crate::error::{FormatError, Result};
use crate::frame::{FrameHeader, UntrustedFrameHeader, complete_frame};
use crate::head::{SplitPayload, head_of};

/// The most runs of an archive: each is a generation.
pub const RUNS_MAX: u64 = u16::MAX as u64;

/// How many runs a table has in full. 64 keep the table of the thousandth run at some 5 KB, and
/// that of the last possible one at 70.
pub const GROUP_RUNS: u64 = 64;

/// The size of a Run frame in bytes.
pub const RUN_FRAME_BYTES: usize = FRAME_HEADER_BYTES + 1 + 3 + SALT_BYTES;

/// The size of a Run frame with a share in bytes.
pub const SHARED_RUN_FRAME_BYTES: usize = RUN_FRAME_BYTES + 1 + HYBRID_SHARE_BYTES;

/// What the key of a run follows from. The numbers are those of the ciphers in its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunCipher {
    /// The archive's key.
    Archive = 1,
    /// A share, by who cannot read the archive.
    Shared = 2,
    /// The key that writers have who cannot read the archive.
    Writers = 3,
}

/// What the key of a run follows from, as its frames state it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunSecret {
    /// The archive's key.
    Archive,
    /// This share.
    Shared(RunShare),
    /// The key of writers.
    Writers,
}

impl RunSecret {
    /// Without the share.
    #[must_use]
    pub fn cipher(&self) -> RunCipher {
        match self {
            RunSecret::Archive => RunCipher::Archive,
            RunSecret::Shared(_) => RunCipher::Shared,
            RunSecret::Writers => RunCipher::Writers,
        }
    }

    fn share(&self) -> &[u8] {
        match self {
            RunSecret::Shared(share) => &share[..],
            RunSecret::Archive | RunSecret::Writers => &[],
        }
    }
}

/// The largest RunEnd frame in bytes.
pub const RUN_END_BYTES_MAX: u64 = 1 << 17;

const ROW_BYTES: usize = 4 * 8 + LINK_BYTES;
const FLAG_PADDED: u64 = 1;
/// Rows have the ciphers of runs.
const FLAG_CIPHERS: u64 = 2;
/// Where they are, less 1, in the number of records.
const ROW_CIPHER_SHIFT: u32 = 62;

/// The contents of a Run frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStart {
    /// The number of the run, from 1.
    pub number: u64,
    /// Random bytes, on which its keys depend.
    pub salt: [u8; SALT_BYTES],
    /// What its key follows from.
    pub secret: RunSecret,
}

impl RunStart {
    /// Parses the frame at the beginning of `frame`, of an archive with this id.
    ///
    /// # Errors
    /// Damaged: it is none; a checksum or a field is wrong. Unsupported: another cipher.
    pub fn parse(frame: &[u8], archive_id: u32) -> Result<RunStart> {
        let (header, payload) = frame_of(frame, FrameKind::Run, archive_id)?;
        let split = SplitPayload::new(payload)?;
        let mut reader = split.fields("run");
        let cipher = take_cipher(&mut reader)?;
        let salt = reader.array()?;
        let secret = take_secret(&mut reader, cipher)?;
        reader.finish()?;
        let start = RunStart {
            number: number_of(&header, 0)?,
            salt,
            secret,
        };
        check_equal(
            "bytes of a run frame",
            header.frame_bytes(),
            start.frame_bytes(),
        )?;
        Ok(start)
    }

    /// The size of the frame in bytes.
    #[must_use]
    pub fn frame_bytes(&self) -> u64 {
        run_frame_bytes(self.secret.cipher())
    }

    /// Returns the frame.
    #[must_use]
    pub fn to_frame(&self, archive_id: u32) -> Vec<u8> {
        let mut fields = Vec::new();
        put_varints(&mut fields, &[0, 0, self.secret.cipher() as u64]);
        fields.extend(self.salt);
        fields.extend(self.secret.share());
        let payload = head_of(&fields);
        complete_frame(FrameKind::Run, 0, &payload, archive_id, self.number * 2)
    }
}

/// The contents of a RunEnd frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// The number of the run, from 1.
    pub number: u64,
    /// The link of the run ([`refrain_protect::envelope::run_link`]).
    pub link: [u8; LINK_BYTES],
    /// The number of its records, which end where the frame begins.
    pub records: u64,
    /// As in [`RunStart`].
    pub secret: RunSecret,
    /// The encrypted table.
    pub sealed: Vec<u8>,
    /// The size of the frame as read, in bytes.
    pub frame_bytes: u64,
}

impl RunEnd {
    /// Parses the frame at the beginning of `frame`, of an archive with this id.
    ///
    /// # Errors
    /// As [`RunStart::parse`]; limit: too many records.
    pub fn parse(frame: &[u8], archive_id: u32) -> Result<RunEnd> {
        let (header, payload) = frame_of(frame, FrameKind::RunEnd, archive_id)?;
        let split = SplitPayload::new(payload)?;
        let mut reader = split.fields("end of a run");
        let cipher = take_cipher(&mut reader)?;
        let link = reader.array()?;
        let records = reader.varint()?;
        let secret = take_secret(&mut reader, cipher)?;
        reader.finish()?;
        check_positive("records of a run", records)?;
        check_range(
            "records of a run",
            0,
            records.saturating_mul(SEALED_RECORD_BYTES as u64),
        )?;
        Ok(RunEnd {
            number: number_of(&header, 1)?,
            link,
            records,
            secret,
            sealed: split.data.to_vec(),
            frame_bytes: header.frame_bytes(),
        })
    }

    /// Returns the frame; [`frame_bytes`](Self::frame_bytes) does not count.
    #[must_use]
    pub fn to_frame(&self, archive_id: u32) -> Vec<u8> {
        let mut fields = Vec::new();
        put_varints(&mut fields, &[0, 0, self.secret.cipher() as u64]);
        fields.extend(self.link);
        put_varint(&mut fields, self.records);
        fields.extend(self.secret.share());
        let mut payload = head_of(&fields);
        payload.extend_from_slice(&self.sealed);
        let sequence = self.number * 2 + 1;
        complete_frame(FrameKind::RunEnd, 0, &payload, archive_id, sequence)
    }
}

/// Returns the header of a Run frame that begins with these bytes.
///
/// # Errors
/// As [`RunStart::parse`], for the header.
pub fn run_start_header(frame: &[u8]) -> Result<FrameHeader> {
    let header = UntrustedFrameHeader::parse(frame)?.check_reserved(FrameKind::Run)?;
    let most = SHARED_RUN_FRAME_BYTES as u64;
    check_limit("bytes of a run frame", header.frame_bytes(), most)?;
    Ok(header)
}

/// Returns the header of a RunEnd frame that begins with these bytes.
///
/// # Errors
/// As [`RunEnd::parse`], for the header.
pub fn run_end_header(frame: &[u8]) -> Result<FrameHeader> {
    let header = UntrustedFrameHeader::parse(frame)?.check_reserved(FrameKind::RunEnd)?;
    check_limit(
        "bytes of the end of a run",
        header.frame_bytes(),
        RUN_END_BYTES_MAX,
    )?;
    Ok(header)
}

fn frame_of(frame: &[u8], kind: FrameKind, archive_id: u32) -> Result<(FrameHeader, &[u8])> {
    let header = match kind {
        FrameKind::RunEnd => run_end_header(frame)?,
        _ => run_start_header(frame)?,
    };
    check_equal(
        "archive id of a run",
        u64::from(header.archive_id),
        u64::from(archive_id),
    )?;
    let payload = frame.get(FRAME_HEADER_BYTES..).unwrap_or_default();
    let payload = payload.get(..header.payload_bytes as usize);
    let payload = payload.ok_or(FormatError::Truncated {
        what: "frame of a run",
        needed_bytes: header.frame_bytes(),
        available_bytes: frame.len() as u64,
    })?;
    header.check_payload(payload)?;
    Ok((header, payload))
}

/// The size of a Run frame in bytes.
#[must_use]
pub fn run_frame_bytes(cipher: RunCipher) -> u64 {
    let bytes = match cipher {
        RunCipher::Archive | RunCipher::Writers => RUN_FRAME_BYTES,
        RunCipher::Shared => SHARED_RUN_FRAME_BYTES,
    };
    bytes as u64
}

fn take_secret(reader: &mut ByteReader<'_>, cipher: RunCipher) -> Result<RunSecret> {
    Ok(match cipher {
        RunCipher::Archive => RunSecret::Archive,
        RunCipher::Shared => RunSecret::Shared(Box::new(reader.array()?)),
        RunCipher::Writers => RunSecret::Writers,
    })
}

/// Reads the fields up to the cipher.
fn take_cipher(reader: &mut ByteReader<'_>) -> Result<RunCipher> {
    check_equal("scope of a run", reader.varint()?, 0)?;
    check_equal("scope id of a run", reader.varint()?, 0)?;
    cipher_of(reader.varint()?)
}

fn cipher_of(number: u64) -> Result<RunCipher> {
    let known = [RunCipher::Archive, RunCipher::Shared, RunCipher::Writers];
    let found = known.into_iter().find(|cipher| *cipher as u64 == number);
    found.ok_or(FormatError::Reserved {
        what: "cipher",
        value: number,
    })
}

/// The number of the run, from the sequence number, which is twice that, and 1 more at the end.
fn number_of(header: &FrameHeader, odd: u64) -> Result<u64> {
    check_equal("sequence number of a run", header.sequence % 2, odd)?;
    check_positive("number of a run", header.sequence / 2)?;
    check_limit("runs", header.sequence / 2, RUNS_MAX)?;
    Ok(header.sequence / 2)
}

/// Where a run is, and what it has of the archive inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunRow {
    /// Where its first record begins, in bytes from the first record of the archive.
    pub position: u64,
    /// The number of its records.
    pub records: u64,
    /// Where its content begins in the archive inside.
    pub start: u64,
    /// The number of bytes of its content.
    pub bytes: u64,
    /// Its link.
    pub link: [u8; LINK_BYTES],
    /// What its key follows from.
    pub cipher: RunCipher,
}

impl RunRow {
    /// Where its Run frame begins, from the first record of the archive.
    #[must_use]
    pub fn frame_position(&self) -> u64 {
        self.position.saturating_sub(run_frame_bytes(self.cipher))
    }

    /// Where its content ends in the archive inside.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + self.bytes
    }

    /// Where its records end, and its RunEnd frame begins, from the first record of the archive.
    #[must_use]
    pub fn records_end(&self) -> u64 {
        self.position + self.records * SEALED_RECORD_BYTES as u64
    }

    /// Checks the row behind one that ends there, in the archive inside and in the file.
    fn check(&self, end: u64, records_end: u64) -> Result<()> {
        check_equal("start of a run", self.start, end)?;
        let frame_bytes = run_frame_bytes(self.cipher);
        check_range("position of a run", records_end, frame_bytes)?;
        if self.position < records_end + frame_bytes {
            return Err(FormatError::Mismatch {
                what: "position of a run",
                found: self.position,
                expected: records_end,
            });
        }
        check_positive("bytes of a run", self.bytes)?;
        check_range("end of a run", self.start, self.bytes)?;
        let sealed_bytes = self.records.saturating_mul(SEALED_RECORD_BYTES as u64);
        check_range("records of a run", self.position, sealed_bytes)?;
        let room = self.records.saturating_mul(RECORD_BYTES as u64);
        check_limit(
            "bytes of a run",
            self.bytes.saturating_add(INNER_BYTES_BYTES as u64),
            room,
        )
    }
}

/// The table of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTable {
    /// The number of records before the first tail.
    pub base_records: u64,
    /// How many bytes of the archive inside are in them: all, or none, because the first run has
    /// the archive inside from its beginning.
    pub base_bytes: u64,
    /// Whether the sizes of runs are hidden.
    pub is_padded: bool,
    /// Of each complete group before this run's, the last run.
    pub groups: Vec<RunRow>,
    /// The runs of its group, up to itself.
    pub runs: Vec<RunRow>,
}

impl RunTable {
    /// The table of an archive without runs, of which nothing is stored.
    #[must_use]
    pub fn of_base(base_records: u64, base_bytes: u64, is_padded: bool) -> RunTable {
        RunTable {
            base_records,
            base_bytes,
            is_padded,
            groups: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// The last run of each complete group, and the runs of its own group.
    pub fn rows(&self) -> impl Iterator<Item = &RunRow> {
        self.groups.iter().chain(&self.runs)
    }

    /// The number of the last run; 0 if there is none.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.groups.len() as u64 * GROUP_RUNS + self.runs.len() as u64
    }

    /// The last run.
    #[must_use]
    pub fn last(&self) -> Option<&RunRow> {
        self.runs.last()
    }

    /// Where the archive inside ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.last().map_or(self.base_bytes, RunRow::end)
    }

    /// Where the last records end, from the first record of the archive.
    #[must_use]
    pub fn records_end(&self) -> u64 {
        let base = self.base_records.saturating_mul(SEALED_RECORD_BYTES as u64);
        self.last().map_or(base, RunRow::records_end)
    }

    /// Adds a run.
    ///
    /// # Errors
    /// It contradicts those before; limit: there are too many.
    pub fn push(&mut self, row: RunRow) -> Result<()> {
        check_limit("runs", self.number() + 1, RUNS_MAX)?;
        row.check(self.end(), self.records_end())?;
        if self.runs.len() as u64 == GROUP_RUNS {
            self.groups.extend(self.last().copied());
            self.runs.clear();
        }
        self.runs.push(row);
        Ok(())
    }

    /// Returns the table as stored, before encryption.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut flags = if self.is_padded { FLAG_PADDED } else { 0 };
        if self.rows().any(|row| row.cipher != RunCipher::Archive) {
            flags |= FLAG_CIPHERS;
        }
        let numbers = [self.base_records, self.base_bytes, flags];
        let mut bytes: Vec<u8> = numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        for row in self.rows() {
            let cipher = (row.cipher as u64 - 1) << ROW_CIPHER_SHIFT;
            for number in [row.position, row.records | cipher, row.start, row.bytes] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend(row.link);
        }
        bytes
    }

    /// Parses the table of the run with this number, or of an archive without runs.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_any(number: u64, bytes: &[u8]) -> Result<RunTable> {
        if number > 0 {
            return RunTable::parse(number, bytes);
        }
        let mut reader = ByteReader::new("table of a run", bytes);
        let (table, _) = parse_base(&mut reader)?;
        reader.finish()?;
        Ok(table)
    }

    /// Parses the table of the run with this number.
    ///
    /// # Errors
    /// Damaged: values that contradict each other. Unsupported: unknown flags.
    pub fn parse(number: u64, bytes: &[u8]) -> Result<RunTable> {
        let mut reader = ByteReader::new("table of a run", bytes);
        let (mut table, has_ciphers) = parse_base(&mut reader)?;
        let (base_bytes, base_sealed_bytes) = (table.base_bytes, table.records_end());
        check_positive("number of a run", number)?;
        check_limit("runs", number, RUNS_MAX)?;
        let (groups, own) = ((number - 1) / GROUP_RUNS, (number - 1) % GROUP_RUNS + 1);
        check_equal(
            "bytes of a table",
            reader.remaining() as u64,
            (groups + own) * ROW_BYTES as u64,
        )?;
        for _ in 0..groups {
            let row = parse_row(&mut reader, has_ciphers)?;
            let (end, records_end) = match table.groups.last() {
                Some(before) => (before.end(), before.records_end()),
                None => (base_bytes, base_sealed_bytes),
            };
            // What is between the last runs of two groups is in the table of the later one.
            if row.start < end {
                check_equal("start of a run", row.start, end)?;
            }
            row.check(row.start, records_end)?;
            table.groups.push(row);
        }
        for _ in 0..own {
            let row = parse_row(&mut reader, has_ciphers)?;
            let before = table.runs.last().or(table.groups.last());
            let (end, records_end) = match before {
                Some(before) => (before.end(), before.records_end()),
                None => (base_bytes, base_sealed_bytes),
            };
            row.check(end, records_end)?;
            table.runs.push(row);
        }
        reader.finish()?;
        Ok(table)
    }
}

/// The table without rows, and whether its rows have ciphers.
fn parse_base(reader: &mut ByteReader<'_>) -> Result<(RunTable, bool)> {
    let [base_records, base_bytes, flags] = [reader.u64()?, reader.u64()?, reader.u64()?];
    if flags > FLAG_PADDED | FLAG_CIPHERS {
        return Err(FormatError::Reserved {
            what: "flags of a run",
            value: flags,
        });
    }
    let sealed_bytes = base_records.saturating_mul(SEALED_RECORD_BYTES as u64);
    check_positive("records of an archive", base_records)?;
    check_range("records of an archive", 0, sealed_bytes)?;
    let is_padded = flags & FLAG_PADDED != 0;
    let table = RunTable::of_base(base_records, base_bytes, is_padded);
    Ok((table, flags & FLAG_CIPHERS != 0))
}

fn parse_row(reader: &mut ByteReader<'_>, has_ciphers: bool) -> Result<RunRow> {
    let (position, stored) = (reader.u64()?, reader.u64()?);
    let cipher = if has_ciphers { stored >> ROW_CIPHER_SHIFT } else { 0 };
    Ok(RunRow {
        position,
        records: stored ^ (cipher << ROW_CIPHER_SHIFT),
        start: reader.u64()?,
        bytes: reader.u64()?,
        link: reader.array()?,
        cipher: cipher_of(cipher + 1)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(count: u64) -> RunTable {
        let mut table = RunTable::of_base(2, 20_000, true);
        for number in 0..count {
            let row = RunRow {
                position: table.records_end() + 1500 + number,
                records: 1 + number % 3,
                start: table.end(),
                bytes: 16_000 * (1 + number % 3),
                link: [number as u8; LINK_BYTES],
                cipher: cipher_of(1 + number % 5 % 3).unwrap(),
            };
            table.push(row).unwrap();
        }
        table
    }

    #[test]
    fn tables_read_back() {
        for count in [1, 2, 63, 64, 65, 128, 129, 700] {
            let table = table(count);
            let last = GROUP_RUNS as usize;
            assert_eq!(table.number(), count);
            assert!((1..=last).contains(&table.runs.len()), "{count}");
            assert_eq!(RunTable::parse(count, &table.to_bytes()), Ok(table.clone()));
            for other in [count - 1, count + 1, 0, 70_000] {
                assert!(
                    RunTable::parse(other, &table.to_bytes()).is_err(),
                    "{count} {other}"
                );
            }
        }
        let largest = (RUNS_MAX / GROUP_RUNS + GROUP_RUNS) * ROW_BYTES as u64 + 1000;
        assert!(largest < RUN_END_BYTES_MAX);
    }

    #[test]
    fn tables_that_contradict_themselves_are_damaged() {
        let table = table(66);
        let bytes = table.to_bytes();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x80;
            let parsed = RunTable::parse(66, &changed);
            assert!(parsed.is_err() || parsed.as_ref() != Ok(&table), "{at}");
            // A start of a run of its own is known from the one before.
            let is_start = at >= 24 + ROW_BYTES && (16..24).contains(&((at - 24) % ROW_BYTES));
            assert!(parsed.is_err() || !is_start, "{at}");
        }
        let mut full = table;
        let mut row = *full.last().unwrap();
        assert!(full.push(row).is_err());
        row.start = full.end();
        row.position = full.records_end() + run_frame_bytes(row.cipher) - 1;
        assert!(full.push(row).is_err());
        row.position += 1;
        assert!(full.push(row).is_ok());
    }

    #[test]
    fn frames_read_back() {
        frames_read_back_with(RunSecret::Archive);
        frames_read_back_with(RunSecret::Shared(Box::new([3; HYBRID_SHARE_BYTES])));
        frames_read_back_with(RunSecret::Writers);
    }

    fn frames_read_back_with(secret: RunSecret) {
        let start = RunStart {
            number: 300,
            salt: [7; SALT_BYTES],
            secret: secret.clone(),
        };
        let frame = start.to_frame(5);
        assert_eq!(frame.len() as u64, start.frame_bytes());
        assert_eq!(RunStart::parse(&frame, 5), Ok(start));
        let end = RunEnd {
            number: 300,
            link: [8; LINK_BYTES],
            records: 1 << 20,
            secret,
            sealed: vec![9; 1000],
            frame_bytes: 0,
        };
        let end_frame = end.to_frame(5);
        let frame_bytes = end_frame.len() as u64;
        assert_eq!(
            RunEnd::parse(&end_frame, 5),
            Ok(RunEnd { frame_bytes, ..end })
        );
        assert!(RunStart::parse(&frame, 6).is_err() && RunEnd::parse(&end_frame, 6).is_err());
        assert!(RunStart::parse(&end_frame, 5).is_err() && RunEnd::parse(&frame, 5).is_err());
        for at in 0..frame.len() {
            let mut changed = frame.clone();
            changed[at] ^= 4;
            assert!(RunStart::parse(&changed, 5).is_err(), "{at}");
        }
    }
}
