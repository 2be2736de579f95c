//! The resources of a crud service, and the requests for them.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Digits of an id in a path: those of 64 bits, so that every reply has the same length.
pub(crate) const ID_DIGITS: usize = 16;

/// A request to a service of resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResourceRequest<'a> {
    /// A new resource below this path, which has no slash at its end.
    Create(Cow<'a, [u8]>),
    /// Something with this resource, if it exists.
    On(Verb, Key),
    /// Something with a path that cannot be one of a resource.
    Nowhere,
}

/// The action on a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Read,
    Change,
    Remove,
    /// A method that resources do not have.
    Other,
}

/// The name of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) id: u64,
    /// Digest of the path that it was created below.
    parent: u32,
}

impl<'a> ResourceRequest<'a> {
    /// Reads the request that `method` makes to the resource that `target` (RFC 9112 section 3.2) names.
    pub(crate) fn read(method: &[u8], target: &'a [u8]) -> Self {
        let path = path_of(target);
        let verb = match method {
            b"POST" if matches!(path, [] | [b'/', ..]) => return Self::Create(Cow::Borrowed(path)),
            b"GET" | b"HEAD" => Verb::Read,
            b"PATCH" | b"PUT" => Verb::Change,
            b"DELETE" => Verb::Remove,
            _ => Verb::Other,
        };
        key_of(path).map_or(Self::Nowhere, |key| Self::On(verb, key))
    }

    /// Returns the request without borrowed parts.
    pub(crate) fn into_owned(self) -> ResourceRequest<'static> {
        match self {
            Self::Create(parent) => ResourceRequest::Create(Cow::Owned(parent.into_owned())),
            Self::On(verb, key) => ResourceRequest::On(verb, key),
            Self::Nowhere => ResourceRequest::Nowhere,
        }
    }
}

/// The path of a request target, without its query, the slashes at its end, and all but one of those at its
/// front.
pub fn path_of(target: &[u8]) -> &[u8] {
    // The absolute form, which clients send to proxies: the path begins behind the authority.
    let scheme = [&b"http://"[..], b"https://"].into_iter().find(|scheme| target.starts_with(scheme));
    let path = match scheme {
        None => target,
        Some(scheme) => {
            let rest = &target[scheme.len()..];
            &rest[rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len())..]
        }
    };
    let end = path.iter().position(|&byte| byte == b'?').unwrap_or(path.len());
    let mut path = &path[..end];
    while let [shorter @ .., b'/'] = path {
        path = shorter;
    }
    // A location that begins with two slashes would name a host (RFC 3986 section 4.2).
    while let [b'/', b'/', ..] = path {
        path = &path[1..];
    }
    path
}

/// The resource that has this path, if it can be one.
fn key_of(path: &[u8]) -> Option<Key> {
    let (parent, last) = path.split_at_checked(path.len().checked_sub(ID_DIGITS + 1)?)?;
    let [b'/', digits @ ..] = last else { return None };
    let mut id = 0;
    for digit in digits {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        id = id << 4 | u64::from(value);
    }
    Some(Key { id, parent: digest(parent) })
}

/// An id as it stands in paths.
pub(crate) fn digits(id: u64) -> [u8; ID_DIGITS] {
    std::array::from_fn(|at| b"0123456789abcdef"[(id >> (4 * (ID_DIGITS - 1 - at))) as usize & 15])
}

