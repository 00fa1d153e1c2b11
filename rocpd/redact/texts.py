"""Parts of a text that give away places and users of a job, and their replacements.

A text has the same replacement in all ranks of a job. The pairs are never written: nobody can reverse them from the
outputs alone. Works on one text at a time and knows neither tables nor files. Encoded texts are decoded: UTF-16, and
words in base64, hexadecimal digits and escapes, each word once, in time linear in its length.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
import urllib.parse
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Self

from rocpd.base import frozen
from rocpd.base.texts import json_object, json_value
from rocpd.federate.open.identify import MPI_VARIABLES
from rocpd.redact.options import Clue
from rocpd.redact.secrets import has_secret_part, names_secret, secrets_in

_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}")
_LONG = re.compile(r"[\w+/-]{16}")
_UNICODE = re.compile(r"\\u([0-9A-Fa-f]{4})")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}){12,}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")


def decoded(raw: bytes, errors: str = "backslashreplace") -> str:
    """Return the text of bytes, which some programs write as UTF-16.

    >>> decoded(b"abc"), decoded("abc".encode("utf-16-le")), decoded(b"a\\xff")
    ('abc', 'abc', 'a\\\\xff')
    """
    encoding = "utf-8"
    if raw.count(0) > len(raw) // 3:
        encoding = "utf-16-be" if raw[::2].count(0) > raw[1::2].count(0) else "utf-16-le"
    return raw.decode(encoding, errors)


def may_be_encoded(text: str) -> bool:
    """Whether a text may hold an encoded word."""
    return bool(_ESCAPED.search(text) or _LONG.search(text))


def readings(word: str) -> Iterator[str]:
    """Yield the decoded texts of a word, or of parts of it; none if nothing in it is encoded.

    >>> list(readings("%61%62c")), list(readings("key=aGVsbG8gd29ybGQhIQ==")), list(readings("_Z16kernel_with_namePf"))
    (['abc'], ['key=hello world!!'], [])
    """
    if _ESCAPED.search(word):
        read = _UNICODE.sub(lambda escape: chr(int(escape[1], 16)), urllib.parse.unquote(word))
        yield read.encode("utf-8", "replace").decode()
    read = _BASE64.sub(lambda part: _read(part[0]) or part[0], word)
    if read != word:
        yield read


def _read(word: str) -> str | None:
    """Return the text of a word in hexadecimal digits or base64; None if it is not a printable text."""
    try:
        raw = bytes.fromhex(word) if _HEX.fullmatch(word) else _of_base64(word)
        text = decoded(raw, "replace").strip("\0").replace("\ufffd", "?")  # escapes would be four times as long
    except (ValueError, binascii.Error):
        return None
    return text if text.isascii() and text.replace("\n", " ").isprintable() else None


def _of_base64(word: str) -> bytes:
    plain = word.rstrip("=")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), b"-_" if "-" in plain or "_" in plain else None)


_LETTERS = 3
_DIGITS = re.compile(r"\d+")


def _letters(number: int) -> str:
    """Return a number as at least three letters, since analyses would fold names that differ only in digits.

    >>> _letters(0), _letters(27), _letters(26**3)
    ('aaa', 'abb', 'baaa')
    """
    letters = ""
    while number or len(letters) < _LETTERS:
        number, letter = divmod(number, 26)
        letters = chr(ord("a") + letter) + letters
    return letters


class Pseudonyms:
    """Replacements of texts, by kind; `given` has all of them.

    >>> names = Pseudonyms()
    >>> names.of(Clue.HOST, "node17"), names.of(Clue.HOST, "node3"), names.of(Clue.HOST, "node17")
    ('host-01', 'host-02', 'host-01')
    """

    def __init__(self) -> None:
        self._names = defaultdict[Clue, dict[str, str]](dict)
        self._forms: dict[str, tuple[str, list[str]]] = {}
        self.given: set[str] = set()

    def of(self, kind: Clue, text: str, word: str = "") -> str:
        """Return the replacement of a text; it contains `word` in place of the kind."""
        names = self._names[kind]
        return names.get(text) or self._give(kind, text, f"{word or kind}-{len(names) + 1:02}")

    def of_form(self, kind: Clue, text: str) -> str:
        """Return the replacement of a text; texts that differ only in numbers, which analyses fold, get similar ones.

        >>> names = Pseudonyms()
        >>> [names.of_form(Clue.TEXT, text) for text in ("layer 12", "head", "layer 7", "layer 12")]
        ['text-aaa 1', 'text-aab', 'text-aaa 2', 'text-aaa 1']
        """
        if name := self._names[kind].get(text):
            return name
        form = _DIGITS.sub("#", text)
        letters, known = self._forms.setdefault(form, (_letters(len(self._forms)), []))
        known.append(text)
        return self._give(kind, text, f"{kind}-{letters}" + f" {len(known)}" * (form.count("#") > 0))

    def in_order(self, kind: Clue, texts: Iterable[str]) -> None:
        """Name texts in their order, so that their replacements sort in the same way."""
        ordered = sorted(set(texts))
        width = len(str(len(ordered)))
        for number, text in enumerate(ordered, 1):
            self._give(kind, text, f"{kind}-{number:0{max(2, width)}}")

    def _give(self, kind: Clue, text: str, name: str) -> str:
        self._names[kind][text] = name
        self.given.add(name)
        return name

    def replaced(self) -> Iterator[tuple[Clue, str]]:
        """Yield the replaced texts, without replacements from an earlier redaction."""
        for kind, names in self._names.items():
            yield from ((kind, text) for text in names if text not in self.given)


_ALLOWED_VARIABLES = re.compile(
    r"(NCCL|RCCL|HSA|HIP|ROCR|OMP|PYTORCH)_\w+|GPU_(DEVICE_ORDINAL|(MAX|NUM|ENABLE)_\w+)|"
    r"(OMPI_COMM_WORLD|PMI|PALS|FLUX_TASK)_?\w*(RANK|ID|SIZE)|SLURM_(\w*(PROCID|LOCALID|NODEID)|\w*(NTASKS|SIZE)\w*)|"
    r"(LOCAL_)?RANK|WORLD_SIZE"
)
"""Environment variables that stay, with redacted values: settings of the GPU's libraries, and the place in the job."""

