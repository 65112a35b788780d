//! Where the machine code of a program is: read from the first bytes of an ELF, PE or Mach-O file.

use std::ops::Range;

/// ELF: "System V Application Binary Interface", program headers; the x86-64 supplement.
const ELF_MAGIC: &[u8] = b"\x7fELF\x02\x01";
const ELF_MACHINE_X86_64: u16 = 62;
const ELF_SEGMENT_BYTES: u16 = 56;
const ELF_LOADED: u32 = 1;
const ELF_EXECUTABLE: u32 = 1;

/// PE: "PE Format" of Microsoft, section table.
const PE_MAGIC: &[u8] = b"MZ";
const PE_SIGNATURE: &[u8] = b"PE\0\0";
const PE_MACHINE_X86_64: u16 = 0x8664;
const PE_FILE_HEADER_BYTES: usize = 20;
const PE_SECTION_BYTES: usize = 40;
const PE_EXECUTABLE: u32 = 0x2000_0000;

/// Mach-O: Apple's `mach-o/loader.h`, 64-bit segments. Universal files are not looked into.
const MACHO_MAGIC: &[u8] = b"\xcf\xfa\xed\xfe";
const MACHO_CPU_X86_64: u32 = 0x0100_0007;
const MACHO_HEADER_BYTES: usize = 32;
const MACHO_SEGMENT: u32 = 0x19;
const MACHO_SEGMENT_BYTES: usize = 72;
const MACHO_SECTION_BYTES: usize = 80;
const MACHO_INSTRUCTIONS: u32 = 0x8000_0400;

/// The ranges of a file that are x86-64 code, as its `header` states them: in any order, perhaps
/// beyond the file's end. `None` if it is no program for x86-64, or the header is too short.
pub(super) fn code_ranges(header: &[u8]) -> Option<Vec<Range<u64>>> {
    let header = Header(header);
    if header.0.starts_with(ELF_MAGIC) {
        elf(header)
    } else if header.0.starts_with(PE_MAGIC) {
        pe(header)
    } else if header.0.starts_with(MACHO_MAGIC) {
        macho(header)
    } else {
        None
    }
}

/// Fields in little-endian order.
#[derive(Clone, Copy)]
struct Header<'a>(&'a [u8]);

impl Header<'_> {
    fn bytes<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    fn u16(self, at: usize) -> Option<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    fn u32(self, at: usize) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    fn u64(self, at: usize) -> Option<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }
}

fn range(start: u64, length_bytes: u64) -> Range<u64> {
    start..start.saturating_add(length_bytes)
}

fn elf(header: Header<'_>) -> Option<Vec<Range<u64>>> {
    let segments = usize::try_from(header.u64(0x20)?).ok()?;
    let is_known = header.u16(0x12)? == ELF_MACHINE_X86_64
        && header.u16(0x36)? == ELF_SEGMENT_BYTES
        && segments <= header.0.len();
    let count = if is_known { header.u16(0x38)? } else { return None };
    let mut found = vec![];
    for number in 0..usize::from(count) {
        let at = segments + number * usize::from(ELF_SEGMENT_BYTES);
        let (kind, flags) = (header.u32(at)?, header.u32(at + 4)?);
        if kind == ELF_LOADED && flags & ELF_EXECUTABLE != 0 {
            found.push(range(header.u64(at + 8)?, header.u64(at + 32)?));
        }
    }
    Some(found)
}

fn pe(header: Header<'_>) -> Option<Vec<Range<u64>>> {
    let at = usize::try_from(header.u32(0x3C)?).ok()?;
    let file_header = at.checked_add(PE_SIGNATURE.len())?;
    if header.0.get(at..file_header)? != PE_SIGNATURE
        || header.u16(file_header)? != PE_MACHINE_X86_64
    {
        return None;
    }
    let count = header.u16(file_header + 2)?;
    let sections = file_header + PE_FILE_HEADER_BYTES + usize::from(header.u16(file_header + 16)?);
    let mut found = vec![];
    for number in 0..usize::from(count) {
        let at = sections + number * PE_SECTION_BYTES;
        if header.u32(at + 36)? & PE_EXECUTABLE != 0 {
            let (start, length_bytes) = (header.u32(at + 20)?, header.u32(at + 16)?);
            found.push(range(start.into(), length_bytes.into()));
        }
    }
    Some(found)
}

