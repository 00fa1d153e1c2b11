"""Decides which requests are answered: those that the pages of this server make, on this machine, and no others.

Other pages in the same browser can send requests to any port of the machine, and a name of theirs may lead to it
(DNS rebinding): the secret in the path, the headers Host and Origin, and what browsers say of the sender keep them out.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping

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
"""What goes with each page of ours: nothing is loaded from elsewhere, nothing frames it, no address leaves it."""

HEADERS_OF_UI = {
    **HEADERS,
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:; frame-ancestors 'none'",
}
"""What goes with a copy of Perfetto's user interface: it compiles itself, and asks nothing of other servers."""


class Guard:
    """The secret of one server."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)

    def admits(self, path: str, headers: Mapping[str, str]) -> str | None:
        """Return what follows the secret in a path; None: the request is refused.

        >>> guard = Guard()
        >>> guard.admits(f"/{guard.token}/schema", {"Host": "127.0.0.1:8000"})
        'schema'
        >>> guard.admits(f"/{guard.token}/schema", {"Host": "evil.example"}) is None
        True
        """
        token, slash, rest = path.removeprefix("/").partition("/")
        host, origin = headers.get("Host") or "", headers.get("Origin")
        is_ours = (
            bool(slash)
            and hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())
            and _LOCAL.fullmatch(host) is not None
            and origin in (None, f"http://{host}")
            and headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
        )
        return rest if is_ours else None
