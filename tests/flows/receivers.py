"""Those who get messages: a web server and a mail server on this machine, which keep what they were sent."""

from __future__ import annotations

import json
import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread
from typing import Any


@contextmanager
def web_receiver() -> Iterator[tuple[str, Queue[tuple[str, dict[str, Any]]]]]:
    """Yields an address, and (path, JSON) of what is posted there."""
    got: Queue[tuple[str, dict[str, Any]]] = Queue()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.headers["Content-Type"] == "application/json"
            got.put((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with _running(ThreadingHTTPServer(("127.0.0.1", 0), Receiver)) as port:
        yield f"http://127.0.0.1:{port}", got


@contextmanager
def mail_receiver() -> Iterator[tuple[int, Queue[EmailMessage]]]:
    """Yields a port, and the mails that are brought there. Speaks as much of RFC 5321 as a client needs."""
    got: Queue[EmailMessage] = Queue()

    class Receiver(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline():
                word = line[:4].upper().strip()
                if word == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    lines = iter(self.rfile.readline, b".\r\n")
                    content = b"".join(line.removeprefix(b".") for line in lines)
                    got.put(message_from_bytes(content, policy=policy.default))  # type: ignore[arg-type]
                self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 fine\r\n")
                if word == b"QUIT":
                    return

    with _running(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Receiver)) as port:
        yield port, got


@contextmanager
def _running(server: socketserver.TCPServer) -> Iterator[int]:
    with server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
