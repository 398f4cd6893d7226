//! Small files read whole, up to a limit for their kind.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The most bytes of a file of text: settings, taxonomies, splits, metrics.
pub const MAX_TEXT: u64 = 64 << 20;
/// The most bytes of a file of tensors that is read whole: centres, calibrations, the items of a taxonomy, checkpoints.
pub const MAX_TENSORS: u64 = 4 << 30;

/// The bytes of a file of ours that has at most so many. Pipes are refused, as they may never have a writer, and so are devices.
pub fn read_whole(path: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
    let path = path.as_ref();
    if is_pipe(&fs::metadata(path)?) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe, not a file"));
    }
    read_named(path, most)
}

/// The same of a file that the user named: a pipe is read once, to its end.
pub fn read_named(path: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
    let path = path.as_ref();
    let found = fs::metadata(path)?;
    refuse_device(&found)?;
    let mut bytes = Vec::with_capacity(usize::try_from(found.len().min(most)).unwrap_or(0));
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {} MiB, the most for a file of its kind", most >> 20),
        )),
        false => Ok(bytes),
    }
}

/// Whether it is a pipe.
fn is_pipe(found: &fs::Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::FileTypeExt::is_fifo(&found.file_type());
    #[cfg(not(unix))]
    {
        let _ = found;
        false
    }
}

/// The text of a file of ours, read by [`read_whole`].
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = read_whole(path, MAX_TEXT)?;
    String::from_utf8(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, format!("it is no text: {e}")))
}

/// Whether it is not a file that is to blame but the machine, which has too few file handles or too little memory left.
pub fn is_shortage(error: &io::Error) -> bool {
    #[cfg(unix)]
    let code = matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS | libc::EAGAIN)
    );
    // Too many open files, and no system resources.
    #[cfg(not(unix))]
    let code = matches!(error.raw_os_error(), Some(4 | 1450));
    // A call that was interrupted says nothing about the file either.
    code || matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::Interrupted)
}

/// Fails for a device.
pub fn refuse_device(found: &fs::Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = found.file_type();
        if kind.is_char_device() || kind.is_block_device() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is a device, not a file",
            ));
        }
    }
    #[cfg(not(unix))]
    let _ = found;
    Ok(())
}
