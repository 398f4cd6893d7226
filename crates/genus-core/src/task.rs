//! A support and its queries, and what every method on them shares.

use std::cmp::Ordering;
use std::sync::OnceLock;

use crate::choice::choice;
use crate::discovery::Discovery;
use crate::error::{DiscoverError, FeatureError, TaskError};
use crate::features::{Features, FeaturesView, norm, scale_to_unit};
use crate::linalg;
use crate::scenes::ExampleIndex;

/// Up to this many points the matrix of all dot products is kept (16 MiB) and shared by the methods of a task.
pub(crate) const GRAM_LIMIT: usize = 2048;

/// The labelled examples of the known classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Support {
    classes: Vec<String>,
    labels: Vec<usize>,
    features: Features,
}

impl Support {
    /// Takes one label a row; the classes are numbered in the order of their first example.
    pub fn new<S: AsRef<str>>(features: Features, labels: &[S]) -> Result<Self, TaskError> {
        if features.is_empty() {
            return Err(TaskError::EmptySupport);
        }
        if labels.len() != features.rows() {
            return Err(TaskError::LabelCount {
                rows: features.rows(),
                labels: labels.len(),
            });
        }
        let mut numbers = std::collections::HashMap::new();
        let mut classes = Vec::new();
        let labels = labels
            .iter()
            .map(|label| {
                let label = label.as_ref();
                *numbers.entry(label).or_insert_with(|| {
                    classes.push(label.to_owned());
                    classes.len() - 1
                })
            })
            .collect();
        Ok(Self {
            classes,
            labels,
            features,
        })
    }

    /// No example at all, of items with so many features: everything that is found is new.
    ///
    /// # Panics
    /// When items have no features.
    pub fn none(dim: usize) -> Self {
        assert!(dim > 0, "items have features");
        Self {
            classes: Vec::new(),
            labels: Vec::new(),
            features: Features::from_finite(dim, Vec::new()),
        }
    }

    /// The names of the known classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The class of every example.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// The classes of the examples, to be found by what is equal to one of them.
    pub fn shown(&self) -> ExampleIndex {
        ExampleIndex::new(&self.features, &self.labels)
    }

    /// The examples.
    pub fn features(&self) -> &Features {
        &self.features
    }
}

choice! {
    /// How the examples of a class become its prototype.
    #[derive(Default)]
    Prototypes {
        /// The mean of the raw features, scaled to length one.
        #[default]
        RawMean = "raw-mean",
        /// The mean of the unit features, scaled to length one.
        UnitMean = "unit-mean",
        /// The mean of the unit features as it is, shorter than one: what the authors' large-scale code does.
        UnitMeanUnnormalised = "unit-mean-unnormalised",
    }
}

/// A support and the queries to sort, with unit rows, prototypes and products computed once.
///
/// The *points* of a task are its prototypes, in class order, followed by its queries.
#[derive(Debug)]
pub struct Task {
    classes: Vec<String>,
    support: Features,
    support_labels: Vec<usize>,
    points: Features,
    gram: OnceLock<Vec<f32>>,
    prototype_dots: OnceLock<Vec<f32>>,
    canonical: OnceLock<Option<Box<CanonicalTask>>>,
}

/// A task in an order that its content alone decides.
#[derive(Debug)]
struct CanonicalTask {
    task: Task,
    /// Which class and which query of the other task each of its own is.
    classes: Vec<usize>,
    queries: Vec<usize>,
}

impl Task {
    /// Prepares a task with the default [`Prototypes`].
    pub fn new(support: &Support, queries: Features) -> Result<Self, TaskError> {
        Self::with_prototypes(support, queries, Prototypes::default())
    }

    /// Prepares a task with prototypes of the given kind.
    pub fn with_prototypes(support: &Support, queries: Features, kind: Prototypes) -> Result<Self, TaskError> {
        let all: Vec<usize> = (0..queries.rows()).collect();
        Self::of_rows(support, FeaturesView::from(&queries), &all, kind)
    }

