//! Prometheus remote write 1.0 ("Prometheus Remote-Write 1.0 specification", prometheus.io): series of labels
//! with samples. A histogram is a row without a value.

use super::super::batch::Decoded;
use super::super::column::Value;
use super::super::rows::Rows;
use super::finished;
use super::protobuf::{Refused, Wire, fields, pair};

/// Reads a write request: a row for each sample.
pub(crate) fn decode(payload: &[u8]) -> Result<Decoded, Refused> {
    let mut rows = Rows::default();
    fields(payload, |number, series| match number {
        1 => of_series(series.bytes()?, &mut rows),
        _ => Ok(()),
    })?;
    Ok(finished(rows))
}

fn of_series(message: &[u8], rows: &mut Rows) -> Result<(), Refused> {
    let (mut labels, mut samples) = (Vec::new(), Vec::new());
    fields(message, |number, field| {
        match number {
            1 => {
                let (name, value) = pair(field.bytes()?)?;
                labels.push((name, String::from_utf8_lossy(value)));
            }
            2 => {
                let (mut value, mut millis) = (0.0, 0);
                fields(field.bytes()?, |number, field| {
                    match (number, field) {
                        (1, Wire::Fixed64(bits)) => value = f64::from_bits(bits),
                        (2, Wire::Varint(number)) => millis = number as i64,
                        _ => {}
                    }
                    Ok(())
                })?;
                samples.push((Value::Float(value), millis));
            }
            4 => {
                let mut millis = 0;
                fields(field.bytes()?, |number, field| {
                    if let (15, Wire::Varint(number)) = (number, field) {
                        millis = number as i64;
                    }
                    Ok(())
                })?;
                samples.push((Value::Null, millis));
            }
            _ => {}
        }
        Ok(())
    })?;
    for (value, millis) in samples {
        let row = rows.begin("samples", millis.saturating_mul(1000));
        row.set_value("value", value);
        for (name, label) in &labels {
            row.set_text(name, label);
        }
        if row.is_full() {
            return Err(Refused::TooLarge);
        }
    }
    Ok(())
}
