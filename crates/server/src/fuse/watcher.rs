//! A process that frees the directory of a mount whose server is killed.
//!
//! fusermount3 offers this too (`auto_unmount`), but only for mounts that all users see, and it
//! takes a mount whose attributes the kernel has cached for one that still works.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Waits until the server has closed the pipe, or the kernel has, and then unmounts the directory,
/// if a mount with the server's device number is still there. A signal to all of a session, a
/// terminal or a service leaves it alone: the server is then still to end.
const SCRIPT: &str = r#"trap '' HUP INT TERM
read -r _
while read -r _ _ device _; do
  [ "$device" = "$2" ] || continue
  fusermount3 -u -z -q -- "$1" || umount -l -- "$1"
  exit
done < /proc/self/mountinfo"#;

/// The process. Dropping this ends it, after it has freed the directory if that is still needed.
pub(super) struct Watcher(Child);

impl Watcher {
    /// Starts the process for the mount with this device number on a directory.
    ///
    /// # Errors
    /// As the system, if there is no shell.
    pub(super) fn start(directory: &Path, device: &str) -> io::Result<Watcher> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "refrain-mount-watcher"]);
        command.arg(directory).arg(device);
        command.stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // A directory in use could not be unmounted.
        command.current_dir("/").process_group(0);
        command.spawn().map(Watcher)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Closes the pipe first.
        let _ = self.0.wait();
    }
}
