//! Assignments are written so that others can read them, whole or not at all.

mod common;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use common::assert_mentions;
use genus_core::{Kind, Score};
use genus_data::{AssignmentRow, AssignmentWriter, DataError, Format};
use genus_files::FileError;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// A stream whose bytes can be looked at afterwards.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream that nobody reads any more.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A row of which nobody said how likely it is.
const fn plain<'a>(id: &'a str, category: &'a str, kind: Kind, similarity: f32, margin: f32) -> AssignmentRow<'a> {
    let score = Score {
        similarity,
        margin,
        probability: None,
        unsure: false,
    };
    AssignmentRow {
        id,
        category,
        kind,
        score,
        scene: None,
    }
}

/// A row with a probability and a scene.
const fn judged(mut row: AssignmentRow, probability: f32, unsure: bool) -> AssignmentRow {
    row.scene = Some(12);
    row.score.probability = Some(probability);
    row.score.unsure = unsure;
    row
}

const ROWS: [AssignmentRow; 6] = [
    plain("a", "cat", Kind::Known, 0.987_654_3, 0.5),
    plain("b,c", "new \"1\"", Kind::Novel, -0.25, 1e-9),
    plain("日本\nx", "dog", Kind::Known, 1.0, -1e-9),
    plain("d", "", Kind::Novel, f32::NAN, f32::INFINITY),
    judged(plain("e", "cat", Kind::Known, 0.5, 0.25), 0.875, false),
    judged(plain("f", "new-1", Kind::Novel, 0.5, 0.25), 0.125, true),
];

fn write_all(mut writer: AssignmentWriter) {
    for row in ROWS {
        writer.write(&row).unwrap();
    }
    writer.finish().unwrap();
}

fn written(format: Format) -> Vec<u8> {
    let out = Shared::default();
    write_all(AssignmentWriter::new(Box::new(out.clone()), "the standard output", format).unwrap());
    out.0.lock().unwrap().clone()
}

#[test]
fn csv_is_quoted_where_needed() {
    let expected = "id,category,kind,score,margin,probability,scene\n\
        a,cat,known,0.987654,0.500000,,\n\
        \"b,c\",\"new \"\"1\"\"\",new,-0.250000,0.000000,,\n\
        \"日本\nx\",dog,known,1.000000,0.000000,,\n\
        d,,new,NaN,inf,,\n\
        e,cat,known,0.500000,0.250000,0.875000,12\n\
        f,new-1,unsure,0.500000,0.250000,0.125000,12\n";
    assert_eq!(String::from_utf8(written(Format::Csv)).unwrap(), expected);
}

#[test]
fn json_lines_are_json() {
    let text = String::from_utf8(written(Format::Jsonl)).unwrap();
    assert!(text.starts_with(
        "{\"id\":\"a\",\"category\":\"cat\",\"kind\":\"known\",\"score\":0.987654,\"margin\":0.500000,\"probability\":null,\
         \"scene\":null}\n"
    ));
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), ROWS.len());
    for (line, row) in lines.iter().zip(ROWS) {
        assert_eq!((&line["id"], &line["category"]), (&row.id.into(), &row.category.into()));
        assert_eq!(line["probability"].as_f64(), row.score.probability.map(f64::from));
        assert_eq!(line["scene"].as_u64(), row.scene.map(|scene| scene as u64));
    }
    let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["known", "new", "known", "new", "known", "unsure"]);
    assert!(lines[3]["score"].is_null() && lines[3]["margin"].is_null());
}