_NETWORK = re.compile(r"IFNAME|HCA|HOST|ADDR|COMM_ID|NODELIST")
"""Parts of the names of variables whose value names a network or a machine."""

NOT_TELLING = frozenset({
    "", "root", "localhost", "(none)", "none", "user", "unknown", "nobody", "admin", "amd", "rocm", "ubuntu", "docker",
    "jenkins", "runner", "gpu",
})  # fmt: skip
"""Names of accounts and machines that come with software: they identify nobody, and occur in public names."""

_PATH = r"(?:(?<=file:)/{0,2}|(?<![\w/.~-])(?:~|\.{1,2})?)(?:/[^\s/'\"<>|:;,()\[\]{}*?&#=\\]+)+/?"
_UUID = r"(?i)(?<![0-9a-z])(?:GPU-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-z])"
_SERIAL = (
    r"(?i)\b(?:serial|s/n)(?:[ _-]?(?:number|num|no))?[\"']?[ \t]{0,4}[:=#]?[ \t]{0,4}[\"']?"
    r"(?=[a-z-]{0,31}\d)[\w-]{6,40}"
)
_OF_DEVICES = re.compile(r"(?i)(?:\w{1,20}_)?(?:uuid|serial(?:_?(?:number|no))?|unique_?id|hive_id|board_serial)")
"""Keys of JSON with the permanent names of devices."""

_PATTERNS: tuple[tuple[Clue, str], ...] = (
    (Clue.URL, r"\b(?!file:)[A-Za-z][A-Za-z0-9+.\-]{1,15}://[^\s'\"<>]+"),
    (Clue.MAIL, r"(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+"),
    (Clue.HOST, r"(?<![\w.\-])[A-Za-z][\w\-]{0,62}(?:\.[\w\-]{1,63}){1,8}(?=:/)"),
    (Clue.ADDRESS, r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])|(?<![\w:])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![\w:])"),
    (Clue.ADDRESS, r"(?<![\w:.])(?=[0-9a-fA-F]*:)[0-9a-fA-F:]{3,39}(?![\w:])"),
    (Clue.GUID, _UUID),
    (Clue.MACHINE, r"\bGPU-[0-9a-f]{12,16}\b"),
    (Clue.MACHINE, _SERIAL),
    (Clue.PATH, r"(?<!\w)[A-Za-z]:\\[^\s'\"<>|:*?]+"),
    (Clue.PATH, _PATH),
)
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}|[\d.]+")
_KEPT_PATHS = re.compile(r"/(usr|lib|lib64|bin|sbin|proc|sys|dev|opt/rocm[^/]*)(/|$)")
_KEPT_ROOTS = frozenset({"", ".", "..", "~", "home", "root", "tmp", "var", "mnt", "opt", "data", "scratch", "users"})
_ENDING = re.compile(r"(?<=.)((?:\.[A-Za-z]\w{0,7})(?:\.\d+)*)$")
_PROGRAM = re.compile(r"(python|bash|sh|mpirun|mpiexec|srun|torchrun|rocprof)[\w.-]*")


