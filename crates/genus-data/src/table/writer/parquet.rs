//! Parquet: columns `id`, `label` and `embedding`, the encoder among the metadata of the file.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use super::{RowOut, Sink, TableShape};
use crate::assignments::into_io;
use crate::error::DataError;
use crate::table::batch::ENCODER_KEY;
use crate::table::source::FileOrigin;
use genus_files::AtomicFile;

/// Bytes of features gathered before they are handed to the writer.
const BATCH_BYTES: usize = 4 << 20;
/// Bytes that the writer may hold before it has to write a row group.
const GROUP_BYTES: usize = 64 << 20;

pub(super) struct ParquetSink {
    writer: ArrowWriter<SharedFile>,
    schema: Arc<Schema>,
    item: Arc<Field>,
    width: i32,
    with_labels: bool,
    ids: StringBuilder,
    labels: StringBuilder,
    values: Vec<f32>,
}

/// The output, which can be taken back once the end is written.
struct SharedFile(Option<AtomicFile>);

impl Write for SharedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl ParquetSink {
    pub(super) fn start(shape: TableShape, out: AtomicFile) -> Result<Box<dyn Sink>, DataError> {
        let width = i32::try_from(shape.dim).map_err(|_| {
            FileOrigin::new(&shape.path)
                .malformed("more features a row than a Parquet list can hold; write an .npz file")
        })?;
        let item = Arc::new(Field::new("item", DataType::Float32, false));
        let list = DataType::FixedSizeList(item.clone(), width);
        let mut fields = vec![Field::new("id", DataType::Utf8, false)];
        if shape.with_labels {
            fields.push(Field::new("label", DataType::Utf8, true));
        }
        fields.push(Field::new("embedding", list, false));
        // In the metadata of the file for everyone, and in the Arrow schema, the only one that PyArrow looks at.
        let marks: HashMap<String, String> = shape
            .encoder
            .into_iter()
            .map(|text| (ENCODER_KEY.to_owned(), text))
            .collect();
        let in_file = marks.iter().map(|(key, text)| KeyValue::new(key.clone(), text.clone()));
        let in_file: Vec<KeyValue> = in_file.collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, marks));
        let embedding: Vec<String> = ["embedding", "list", "item"].map(str::to_owned).to_vec();
        let embedding = ColumnPath::new(embedding);
        // Features neither repeat nor compress; texts do.
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_column_compression(embedding.clone(), Compression::UNCOMPRESSED)
            .set_column_dictionary_enabled(embedding, false)
            .set_key_value_metadata(Some(in_file))
            .build();
        let writer = ArrowWriter::try_new(SharedFile(Some(out)), schema.clone(), Some(properties))
            .map_err(|e| DataError::write(shape.path.display(), into_io(e)))?;
        Ok(Box::new(Self {
            writer,
            schema,
            item,
            width,
            with_labels: shape.with_labels,
            ids: StringBuilder::new(),
            labels: StringBuilder::new(),
            values: Vec::new(),
        }))
    }

    fn write_batch(&mut self) -> io::Result<()> {
        let values = Arc::new(Float32Array::from(std::mem::take(&mut self.values)));
        let lists =
            FixedSizeListArray::try_new(self.item.clone(), self.width, values, None).map_err(io::Error::other)?;
        let mut columns: Vec<ArrayRef> = vec![Arc::new(self.ids.finish())];
        if self.with_labels {
            columns.push(Arc::new(self.labels.finish()));
        }
        columns.push(Arc::new(lists));
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(io::Error::other)?;
        self.writer.write(&batch).map_err(into_io)?;
        if self.writer.in_progress_size() >= GROUP_BYTES {
            self.writer.flush().map_err(into_io)?;
        }
        Ok(())
    }
}

impl Sink for ParquetSink {
    fn write(&mut self, row: &RowOut) -> io::Result<()> {
        self.ids.append_value(row.id);
        if self.with_labels {
            self.labels.append_option(row.label);
        }
        self.values.extend_from_slice(row.values);
        if size_of_val(&*self.values) >= BATCH_BYTES {
            self.write_batch()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<AtomicFile> {
        if !self.values.is_empty() {
            self.write_batch()?;
        }
        self.writer.finish().map_err(into_io)?;
        self.writer
            .inner_mut()
            .0
            .take()
            .ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}
