//! The supervised contrastive loss.

/// The supervised contrastive loss of a batch, from the similarities of all pairs, and its gradient.
///
/// An item is drawn to the others of its class and away from all the rest; the mean goes over the items that have another of
/// their class. `similarities` is square, one row an item, and is not expected to be symmetric.
pub(crate) fn contrast(similarities: &[f32], labels: &[usize], temperature: f64) -> (f64, Vec<f32>) {
    let count = labels.len();
    let positives = |item: usize| labels.iter().filter(|&&label| label == labels[item]).count() - 1;
    let anchors = (0..count).filter(|&item| positives(item) > 0).count() as f64;
    let mut gradient = vec![0.0; count * count];
    let mut loss = 0.0;
    for (item, row) in similarities.chunks_exact(count.max(1)).enumerate() {
        let positives = positives(item) as f64;
        if positives == 0.0 {
            continue;
        }
        let others = || (0..count).filter(|&other| other != item);
        // The largest is taken out, so that no exponential overflows however cold it is.
        let largest = others().map(|other| row[other]).fold(f32::NEG_INFINITY, f32::max);
        let logit = |other: usize| f64::from(row[other] - largest) / temperature;
        let total: f64 = others().map(|other| logit(other).exp()).sum();
        for other in others() {
            let drawn = f64::from(u8::from(labels[other] == labels[item])) / positives;
            loss += drawn * (total.ln() - logit(other)) / anchors;
            let slope = (logit(other).exp() / total - drawn) / (temperature * anchors);
            gradient[item * count + other] = slope as f32;
        }
    }
    (loss, gradient)
}
