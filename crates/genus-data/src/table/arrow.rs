//! Arrow IPC: a schema, dictionaries and batches of rows, as a file (Feather) or as a stream.
//!
//! A file is a stream between two marks, with a list of its batches at the end that is not needed to read it in order. So both
//! are read message by message, and what a message claims is looked at before it is decoded.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::{Message, MessageHeader, root_as_message};
use arrow_schema::{ArrowError, SchemaRef};

use super::arrays::stream_error;
use super::batch::{self, Cell, ENCODER_KEY, SideColumnNames, caught};
use super::columns::{Columns, FeatureColumns, TableOptions};
use super::encoder;
use super::limits::{MAX_BATCH, MemoryGrowth, check_features};
use super::source::{BadRows, FileOrigin, RowBlock, TableSource};
use crate::error::DataError;

/// What a file begins with, filled up to eight bytes.
const MAGIC: &[u8; 8] = b"ARROW1\0\0";
/// What files of the first version of Feather begin with.
const OLD_MAGIC: &[u8] = b"FEA1";
/// What stands before the length of a message.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// The most bytes of the head of a message.
const MAX_HEAD: u64 = 64 << 20;
/// Rows whose texts are looked at a time.
const TEXT_ROWS: usize = 512;

/// Opens an Arrow file and decodes its first batch, which tells the number of features.
pub(super) fn open(
    origin: FileOrigin,
    file: File,
    options: &TableOptions,
    bad: BadRows,
) -> Result<Box<dyn TableSource>, DataError> {
    let mut messages = Messages::open(origin, file)?;
    let schema = messages.schema.clone();
    let named = batch::named(&schema);
    let columns = Columns::of(&messages.origin, &named, options)?;
    let features = match &columns.features {
        FeatureColumns::List(list) => vec![*list],
        FeatureColumns::Wide(features) => features.clone(),
    };
    for &column in &features {
        batch::check_features_type(&messages.origin, named[column].0, schema.field(column).data_type())?;
    }
    let beside = SideColumnNames::of(&columns, &named);
    let others = [columns.id, columns.label, columns.encoder];
    messages.project(others.into_iter().flatten().chain(features.iter().copied()));
    let place = |column: usize| messages.projection.partition_point(|&before| before < column);
    let names = features
        .iter()
        .map(|&column| (named[column].0.to_owned(), place(column)));
    let names = names.collect();
    let in_metadata = schema.metadata().get(ENCODER_KEY).cloned().and_then(encoder::from_text);
    let Some(first) = messages.next_filled()? else {
        return Err(DataError::NoRows {
            path: messages.origin.path,
        });
    };
    let mut rows = ArrowRows {
        growth: MemoryGrowth::of(&messages.origin),
        messages,
        features: columns.features.clone(),
        names,
        dim: 0,
        left_out: columns.left_out,
        encoder: in_metadata,
        beside,
        batch: Some((first, 0)),
        row: 0,
        bad,
    };
    rows.dim = bad.dim(rows.first_dim())?;
    check_features(&rows.messages.origin, rows.dim as u64)?;
    match rows.encoder {
        // Then nothing has to be said in the rows.
        Some(_) => rows.beside.encoder = None,
        None => rows.encoder = rows.first_encoder()?,
    }
    Ok(Box::new(rows))
}

/// The names of the columns.
pub(crate) fn schema(origin: &FileOrigin) -> Result<SchemaRef, DataError> {
    let file = File::open(origin.file()).map_err(|e| origin.io(e))?;
    Ok(Messages::open(origin.clone(), file)?.schema)
}

/// Reads columns of texts or integers row by row, with the row's number from zero.
pub(crate) fn for_each_row(
    origin: &FileOrigin,
    names: &[&str],
    each: &mut dyn FnMut(u64, Vec<Cell>) -> Result<bool, DataError>,
) -> Result<(), DataError> {
    let file = File::open(origin.file()).map_err(|e| origin.io(e))?;
    let mut messages = Messages::open(origin.clone(), file)?;
    let schema = messages.schema.clone();
    messages.project(names.iter().filter_map(|name| schema.index_of(name).ok()));
    let (mut row, mut growth) = (0, MemoryGrowth::of(origin));
    while let Some(batch) = messages.next_filled()? {
        if !batch::for_each_row(origin, &batch, names, row, &mut growth, each)? {
            break;
        }
        row += batch.num_rows() as u64;
    }
    Ok(())
}

