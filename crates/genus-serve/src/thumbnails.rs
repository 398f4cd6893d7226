//! Small pictures of items, made by a few threads and kept in memory.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use genus_vision::{ImageSource, Limits, with_decoded};
use tokio::sync::Semaphore;

use crate::problem::Problem;
use crate::server::App;

/// Pictures that are made at a time: a large one takes a second and a gigabyte.
const AT_A_TIME: usize = 2;
/// Bytes of pictures that are kept.
const KEPT: usize = 64 << 20;
/// Sides that may be asked for.
pub(crate) const SIDES: std::ops::RangeInclusive<usize> = 16..=1024;

type Pictures = HashMap<(i64, usize), Bytes>;

pub(crate) struct Thumbnails {
    limits: Limits,
    room: Arc<Semaphore>,
    kept: Mutex<(usize, Pictures)>,
}

impl Thumbnails {
    pub(crate) fn new(pixels: u64) -> Self {
        Self {
            limits: Limits {
                pixels,
                ..Limits::default()
            },
            room: Arc::new(Semaphore::new(AT_A_TIME)),
            kept: Mutex::default(),
        }
    }

    pub(crate) fn kept(&self, item: i64, side: usize) -> Option<Bytes> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.1.get(&(item, side)).cloned()
    }

    pub(crate) async fn make(&self, item: i64, side: usize, path: PathBuf) -> Result<Bytes, Problem> {
        let permit = self.room.clone().acquire_owned().await;
        let limits = self.limits;
        let made = App::blocking(move || {
            let _permit = permit;
            let none = |reason: String| Problem::not_found(format!("there is no picture of item #{item}: {reason}"));
            let file = ImageSource::file(path)
                .read(&limits)
                .map_err(|_| none("its file cannot be read".to_owned()))?;
            let small = with_decoded(&file, &limits, |image| image.thumbnail(side)).map_err(|e| none(e.to_string()))?;
            small
                .map(Bytes::from)
                .ok_or_else(|| none("it has no such form".to_owned()))
        })
        .await?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.0 + made.len() > KEPT {
            *kept = (0, HashMap::new());
        }
        kept.0 += made.len();
        kept.1.insert((item, side), made.clone());
        Ok(made)
    }
}
