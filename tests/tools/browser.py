"""Drives a headless Chromium over the DevTools protocol, through a pipe: no port, no packages.

`with open_page(url) as page:` then `page.evaluate`, `page.wait_for`, `page.screenshot`. A page's
uncaught errors and refused loads are in `page.problems`.
"""

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CANDIDATES = ("chromium", "chromium-browser", "google-chrome")
#: Seconds that one command of the protocol may take.
COMMAND_S = 30.0
_FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
)


def find_browser() -> str | None:
    """Return the path of an installed Chromium, None if there is none."""
    return next((path for name in CANDIDATES if (path := shutil.which(name))), None)


class BrowserError(AssertionError):
    """The browser or the page did not do what a test asked for."""


class Page:
    """One tab of the browser."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._buffer = b""
        self._numbers = itertools.count(1)
        self._session: str | None = None
        #: Uncaught exceptions, errors on the console, violations of the content policy.
        self.problems: list[str] = []
        #: Addresses of all requests of the page.
        self.requests: list[str] = []

    def attach(self) -> None:
        """Open a tab and listen to it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and return its result."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + COMMAND_S
        while True:
            answer = self._read(deadline)
            if answer is None:
                raise BrowserError(f"no answer to {method} within {COMMAND_S} s")
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])
            self._note(answer)

    def open(self, url: str) -> None:
        """Load an address with everything that it names."""
        result = self.call("Page.navigate", url=url)
        if "errorText" in result:
            raise BrowserError(f"{url}: {result['errorText']}")
        self.wait_for("document.readyState == 'complete'")

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression; a promise is awaited."""
        result = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def wait_for(self, script: str, timeout_s: float = 20.0) -> Any:
        """Wait until an expression is true and return its value."""
        deadline = time.monotonic() + timeout_s
        problem = ""
        while True:
            try:
                value = self.evaluate(script)
                # an element is an empty object here, but true in JavaScript
                if value or value == {}:
                    return value
            except BrowserError as error:  # such as an element that is not there yet
                problem = f": {error}"
            if time.monotonic() > deadline:
                what = f"not true within {timeout_s} s: {script}{problem}"
                raise BrowserError(f"{what}; {self.problems}")
            time.sleep(0.05)

    def text(self, selector: str) -> str:
        """Return the visible text of the first element of a CSS selector."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def click(self, selector: str) -> None:
        """Click an element in its middle, with a real mouse event."""
        place = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                **{"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1},
            )

    def type(self, selector: str, text: str) -> None:
        """Replace the text of a field by typing."""
        name = json.dumps(selector)
        self.evaluate(f"(e => {{ e.focus(); e.select?.(); }})(document.querySelector({name}))")
        self.call("Input.insertText", text=text)

    def prefer(self, scheme: str) -> None:
        """Emulate the preference for `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def resize(self, width: int, height: int) -> None:
        """Set the size of the window, in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Save a PNG of the page, or of its visible part."""
        image = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(image["data"]))

    def poll(self) -> None:
        """Take in events that the page has sent since the last command."""
        while (message := self._read(time.monotonic())) is not None:
            self._note(message)

    def _read(self, deadline: float) -> dict[str, Any] | None:
        while b"\0" not in self._buffer:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._receive], [], [], left)[0]:
                return None
            if not (data := os.read(self._receive, 1 << 20)):
                raise BrowserError("the browser has ended")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(line))

    def _note(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            text = details.get("exception", {}).get("description", details["text"])
            self.problems.append(f"exception: {text}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            values = [str(arg.get("value", arg.get("description"))) for arg in params["args"]]
            self.problems.append(f"console: {' '.join(values)}")
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(f"log: {params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])


@contextmanager
def open_page(url: str, *, width: int = 1200, height: int = 900) -> Iterator[Page]:
    """Start a browser with an empty profile, open an address, end the browser afterwards."""
    browser = find_browser()
    if browser is None:
        raise BrowserError(f"no browser is installed: {', '.join(CANDIDATES)}")
    # Chromium's sandbox does not work for root; a test loads pages of this package only
    flags = [*_FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        to_browser, from_browser = os.pipe(), os.pipe()
        # the protocol demands descriptor 3 for commands and 4 for answers
        command = [browser, *flags, f"--user-data-dir={profile}", "about:blank"]
        script = f'exec "$@" 3<&{to_browser[0]} 4>&{from_browser[1]}'
        process = subprocess.Popen(
            ["/bin/bash", "-c", script, "browser", *command],
            pass_fds=[to_browser[0], from_browser[1]],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        try:
            page = Page(to_browser[1], from_browser[0])
            page.attach()
            page.resize(width, height)
            page.open(url)
            yield page
        finally:
            with suppress(BrowserError, OSError):
                page._session = None
                page.call("Browser.close")
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()
            os.close(to_browser[1])
            os.close(from_browser[0])
