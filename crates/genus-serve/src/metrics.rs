//! Numbers for Prometheus.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    path: String,
    status: u16,
}

/// What is counted.
#[derive(Clone)]
pub(crate) struct Metrics {
    registry: Arc<Mutex<Registry>>,
    requests: Family<RequestLabels, Counter>,
    seconds: Histogram,
    pub(crate) items: Counter,
    pub(crate) commits: Counter,
    pub(crate) commit_seconds: Histogram,
    pub(crate) log: Gauge<f64, AtomicU64>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("genus");
        let times = || Histogram::new(exponential_buckets(0.000_5, 2.0, 16));
        let metrics = Self {
            requests: Family::default(),
            seconds: times(),
            items: Counter::default(),
            commits: Counter::default(),
            commit_seconds: times(),
            log: Gauge::default(),
            registry: Arc::default(),
        };
        registry.register("requests", "Requests that were answered", metrics.requests.clone());
        registry.register_with_unit(
            "request",
            "How long answers took",
            Unit::Seconds,
            metrics.seconds.clone(),
        );
        registry.register("items", "Items that came and are on disk", metrics.items.clone());
        registry.register("commits", "Times that something was written", metrics.commits.clone());
        registry.register_with_unit(
            "commit",
            "How long writing took",
            Unit::Seconds,
            metrics.commit_seconds.clone(),
        );
        registry.register("log", "The last entry of the log", metrics.log.clone());
        *metrics.registry.lock().unwrap_or_else(PoisonError::into_inner) = registry;
        metrics
    }

    pub(crate) fn answered(&self, method: &str, path: &str, status: u16, took: Duration) {
        let asked = RequestLabels {
            method: method.to_owned(),
            path: path.to_owned(),
            status,
        };
        self.requests.get_or_create(&asked).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = encode(&mut text, &registry);
        text
    }
}
