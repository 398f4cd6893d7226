//! Buffers that are used again.

use std::sync::{Mutex, PoisonError};

/// Things that are taken for a while and given back: as many are made as were ever in use at a time.
#[derive(Debug, Default)]
pub(super) struct ScratchPool<T>(Mutex<Vec<T>>);

impl<T: Default> ScratchPool<T> {
    /// Does something with one of them.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        // The last one given back is most likely still in a cache.
        let mut one = self.lock().pop().unwrap_or_default();
        let result = work(&mut one);
        self.lock().push(one);
        result
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
