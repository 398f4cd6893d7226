//! Files that are written whole or not at all, and containers from strangers that are read safely.
//!
//! [`AtomicFile`] replaces a file in one step, [`FolderLock`] keeps a folder to one process, [`ScratchFolder`] is gone after
//! the run; [`discard_unfinished`] cleans up when a signal ends the process. [`read_whole`] reads small files up to a limit.
//!
//! [`pickle`], [`archive`] and [`safetensors`] read containers that data sets and network weights share. They trust no length
//! and run no code; what is wrong with the bytes is a [`FormatError`].
//!
//! ```
//! use std::io::Write;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("result.csv");
//! let mut file = genus_files::AtomicFile::create(&path)?;
//! file.write_all(b"id,category\n")?;
//! assert!(!path.exists());
//! file.commit()?;
//! assert_eq!(genus_files::read_text(&path)?, "id,category\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod archive;
mod atomic;
mod error;
mod lock;
pub mod pickle;
mod pixels;
pub mod safetensors;
mod scratch;
mod whole;

pub use atomic::{
    AtomicFile, DiscardGuard, create_own_folder, discard_later, discard_unfinished, folder_of, is_at, open_own, rename,
    sync_folder,
};
pub use error::{FileError, FormatError};
pub use lock::FolderLock;
pub use pixels::RawPixels;
pub use scratch::ScratchFolder;
pub use whole::{MAX_TENSORS, MAX_TEXT, is_shortage, read_named, read_text, read_whole, refuse_device};
