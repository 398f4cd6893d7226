//! The digits are those of scikit-learn's `load_digits`.

use genus_data::digits;

#[test]
fn the_digits_are_all_there() {
    let digits = digits();
    assert_eq!((digits.pixels.rows(), digits.pixels.dim()), (1797, 64));
    assert_eq!(digits.labels.len(), 1797);
    assert!(
        digits
            .pixels
            .values()
            .iter()
            .all(|v| (0.0..=16.0).contains(v) && v.fract() == 0.0)
    );
    let counts: Vec<_> = (0..10)
        .map(|digit| digits.labels.iter().filter(|&&label| label == digit).count())
        .collect();
    assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    // Sums of `load_digits().data`, of all images, of the first and of the last.
    let sum = |values: &[f32]| values.iter().sum::<f32>();
    assert_eq!(digits.pixels.iter().map(sum).sum::<f32>(), 561_718.0);
    assert_eq!(
        (sum(digits.pixels.row(0)), sum(digits.pixels.row(1796))),
        (294.0, 392.0)
    );
    assert_eq!(digits.pixels.row(0)[..8], [0.0, 0.0, 5.0, 13.0, 9.0, 1.0, 0.0, 0.0]);
    assert_eq!(digits.labels[..4], [0, 1, 2, 3]);
}
