//! `refrain boot`: the commands that make an overlay and run a guest.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use refrain::ReadOptions;

use super::inputs::SeekableInput;
use crate::args::BootArgs;
use crate::failure::{Failure, Result};

/// A guest to run.
#[derive(Debug)]
pub struct BootPlan {
    pub options: ReadOptions,
    pub archive: SeekableInput,
}

impl BootPlan {
    /// Plans a run of `boot`.
    ///
    /// # Errors
    /// `Usage` if the archive is a pipe, or a path contains what QEMU cannot be told; `Io` if there
    /// is no such file.
    pub fn new(args: &BootArgs) -> Result<BootPlan> {
        for path in [&args.overlay, &args.socket].into_iter().flatten() {
            if path.as_os_str().as_encoded_bytes().contains(&b'\n') {
                let text = "a line break in this path cannot be passed to QEMU";
                return Err(Failure::usage(path.to_string_lossy(), text));
            }
        }
        let options = (args.limits).with(args.password.with(args.resources.read_options()));
        Ok(BootPlan {
            archive: SeekableInput::new(&args.archive, &options, &args.password)?,
            options,
        })
    }
}

/// The formats of disk images: QEMU's name, where its mark is, and the mark.
const FORMATS: &[(&str, usize, &[u8])] = &[
    ("qcow2", 0, b"QFI\xfb"),
    ("vmdk", 0, b"KDMV"),
    ("vhdx", 0, b"vhdxfile"),
    ("vdi", 0x40, &[0x7f, 0x10, 0xda, 0xbe]),
];

/// The bytes of an image in which its mark is.
pub const IMAGE_HEAD_BYTES: usize = 0x44;

/// QEMU's name of the format of an image with this beginning.
pub fn image_format(head: &[u8]) -> &'static str {
    let has_mark = |(_, at, mark): &&(&str, usize, &[u8])| {
        head.get(*at..).is_some_and(|rest| rest.starts_with(mark))
    };
    let found = FORMATS.iter().find(has_mark);
    found.map_or("raw", |(name, _, _)| name)
}

/// What the commands are made from.
#[derive(Debug)]
pub struct Guest<'a> {
    pub qemu: &'a OsStr,
    pub socket: &'a Path,
    pub overlay: PathBuf,
    /// Of the image that the archive holds.
    pub format: &'static str,
    pub arguments: &'a [OsString],
}

impl Guest<'_> {
    /// The command that makes the overlay.
    pub fn make_overlay(&self) -> Vec<OsString> {
        let mut command: Vec<OsString> = ["qemu-img", "create", "-q", "-f", "qcow2"]
            .map(OsString::from)
            .to_vec();
        let mut backing = OsString::from("nbd+unix:///?socket=");
        backing.push(self.socket);
        command.extend([OsString::from("-b"), backing]);
        command.extend(["-F", self.format].map(OsString::from));
        command.push(self.overlay.clone().into());
        command
    }

    /// The command that runs the guest.
    pub fn run(&self) -> Vec<OsString> {
        let mut command = vec![self.qemu.to_owned()];
        let is_given = |option: &str| self.arguments.iter().any(|given| given == option);
        // QEMU takes the first accelerator that works.
        if !is_given("-accel") && !is_given("-machine") && !is_given("-M") {
            command.extend(["-accel", "kvm", "-accel", "tcg"].map(OsString::from));
        }
        if !is_given("-m") {
            command.extend(["-m", "1G"].map(OsString::from));
        }
        let mut image = OsString::from("driver=nbd,node-name=image,read-only=on,");
        image.push("reconnect-delay=30,server.type=unix,server.path=");
        image.push(escaped(self.socket));
        let format = format!(
            "driver={},node-name=base,read-only=on,file=image",
            self.format
        );
        let mut disk = OsString::from("driver=qcow2,node-name=disk,backing=base,");
        disk.push("file.driver=file,file.filename=");
        disk.push(escaped(&self.overlay));
        for node in [image, format.into(), disk] {
            command.extend([OsString::from("-blockdev"), node]);
        }
        command.extend(["-device", "virtio-blk,drive=disk"].map(OsString::from));
        command.extend(self.arguments.iter().cloned());
        command
    }
}

/// A path in a list of QEMU's options: a comma is written twice.
fn escaped(path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut bytes = vec![];
    for &byte in path.as_os_str().as_bytes() {
        bytes.push(byte);
        if byte == b',' {
            bytes.push(byte);
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_of_an_image_is_known_by_its_mark() {
        let mut head = [0; IMAGE_HEAD_BYTES];
        assert_eq!(image_format(&head), "raw");
        head[0x40..].copy_from_slice(&[0x7f, 0x10, 0xda, 0xbe]);
        assert_eq!(image_format(&head), "vdi");
        assert_eq!(image_format(b"QFI\xfb..."), "qcow2");
        assert_eq!(image_format(b"QFI"), "raw");
    }

    #[test]
    fn commas_in_paths_are_doubled() {
        let guest = Guest {
            qemu: OsStr::new("qemu"),
            socket: Path::new("/run/a,b"),
            overlay: PathBuf::from("x,y.qcow2"),
            format: "raw",
            arguments: &[OsString::from("-nographic")],
        };
        let run = guest.run();
        let has = |text: &str| {
            run.iter()
                .any(|part| part.to_string_lossy().ends_with(text))
        };
        assert!(has("server.path=/run/a,,b") && has("filename=x,,y.qcow2"));
        assert_eq!(run.last().unwrap(), "-nographic");
        assert!(run.iter().any(|part| part == "kvm"));
        let guest = Guest {
            arguments: &["-accel", "tcg"].map(OsString::from),
            ..guest
        };
        assert!(!guest.run().iter().any(|part| part == "kvm"));
    }
}