    /// Prepares a task whose queries are some rows of a matrix that somebody else has. Nothing is copied but what the task keeps:
    /// their unit rows.
    ///
    /// # Panics
    /// When a row does not exist.
    pub fn of_rows(
        support: &Support,
        matrix: FeaturesView<'_>,
        queries: &[usize],
        kind: Prototypes,
    ) -> Result<Self, TaskError> {
        let dim = support.features.dim();
        if queries.is_empty() {
            return Err(TaskError::NoQueries);
        }
        if matrix.dim() != dim {
            return Err(TaskError::Dimensions {
                support: dim,
                queries: matrix.dim(),
            });
        }
        let unit_support = support.features.clone().into_unit().map_err(TaskError::Support)?;
        let averaged = match kind {
            Prototypes::RawMean => &support.features,
            Prototypes::UnitMean | Prototypes::UnitMeanUnnormalised => &unit_support,
        };
        // In the order of their content, as a sum depends on its order by a bit.
        let order = content_order(averaged, 0);
        let labels: Vec<usize> = order.iter().map(|&example| support.labels[example]).collect();
        let mut values = class_means(&averaged.select(&order), &labels, support.classes.len());
        for (class, prototype) in values.chunks_exact_mut(dim).enumerate() {
            let has_direction = match kind {
                Prototypes::UnitMeanUnnormalised => norm(prototype) > 0.0,
                Prototypes::RawMean | Prototypes::UnitMean => scale_to_unit(prototype),
            };
            if !has_direction {
                return Err(TaskError::ZeroPrototype {
                    class: support.classes[class].clone(),
                });
            }
        }
        values.reserve_exact(queries.len() * dim);
        queries
            .iter()
            .for_each(|&row| values.extend_from_slice(matrix.row(row)));
        let known = support.classes.len();
        for (row, query) in values.chunks_exact_mut(dim).enumerate().skip(known) {
            if !scale_to_unit(query) {
                return Err(TaskError::Queries(FeatureError::ZeroRow { row: row - known }));
            }
        }
        Ok(Self {
            classes: support.classes.clone(),
            support: unit_support,
            support_labels: support.labels.clone(),
            points: Features::from_finite(dim, values),
            gram: OnceLock::new(),
            prototype_dots: OnceLock::new(),
            canonical: OnceLock::new(),
        })
    }

    /// The names of the known classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The number of known classes.
    pub fn known(&self) -> usize {
        self.classes.len()
    }

    /// The number of queries.
    pub fn queries(&self) -> usize {
        self.points.rows() - self.known()
    }

    /// The number of features of an item.
    pub fn dim(&self) -> usize {
        self.points.dim()
    }

    /// The prototypes, in class order, followed by the unit queries.
    pub fn points(&self) -> &Features {
        &self.points
    }

    /// The unit examples.
    pub fn support(&self) -> &Features {
        &self.support
    }

    /// The class of every example.
    pub fn support_labels(&self) -> &[usize] {
        &self.support_labels
    }

    /// The same known classes with some of the queries, in the given order.
    ///
    /// # Panics
    /// When a query does not exist.
    pub fn with_queries(&self, queries: &[usize]) -> Result<Self, TaskError> {
        if queries.is_empty() {
            return Err(TaskError::NoQueries);
        }
        let known = self.known();
        let rows: Vec<usize> = (0..known).chain(queries.iter().map(|query| known + query)).collect();
        Ok(Self {
            classes: self.classes.clone(),
            support: self.support.clone(),
            support_labels: self.support_labels.clone(),
            points: self.points.select(&rows),
            gram: OnceLock::new(),
            prototype_dots: OnceLock::new(),
            canonical: OnceLock::new(),
        })
    }

    /// The same known classes with other queries, of length one.
    pub(crate) fn with_unit_queries(&self, queries: &Features) -> Self {
        let prototypes = &self.points.values()[..self.known() * self.dim()];
        Self {
            classes: self.classes.clone(),
            support: self.support.clone(),
            support_labels: self.support_labels.clone(),
            points: Features::from_finite(self.dim(), [prototypes, queries.values()].concat()),
            gram: OnceLock::new(),
            prototype_dots: OnceLock::new(),
            canonical: OnceLock::new(),
        }
    }

    /// Lets a method discover in an order that the content alone decides, for methods whose ties or random numbers go by the
    /// order of items: so the same items in any order are sorted in the same way. Items of the same content are alike.
    pub(crate) fn in_canonical_order(
        &self,
        discover: impl FnOnce(&Task) -> Result<Discovery, DiscoverError>,
    ) -> Result<Discovery, DiscoverError> {
        let canonical = self.canonical.get_or_init(|| self.canonical().map(Box::new));
        match canonical {
            None => discover(self),
            Some(canonical) => Ok(discover(&canonical.task)?.put_back(&canonical.classes, &canonical.queries)),
        }
    }

    /// The same task with classes by name, and examples and queries by content; none when it is in that order.
    fn canonical(&self) -> Option<CanonicalTask> {
        let known = self.known();
        let mut classes: Vec<usize> = (0..known).collect();
        classes.sort_by_key(|&class| &self.classes[class]);
        let mut number = vec![0; known];
        classes.iter().enumerate().for_each(|(at, &class)| number[class] = at);
        let mut examples = content_order(&self.support, 0);
        examples.sort_by_key(|&example| number[self.support_labels[example]]);
        let queries = content_order(&self.points, known);
        let points: Vec<usize> = classes.iter().copied().chain(queries.iter().copied()).collect();
        if points.is_sorted() && examples.is_sorted() {
            return None;
        }
        Some(CanonicalTask {
            task: Self {
                classes: classes.iter().map(|&class| self.classes[class].clone()).collect(),
                support: self.support.select(&examples),
                support_labels: examples.iter().map(|&at| number[self.support_labels[at]]).collect(),
                points: self.points.select(&points),
                gram: OnceLock::new(),
                prototype_dots: OnceLock::new(),
                canonical: OnceLock::new(),
            },
            classes,
            queries: queries.into_iter().map(|point| point - known).collect(),
        })
    }

