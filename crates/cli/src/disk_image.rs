//! The format of a disk image, and whether its header makes QEMU open other files.
//!
//! An image may name a backing file, or another file with its data. The name comes from the
//! archive, but QEMU would look for it on this machine, and the guest would see the result.

use clap::ValueEnum;

/// A format of disk images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImageFormat {
    Raw,
    Qcow2,
    Vmdk,
    Vhdx,
    Vdi,
}

/// The magic bytes of formats, and their offsets.
const MARKS: &[(ImageFormat, usize, &[u8])] = &[
    (ImageFormat::Qcow2, 0, b"QFI\xfb"),
    (ImageFormat::Vmdk, 0, b"KDMV"),
    (ImageFormat::Vhdx, 0, b"vhdxfile"),
    (ImageFormat::Vdi, 0x40, &[0x7f, 0x10, 0xda, 0xbe]),
];

/// How much of an image contains the magic and the fields that matter here.
pub const IMAGE_HEAD_BYTES: usize = 128;

/// The longest name of a backing file in qcow2, in bytes.
const NAME_BYTES_MAX: u64 = 1023;

/// How much QEMU reads as the description of a VMDK image, in bytes.
const DESCRIPTION_BYTES_MAX: u64 = 1 << 20;

/// Where QEMU looks for a parent in the description of a VMDK image, whatever its header says.
const DESCRIPTION_OFFSET: u64 = 512;

/// A bit of qcow2's incompatible features: the data is in another file.
const HAS_DATA_FILE: u64 = 1 << 2;

impl ImageFormat {
    /// Recognizes the format by the beginning of an image.
    pub fn from_head(head: &[u8]) -> ImageFormat {
        let has_mark = |(_, at, mark): &&(ImageFormat, usize, &[u8])| {
            head.get(*at..).is_some_and(|rest| rest.starts_with(mark))
        };
        let found = MARKS.iter().find(has_mark);
        found.map_or(ImageFormat::Raw, |(format, _, _)| *format)
    }

    /// QEMU's name.
    pub fn name(self) -> &'static str {
        match self {
            ImageFormat::Raw => "raw",
            ImageFormat::Qcow2 => "qcow2",
            ImageFormat::Vmdk => "vmdk",
            ImageFormat::Vhdx => "vhdx",
            ImageFormat::Vdi => "vdi",
        }
    }

    /// Whether images of this format may have a backing file, which QEMU must then be told not to
    /// open.
    pub fn has_backing(self) -> bool {
        matches!(self, ImageFormat::Qcow2 | ImageFormat::Vmdk)
    }

    /// Why QEMU must not open an image with this beginning; `None` if it opens no other file.
    /// `read` reads at most a given number of bytes at an offset. (QEMU itself refuses VHDX and VDI
    /// images with a parent.)
    ///
    /// # Errors
    /// As `read`.
    pub fn foreign_file<E>(
        self,
        head: &[u8],
        mut read: impl FnMut(u64, u64) -> Result<Vec<u8>, E>,
    ) -> Result<Option<String>, E> {
        match self {
            ImageFormat::Qcow2 => {
                let (offset, length) = (field::<8>(head, 8, true), field::<4>(head, 16, true));
                let features = match field::<4>(head, 4, true) {
                    version if version >= 3 => field::<8>(head, 72, true),
                    _ => 0,
                };
                if offset != 0 {
                    let name = read(offset, length.min(NAME_BYTES_MAX))?;
                    let name = String::from_utf8_lossy(&name).into_owned();
                    return Ok(Some(format!("a backing file, {name:?}")));
                }
                let is_elsewhere = features & HAS_DATA_FILE != 0;
                Ok(is_elsewhere.then(|| "another file that holds its data".to_owned()))
            }
            ImageFormat::Vmdk => {
                if !head.starts_with(b"KDMV") || field::<8>(head, 12, false) == 0 {
                    return Ok(Some("other files that hold its data".to_owned()));
                }
                let described = field::<8>(head, 28, false).saturating_mul(512);
                for offset in [DESCRIPTION_OFFSET, described] {
                    let text = read(offset, DESCRIPTION_BYTES_MAX)?;
                    if names_parent(&text) {
                        return Ok(Some("a parent image".to_owned()));
                    }
                }
                Ok(None)
            }
            ImageFormat::Raw | ImageFormat::Vhdx | ImageFormat::Vdi => Ok(None),
        }
    }
}

