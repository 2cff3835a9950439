"""Commands without the second that Python and imports take: a process that forks for each call.

``python forks.py SOCKET`` imports the program once and waits. A launcher (``LAUNCHER``) hands over
its arguments, folder, environment and its three streams, and ends with the exit code of the fork,
so that a shell sees nothing of it. Holds no test; must never be used but by tests.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
import traceback
from typing import NoReturn

__all__ = ["LAUNCHER"]

LAUNCHER = """\
#!{python} -ISs
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
call = [os.path.basename(sys.argv[0]), sys.argv[1:], os.getcwd(), dict(os.environ)]
data = json.dumps(call).encode()
socket.send_fds(server, [len(data).to_bytes(4, "big")], [0, 1, 2])
server.sendall(data)
said = server.recv(4)
sys.exit(int.from_bytes(said, "big") if said else 139)
"""


def preload() -> None:
    """Import every module of the program, so that no fork has to."""
    import actors

    for module in pkgutil.walk_packages(actors.__path__, "actors."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def serve(address: str) -> None:
    """Fork for every connection, until killed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks are waited for by their launchers
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        preload()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                _answer(connection)
            connection.close()


def _reopen() -> None:
    """Streams on what the numbers are now; the old ones believe that they can be rewound."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115  # for good
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _answer(connection: socket.socket) -> NoReturn:
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        head, streams, _, _ = socket.recv_fds(connection, 4, 3)
        data = b""
        while len(data) < int.from_bytes(head, "big"):
            data += connection.recv(65536)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        _reopen()
        name, arguments, folder, environment = json.loads(data)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        code = _called(name, arguments)
    except BaseException:  # noqa: BLE001  # the end of the process: told as Python tells it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(code.to_bytes(4, "big"))
        os._exit(code)


def _called(name: str, arguments: list[str]) -> int:
    """Run a program under the name that the launcher has."""
    sys.argv = [name, *arguments]
    try:
        if name == "python":
            assert arguments[0] == "-m", arguments
            sys.argv = arguments[1:]
            sys.path.insert(0, "")
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
            return 0
        from actors.main import main

        return main(["train", *arguments] if name == "train" else arguments)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(ended.code + "\n")
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)


if __name__ == "__main__":
    serve(sys.argv[1])
