//! How predictions are judged that are to agree with each other, with labels, and on the whole with nothing in particular.

/// The label of an image that has none.
pub const UNLABELLED: usize = usize::MAX;

/// How predictions are judged that are to agree with each other, with labels, and on the whole with nothing in particular.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistilLoss {
    /// The share of what needs labels; the rest is for what does not.
    pub supervised: f64,
    /// How strongly the mean prediction is held close to even.
    pub entropy: f64,
    /// The temperature of predictions that learn.
    pub student: f64,
    /// The temperature of predictions that teach.
    pub teacher: f64,
}

impl Default for DistilLoss {
    fn default() -> Self {
        Self {
            supervised: 0.35,
            entropy: 2.0,
            student: 0.1,
            teacher: 0.04,
        }
    }
}

impl DistilLoss {
    /// The loss of some views and its gradient, both from the cosines of every item with every head, a row an item.
    ///
    /// Each view is taught by the next one, the last by the first, a single one by itself. The teacher's part has no
    /// gradient. An item's label is the number of its head or [`UNLABELLED`].
    ///
    /// # Panics
    /// When the views are not all as long as there are labels, or when a label has no head.
    pub fn gradients(&self, views: &[Vec<f64>], labels: &[usize], heads: usize) -> (f64, Vec<Vec<f32>>) {
        assert!(views.iter().all(|view| view.len() == labels.len() * heads));
        let rows = (views.len() * labels.len()) as f64;
        let labelled = (views.len() * labels.iter().filter(|&&label| label != UNLABELLED).count()) as f64;
        let students: Vec<Vec<f64>> = views.iter().map(|view| softmax(view, heads, self.student)).collect();
        let mut mean = vec![0.0; heads];
        for row in students.iter().flat_map(|view| view.chunks_exact(heads)) {
            mean.iter_mut().zip(row).for_each(|(sum, p)| *sum += p / rows);
        }
        let logs: Vec<f64> = mean.iter().map(|p| p.max(f64::MIN_POSITIVE).ln()).collect();
        let entropy = -mean.iter().zip(&logs).map(|(p, log)| p * log).sum::<f64>();

        let unsupervised = 1.0 - self.supervised;
        let mut loss = unsupervised * self.entropy * ((heads as f64).ln() - entropy);
        let mut slopes = Vec::with_capacity(views.len());
        for (at, (view, student)) in views.iter().zip(&students).enumerate() {
            let teacher = softmax(&views[(at + 1) % views.len()], heads, self.teacher);
            let mut slope = Vec::with_capacity(view.len());
            for (row, &label) in labels.iter().enumerate() {
                let [z, p, q] = [view, student, &teacher].map(|values| &values[row * heads..][..heads]);
                // −log p of a head is taken from the cosines: p itself may be too small to be a number.
                let top = (0..heads).fold(0, |top, head| if z[head] > z[top] { head } else { top });
                let cost = |head: usize| (z[top] - z[head]) / self.student - p[top].ln();
                loss += unsupervised / rows * (0..heads).map(|head| q[head] * cost(head)).sum::<f64>();
                let weight = match label {
                    UNLABELLED => 0.0,
                    label => {
                        loss += self.supervised / labelled * cost(label);
                        self.supervised / labelled
                    }
                };
                let expected: f64 = p.iter().zip(&logs).map(|(p, log)| p * log).sum();
                slope.extend((0..heads).map(|head| {
                    let even = self.entropy * p[head] * (logs[head] - expected);
                    let right = f64::from(u8::from(label == head));
                    let by = unsupervised / rows * (p[head] - q[head] + even) + weight * (p[head] - right);
                    (by / self.student) as f32
                }));
            }
            slopes.push(slope);
        }
        (loss, slopes)
    }
}

/// The exponentials of every row, divided by their sum.
fn softmax(logits: &[f64], heads: usize, temperature: f64) -> Vec<f64> {
    let mut all = Vec::with_capacity(logits.len());
    for row in logits.chunks_exact(heads) {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let start = all.len();
        all.extend(row.iter().map(|logit| ((logit - largest) / temperature).exp()));
        let total: f64 = all[start..].iter().sum();
        all[start..].iter_mut().for_each(|p| *p /= total);
    }
    all
}
