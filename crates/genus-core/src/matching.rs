//! The one-to-one matching that every accuracy of a clustering rests on.

/// A column that no row holds yet, or a row that holds no column yet.
const NONE: usize = usize::MAX;

/// Matches rows to columns one to one with the largest total weight: for each row its column, or `None` for a row that
/// goes without because there are fewer columns than rows.
///
/// Rows enter one by one, each along a shortest augmenting path (Jonker and Volgenant 1987; Crouse 2016), in
/// O(min² · max) steps. Where several matchings are best, the choice is the one of
/// `scipy.optimize.linear_sum_assignment`, because published accuracies depend on it; equal weights everywhere give
/// each row its own number.
///
/// Weights are added up along paths, so `min(rows, columns)` times the largest of them must fit an `i64`; counts always
/// do.
pub(crate) fn max_weight_matching(
    rows: usize,
    columns: usize,
    weight: impl Fn(usize, usize) -> i64,
) -> Vec<Option<usize>> {
    // The search needs a column for every row. With too few columns, the sides change places.
    if rows <= columns {
        let columns_of_rows = cheapest_columns(rows, columns, |row, column| -weight(row, column));
        return columns_of_rows.into_iter().map(Some).collect();
    }
    let rows_of_columns = cheapest_columns(columns, rows, |column, row| -weight(row, column));
    let mut matched = vec![None; rows];
    for (column, row) in rows_of_columns.into_iter().enumerate() {
        matched[row] = Some(column);
    }
    matched
}

/// The column of each row in a matching of least total cost; there are at least as many columns as rows.
fn cheapest_columns(rows: usize, columns: usize, cost: impl Fn(usize, usize) -> i64) -> Vec<usize> {
    // Prices keep `cost - row_price - column_price` from being negative, and zero on the pairs that are matched.
    let mut row_price = vec![0i64; rows];
    let mut column_price = vec![0i64; columns];
    let mut row_of = vec![NONE; columns];
    let mut column_of = vec![NONE; rows];

    let mut distance = vec![i64::MAX; columns];
    let mut reached_from = vec![NONE; columns];
    let mut open = Vec::with_capacity(columns);
    let mut settled = Vec::with_capacity(columns);

    for newcomer in 0..rows {
        // The order of `open`, descending at first and then as `swap_remove` leaves it, decides ties: the last free
        // column seen wins over other free ones, any free one over taken ones, and the first taken one seen over other
        // taken ones.
        open.clear();
        open.extend((0..columns).rev());
        settled.clear();
        distance.fill(i64::MAX);

        let mut row = newcomer;
        let mut walked = 0;
        let free = loop {
            let mut nearest = 0;
            let mut least = i64::MAX;
            for (position, &column) in open.iter().enumerate() {
                let through_row = walked + cost(row, column) - row_price[row] - column_price[column];
                if through_row < distance[column] {
                    distance[column] = through_row;
                    reached_from[column] = row;
                }
                if distance[column] < least || (distance[column] == least && row_of[column] == NONE) {
                    least = distance[column];
                    nearest = position;
                }
            }
            walked = least;
            // Never empty: fewer columns are taken than there are, and the walk ends at the first free one.
            let column = open.swap_remove(nearest);
            if row_of[column] == NONE {
                break column;
            }
            settled.push(column);
            row = row_of[column];
        };

        row_price[newcomer] += walked;
        for &column in &settled {
            let slack = walked - distance[column];
            row_price[row_of[column]] += slack;
            column_price[column] -= slack;
        }

        // Every row on the path takes the column it was the way to and leaves its own to the row before it.
        let mut column = free;
        loop {
            let row = reached_from[column];
            row_of[column] = row;
            std::mem::swap(&mut column_of[row], &mut column);
            if row == newcomer {
                break;
            }
        }
    }
    column_of
}

#[cfg(test)]
mod tests {
    use super::max_weight_matching;
    use proptest::prelude::*;
    use serde_json::Value;

    fn total(matched: &[Option<usize>], weight: impl Fn(usize, usize) -> i64) -> i64 {
        matched
            .iter()
            .enumerate()
            .filter_map(|(row, column)| column.map(|column| weight(row, column)))
            .sum()
    }

    /// The best total over all ways to give the rows from `row` on different columns, as many of them as can be.
    fn brute_force(row: usize, skips: usize, taken: &mut [bool], weight: &[Vec<i64>]) -> i64 {
        let Some(weights) = weight.get(row) else { return 0 };
        let mut best = i64::MIN;
        if skips > 0 {
            best = brute_force(row + 1, skips - 1, taken, weight);
        }
        for (column, &w) in weights.iter().enumerate() {
            if !taken[column] {
                taken[column] = true;
                let rest = brute_force(row + 1, skips, taken, weight);
                taken[column] = false;
                // A branch that leaves more rows over than there are rows without a column has no total.
                if rest > i64::MIN {
                    best = best.max(w + rest);
                }
            }
        }
        best
    }

    #[test]
    fn ties_fall_as_in_scipy() {
        let goldens: Value = serde_json::from_str(include_str!("../tests/goldens/metrics.json")).unwrap();
        let cases = goldens["assignment"].as_array().unwrap();
        assert!(cases.len() > 200);
        for case in cases {
            let [rows, columns] = ["rows", "columns"].map(|side| case[side].as_u64().unwrap() as usize);
            let weights: Vec<i64> = case["weights"]
                .as_array()
                .unwrap()
                .iter()
                .map(|w| w.as_i64().unwrap())
                .collect();
            let expected: Vec<_> = case["columns_of_rows"]
                .as_array()
                .unwrap()
                .iter()
                .map(|c| c.as_u64().map(|c| c as usize))
                .collect();
            let matched = max_weight_matching(rows, columns, |row, column| weights[row * columns + column]);
            assert_eq!(matched, expected, "{case}");
        }
    }

    #[test]
    fn equal_weights_give_the_identity() {
        let identity =
            |rows: usize, columns: usize| -> Vec<_> { (0..rows).map(|i| (i < columns).then_some(i)).collect() };
        for (rows, columns) in [(0, 0), (0, 3), (3, 0), (1, 1), (5, 5), (3, 7), (7, 3)] {
            assert_eq!(
                max_weight_matching(rows, columns, |_, _| 4),
                identity(rows, columns),
                "{rows} x {columns}"
            );
        }
    }

    proptest! {
        #[test]
        fn the_total_is_the_best_there_is(
            weight in (1usize..7, 1usize..7)
                .prop_flat_map(|(rows, columns)| prop::collection::vec(prop::collection::vec(-4i64..5, columns), rows))
        ) {
            let (rows, columns) = (weight.len(), weight[0].len());
            let matched = max_weight_matching(rows, columns, |row, column| weight[row][column]);
            let mut used: Vec<usize> = matched.iter().copied().flatten().collect();
            used.sort_unstable();
            used.dedup();
            prop_assert_eq!(used.len(), rows.min(columns));
            let best = brute_force(0, rows.saturating_sub(columns), &mut vec![false; columns], &weight);
            prop_assert_eq!(total(&matched, |row, column| weight[row][column]), best);
        }

        #[test]
        fn a_common_summand_changes_nothing(weights in prop::collection::vec(0i64..3, 30), summand in -9i64..10) {
            let plain = max_weight_matching(5, 6, |row, column| weights[row * 6 + column]);
            let shifted = max_weight_matching(5, 6, |row, column| weights[row * 6 + column] + summand);
            prop_assert_eq!(plain, shifted);
        }
    }
}
