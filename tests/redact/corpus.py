"""Secrets of 40 kinds as texts hold them, and the ways in which they are written: for `redact` and for the recorder."""

from __future__ import annotations

import base64
import json
import random
import urllib.parse
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Secret(NamedTuple):
    """A secret, and a text that holds it."""

    kind: str
    text: str
    secret: str


def _word(random: random.Random, length: int) -> str:
    """Return letters and digits, among them at least one digit."""
    return "".join(random.choices(_LETTERS + "0123456789", k=length - 3)) + f"{random.randrange(100, 1000)}"


def _name(random: random.Random) -> str:
    return "".join(random.choices(_LETTERS[:26], k=9))


_KEY = "{key}"

TOKENS: Mapping[str, str] = MappingProxyType(
    {
        start: f"{start}{{key}}{{key}}"
        for start in ("ghp_", "hf_", "github_pat_", "glpat-", "sk-", "xoxb-", "AKIA", "AIza", "npm_", "eyJ", "pypi-AgE",
                      "sk_live_", "nvapi-", "dckr_pat_", "hvs.", "gsk_")
    }
)  # fmt: skip
"""What keys of services look like: they are secrets as a whole."""

SETTINGS: Mapping[str, str] = MappingProxyType({
    "aws": "aws_secret_access_key = {key}", "wandb": "WANDB_API_KEY={key}", "option": "run --api-key {key} -x",
    "passwd": "passwd={key}", "pwd": "pwd={key}", "yaml": "password: {key}", "basic": "Authorization: Basic {key}",
    "bearer": "with Bearer {key}", "json": '{{"token": "{key}"}}', "login": "https://me:{key}@host.example/x",
    "go": "me:{key}@tcp(db:3306)/jobs", "odbc": "Server=x;Password={key};Port=1", "sas": "https://host/a?sv=1&sig={key}",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\n{key}\n-----END RSA PRIVATE KEY-----",
    "set pem": "DEPLOY_KEY=-----BEGIN RSA PRIVATE KEY-----\n{key}\n-----END RSA PRIVATE KEY-----",
    "spaced": "password : {key}",
})  # fmt: skip
"""What stands around secrets that look like any word."""

PLACES: Mapping[str, str] = MappingProxyType({
    "mail": "ask {name}.{key}@corp.example", "url": "tcp://{name}{key}.corp:4711",
    "mount": "{name}{key}.corp.example:/srv",
    "user": "/home/{name}{key}/run.py", "windows": "C:\\Users\\{name}{key}\\run", "uuid": "GPU-{uuid}",
    "serial": "serial number: {key}",
})  # fmt: skip
"""What says where and by whom, and on which device."""

WORDS: Mapping[str, str] = MappingProxyType({
    "passphrase": "{name} {key} {name}", "project": "Operation-{key}", "function": "{name}_{key}(float*)",
    "argument": "-p{key}",
})  # fmt: skip
"""What only who knows it takes for a secret: level `share` leaves these."""

KINDS: Mapping[str, str] = MappingProxyType({**TOKENS, **SETTINGS, **PLACES, **WORDS})


def secret(kind: str, seed: int) -> Secret:
    """Return the secret of a kind and a number: no two are alike."""
    random_ = random.Random(f"{kind} {seed}")
    key = _word(random_, 20)
    uuid = "-".join(f"{random_.getrandbits(4 * n):0{n}x}" for n in (8, 4, 4, 4, 12))
    text = KINDS[kind].format(key=key, name=_name(random_), uuid=uuid)
    return Secret(kind, text, uuid if kind == "uuid" else key)


ENCODINGS: Mapping[str, Callable[[str], bytes]] = MappingProxyType({
    "utf-8": str.encode,
    "utf-16": lambda text: text.encode("utf-16-le"),
    "base64": lambda text: base64.b64encode(text.encode()),
    "hex": lambda text: text.encode().hex().encode(),
    "url": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()).encode(),
    "json": lambda text: "".join(f"\\u{ord(character):04x}" for character in text).encode(),
})  # fmt: skip
"""Ways to write a text: how bytes of it look."""


def forms(text: str) -> list[bytes]:
    """Return what a file holds that holds a text in any of these ways; of base64 as far as it does not depend on what
    stands before.
    """
    plain = text.encode()
    in_base64 = (base64.b64encode(b"\0" * before + plain)[4 * bool(before) :][:-4] for before in range(3))
    return [
        plain, text.encode("utf-16-le"), text.encode("utf-16-be"), *in_base64, plain.hex().encode(),
        plain.hex().upper().encode(), urllib.parse.quote(text).encode(), json.dumps(text)[1:-1].encode(),
        *(ENCODINGS[name](text) for name in ("url", "json")),
    ]  # fmt: skip
