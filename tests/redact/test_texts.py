"""What in a text gives away where and by whom a job ran, and what stays."""

from __future__ import annotations

import json
import re
import sys

import pytest

from rocpd.redact.options import Clue
from rocpd.redact.secrets import rules
from rocpd.redact.texts import Pseudonyms, Redactor

KNOWN = {"gpu17": Clue.HOST, "bob": Clue.USER, "hunter2-hunter2": Clue.SECRET}


def redactor(**options: object) -> Redactor:
    return Redactor(Pseudonyms(), KNOWN, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("gpu17/4711", "host-01/4711"),
        ("gpu170 agpu17 gpu17_x bobby", "gpu170 agpu17 host-01_x bobby"),
        ("pw hunter2-hunter2!", "pw secret-01!"),
        ("/home/alice/run/train.py:17", "/home/user-01/dir-01/file-02.py:17"),
        ("/opt/rocm-7.1/lib/libhsa.so", "/opt/rocm-7.1/lib/libhsa.so"),
        ("/usr/lib:/data/x/y", "/usr/lib:/data/dir-01/dir-02"),
        ("file:///srv/app/mod.so.1.2#offset=3", "file:///dir-01/dir-02/file-03.so.1.2#offset=3"),
        ("./build/transpose", "./dir-01/dir-02"),
        ("forward/layer1", "forward/layer1"),
        ("a / b", "a / b"),
        ("see https://git.corp.example/x?y=1 now", "see url-01 now"),
        ("s3://bucket/key", "url-01"),
        ("ask jane.doe@corp.example.com", "ask mail-01"),
        ("10.1.2.3 and 1.2.3", "address-01 and 1.2.3"),
        ("ghp_abcdefghijklmnopqrstuv12", "secret-01"),
        ("Authorization: Bearer abcdef123456", "Authorization: secret-01"),
        ("Authorization: Basic YWJj ZGVm", "Authorization: secret-01"),
        ("aws_secret_access_key = abc/d+e", "aws_secret_access_key = secret-01"),
        ("WANDB_API_KEY=0123 --api-key 4567", "WANDB_API_KEY=secret-01 --api-key secret-02"),
        ("passwd=a pwd=b monkey=5 password: x", "passwd=secret-01 pwd=secret-02 monkey=5 password: secret-03"),
        ('{"token":"abc", "key": "row"}', '{"token":"secret-01", "key": "row"}'),
        ("me:abc@tcp(db:3306)/jobs", "me:secret-01@tcp(db:3306)/dir-01"),
        ("tcp://node17:4711 up", "url-01 up"),
        ("fe80::1ff:fe23:4567:890a at::native::add 12:34:56", "address-01 at::native::add 12:34:56"),
        ("nfs1.corp.example:/srv/x", "host-01:/dir-01/dir-02"),
        ("C:\\Users\\alice\\x.py", "file-01.py"),
        ("BOB on GPU17", "user-01 on host-01"),
        ("-----BEGIN KEY-----\nabc\n-----END KEY-----", "secret-01"),
        ("Server=x;Password=open sesame", "Server=x;Password=secret-01 sesame"),
        ("void gemm<float, 4>(float const*)", "void gemm<float, 4>(float const*)"),
        ("", ""),
    ],
)
def test_texts(text: str, redacted: str) -> None:
    assert redactor().text(text) == redacted


def test_the_same_text_has_the_same_name() -> None:
    names = redactor()
    assert names.text("/a/b/c.py") == "/dir-01/dir-02/file-03.py"
    assert names.text("/a/x/c.py") == "/dir-01/dir-04/file-03.py"


@pytest.mark.parametrize("kind", [Clue.HOST, Clue.USER, Clue.PATH])
def test_what_is_kept(kind: Clue) -> None:
    text = "gpu17 bob /srv/x"
    words = {Clue.HOST: "gpu17", Clue.USER: "bob", Clue.PATH: "/srv/x"}
    redacted = redactor(keep=frozenset({kind})).text(text)
    assert [kept for kept, word in words.items() if word in redacted] == [kind]


def test_documents_stay_documents() -> None:
    text = json.dumps({"gpu17": ["/srv/a\\b", 1.5, None, {"k": "bob"}], "big": 10**30})
    content = json.loads(redactor().document(text))
    assert content["host-01"][1:] == [1.5, None, {"k": "user-01"}]
    assert content["big"] == 10**30
    assert redactor().document('{"a":  1}') == '{"a":  1}'
    assert redactor().document("[" * 5000) == "[" * 5000
    assert redactor().document("{gpu17") == "{host-01"


def test_the_environment_keeps_what_it_may() -> None:
    content = {"HIP_VISIBLE_DEVICES": "0,1", "NCCL_TOPO_FILE": "/srv/topo.xml", "HSA_TOKEN": "x", "HOME": "/home/bob",
               "RANK": "3", "MINE": "gpu17"}  # fmt: skip
    kept = json.loads(redactor(keep=frozenset({"MINE"})).environment(json.dumps(content)))
    assert kept == {"HIP_VISIBLE_DEVICES": "0,1", "NCCL_TOPO_FILE": "/dir-01/file-02.xml", "RANK": "3", "MINE": "gpu17"}
    assert redactor().environment("no JSON") == "{}"


@pytest.mark.parametrize(
    ("command", "redacted"),
    [
        ("python3 x.py --lr=0.1 --data=/srv/x --bf16 8", "python3 argument-01 --lr=0.1 --data=argument-02 --bf16 8"),
        ("/home/bob/bin/acme -v", "/home/user-01/dir-01/program-02 -v"),
        ("python3 x.py -pHunter3pw -j8", "python3 argument-01 -pargument-02 -j8"),
        ("", ""),
    ],
)  # fmt: skip
def test_commands(command: str, redacted: str) -> None:
    assert re.sub(r"program-\d+", "program-02", redactor().command(command)) == redacted


def test_rules_and_whole_texts() -> None:
    names = redactor(rules={r"acme-\w+": "product"}, whole={"secret kernel": "GEMM_001"})
    assert names.text("acme-x and acme-y of acme-x") == "product-01 and product-02 of product-01"
    assert names.text("secret kernel") == "GEMM_001"
    assert names.text("0x7f2a40000000 0x7F2A40000000 0x12") == "0x000000000001 0x000000000002 0x12"


@pytest.mark.parametrize(
    "piece", ["x", "a@", "a:", "=", "://a", "key= ", "a/", "-----BEGIN ", "ghp_", "a:b@", "\u00e9"]
)
def test_long_texts_take_no_longer_by_the_character(piece: str) -> None:
    """Each character is looked at a bounded number of times: steps of the interpreter are counted, not time."""

    def steps(size: int) -> int:
        counts = [0]
        text = piece * (size // len(piece))

        def count(*_: object) -> None:
            counts[0] += 1

        sys.setprofile(count)
        try:
            redactor().text(text)
        finally:
            sys.setprofile(None)
        return counts[0]

    assert steps(8000) < 5 * steps(2000) + 1000


@pytest.mark.parametrize("start", rules().tokens)
def test_tokens_of_services(start: str) -> None:
    token = start + "a1" * (rules().tokens[start] // 2)
    assert redactor().text(f"with {token}, x{token}") == f"with secret-01, x{token}"
