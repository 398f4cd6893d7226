//! Parquet files of every layout are read for what was written, and what is wrong in them is found where it is.

mod common;

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder, ListBuilder};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use common::{assert_mentions, read_in_blocks};
use genus_data::read_table;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterVersion};
use proptest::prelude::*;

/// How a file is laid out.
#[derive(Clone, Debug)]
struct Layout {
    fixed: bool,
    version: WriterVersion,
    compression: Compression,
    dictionary: bool,
    split_streams: bool,
    page_rows: usize,
    group_rows: usize,
}

fn layout() -> impl Strategy<Value = Layout> {
    let version = prop_oneof![Just(WriterVersion::PARQUET_1_0), Just(WriterVersion::PARQUET_2_0)];
    let compression = prop_oneof![
        Just(Compression::UNCOMPRESSED),
        Just(Compression::SNAPPY),
        Just(Compression::LZ4_RAW)
    ];
    // Plain values and dictionaries are what writers choose; the other encoding is there for its rarity.
    let parts = (
        any::<bool>(),
        version,
        compression,
        any::<bool>(),
        prop::bool::weighted(0.2),
        1usize..40,
        1usize..60,
    );
    parts.prop_map(
        |(fixed, version, compression, dictionary, split_streams, page_rows, group_rows)| Layout {
            fixed,
            version,
            compression,
            dictionary,
            split_streams,
            page_rows,
            group_rows,
        },
    )
}

/// Writes rows, of which some may be missing, of another length or with missing values.
fn write(path: &Path, rows: &[Option<Vec<Option<f32>>>], dim: usize, layout: &Layout) {
    let embedding: ArrayRef = if layout.fixed {
        let mut builder = FixedSizeListBuilder::new(Float32Builder::new(), dim as i32);
        for row in rows {
            for column in 0..dim {
                builder.values().append_option(row.as_ref().and_then(|row| row[column]));
            }
            builder.append(row.is_some());
        }
        Arc::new(builder.finish())
    } else {
        let mut builder = ListBuilder::new(Float32Builder::new());
        for row in rows {
            for value in row.iter().flatten() {
                builder.values().append_option(*value);
            }
            builder.append(row.is_some());
        }
        Arc::new(builder.finish())
    };
    let ids: ArrayRef = Arc::new(StringArray::from_iter_values(
        (0..rows.len()).map(|row| format!("item {row}")),
    ));
    let batch = RecordBatch::try_from_iter([("id", ids), ("embedding", embedding)]).unwrap();
    let mut properties = WriterProperties::builder()
        .set_writer_version(layout.version)
        .set_compression(layout.compression)
        .set_dictionary_enabled(layout.dictionary)
        .set_dictionary_page_size_limit(256)
        .set_data_page_row_count_limit(layout.page_rows)
        .set_write_batch_size(7)
        .set_max_row_group_row_count(Some(layout.group_rows));
    if !layout.dictionary {
        properties = properties.set_encoding(if layout.split_streams {
            Encoding::BYTE_STREAM_SPLIT
        } else {
            Encoding::PLAIN
        });
        properties = properties.set_column_encoding("id".into(), Encoding::PLAIN);
    }
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// A few distinct values, so that dictionaries and long runs come up.
fn row(dim: usize) -> impl Strategy<Value = Vec<Option<f32>>> {
    prop::collection::vec(prop_oneof![Just(1.0f32), Just(-2.5), 0.1f32..9.0], dim)
        .prop_map(|row| row.into_iter().map(Some).collect())
}

fn rows() -> impl Strategy<Value = Vec<Option<Vec<Option<f32>>>>> {
    prop_oneof![Just(1usize), 2usize..12, Just(33), Just(100)]
        .prop_flat_map(|dim| prop::collection::vec(row(dim).prop_map(Some), 1..80))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_layout_is_read(rows in rows(), layout in layout(), max_rows in 1usize..90) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.parquet");
        write(&path, &rows, rows[0].as_ref().unwrap().len(), &layout);
        let whole = read_table(&path).unwrap().table;
        let expected: Vec<f32> = rows.iter().flatten().flatten().map(|v| v.unwrap()).collect();
        prop_assert_eq!(whole.features.values(), expected);
        prop_assert_eq!(whole.ids.last().unwrap(), &format!("item {}", rows.len() - 1));
        prop_assert_eq!(read_in_blocks(&path, max_rows).unwrap(), whole);
    }

    #[test]
    fn a_bad_row_is_found_where_it_is(
        rows in rows(),
        layout in layout(),
        at in any::<prop::sample::Index>(),
        kind in 0..4,
        max_rows in 1usize..90,
    ) {
        let mut rows = rows;
        let dim = rows[0].as_ref().unwrap().len();
        let at = at.index(rows.len());
        match kind {
            0 => rows[at] = None,
            1 => rows[at].as_mut().unwrap()[dim / 2] = None,
            2 => rows[at].as_mut().unwrap()[dim / 2] = Some(f32::NAN),
            // The length of the first row is the one that counts.
            _ if layout.fixed || at == 0 => return Ok(()),
            _ => rows[at].as_mut().unwrap().push(Some(1.0)),
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.parquet");
        write(&path, &rows, dim, &layout);
        let place = format!("f.parquet, row {}", at + 1);
        let problem = match kind {
            0 => "\"embedding\" is null".to_owned(),
            1 => format!("feature {} of \"embedding\" is null", dim / 2 + 1),
            2 => format!("feature {} is NaN", dim / 2 + 1),
            _ => format!("{} features where the rows before have {dim}", dim + 1),
        };
        for error in [read_table(&path).map(|file| file.table), read_in_blocks(&path, max_rows)] {
            assert_mentions(&error.unwrap_err().to_string(), &[&place, &problem]);
        }
    }
}
