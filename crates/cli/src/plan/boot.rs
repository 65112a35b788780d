//! `refrain boot`: the commands that create an overlay and run a guest.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use refrain::ReadOptions;
use serde_json::{Value, json};

use super::inputs::SeekableInput;
use crate::args::BootArgs;
use crate::disk_image::ImageFormat;
use crate::failure::{Failure, Result};
use crate::text::json_text;

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
    /// `Usage` if the archive is a pipe, or QEMU cannot take the socket's path; `Io` if the file
    /// does not exist.
    pub fn new(args: &BootArgs) -> Result<BootPlan> {
        if let Some(socket) = args.socket.as_ref().filter(|path| path.to_str().is_none()) {
            let text = "a path that is not UTF-8 cannot be passed to QEMU";
            return Err(Failure::usage(socket.to_string_lossy(), text));
        }
        let options = (args.generation)
            .with((args.limits).with(args.secrets.with(args.resources.read_options())?));
        Ok(BootPlan {
            archive: SeekableInput::new(&args.archive, &options, &args.secrets)?,
            options,
        })
    }
}

/// What the commands are built from.
#[derive(Debug)]
pub struct Guest<'a> {
    pub qemu: &'a OsStr,
    pub socket: &'a Path,
    pub overlay: PathBuf,
    /// The format of the image in the archive.
    pub format: ImageFormat,
    pub arguments: &'a [OsString],
}

impl Guest<'_> {
    /// The command that creates the overlay.
    pub fn make_overlay(&self) -> Vec<OsString> {
        let mut command: Vec<OsString> = ["qemu-img", "create", "-q", "-f", "qcow2"]
            .map(OsString::from)
            .to_vec();
        let path = self.socket.to_string_lossy();
        let server = json!({ "type": "unix", "path": path });
        let mut image = self.image_options();
        image["file"] = json!({ "driver": "nbd", "server": server });
        let backing = format!("json:{}", json_text(image));
        command.extend([OsString::from("-b"), backing.into()]);
        command.extend(["-F", self.format.name()].map(OsString::from));
        command.push(no_option(&self.overlay).into());
        command
    }

    /// How QEMU opens the image: in its format, without any file that its header names.
    fn image_options(&self) -> Value {
        let mut options = json!({ "driver": self.format.name() });
        if self.format.has_backing() {
            options["backing"] = Value::Null;
        }
        options
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
        let mut base = self.image_options();
        base["node-name"] = "base".into();
        base["read-only"] = true.into();
        base["file"] = "image".into();
        let mut disk = OsString::from("driver=qcow2,node-name=disk,backing=base,");
        disk.push("file.driver=file,file.filename=");
        disk.push(escaped(&no_option(&self.overlay)));
        for node in [image, base.to_string().into(), disk] {
            command.extend([OsString::from("-blockdev"), node]);
        }
        command.extend(["-device", "virtio-blk,drive=disk"].map(OsString::from));
        command.extend(self.arguments.iter().cloned());
        command
    }
}

/// A path that programs do not take for an option, nor QEMU for a protocol.
fn no_option(path: &Path) -> PathBuf {
    let is_plain = path.is_absolute()
        || !(path.as_os_str().as_encoded_bytes()).contains(&b':')
            && !path.as_os_str().as_encoded_bytes().starts_with(b"-");
    if is_plain { path.to_owned() } else { Path::new(".").join(path) }
}

/// A path in a list of QEMU options: commas are doubled.
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
    fn no_name_is_an_option_and_no_image_opens_another() {
        let guest = Guest {
            qemu: OsStr::new("qemu"),
            socket: Path::new("/run/a,b"),
            overlay: PathBuf::from("x,y.qcow2"),
            format: ImageFormat::Qcow2,
            arguments: &[OsString::from("-nographic")],
        };
        let run = guest.run();
        let has = |text: &str| {
            run.iter()
                .any(|part| part.to_string_lossy().ends_with(text))
        };
        assert!(has("server.path=/run/a,,b") && has("filename=x,,y.qcow2"));
        assert_eq!(run.last().unwrap(), "-nographic");
        let base = run.iter().find_map(|word| {
            let value = serde_json::from_str::<Value>(word.to_str()?);
            value.ok().filter(|value| value["node-name"] == "base")
        });
        let base = base.unwrap();
        assert_eq!(
            (&base["driver"], &base["backing"]),
            (&json!("qcow2"), &Value::Null)
        );
        assert!(base.as_object().unwrap().contains_key("backing"));
        assert!(run.iter().any(|part| part == "kvm"));
        let guest = Guest {
            overlay: PathBuf::from("-o:x"),
            socket: Path::new("/run/a b&c%?\"\n\u{9b}"),
            arguments: &["-accel", "tcg"].map(OsString::from),
            ..guest
        };
        assert!(!guest.run().iter().any(|part| part == "kvm"));
        let overlay = guest.make_overlay();
        assert_eq!(overlay.last().unwrap(), "./-o:x");
        let backing = overlay
            .iter()
            .find_map(|word| word.to_str()?.strip_prefix("json:"));
        let backing = backing.unwrap();
        assert!(!backing.contains(char::is_control));
        let backing: Value = serde_json::from_str(backing).unwrap();
        assert_eq!(
            backing["file"]["server"]["path"],
            guest.socket.to_str().unwrap()
        );
    }
}
