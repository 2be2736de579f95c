"""Serves every connection on a free port in the way that its first argument names; prints the port first.

With a certificate and its key as further arguments it does so over TLS; the last one says whether its end of a
connection is announced by close_notify (`notify`) or not (`cut`).
"""

import socket
import ssl
import sys
import threading

ANSWERS = {
    "garbage": b"\x00\xff\x17\x03 no protocol at all\r\n\r\n",
    "other-protocol": b"220 mail.example ESMTP ready\r\n",
    "short-body": b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n0123456789",
    "long-body": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n0123456789",
    "two-answers": 2 * b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "two-lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n01234",
    "bad-chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n0123\r\n0\r\n\r\n",
    "cut-head": b"HTTP/1.1 200 OK\r\ncontent-le",
    "no-answer": b"",
    "until-close": b"HTTP/1.1 200 OK\r\nx:no space\r\n\r\n0123456789",
    "informed": b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
}
BYTE_BY_BYTE = (
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nt: v\r\n\r\n"
)


# After these the connection can be used again.
KEPT = ("byte-by-byte", "informed", "long-body", "two-answers")


def requests(connection):
    """The number of requests that have come, at least one; 0 at the end of the connection."""
    received = b""
    while not received.endswith(b"\r\n\r\n"):
        more = connection.recv(65536)
        if not more:
            return 0
        received += more
    return received.count(b"\r\n\r\n")


def answer(connection, manner):
    if manner == "silent":
        connection.recv(1)
    elif manner == "byte-by-byte":
        for byte in BYTE_BY_BYTE:
            connection.send(bytes([byte]))
    elif manner == "endless-headers":
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall(b"x-filler: " + 200 * b"x" + b"\r\n")
    elif manner == "endless-line":
        connection.sendall(b"HTTP/1.1 200 OK\r\nx-filler: ")
        while True:
            connection.sendall(4096 * b"x")
    elif manner == "endless-interim":
        while True:
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    else:
        connection.sendall(ANSWERS[manner])


def serve(connection, manner):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        while asked := requests(connection):
            for _ in range(asked):
                answer(connection, manner)
            if manner not in KEPT:
                break
        if context and end == "notify":
            connection = connection.unwrap()
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
    except OSError:
        pass  # The client has gone, as it should from some of these.
    connection.close()


manner, *files, end = sys.argv[1:] if len(sys.argv) > 2 else [sys.argv[1], ""]
context = None
if files:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*files)
listener = socket.create_server(("127.0.0.1", 0), backlog=128)
print(listener.getsockname()[1], flush=True)
while True:
    client, _ = listener.accept()
    threading.Thread(target=serve, args=(client, manner), daemon=True).start()
