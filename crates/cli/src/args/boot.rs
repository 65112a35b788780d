//! The arguments of `refrain boot`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::generations::GenerationArgs;
use super::opening::OpeningArgs;
use super::password::SecretArgs;
use super::read_limits::ReadLimitArgs;
use super::report::ReportArgs;
use super::resources::ResourceArgs;
use crate::disk_image::ImageFormat;

/// `refrain boot`
#[derive(Debug, Args)]
#[command(after_help = BOOT_TEXT)]
pub struct BootArgs {
    /// The archive
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// The disk image: a member, or MEMBER/PATH (default: the only file)
    #[arg(value_name = "NAME")]
    pub name: Option<OsString>,
    /// Keep what the guest writes in this qcow2 file, which is created if needed (default: discard
    /// it)
    #[arg(long, value_name = "FILE")]
    pub overlay: Option<PathBuf>,
    /// Record what the guest reads, in order, in a trace
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Read ahead by this trace (default: the member NAME.trace, if the archive has one)
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Do not read ahead by a trace
    #[arg(long, conflicts_with = "replay")]
    pub no_replay: bool,
    /// Print the commands instead of running them
    #[arg(long)]
    pub print: bool,
    /// The format of the image (default: detected, or raw)
    #[arg(long, value_name = "FORMAT")]
    pub image_format: Option<ImageFormat>,
    /// The program that runs the guest
    #[arg(long, value_name = "PROGRAM", default_value = default_qemu())]
    pub qemu: OsString,
    /// The socket between QEMU and the archive (default: one in a new directory)
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Further arguments for QEMU: -m 4G -nographic ...
    #[arg(last = true, value_name = "QEMU ARGUMENT")]
    pub arguments: Vec<OsString>,
    #[command(flatten)]
    pub opening: OpeningArgs,
    #[command(flatten)]
    pub generation: GenerationArgs,
    #[command(flatten)]
    pub secrets: SecretArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
    #[command(flatten)]
    pub limits: ReadLimitArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

const BOOT_TEXT: &str = "\
The image is the guest's first disk (virtio). What the guest writes goes to an overlay; the archive \
is never changed. Images are raw, qcow2, VMDK, VDI or VHDX, as they were compressed.
QEMU gets `-accel kvm -accel tcg` and `-m 1G`, unless the arguments say something else.
A trace is text. To store it in the archive, compress it as NAME.trace and append that archive:
    refrain compress disk.img.trace -o - >> disk.img.rfn";

/// QEMU for this machine's processor.
fn default_qemu() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "qemu-system-x86_64",
        "aarch64" => "qemu-system-aarch64",
        "riscv64" => "qemu-system-riscv64",
        "powerpc64" => "qemu-system-ppc64",
        "s390x" => "qemu-system-s390x",
        _ => "qemu-system",
    }
}