struct ArrowRows {
    messages: Messages,
    features: FeatureColumns,
    /// What the columns of features are called, and which columns of a batch they are.
    names: Vec<(String, usize)>,
    dim: usize,
    left_out: Vec<String>,
    encoder: Option<String>,
    beside: SideColumnNames,
    /// The batch being given out and the first of its rows not given yet.
    batch: Option<(RecordBatch, usize)>,
    /// Rows given so far.
    row: u64,
    /// What the texts given so far take.
    growth: MemoryGrowth,
    bad: BadRows,
}

impl ArrowRows {
    fn first_dim(&self) -> Result<usize, DataError> {
        match &self.batch {
            Some((first, _)) => batch::first_dim(&self.messages.origin, &feature_columns(&self.names, first)),
            None => Ok(0),
        }
    }

    /// The mark of the first row in the column of encoders.
    fn first_encoder(&self) -> Result<Option<String>, DataError> {
        let (Some(name), Some((first, _))) = (&self.beside.encoder, &self.batch) else {
            return Ok(None);
        };
        let Some(array) = first.column_by_name(name) else {
            return Ok(None);
        };
        let cell = batch::cell(&self.messages.origin, name, array, 0, 0)?;
        Ok(cell.into_text().and_then(encoder::from_text))
    }
}

fn feature_columns<'a>(names: &'a [(String, usize)], batch: &'a RecordBatch) -> Vec<(&'a str, &'a ArrayRef)> {
    let columns = names
        .iter()
        .filter_map(|(name, place)| Some((name.as_str(), batch.columns().get(*place)?)));
    columns.collect()
}

impl TableSource for ArrowRows {
    fn dim(&self) -> usize {
        self.dim
    }

    fn encoder(&self) -> Option<&str> {
        self.encoder.as_deref()
    }

    fn column_name(&self, feature: usize) -> Option<&str> {
        match self.features {
            FeatureColumns::List(_) => None,
            FeatureColumns::Wide(_) => self.names.get(feature).map(|(name, _)| name.as_str()),
        }
    }

    fn left_out(&self) -> &[String] {
        &self.left_out
    }

    fn next_block(&mut self, max_rows: usize) -> Result<Option<RowBlock>, DataError> {
        let mut block = RowBlock::default();
        let mut rows = 0;
        while rows < max_rows {
            self.batch = self.batch.take().filter(|(batch, given)| *given < batch.num_rows());
            if self.batch.is_none() {
                self.batch = self.messages.next_filled()?.map(|batch| (batch, 0));
            }
            let Some((batch, given)) = &mut self.batch else { break };
            let take = (batch.num_rows() - *given).min(max_rows - rows).min(TEXT_ROWS);
            let part = *given..*given + take;
            let origin = &self.messages.origin;
            let columns = feature_columns(&self.names, batch);
            let (from, dim) = (*given, self.dim);
            batch::append_usable(
                self.bad,
                part,
                dim,
                &mut block.values,
                &mut block.refused,
                |part, values| {
                    let first = self.row + (part.start - from) as u64;
                    batch::append_features(origin, &columns, &self.features, part, first, dim, values)
                },
            )?;
            let texts = batch.slice(*given, take);
            let texts = self
                .beside
                .append(origin, &texts, self.row, self.encoder.as_deref(), self.bad, &mut block)?;
            self.growth.add_bytes(origin, texts)?;
            *given += take;
            rows += take;
            self.row += take as u64;
        }
        Ok((rows > 0).then_some(block))
    }
}

/// The messages of a stream.
struct Messages {
    origin: FileOrigin,
    from: BufReader<File>,
    schema: SchemaRef,
    dictionaries: HashMap<i64, ArrayRef>,
    /// Which columns are decoded, in the order of the schema.
    projection: Vec<usize>,
    /// Bytes that the dictionaries may still take.
    room: u64,
    /// Whether the stream has ended; behind it a file has what is not a message.
    has_ended: bool,
}