#[test]
fn parquet_holds_the_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let mut writer = AssignmentWriter::create(&path, Format::Parquet).unwrap();
    // More than one batch.
    let count = 20_000;
    for row in 0..count {
        let kind = if row % 2 == 0 { Kind::Known } else { Kind::Novel };
        let id = format!("item {row}");
        let plain = plain(&id, "cat", kind, row as f32, 0.5);
        let row = if row % 3 == 0 { judged(plain, 0.25, true) } else { plain };
        writer.write(&row).unwrap();
    }
    writer.finish().unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&path).unwrap())
        .unwrap()
        .build()
        .unwrap();
    let mut row = 0;
    for batch in reader {
        let batch = batch.unwrap();
        let names: Vec<_> = batch
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect();
        assert_eq!(
            names,
            ["id", "category", "kind", "score", "margin", "probability", "scene"]
        );
        for i in 0..batch.num_rows() {
            assert_eq!(batch.column(0).as_string::<i32>().value(i), format!("item {row}"));
            assert_eq!(batch.column(1).as_string::<i32>().value(i), "cat");
            let kind = if row % 3 == 0 {
                "unsure"
            } else {
                ["known", "new"][row % 2]
            };
            assert_eq!(batch.column(2).as_string::<i32>().value(i), kind);
            assert_eq!(batch.column(3).as_primitive::<Float32Type>().value(i), row as f32);
            assert_eq!(batch.column(4).as_primitive::<Float32Type>().value(i), 0.5);
            for column in [5, 6] {
                assert_eq!(batch.column(column).is_null(i), row % 3 != 0);
            }
            if row % 3 == 0 {
                assert_eq!(batch.column(5).as_primitive::<Float32Type>().value(i), 0.25);
                assert_eq!(batch.column(6).as_primitive::<Int64Type>().value(i), 12);
            }
            row += 1;
        }
    }
    assert_eq!(row, count);
    assert_eq!(&written(Format::Parquet)[..4], b"PAR1");
}

#[test]
fn a_file_appears_when_finished_and_not_before() {
    for format in Format::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("assignments.{format}"));
        let mut writer = AssignmentWriter::create(&path, format).unwrap();
        writer.write(&ROWS[0]).unwrap();
        assert!(!path.exists());
        drop(writer);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        write_all(AssignmentWriter::create(&path, format).unwrap());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        if format != Format::Parquet {
            assert_eq!(std::fs::read(&path).unwrap(), written(format));
        }
    }
}

#[test]
fn a_broken_pipe_is_known_as_such() {
    for format in Format::ALL {
        let outcome = AssignmentWriter::new(Box::new(Closed), "the standard output", format).and_then(|mut writer| {
            writer.write(&ROWS[0])?;
            writer.finish()
        });
        match outcome {
            Err(DataError::File(FileError::Write { target, source, .. })) => {
                assert_eq!(
                    (target.as_str(), source.kind()),
                    ("the standard output", io::ErrorKind::BrokenPipe),
                    "{format}"
                );
            }
            other => panic!("{format}: {other:?}"),
        }
    }
}

#[test]
fn formats_have_names() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
        assert_eq!(format.extension().to_uppercase().parse(), Ok(format));
    }
    assert_mentions(
        &"xlsx".parse::<Format>().unwrap_err().to_string(),
        &["\"xlsx\"", "csv, jsonl or parquet"],
    );
}

#[test]
fn formulas_are_texts_where_a_spreadsheet_reads_them() {
    let names = ["=1+1", "+1", "-1", "@a", "\tx", "a=1", ""];
    let written = |format, wanted| {
        let shared = Shared::default();
        let mut writer = AssignmentWriter::new(Box::new(shared.clone()), "a stream", format)
            .unwrap()
            .for_spreadsheets(wanted);
        for name in names {
            writer.write(&plain(name, name, Kind::Novel, 0.5, 0.5)).unwrap();
        }
        writer.finish().unwrap();
        let bytes = shared.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    };
    let text = written(Format::Csv, true);
    let cells: Vec<&str> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap())
        .collect();
    assert_eq!(cells, ["'=1+1", "'+1", "'-1", "'@a", "'\tx", "a=1", ""]);
    assert!(
        text.lines()
            .skip(1)
            .take(5)
            .all(|line| line.split(',').nth(1).unwrap().starts_with('\''))
    );
    // Programs get what there is.
    assert!(!written(Format::Csv, false).contains('\''));
    assert_eq!(written(Format::Jsonl, true), written(Format::Jsonl, false));
}