/// A hash of 32 bits that distinguishes paths which differ by accident. Multiply-rotate over words of eight
/// bytes: the constant is the golden-ratio increment of SplitMix64.
fn digest(path: &[u8]) -> u32 {
    let mut state = path.len() as u64;
    for chunk in path.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = (state.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    (state >> 32) as u32
}

/// All resources. Each thread creates in a shard of its own and may reach into the others'.
#[derive(Debug)]
pub(crate) struct Resources {
    shards: Vec<Shard>,
    live: AtomicU64,
    limit: u64,
}

/// One shard on cache lines of its own (128 bytes: x86 fetches lines in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<Slab>);

#[derive(Debug, Default)]
struct Slab {
    slots: Vec<Slot>,
    /// Slots without a resource.
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Grows by one whenever a resource comes or goes: odd while there is one. It is the upper half of the
    /// resource's id, so that an id is not given again before a slot was used 2^31 times.
    generation: u32,
    parent: u32,
}

impl Resources {
    /// Room for `limit` resources at a time, created by `threads` threads. A place belongs to the shard of
    /// the thread that created in it: each shard has as many as it has held resources at a time, which
    /// together may be `threads` times `limit`.
    pub(crate) fn new(threads: u32, limit: u64) -> Self {
        let shards = (0..threads.max(1)).map(|_| Shard::default()).collect();
        Self { shards, live: AtomicU64::new(0), limit }
    }

    /// Creates a resource below the path `parent` and gives its id; `None` if there is no room.
    pub(crate) fn create(&self, thread: u32, parent: &[u8]) -> Option<u64> {
        // Relaxed, here and below: nothing else is published by the number.
        if self.live.fetch_add(1, Ordering::Relaxed) >= self.limit {
            self.live.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let id = self.occupy(thread as usize % self.shards.len(), parent);
        if id.is_none() {
            self.live.fetch_sub(1, Ordering::Relaxed);
        }
        id
    }

    fn occupy(&self, shard: usize, parent: &[u8]) -> Option<u64> {
        let mut slab = self.shards[shard].0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = slab.free.last().map_or(slab.slots.len(), |&index| index as usize);
        // Neighbouring places belong to different shards. Ids have 32 bits for the place: with many threads
        // the last slots may lie beyond them.
        let place = u32::try_from(index * self.shards.len() + shard).ok()?;
        if slab.free.pop().is_none() {
            slab.slots.push(Slot::default());
        }
        let slot = &mut slab.slots[index];
        slot.generation = slot.generation.wrapping_add(1);
        slot.parent = digest(parent);
        Some(u64::from(slot.generation) << 32 | u64::from(place))
    }

    /// Returns `true` if the resource exists.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.with_slot(key, |_, _| ()).is_some()
    }

    /// Removes it; false if it does not exist.
    pub(crate) fn remove(&self, key: Key) -> bool {
        let removed = self.with_slot(key, |slab, index| {
            let slot = &mut slab.slots[index as usize];
            slot.generation = slot.generation.wrapping_add(1);
            slab.free.push(index);
        });
        if removed.is_some() {
            self.live.fetch_sub(1, Ordering::Relaxed);
        }
        removed.is_some()
    }

    /// Returns the number of resources.
    pub(crate) fn count(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    fn with_slot<T>(&self, key: Key, act: impl FnOnce(&mut Slab, u32) -> T) -> Option<T> {
        let (generation, place) = ((key.id >> 32) as u32, key.id as u32 as usize);
        let (index, shard) = (place / self.shards.len(), place % self.shards.len());
        let mut slab = self.shards[shard].0.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slab.slots.get(index)?;
        let exists = generation % 2 == 1 && slot.generation == generation && slot.parent == key.parent;
        exists.then(|| act(&mut slab, index as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(parent: &str, id: u64) -> Vec<u8> {
        let mut path = format!("{parent}/").into_bytes();
        path.extend_from_slice(&digits(id));
        path
    }

    fn key(parent: &str, id: u64) -> Key {
        key_of(&path(parent, id)).unwrap()
    }

    #[test]
    fn targets_are_reduced_to_their_path() {
        for (target, path) in [
            ("/a/b", "/a/b"),
            ("/a/b/", "/a/b"),
            ("/a//?x=/1", "/a"),
            ("/", ""),
            ("*", "*"),
            ("", ""),
            ("http://host:80/a/?q", "/a"),
            ("https://host", ""),
            ("http://host?x=/y", ""),
            ("//users", "/users"),
            ("///users//1/", "/users//1"),
            ("//", ""),
            ("http://host//a", "/a"),
        ] {
            assert_eq!(path_of(target.as_bytes()), path.as_bytes(), "{target}");
        }
    }

    #[test]
    fn methods_and_paths_say_what_is_asked() {
        let at = |id| String::from_utf8(path("/a", id)).unwrap();
        assert_eq!(ResourceRequest::read(b"POST", b"/a/?x"), ResourceRequest::Create(Cow::Borrowed(b"/a")));
        for (method, verb) in [
            (&b"GET"[..], Verb::Read),
            (b"HEAD", Verb::Read),
            (b"PUT", Verb::Change),
            (b"PATCH", Verb::Change),
            (b"DELETE", Verb::Remove),
            (b"BREW", Verb::Other),
            (b"get", Verb::Other),
        ] {
            assert_eq!(
                ResourceRequest::read(method, at(7).as_bytes()),
                ResourceRequest::On(verb, key("/a", 7))
            );
            assert_eq!(ResourceRequest::read(method, b"/a"), ResourceRequest::Nowhere);
        }
        for nowhere in
            ["", "/", "/0123456789abcdeF", "0123456789abcdef", "/0123456789abcde", "/é123456789abcde"]
        {
            assert_eq!(
                ResourceRequest::read(b"GET", nowhere.as_bytes()),
                ResourceRequest::Nowhere,
                "{nowhere}"
            );
        }
        assert_eq!(
            ResourceRequest::read(b"GET", b"/0123456789abcdef"),
            ResourceRequest::On(Verb::Read, key("", 0x0123_4567_89ab_cdef))
        );
    }

    #[test]
    fn ids_are_not_given_again_and_belong_to_their_path() {
        let resources = Resources::new(3, 100);
        let mut seen = Vec::new();
        for thread in 0..6 {
            for _ in 0..5 {
                let id = resources.create(thread, b"/a").unwrap();
                assert!(!seen.contains(&id));
                seen.push(id);
                assert!(resources.has(key("/a", id)));
                assert!(!resources.has(key("/b", id)) && !resources.has(key("", id)));
                assert!(!resources.remove(key("/b", id)));
                assert!(resources.remove(key("/a", id)) && !resources.remove(key("/a", id)));
                assert!(!resources.has(key("/a", id)));
            }
        }
        assert_eq!(resources.count(), 0);
        assert!(
            resources.shards.iter().all(|shard| shard.0.lock().unwrap().slots.len() == 1),
            "slots are reused"
        );
        for id in [0, 1, 2, u64::MAX, 1 << 32 | 500] {
            assert!(!resources.has(key("/a", id)), "{id}");
        }
    }

    #[test]
    fn the_number_of_resources_is_bounded() {
        let resources = Resources::new(2, 3);
        let ids: Vec<_> = (0..3).map(|thread| resources.create(thread, b"").unwrap()).collect();
        assert_eq!((resources.create(0, b""), resources.create(1, b"")), (None, None));
        assert!(resources.remove(key("", ids[1])));
        assert!(resources.create(0, b"").is_some());
        assert_eq!((resources.create(0, b""), resources.count()), (None, 3));
    }

    #[test]
    fn digests_tell_paths_apart() {
        let mut digests: Vec<_> =
            (0..2000).map(|n| digest(format!("/nudm-ee/v2/imsi-{n}/x").as_bytes())).collect();
        digests.extend([digest(b""), digest(b"\0"), digest(b"/"), digest(b"/a")]);
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 2004);
    }
}