impl Messages {
    /// Reads as far as the schema.
    fn open(origin: FileOrigin, file: File) -> Result<Self, DataError> {
        let mut from = BufReader::new(file);
        let mut start = [0; 8];
        from.read_exact(&mut start).map_err(|e| stream_error(&origin, e))?;
        let mut end = MAGIC[..6].to_owned();
        if &start == MAGIC {
            // It is not needed, but a file without it was cut off.
            let seek = from.seek(SeekFrom::End(-6)).and_then(|_| from.read_exact(&mut end));
            seek.and_then(|()| from.seek(SeekFrom::Start(8)))
                .map_err(|e| stream_error(&origin, e))?;
        }
        if start.starts_with(OLD_MAGIC) {
            return Err(origin.malformed(
                "a Feather file of the first version, which lacks most of what Arrow has; write it again with a current \
                 pyarrow or pandas",
            ));
        }
        let mut messages = Self {
            origin,
            from,
            schema: SchemaRef::new(arrow_schema::Schema::empty()),
            dictionaries: HashMap::new(),
            projection: Vec::new(),
            room: MAX_BATCH,
            has_ended: false,
        };
        if end != MAGIC[..6] {
            return Err(messages.damaged("it does not end with Arrow's mark"));
        }
        let head = match &start == MAGIC {
            true => messages.next_head()?,
            // What was read is the beginning of the first message.
            false => match start.split_first_chunk::<4>() {
                Some((&CONTINUATION, length)) => messages.head_of(length.try_into().unwrap_or_default())?,
                _ => None,
            },
        };
        let Some(head) = head else {
            return Err(messages.damaged("it begins with neither a schema nor Arrow's mark"));
        };
        let message = messages.message(&head)?;
        let schema = message.header_as_schema().map(try_fb_to_schema);
        match schema {
            Some(Ok(schema)) => messages.schema = SchemaRef::new(schema),
            Some(Err(e)) => return Err(messages.damaged(&e.to_string())),
            None => return Err(messages.damaged("it does not begin with a schema")),
        }
        let length = messages.body_length(&message)?;
        messages.body(length)?;
        Ok(messages)
    }

    /// Decodes these columns only.
    fn project(&mut self, columns: impl Iterator<Item = usize>) {
        self.projection = columns.collect();
        self.projection.sort_unstable();
        self.projection.dedup();
    }

    fn damaged(&self, problem: &str) -> DataError {
        self.origin.malformed(format!(
            "not a readable Arrow file ({problem}); it was cut off or is damaged, write it again"
        ))
    }

    /// The head of the next message; `None` at the end of the stream.
    fn next_head(&mut self) -> Result<Option<Vec<u8>>, DataError> {
        let mut mark = [0; 4];
        let mut length = 0;
        // A stream may end without saying so.
        while length < mark.len() {
            match self.from.read(&mut mark[length..]).map_err(|e| self.origin.io(e))? {
                0 if length == 0 => return Ok(None),
                0 => return Err(self.damaged("it ends within a message")),
                count => length += count,
            }
        }
        if mark == CONTINUATION {
            let origin = &self.origin;
            self.from.read_exact(&mut mark).map_err(|e| stream_error(origin, e))?;
        }
        self.head_of(mark)
    }

    /// The head of a message whose length is given; `None` for none.
    fn head_of(&mut self, length: [u8; 4]) -> Result<Option<Vec<u8>>, DataError> {
        match u64::from(u32::from_le_bytes(length)) {
            0 => Ok(None),
            length if length > MAX_HEAD => Err(self.damaged(&format!("a message claims a head of {length} bytes"))),
            length => self.body(length).map(Some),
        }
    }