/// Whether a description, which ends with NUL, names a parent.
fn names_parent(text: &[u8]) -> bool {
    const WORD: &[u8] = b"parentFileNameHint";
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    text.windows(WORD.len()).any(|part| part == WORD)
}

/// A number in a header; 0 past its end.
fn field<const BYTES: usize>(head: &[u8], at: usize, is_big_endian: bool) -> u64 {
    let bytes = head.get(at..at + BYTES).unwrap_or_default().iter();
    let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    if is_big_endian { bytes.fold(0, add) } else { bytes.rev().fold(0, add) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(image: &[u8]) -> Option<String> {
        let read = |offset: u64, length: u64| -> Result<Vec<u8>, ()> {
            let rest = image.get(offset as usize..).unwrap_or_default();
            Ok(rest[..rest.len().min(length as usize)].to_vec())
        };
        let head = &image[..image.len().min(IMAGE_HEAD_BYTES)];
        ImageFormat::from_head(head)
            .foreign_file(head, read)
            .unwrap()
    }

    fn put(image: &mut [u8], at: usize, bytes: &[u8]) {
        image[at..at + bytes.len()].copy_from_slice(bytes);
    }

    #[test]
    fn the_format_of_an_image_is_known_by_its_mark() {
        let mut head = [0; IMAGE_HEAD_BYTES];
        assert_eq!(ImageFormat::from_head(&head), ImageFormat::Raw);
        put(&mut head, 0x40, &[0x7f, 0x10, 0xda, 0xbe]);
        assert_eq!(ImageFormat::from_head(&head), ImageFormat::Vdi);
        assert_eq!(ImageFormat::from_head(b"QFI\xfb..."), ImageFormat::Qcow2);
        assert_eq!(ImageFormat::from_head(b"QFI"), ImageFormat::Raw);
    }

    #[test]
    fn qcow2_headers_that_name_other_files_are_found() {
        let mut image = [0; 256];
        put(&mut image, 0, b"QFI\xfb\0\0\0\x03");
        assert_eq!(found(&image), None);
        assert_eq!(found(&image[..20]), None);
        put(&mut image, 79, &[1 << 2]);
        assert!(found(&image).unwrap().contains("holds its data"));
        put(&mut image, 7, &[2]);
        assert_eq!(found(&image), None, "version 2 has no such field");
        put(&mut image, 15, &[200]);
        put(&mut image, 19, &[9]);
        put(&mut image, 200, b"json:{\x1b}");
        assert_eq!(
            found(&image).unwrap(),
            "a backing file, \"json:{\\u{1b}}\\0\""
        );
        put(&mut image, 8, &[0xff; 12]);
        assert!(found(&image).is_some());
    }

    #[test]
    fn vmdk_headers_that_name_other_files_are_found() {
        let mut image = vec![0; 4096];
        put(&mut image, 0, b"KDMV\x01");
        assert!(
            found(&image).unwrap().contains("hold its data"),
            "no capacity"
        );
        put(&mut image, 12, &[8]);
        put(&mut image, 28, &[2]);
        put(
            &mut image,
            1024,
            b"# Disk DescriptorFile\nRW 8 SPARSE \"a.vmdk\"\n",
        );
        assert_eq!(found(&image), None);
        put(&mut image, 1100, b"x\0parentFileNameHint=\"/etc/shadow\"\n");
        assert_eq!(found(&image), None, "that is behind the end of the text");
        put(&mut image, 512, b"parentFileNameHint=\"/etc/shadow\"\n");
        assert!(found(&image).is_some());
        put(&mut image, 512, &[0; 40]);
        put(&mut image, 1067, b"parentFileNameHint=\"/etc/shadow\"\n");
        assert!(found(&image).is_some());
        // A text that only describes extents has another magic: it is raw.
        assert_eq!(
            found(b"# Disk DescriptorFile\nRW 8 FLAT \"/etc/shadow\" 0"),
            None
        );
        let format = ImageFormat::Vmdk;
        let read = |_: u64, _: u64| -> Result<Vec<u8>, ()> { Ok(vec![]) };
        let text = b"# Disk DescriptorFile\n";
        assert!(format.foreign_file(text, read).unwrap().is_some());
    }
}
