"""A headless browser that is spoken to over pipes: keys are pressed, and what it fetches and complains of is noted."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--allow-file-access-from-files",
)
KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " ")}
PATIENCE = 30.0


class Tab:
    """One page in a browser."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write, self._rest, self._number, self._session = read, write, b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> Any:
        """Send a command of the DevTools protocol and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            found = os.read(self._read, 1 << 16)
            assert found, "the browser ended"
            self._rest += found
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, address: str, width: int = 1440, height: int = 900) -> None:
        """Go to a page and wait until it is loaded."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        self.ask("Page.navigate", url=address)
        self.wait_for("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """What an expression is on the page."""
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True, "userGesture": False}
        answer = self.ask("Runtime.evaluate", **asked)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Ask again until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.value(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """One key, as a person presses it."""
        code, text = KEYS[key]
        event = {"key": key, "windowsVirtualKeyCode": code, "text": text, "unmodifiedText": text}
        self.ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **event)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def fetched(self) -> list[str]:
        """The addresses that were asked for."""
        sent = (e["params"] for e in self.events if e.get("method") == "Network.requestWillBeSent")
        return [event["request"]["url"] for event in sent]

    def complaints(self) -> list[Any]:
        """Messages on the console, exceptions and other entries of its log."""
        loud = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event["params"] for event in self.events if event.get("method") in loud]


@contextmanager
def browsing(profile: Path) -> Iterator[Tab]:
    """A browser with a profile of its own; it ends with the block."""
    import fcntl  # which not every system has

    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    moved = [fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, 10) for theirs in (theirs_in, theirs_out)]
    actions = [
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        *((os.POSIX_SPAWN_DUP2, theirs, place) for theirs, place in zip(moved, (3, 4), strict=True)),
    ]
    arguments = [str(BROWSER), *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
    browser = os.posix_spawn(str(BROWSER), arguments, dict(os.environ), file_actions=actions)
    for theirs in (theirs_in, theirs_out, *moved):
        os.close(theirs)
    try:
        yield Tab(ours_in, ours_out)
    finally:
        os.close(ours_in)
        os.close(ours_out)
        os.kill(browser, signal.SIGKILL)
        os.waitpid(browser, 0)