    fn message<'a>(&self, head: &'a [u8]) -> Result<Message<'a>, DataError> {
        root_as_message(head).map_err(|e| self.damaged(&format!("a message makes no sense: {e}")))
    }

    fn body_length(&self, message: &Message) -> Result<u64, DataError> {
        let length = message.bodyLength();
        let length = u64::try_from(length).map_err(|_| self.damaged("a message has a negative length"))?;
        self.check_size(length)?;
        Ok(length)
    }

    fn check_size(&self, bytes: u64) -> Result<(), DataError> {
        match bytes > MAX_BATCH {
            true => Err(self.origin.malformed(format!(
                "a batch of its rows takes {} MiB; a batch has at most {} MiB, write the file with fewer rows a batch",
                bytes >> 20,
                MAX_BATCH >> 20
            ))),
            false => Ok(()),
        }
    }

    /// The next bytes. Room is made for them as they come, whatever was claimed.
    fn body(&mut self, length: u64) -> Result<Vec<u8>, DataError> {
        let mut bytes = Vec::new();
        let read = self.from.by_ref().take(length).read_to_end(&mut bytes);
        match read.map_err(|e| self.origin.io(e))? as u64 == length {
            true => Ok(bytes),
            false => Err(self.damaged("it ends within a message")),
        }
    }

    /// What the buffers of a batch become when they are unpacked, which is checked to be no more than it may be.
    fn unpacked(&self, batch: &arrow_ipc::RecordBatch, body: &[u8]) -> Result<u64, DataError> {
        let mut bytes = 0u64;
        for buffer in batch.buffers().into_iter().flatten() {
            let range = usize::try_from(buffer.offset())
                .ok()
                .zip(usize::try_from(buffer.length()).ok());
            let part = range.and_then(|(start, length)| body.get(start..start.checked_add(length)?));
            let part = part.ok_or_else(|| self.damaged("a column lies outside of its batch"))?;
            let claimed = part.first_chunk::<8>().map(|length| i64::from_le_bytes(*length));
            bytes = bytes.saturating_add(match (batch.compression(), claimed) {
                (Some(_), Some(length)) => u64::try_from(length).unwrap_or(part.len() as u64),
                _ => part.len() as u64,
            });
        }
        self.check_size(bytes)?;
        Ok(bytes)
    }

    /// The next batch that has a row; `None` at the end.
    fn next_filled(&mut self) -> Result<Option<RecordBatch>, DataError> {
        while !self.has_ended {
            let Some(head) = self.next_head()? else {
                self.has_ended = true;
                break;
            };
            let message = self.message(&head)?;
            let length = self.body_length(&message)?;
            let body = self.body(length)?;
            let version = message.version();
            match message.header_type() {
                MessageHeader::DictionaryBatch => {
                    let Some(dictionary) = message.header_as_dictionary_batch() else {
                        continue;
                    };
                    let data = dictionary.data();
                    let size = data.map(|data| self.unpacked(&data, &body)).transpose()?.unwrap_or(0);
                    self.room = self.room.checked_sub(size).ok_or_else(|| {
                        self.damaged(&format!("its dictionaries take more than {} MiB", MAX_BATCH >> 20))
                    })?;
                    let (schema, dictionaries) = (self.schema.clone(), &mut self.dictionaries);
                    let body = Buffer::from_vec(body);
                    let read = caught(|| read_dictionary(&body, dictionary, &schema, dictionaries, &version));
                    self.decoded(read)?;
                }
                MessageHeader::RecordBatch => {
                    let Some(batch) = message.header_as_record_batch() else {
                        continue;
                    };
                    self.unpacked(&batch, &body)?;
                    let body = Buffer::from_vec(body);
                    let read = caught(|| {
                        RecordBatchDecoder::try_new(&body, batch, self.schema.clone(), &self.dictionaries, &version)?
                            .with_projection(Some(&self.projection))
                            .read_record_batch()
                    });
                    let batch = self.decoded(read)?;
                    if batch.num_rows() > 0 {
                        return Ok(Some(batch));
                    }
                }
                _ => return Err(self.damaged("there is a message that is neither a batch nor a dictionary")),
            }
        }
        Ok(None)
    }

    fn decoded<T>(&self, decoded: Option<Result<T, ArrowError>>) -> Result<T, DataError> {
        match decoded {
            Some(Ok(decoded)) => Ok(decoded),
            Some(Err(e)) => Err(self.damaged(&e.to_string())),
            None => Err(self.damaged("a batch makes no sense")),
        }
    }
}
