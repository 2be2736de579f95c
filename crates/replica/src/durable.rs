//! Small files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ReplicaError;

/// Writes a file so that after any end of the process, or of the machine, there is the old one or the new.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    sync_folder(path.parent().expect("a file is in a folder"))
}

/// Syncs the entries of a folder to the disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Writes a value with its sum, see [`replace`].
pub(crate) fn save<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let mut content = postcard::to_stdvec(value).map_err(io::Error::other)?;
    content.extend(crc32fast::hash(&content).to_le_bytes());
    replace(path, &content)
}

/// Reads the value that [`save`] wrote; `None` if there is no such file.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ReplicaError> {
    let content = match fs::read(path) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ReplicaError::file(path)(error)),
    };
    let damaged = |why| ReplicaError::Corrupt { path: path.to_owned(), at: 0, why };
    let value = checked(&content).ok_or_else(|| damaged("its sum is wrong"))?;
    postcard::from_bytes(value).map(Some).map_err(|_| damaged("it holds something else"))
}

/// Returns the content before the checksum at its end; `None` if the checksum is wrong.
pub(crate) fn checked(content: &[u8]) -> Option<&[u8]> {
    let (value, sum) = content.split_last_chunk::<4>()?;
    (crc32fast::hash(value) == u32::from_le_bytes(*sum)).then_some(value)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A folder of a test's own, which goes with this.
    #[derive(Debug)]
    pub(crate) struct Folder(pub(crate) PathBuf);

    impl Folder {
        pub(crate) fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let name = format!("replica-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_value_is_loaded_as_it_was_saved_or_not_at_all() {
        let folder = Folder::new();
        let path = folder.0.join("value");
        assert_eq!(load::<u64>(&path).unwrap(), None);
        save(&path, &7_u64).unwrap();
        save(&path, &8_u64).unwrap();
        assert_eq!(load::<u64>(&path).unwrap(), Some(8));
        let mut content = fs::read(&path).unwrap();
        content[0] ^= 1;
        fs::write(&path, content).unwrap();
        assert!(load::<u64>(&path).unwrap_err().to_string().contains("sum is wrong"));
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }
}
