"""What in a text gives away where and by whom a job ran, and what stays."""

from __future__ import annotations

import json
import re
import sys
import time

import pytest

from rocpd.redact.options import Clue
from rocpd.redact.secrets import rules
from rocpd.redact.strict import Strict
from rocpd.redact.texts import InJob, Pseudonyms, Redactor
from tests.soak import sample, sized

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
        ("me:a@b@tcp(db:3306)", "me:secret-01@tcp(db:3306)"),
        ("me:abc@/jobs a:b/c@/d", "me:secret-01@/dir-01 a:b/c@/dir-02"),
        ("bearer = x --password = y password : z", "bearer = secret-01 --password = secret-02 password : secret-03"),
        ("--token :x --token=:y", "--token secret-01 --token=secret-02"),
        ("secret:\n  password: x", "secret:\n  secret-01 secret-02"),
        ("KEY=-----BEGIN A KEY-----\nx\n-----END A KEY-----", "KEY=secret-01secret-02"),
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


def test_rules_of_the_user() -> None:
    names = redactor(rules={r"acme-\w+": "product"})
    assert names.text("acme-x and acme-y of acme-x") == "product-01 and product-02 of product-01"


def strict(**options: object) -> Strict:
    return Strict(Pseudonyms(), KNOWN, in_job=InJob({"secret kernel": "GEMM_001"}, 1000), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("secret kernel", "GEMM_001"),
        ("GPU17", "host-01"),
        ("hipMemcpyAsync", "hipMemcpyAsync"),
        ("hipMemcpyAsync hunter2", "text-aaa 1"),
        ("aten::copy_", "aten::copy_"),
        ("any words", "text-aaa"),
        ("autograd::engine::evaluate_function: MineBackward", "autograd::engine::evaluate_function: text-aaaBackward"),
        ("/srv/run.py(17): fit", "text-aaa(17): text-aab"),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",) * 2,
        ("text-07", "text-aaa 1"),
        ("", ""),
    ],
)  # fmt: skip
def test_names_that_strict_files_keep(text: str, redacted: str) -> None:
    assert strict().name(text) == redacted


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("{z=1, y=1, x=256}", "{z=1, y=1, x=256}"),
        ('[[8, 1], "[1, 1]", "float", "mine"]', '[[8, 1], "[1, 1]", "float", "text-aaa"]'),
        ("0x7f2a40000000 0x12", "text-aaa 1"),
        ("0x7f2a40000000", "0x000000000001"),
        ("4111111111111111", "text-aaa 1"),
        ("4111 1111 1111 1111", "text-aaa 1"),
        ("ncclBfloat16", "ncclBfloat16"),
        ("[True, False]", "[True, False]"),
    ],
)
def test_arguments_that_strict_files_keep(text: str, redacted: str) -> None:
    assert strict().value(text) == redacted


def test_what_else_strict_files_keep() -> None:
    text = json.dumps({"line": 5, "start": 1500, "host": "gpu17", "message": "secret kernel", "size": 10**18})
    assert strict().document(text) == '{"line": 5, "start": 500, "message": "GEMM_001", "size": 0}'
    assert strict().document('{"line"') == "text-aaa"
    assert (
        strict().command("python3 x.py -pHunter3pw --manhattan-mode 8")
        == "python3 argument-01 argument-02 argument-03 argument-04"
    )
    assert strict().environment('{"RANK": "3", "OMP_PLACES": "x", "HIP_VISIBLE_DEVICES": "gpu17"}') == '{"RANK": "3"}'
    assert strict(keep=frozenset({Clue.TEXT})).text("any gpu17") == "any host-01"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ('{"uuid": {"bytes": [7, 8]}, "hive_id": 5, "s": 3}', '{"uuid": {"bytes": [0, 0]}, "hive_id": 0, "s": 3}'),
        ('{"board_serial": "PCB01-7"}', '{"board_serial": "machine-01"}'),
        ("GPU-1b2c3d4e-0000-4000-8000-aabbccddeeff and GPU-0123456789abcdef", "guid-01 and machine-01"),
        ("serial number: PCB012345-0001, serial kernel", "serial number: machine-01, serial kernel"),
    ],
)  # fmt: skip
def test_devices_are_not_known_by_their_names(text: str, redacted: str) -> None:
    assert redactor().value(text) == redacted


SHAPES = (
    "x", "\u00e9", "\n", " ", "=", ":", "/", "-", "@", ".", "'\"", "~", "a=", "a:", "a@", "a/", "a.", "a-",
    "1.", "1:", "::1", " =", "=\t", " : ", "'=", "a=:", "=a@", "://", "://a", "://a@", "a:b@", "a:b@/", "a: @/",
    "a:@tcp( ", "a@a.", "a.b:/", "a//", "0x", "key", "key= ", "key : ", "spw=", "pw:", "path=", "token=token:",
    "--key ", "--a ", "- ", "bearer ", "bearer = ", "Cookie: ", "-----BEGIN ", "-----BEGIN A-----",
    "a=-----BEGIN A-----", "-----END ", "ghp_", "ghp_ ", "%25", "\\u0041", "QUJD", "6b6579", "serial number ",
    "serial=", "gpu17", "C:\\",
)  # fmt: skip
"""What a hostile text repeats: each begins again and again what an expression looks for."""


def text_of(shape: str, size: int) -> str:
    return (shape * size)[:size]


@pytest.mark.soak(5)
@pytest.mark.parametrize("shape", sample(SHAPES, 4))
def test_a_text_of_twice_the_length_takes_twice_as_long(shape: str) -> None:
    """Four times as long takes four times the time, not 16 times: time of the processor, the least of some tries."""

    def seconds(text: str) -> float:
        names = redactor()
        start = time.thread_time()
        names.text(text)
        return time.thread_time() - start

    size = sized(6_000, 30_000)
    short = min(seconds(text_of(shape, size)) for _ in range(5))
    assert min(seconds(text_of(shape, 4 * size)) for _ in range(3)) < 9 * short


@pytest.mark.parametrize("shape", SHAPES)
def test_few_steps_are_taken_for_a_character(shape: str) -> None:
    """Calls of the interpreter are counted: signs that nothing of interest precedes take none."""
    counts = [0]

    def count(*_: object) -> None:
        counts[0] += 1

    names, text = redactor(), text_of(shape, 8000)
    sys.setprofile(count)
    try:
        names.text(text)
    finally:
        sys.setprofile(None)
    assert counts[0] < 20 * len(text)


@pytest.mark.parametrize("start", rules().tokens)
def test_tokens_of_services(start: str) -> None:
    token = start + "a1" * (rules().tokens[start] // 2)
    assert redactor().text(f"with {token}, x{token}") == f"with secret-01, x{token}"
