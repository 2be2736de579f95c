//! A server with given answers that remembers its requests.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Function that serves one connection, and notes the bytes that came.
type Serve = dyn Fn(TcpStream, &Mutex<Vec<u8>>) + Send + Sync;

/// Threads that serve until the test's process ends.
pub(crate) struct Server {
    address: String,
    asked: Arc<Mutex<Vec<u8>>>,
}

impl Server {
    /// Serves each connection by `serve`.
    fn start(serve: Arc<Serve>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be listened on");
        let address = listener.local_addr().expect("it has one").to_string();
        let asked = Arc::<Mutex<Vec<u8>>>::default();
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (serve, noted) = (Arc::clone(&serve), Arc::clone(&noted));
                std::thread::spawn(move || serve(stream, &noted));
            }
        });
        Self { address, asked }
    }

    /// Answers every request of HTTP/1.1 with these bytes. The last of ten may be answered otherwise.
    pub(crate) fn of_http(answer: Vec<u8>, tenth: Vec<u8>) -> Self {
        Self::start(Arc::new(move |mut stream, noted| {
            let mut count = 0;
            while let Some(request) = request(&mut stream) {
                noted.lock().expect("no panic").extend(request);
                count += 1;
                let answer = if count % 10 == 0 { &tenth } else { &answer };
                if stream.write_all(answer).is_err() {
                    return;
                }
            }
        }))
    }

    /// Sends these bytes to every client that has sent something, and closes.
    pub(crate) fn that_says(bytes: Vec<u8>) -> Self {
        Self::start(Arc::new(move |mut stream, _| {
            let mut some = [0; 4096];
            let _ = stream.read(&mut some);
            let _ = stream.write_all(&bytes);
            // Waits until the other side has gone: a reset could overtake the reply.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            while stream.read(&mut some).is_ok_and(|count| count > 0) {}
        }))
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that it was asked.
    pub(crate) fn asked(&self) -> String {
        String::from_utf8_lossy(&self.asked.lock().expect("no panic")).into_owned()
    }
}

/// One request with its body; `None` at the end.
fn request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut byte = [0];
    while !all.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        all.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&all).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap_or(0))];
    stream.read_exact(&mut body).ok()?;
    all.extend(body);
    Some(all)
}