    /// The number of examples of the class that has fewest.
    pub fn shots(&self) -> usize {
        let mut counts = vec![0usize; self.known()];
        self.support_labels.iter().for_each(|&class| counts[class] += 1);
        counts.into_iter().min().unwrap_or(0)
    }

    /// Two classes whose prototypes point the same way, if any: no method can tell these apart.
    pub fn identical_prototypes(&self) -> Option<(usize, usize)> {
        let known = self.known();
        let length: Vec<f64> = (0..known).map(|class| norm(self.points.row(class))).collect();
        (0..known)
            .flat_map(|a| (a + 1..known).map(move |b| (a, b)))
            .find(|&(a, b)| f64::from(self.prototype_dots(b)[a]) > (1.0 - 1e-6) * length[a] * length[b])
    }

    /// The dot products of one point with every prototype.
    pub(crate) fn prototype_dots(&self, point: usize) -> &[f32] {
        let known = self.known();
        let all = self.prototype_dots.get_or_init(|| {
            let values = self.points.values();
            linalg::dots(values, &values[..known * self.dim()], self.dim())
        });
        &all[point * known..][..known]
    }

    /// The matrix of the dot products of all points, unless there are too many points to keep it.
    ///
    /// Whether there is one depends on the number of points alone, never on which methods ran before.
    pub(crate) fn gram(&self) -> Option<&[f32]> {
        (self.points.rows() <= GRAM_LIMIT)
            .then(|| &**self.gram.get_or_init(|| linalg::gram(self.points.values(), self.dim())))
    }

    /// The dot product of every point with the mean of every cluster.
    pub(crate) fn affinity(&self, clusters: &[usize], count: usize) -> ClusterAffinity {
        let n = self.points.rows();
        debug_assert_eq!(clusters.len(), n);
        let Some(gram) = self.gram() else {
            let means = class_means(&self.points, clusters, count);
            return ClusterAffinity {
                values: linalg::dots(self.points.values(), &means, self.dim()),
                point_step: count,
                cluster_step: 1,
            };
        };
        let mut values = vec![0f32; count * n];
        let mut sizes = vec![0usize; count];
        for (row, &cluster) in gram.chunks_exact(n).zip(clusters) {
            sizes[cluster] += 1;
            for (sum, &dot) in values[cluster * n..][..n].iter_mut().zip(row) {
                *sum += dot;
            }
        }
        for (row, &size) in values.chunks_exact_mut(n).zip(&sizes) {
            let scale = 1.0 / size.max(1) as f32;
            row.iter_mut().for_each(|v| *v *= scale);
        }
        ClusterAffinity {
            values,
            point_step: 1,
            cluster_step: n,
        }
    }
}

/// The dot product of every point with the (unnormalised) mean of every cluster.
pub(crate) struct ClusterAffinity {
    values: Vec<f32>,
    point_step: usize,
    cluster_step: usize,
}

impl ClusterAffinity {
    pub(crate) fn get(&self, point: usize, cluster: usize) -> f32 {
        self.values[point * self.point_step + cluster * self.cluster_step]
    }
}

/// The rows from the first on, sorted by their content.
fn content_order(features: &Features, first: usize) -> Vec<usize> {
    // The bits of a number, so that they are in the order of `total_cmp`.
    let in_order = |value: &f32| {
        let bits = value.to_bits();
        u64::from(if bits >> 31 == 1 { !bits } else { bits | 1 << 31 })
    };
    // Most rows differ in their first two numbers, which are at hand then.
    let key = |row: usize| {
        let mut values = features.row(row).iter().map(in_order);
        let [high, low] = [(); 2].map(|()| values.next().unwrap_or(0));
        high << 32 | low
    };
    let mut rows: Vec<(u64, usize)> = (first..features.rows()).map(|row| (key(row), row)).collect();
    rows.sort_by(|&(key_a, a), &(key_b, b)| {
        let by_content = || {
            let values = features.row(a).iter().zip(features.row(b));
            let mut orders = values.map(|(a, b)| a.total_cmp(b));
            orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        key_a.cmp(&key_b).then_with(by_content)
    });
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The mean row of every class, as a row-major matrix; a class without rows gets zeros.
pub(crate) fn class_means(features: &Features, labels: &[usize], classes: usize) -> Vec<f32> {
    let dim = features.dim();
    let mut sums = vec![0f64; classes * dim];
    let mut sizes = vec![0usize; classes];
    for (row, &label) in features.iter().zip(labels) {
        sizes[label] += 1;
        for (sum, &v) in sums[label * dim..][..dim].iter_mut().zip(row) {
            *sum += f64::from(v);
        }
    }
    for (row, &size) in sums.chunks_exact_mut(dim).zip(&sizes) {
        row.iter_mut().for_each(|v| *v /= size.max(1) as f64);
    }
    sums.into_iter().map(|v| v as f32).collect()
}