@frozen
class InJob:
    """Replacements of names and times of a job in strict files.

    Args:
        names: names of kernels and markers -> new names; names that stay map to themselves.
        before: offset that is subtracted from times [ns].
    """

    names: Mapping[str, str] = field(default_factory=dict)
    before: int = 0


class Redactor:
    """Replaces identifying parts of texts.

    Args:
        pseudonyms: replacements of texts.
        known: identifying texts, which are replaced everywhere -> their kinds.
        keep: kinds, and environment variables, that stay.
        rules: regular expression -> word, for further texts that the user knows.
        in_job: replacements of names and times of the job, which only strict files need.

    Attributes:
        known: the replaced texts.
    """

    is_strict = False

    def __init__(
        self,
        pseudonyms: Pseudonyms,
        known: Mapping[str, Clue],
        keep: frozenset[str] = frozenset(),
        rules: Mapping[str, str] = MappingProxyType({}),
        in_job: InJob = InJob(),
    ) -> None:
        self.pseudonyms, self.keep, self._rules, self._in_job = pseudonyms, keep, rules, in_job
        self.known = {text: kind for text, kind in known.items() if kind not in keep}
        self._steps: list[Callable[[str], str]] = []
        self._folded = {text.lower(): (kind, text) for text, kind in self.known.items()}
        if self.known:
            self._add(_words(self.known), lambda text: self._name(*self._folded[text.lower()]))
        for pattern, word in rules.items():
            self._add(pattern, partial(pseudonyms.of, Clue.RULE, word=word))
        if Clue.SECRET not in keep:
            self._steps.append(self._without_secrets)
        ways = {Clue.PATH: self._path, Clue.ADDRESS: self._address, Clue.MACHINE: self._serial}
        for kind, pattern in _PATTERNS:
            if kind not in keep:
                self._add(pattern, ways.get(kind) or partial(self._new_name, kind))
        self._replaced = lru_cache(1 << 16)(self._replace)
        """`_replace`, once for each text: most documents have the same keys, and values that recur."""

    def knowing(self, further: Mapping[str, Clue]) -> Self:
        """Return a redactor that replaces further texts everywhere, with the same pseudonyms."""
        return type(self)(self.pseudonyms, {**self.known, **further}, self.keep, self._rules, self._in_job)

    def _add(self, pattern: str, replace: Callable[[str], str]) -> None:
        self._steps.append(partial(re.compile(pattern).sub, lambda match: replace(match[0])))

    def _name(self, kind: Clue, text: str) -> str:
        return self.pseudonyms.of(kind, text)

    def _new_name(self, kind: Clue, text: str) -> str:
        return text if text in self.pseudonyms.given else self._name(kind, text)

    def text(self, text: str) -> str:
        """Return a text without identifying parts; encoded words are decoded if their text identifies."""
        if may_be_encoded(text):
            text = re.sub(r"\S+", lambda word: self._read(word[0]), text)
        return self._replaced(text)

    def _read(self, word: str) -> str:
        """Return the decoded, redacted text of a word, or the word itself if nothing in it identifies."""
        for read in readings(word):
            replaced = self._replaced(read)
            if replaced != read:
                return replaced
        return word

    def _replace(self, text: str) -> str:
        for step in self._steps:
            text = step(text)
        return text

    name = argument = tag = text
    """Methods for texts that strict files may keep: names of functions and of arguments, tags of metadata."""

    def value(self, text: str) -> str:
        """Return the redacted value of an argument: a text, or the strings of a JSON document."""
        return self.document(text) if text[:1] in ("{", "[") else self.text(text)

    def _without_secrets(self, text: str) -> str:
        parts, until = [], 0
        for start, end in secrets_in(text):
            parts += [text[until:start], self._new_name(Clue.SECRET, text[start:end])]
            until = end
        return "".join([*parts, text[until:]])

    def _serial(self, text: str) -> str:
        """Return a permanent name of a device with its replacement; the words before it stay."""
        word = re.split(r"[\s\"':=#]", text)[-1]
        return text.removesuffix(word) + self._new_name(Clue.MACHINE, word)

    def _address(self, text: str) -> str:
        """Return the replacement of an address; colons between digits may be a time, or a scope of C++."""
        if ":" in text and not _MAC.fullmatch(text):
            try:
                ipaddress.IPv6Address(text)
            except ValueError:
                return text
            if not any(map(str.isdigit, text)):
                return text
        return self._new_name(Clue.ADDRESS, text)

    def document(self, text: str) -> str:
        """Return a JSON document with redacted strings; other text is redacted as by `text`."""
        if (content := json_value(text)) is None:
            return self.text(text)
        changed = self._value(content)
        return text if changed == content else json.dumps(changed, ensure_ascii=False)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self._item(key, item) for key, item in value.items()}
        return value

    def _item(self, key: str, value: Any) -> Any:
        if _OF_DEVICES.fullmatch(key) and Clue.MACHINE not in self.keep:
            return self._of_device(value)
        if isinstance(value, str) and value and key.lower() != "key" and has_secret_part(key):
            return value if Clue.SECRET in self.keep else self._new_name(Clue.SECRET, value)
        return self._value(value)

    def _of_device(self, value: Any) -> Any:
        """Return the replacement of a permanent name of a device; numbers become 0."""
        if isinstance(value, str):
            return self._new_name(Clue.MACHINE, value) if value else value
        if isinstance(value, list):
            return [self._of_device(item) for item in value]
        if isinstance(value, dict):
            return {key: self._of_device(item) for key, item in value.items()}
        return value if isinstance(value, bool) or value is None else 0

    def environment(self, text: str) -> str:
        """Return the JSON of a process's environment with the variables that may stay."""
        if (content := json_object(text)) is None:
            return "{}"
        if Clue.VARIABLE in self.keep:
            return self.document(text)
        values = {
            name: value if name in self.keep else self._value(value)
            for name, value in content.items()
            if name in self.keep or may_stay(name)
        }
        return json.dumps(values, ensure_ascii=False)

    def command(self, text: str) -> str:
        """Return a command line with its program and the names of its options, and redacted values."""
        if Clue.ARGUMENT in self.keep:
            return self.text(text)
        program, *arguments = text.split() or [""]
        return " ".join([self._program(program), *map(self._argument, arguments)])

    def _program(self, program: str) -> str:
        folder, slash, name = program.rpartition("/")
        shown = name if _PROGRAM.fullmatch(name) else self.pseudonyms.of(Clue.ARGUMENT, name, "program")
        return f"{self.text(folder)}{slash}{shown}" if name else ""

    def _argument(self, argument: str) -> str:
        option, equals, value = argument.partition("=") if argument.startswith("-") else ("", "", argument)
        if re.match(r"-[A-Za-z]\S", argument) and not equals:  # -pSecret; -j8
            option, value = argument[:2], argument[2:]
        elif argument.startswith("-") and not equals:
            return self.text(argument)
        shown = value if re.fullmatch(r"[\d.]*", value) else self._name(Clue.ARGUMENT, value)
        return f"{option}{equals}{shown}"

    def _path(self, path: str) -> str:
        if _KEPT_PATHS.match(path) or path.strip("/") in _KEPT_ROOTS:
            return path
        parts = path.split("/")
        last = max(i for i, part in enumerate(parts) if part)
        return "/".join(self._part(parts, i, i == last) for i in range(len(parts)))

    def _part(self, parts: list[str], i: int, is_last: bool) -> str:
        part = parts[i]
        if part in self.pseudonyms.given or (part in _KEPT_ROOTS and (i <= 1 or part in ("", ".", ".."))):
            return part
        if i and parts[i - 1] in ("home", "users"):
            return part if part in NOT_TELLING else self._name(Clue.USER, part)
        ending = _ENDING.search(part) if is_last else None
        if ending:
            return self.pseudonyms.of(Clue.PATH, part, "file") + ending[0]
        return self.pseudonyms.of(Clue.PATH, part, "dir")


def may_stay(variable: str) -> bool:
    """Whether an environment variable may stay."""
    is_allowed = _ALLOWED_VARIABLES.fullmatch(variable) and not _NETWORK.search(variable)
    return variable in MPI_VARIABLES or bool(is_allowed and not names_secret(variable))


def _words(texts: Iterable[str]) -> str:
    """Return the expression for any of some texts as a word, the longest first."""
    longest_first = sorted(texts, key=len, reverse=True)
    return rf"(?i)(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, longest_first))})(?![A-Za-z0-9])"