fn macho(header: Header<'_>) -> Option<Vec<Range<u64>>> {
    if header.u32(4)? != MACHO_CPU_X86_64 {
        return None;
    }
    let mut found = vec![];
    let mut at = MACHO_HEADER_BYTES;
    for _ in 0..header.u32(16)? {
        let command_bytes = usize::try_from(header.u32(at + 4)?).ok()?;
        if header.u32(at)? == MACHO_SEGMENT {
            for number in 0..header.u32(at + 64)? as usize {
                let section = at + MACHO_SEGMENT_BYTES + number.checked_mul(MACHO_SECTION_BYTES)?;
                if header.u32(section + 64)? & MACHO_INSTRUCTIONS != 0 {
                    let start = header.u32(section + 48)?;
                    found.push(range(start.into(), header.u64(section + 40)?));
                }
            }
        }
        // Every command has at least its kind and its length.
        at = at.checked_add(command_bytes.max(8))?;
    }
    Some(found)
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "lists of one range are meant"
)]
mod tests {
    use super::*;

    fn put(header: &mut Vec<u8>, at: usize, bytes: &[u8]) {
        if header.len() < at + bytes.len() {
            header.resize(at + bytes.len(), 0);
        }
        header[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn pe_file() -> Vec<u8> {
        let mut header = PE_MAGIC.to_vec();
        put(&mut header, 0x3C, &0x80_u32.to_le_bytes());
        put(&mut header, 0x80, PE_SIGNATURE);
        put(&mut header, 0x84, &PE_MACHINE_X86_64.to_le_bytes());
        put(&mut header, 0x86, &2_u16.to_le_bytes());
        put(&mut header, 0x94, &240_u16.to_le_bytes());
        let sections = 0x84 + PE_FILE_HEADER_BYTES + 240;
        for (number, flags) in [0x4000_0040, 0x6000_0020_u32].into_iter().enumerate() {
            let at = sections + number * PE_SECTION_BYTES;
            put(&mut header, at + 16, &0x2000_u32.to_le_bytes());
            put(
                &mut header,
                at + 20,
                &(0x1000 * (1 + number as u32)).to_le_bytes(),
            );
            put(&mut header, at + 36, &flags.to_le_bytes());
        }
        header
    }

    fn macho_file() -> Vec<u8> {
        let mut header = MACHO_MAGIC.to_vec();
        put(&mut header, 4, &MACHO_CPU_X86_64.to_le_bytes());
        put(&mut header, 16, &2_u32.to_le_bytes());
        put(&mut header, 32, &0x1B_u32.to_le_bytes());
        put(&mut header, 36, &24_u32.to_le_bytes());
        put(&mut header, 56, &MACHO_SEGMENT.to_le_bytes());
        put(&mut header, 60, &152_u32.to_le_bytes());
        put(&mut header, 56 + 64, &1_u32.to_le_bytes());
        let section = 56 + MACHO_SEGMENT_BYTES;
        put(&mut header, section + 40, &0x5000_u64.to_le_bytes());
        put(&mut header, section + 48, &0x3000_u32.to_le_bytes());
        put(&mut header, section + 64, &MACHO_INSTRUCTIONS.to_le_bytes());
        put(&mut header, section + 76, &[0; 4]);
        header
    }

    #[test]
    fn finds_code_of_each_kind() {
        assert_eq!(code_ranges(&pe_file()), Some(vec![0x2000..0x4000]));
        assert_eq!(code_ranges(&macho_file()), Some(vec![0x3000..0x8000]));
    }

    #[test]
    fn any_bytes_are_accepted() {
        for file in [pe_file(), macho_file(), ELF_MAGIC.to_vec(), vec![]] {
            for length in 0..file.len().saturating_sub(12) {
                assert_eq!(code_ranges(&file[..length]), None, "{length}");
            }
            for seed in 0..500 {
                let mut changed = file.clone();
                let noise = crate::test_data::random_bytes(changed.len(), seed);
                for (byte, noise) in changed.iter_mut().skip(4).zip(noise) {
                    if noise % 7 == 0 {
                        *byte = noise;
                    }
                }
                let _ = code_ranges(&changed);
            }
        }
    }
}
