"""`rocpd control` believes the process that it asks, and nobody who listens in its place."""

from __future__ import annotations

import os
import pwd
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocpd.base import InputError
from rocpd.record import control as client
from rocpd.record.control import Action, control, owner_and_socket
from tests.conftest import Cli, Said
from tests.waiting import PATIENCE

GOOD = b'{"ok":true,"recording":true,"failed":false,"written":7,"lost":0,"file":"/tmp/\\u001b[31mx.db"}\n'


def _bind(server: socket.socket, path: Path, mode: int = 0o600) -> None:
    server.bind(str(path))
    path.chmod(mode)
    server.listen()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this process would listen."""
    folder = tmp_path / "control"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("ROCPD_CONTROL_DIR", str(folder))
    return folder


@pytest.fixture
def listen(folder: Path) -> Iterator[Callable[..., None]]:
    """Listen in the place of this process, and send some bytes, without end if asked."""
    threads = []

    def start(answer: bytes, endless: bool = False) -> None:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        _bind(server, owner_and_socket(os.getpid())[1])

        def serve() -> None:
            with server, server.accept()[0] as link:
                link.settimeout(PATIENCE)
                try:
                    link.recv(100)
                    link.sendall(answer)
                    while endless:
                        link.sendall(answer)
                except OSError:
                    pass

        threads.append(threading.Thread(target=serve, daemon=True))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_good_answer(listen: Callable[..., None], cli: Cli) -> None:
    listen(GOOD)
    words = f"{os.getpid()}: recording, 7 events, /tmp/\\e[31mx.db\n"
    assert cli("control", "status", str(os.getpid())) == Said(0, words, "")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\n",
        b"[1,2]\n",
        b"null\n",
        b'"text"\n',
        b"{}\n",
        b'{"ok":true}\n',
        GOOD.replace(b"7", b'"x"'),
        GOOD.replace(b"7", b"[1]"),
        GOOD.replace(b"7", b"1e99"),
        GOOD.replace(b"7", b"-7"),
        GOOD.replace(b"7", b"true"),
        GOOD.replace(b"false", b"0"),
        GOOD.replace(b'"file":"', b'"file":5,"x":"'),
        b"[" * 20000 + b"\n",
        b'{"ok":' + b"9" * 5000 + b',"written":' + b"9" * 5000 + b"}\n",
        b"\xff\xfe\n",
        b"x" * (client._LONGEST + 5),
    ],
    ids=range(18),
)
def test_an_answer_that_is_none(answer: bytes, listen: Callable[..., None], cli: Cli) -> None:
    listen(answer)
    said = cli("control", "status", str(os.getpid()))
    assert said.code == 3
    assert said.err.startswith(f"rocpd: error: process {os.getpid()}: its recorder gave an unreadable answer\n")
    assert len(said.err.splitlines()) == 2


def test_an_answer_without_end(listen: Callable[..., None]) -> None:
    listen(b"x" * 4096, endless=True)
    with pytest.raises(InputError, match="an unreadable answer"):
        control(os.getpid(), Action.STATUS)


def test_an_answer_that_never_comes(listen: Callable[..., None], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PATIENCE_S", 0.2)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with server:
        _bind(server, owner_and_socket(os.getpid())[1])
        with pytest.raises(InputError, match="no answer within"):
            control(os.getpid(), Action.STATUS)


def test_an_answer_byte_by_byte() -> None:
    """The time is that of the whole answer, not of each piece."""
    near, far = socket.socketpair()
    stopped = threading.Event()

    def drip() -> None:
        while not stopped.wait(0.02):
            near.send(b"x")

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        with pytest.raises(TimeoutError):
            client._first_line(far, time.monotonic() + 0.3)
    finally:
        stopped.set()
        thread.join()
        near.close()
        far.close()


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o707, 0o777])
def test_a_folder_that_is_open_to_others(mode: int, listen: Callable[..., None], folder: Path, cli: Cli) -> None:
    folder.chmod(mode)
    said = cli("control", "status", str(os.getpid()))
    assert said.code == 3
    assert f"{folder} is not a folder of its user alone" in said.err


def test_a_folder_of_another_user(folder: Path, cli: Cli) -> None:
    if os.geteuid():
        pytest.skip("only root gives folders away")
    os.chown(folder, 12345, 12345)
    said = cli("control", "status", str(os.getpid()))
    assert (said.code, said.out) == (3, "")
    assert "is not a folder of its user alone" in said.err


def test_a_link_to_a_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.setenv("ROCPD_CONTROL_DIR", str(tmp_path / "link"))
    assert "is not a folder of its user alone" in cli("control", "status", str(os.getpid())).err


def test_another_process_listens(folder: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    parent = os.getppid()
    try:
        path = owner_and_socket(parent)[1]
    except InputError:
        pytest.skip("this process's parent is another user's")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        _bind(server, path)
        said = cli("control", "status", str(parent))
    assert said.code == 3
    assert f"process {os.getpid()} of user {os.geteuid()} listens in its place" in said.err


@pytest.mark.parametrize("mode", [0o660, 0o666, 0o606])
def test_a_socket_that_is_open_to_others(mode: int, folder: Path, cli: Cli) -> None:
    path = owner_and_socket(os.getpid())[1]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        _bind(server, path, mode)
        assert f"{path} is not a socket of its user alone" in cli("control", "status", str(os.getpid())).err


def test_a_file_in_the_place_of_the_socket(folder: Path, cli: Cli) -> None:
    path = owner_and_socket(os.getpid())[1]
    path.touch(mode=0o600)
    said = cli("control", "status", str(os.getpid()))
    assert (said.code, path.exists()) == (3, True)
    assert f"{path} is not a socket of its user alone" in said.err


@pytest.mark.parametrize("seconds", [0, 60])
def test_a_socket_on_which_nobody_listens_any_more(seconds: int, folder: Path, cli: Cli) -> None:
    """It is removed, unless its recorder may be about to listen."""
    path = owner_and_socket(os.getpid())[1]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        _bind(server, path)
    made = path.stat().st_mtime - seconds
    os.utime(path, (made, made))
    said = cli("control", "status", str(os.getpid()))
    assert said.code == 3
    assert "no recorder listens" in said.err
    assert path.exists() == (seconds == 0)


def test_a_process_of_another_user(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    said = cli("control", "status", str(os.getpid()))
    assert said == Said(
        3,
        "",
        f"rocpd: error: process {os.getpid()} belongs to user {pwd.getpwuid(os.getuid()).pw_name}\n"
        "  hint: its own user and root may ask its recorder, nobody else\n",
    )
