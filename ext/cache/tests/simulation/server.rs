//! The Carbon cache: frames of a length in four bytes, the kind, and names, keys and values with lengths.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_testkit::Speaks;
use plimsoll_testkit::protocol::{Exchange, NotARequest, Order, SimProtocol};

/// A cache, of which clones share the content.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    values: Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>,
}

impl Cache {
    /// A server with an empty cache for all of its connections.
    pub(crate) fn speaks() -> Speaks {
        let cache = Self::default();
        Speaks::new(move || cache.clone())
    }

    /// The content of the answer to a request of this content.
    fn answer(&self, content: &[u8]) -> Result<Vec<u8>, NotARequest> {
        let (&kind, rest) = content.split_first().ok_or(NotARequest)?;
        let mut rest = rest;
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        match kind {
            0 => Ok(vec![0]),
            1 => {
                let _name = part(&mut rest)?;
                let (key, value) = (length(&mut rest)?, length(&mut rest)?);
                let (key, value) = (take(&mut rest, key)?, take(&mut rest, value)?);
                values.insert(key.to_vec(), value.to_vec());
                Ok(vec![1])
            }
            2 | 3 => {
                let _name = part(&mut rest)?;
                let key = part(&mut rest)?;
                if kind == 3 {
                    values.remove(key);
                    return Ok(vec![1]);
                }
                match values.get(key) {
                    Some(value) => Ok([&[2], &(value.len() as u32).to_be_bytes()[..], value].concat()),
                    None => Ok(error(b"Get failed: not found")),
                }
            }
            _ => Err(NotARequest),
        }
    }
}

impl SimProtocol for Cache {
    fn receive(&mut self, input: &mut Vec<u8>, orders: &mut Vec<Order>) -> Result<(), NotARequest> {
        while let Some(head) = input.first_chunk() {
            let end = 4 + u32::from_be_bytes(*head) as usize;
            if input.len() < end {
                break;
            }
            let request: Vec<u8> = input.drain(..end).collect();
            let answer = frame(&self.answer(&request[4..])?);
            let refusal = frame(&error(b"Put failed: full"));
            orders.push(Order::Answer(Exchange { request, answer, refusal, then: Vec::new() }));
        }
        Ok(())
    }
}

/// A frame of this content.
fn frame(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_be_bytes()[..], content].concat()
}

/// The content of a reply with an error.
fn error(text: &[u8]) -> Vec<u8> {
    [&[4], &(text.len() as u32).to_be_bytes()[..], text].concat()
}

fn length(rest: &mut &[u8]) -> Result<usize, NotARequest> {
    let (bytes, after) = rest.split_first_chunk().ok_or(NotARequest)?;
    *rest = after;
    Ok(u32::from_be_bytes(*bytes) as usize)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], NotARequest> {
    let (taken, after) = rest.split_at_checked(length).ok_or(NotARequest)?;
    *rest = after;
    Ok(taken)
}

/// A part behind its length.
fn part<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], NotARequest> {
    let length = length(rest)?;
    take(rest, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_got_until_it_is_deleted() {
        let part = |text: &[u8]| [&(text.len() as u32).to_be_bytes()[..], text].concat();
        let put = frame(&[&[1][..], &part(b"c"), &[0, 0, 0, 1], &[0, 0, 0, 2], b"k", b"vw"].concat());
        let get = frame(&[&[2][..], &part(b"c"), &part(b"k")].concat());
        let delete = frame(&[&[3][..], &part(b"c"), &part(b"k")].concat());
        let (mut cache, mut orders) = (Cache::default(), Vec::new());
        let mut input = [&put[..], &get, &delete, &get, &get[..3]].concat();
        cache.receive(&mut input, &mut orders).unwrap();
        assert_eq!(input, get[..3]);
        let answers: Vec<_> = orders
            .iter()
            .map(|order| match order {
                Order::Answer(exchange) => exchange.answer[4],
                order => panic!("{order:?}"),
            })
            .collect();
        assert_eq!(answers, [1, 2, 1, 4]);
        assert_eq!(cache.receive(&mut frame(&[9]), &mut orders), Err(NotARequest));
        assert_eq!(cache.receive(&mut frame(&[]), &mut orders), Err(NotARequest));
    }
}
