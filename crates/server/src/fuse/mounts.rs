//! The mounts of this process, as the system lists them.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The list, one mount per line.
const MOUNTS: &str = "/proc/self/mountinfo";

/// The device number, as `MAJOR:MINOR`, of the latest mount on a directory.
pub(super) fn device_on(directory: &Path) -> Option<String> {
    device_of(&fs::read(MOUNTS).ok()?, directory)
}

fn device_of(mounts: &[u8], directory: &Path) -> Option<String> {
    let mut lines = mounts.split(|byte| *byte == b'\n').rev();
    lines.find_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        let device = fields.next()?;
        let mounted_on = unescaped(fields.nth(1)?);
        let device = std::str::from_utf8(device).ok()?;
        (mounted_on == directory).then(|| device.to_owned())
    })
}

/// Decodes a path with blanks and backslashes as three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut path = vec![];
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        rest = match (first, byte) {
            (b'\\', Some(byte)) => {
                path.push(byte);
                after.get(3..).unwrap_or_default()
            }
            _ => {
                path.push(first);
                after
            }
        };
    }
    PathBuf::from(std::ffi::OsString::from_vec(path))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn the_last_mount_on_a_directory_is_found() {
        let mounts = b"22 1 254:0 / / rw - ext4 /dev/vda rw\n\
            90 22 0:41 / /mnt/a\\040b ro - fuse.refrain x ro\n\
            91 22 0:42 / /mnt/a\\040b ro - fuse.refrain x ro\n\
            92 22 0:43 / /mnt/a\\134\xff ro - fuse.refrain x ro\n";
        let of = |path: &[u8]| device_of(mounts, Path::new(OsStr::from_bytes(path)));
        assert_eq!(of(b"/mnt/a b").as_deref(), Some("0:42"));
        assert_eq!(of(b"/mnt/a\\\xff").as_deref(), Some("0:43"));
        assert_eq!(of(b"/").as_deref(), Some("254:0"));
        assert_eq!(of(b"/mnt"), None);
    }
}
