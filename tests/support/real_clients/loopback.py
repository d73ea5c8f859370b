"""What the stand-ins for the clients' APIs share: a server on loopback that keeps what it is asked.

Rule: nobody else is answered, and an error inside the server is the test's: `close` raises it,
because a client would only ask again.
"""

from __future__ import annotations

import gzip
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from socket import socket

LOOPBACK: Final = "127.0.0.1"

Kept = TypeVar("Kept")
"""What is kept of a request."""


class Server(ThreadingHTTPServer, Generic[Kept]):
    """Listens on a free port of loopback, and keeps the requests."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__((LOOPBACK, 0), handler)
        self.lock = threading.Lock()
        self.requests: list[Kept] = []
        self.errors: list[BaseException] = []

    def record(self, request: Kept) -> None:
        """Keep a request."""
        with self.lock:
            self.requests.append(request)

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        """Keep an error for `close`; a client that hangs up in the middle is none."""
        del request, client_address
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, ConnectionError):
            self.errors.append(error)


class Handler(BaseHTTPRequestHandler):
    """Reads the content of a request, however it is sent, and sends one of known length."""

    protocol_version = "HTTP/1.1"
    headers_too: tuple[tuple[str, str], ...] = ()
    """What every reply has besides its kind and its length."""

    def content(self) -> bytes:
        """Return the content of the request."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            content = b"".join(self._chunks())
        else:
            content = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            content = gzip.decompress(content)
        return content

    def send(self, content: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        """Send a whole reply."""
        self.send_head(kind, len(content), status)
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_head(self, kind: str, size: int, status: HTTPStatus = HTTPStatus.OK) -> None:
        """Begin a reply of which the content is still to be written."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(size))
        for name, value in self.headers_too:
            self.send_header(name, value)  # `connection: close` closes it, too
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing: the requests are recorded."""

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()


class Api(Generic[Kept]):
    """A server that runs in a thread of its own; a context manager that ends it."""

    def __init__(self, server: Server[Kept]) -> None:
        self._listener = server
        self._thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the client finds the server."""
        return f"http://{LOOPBACK}:{self._listener.server_address[1]}"

    def requests(self) -> list[Kept]:
        """Return what was kept of all requests, in the order in which they came."""
        with self._listener.lock:
            return list(self._listener.requests)

    def close(self) -> None:
        """Stop the server; raises the first error that a request met inside it."""
        self._listener.shutdown()
        self._thread.join()
        self._listener.server_close()
        for error in self._listener.errors:
            raise error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
