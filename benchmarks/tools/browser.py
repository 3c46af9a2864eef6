"""Headless Chromium by its debugging pipe: open a page, look at it, ask it.

By hand: `python -m benchmarks.tools.browser PAGE.html PICTURE.png --width 390 --dark`.
"""

import argparse
import base64
import fcntl
import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe", "about:blank",
)  # fmt: skip
PATIENCE = 60.0


def find_chromium():
    """Return the command of Chromium, or None."""
    return os.environ.get("NEARKIN_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A page of a fresh browser; `console` and `requests` hold its messages and its requests to the
    network.
    """

    def __init__(self):
        self._home = tempfile.TemporaryDirectory(prefix="chromium-")
        pipes = [*os.pipe(), *os.pipe()]
        from_us, to_browser, from_browser, to_us = (
            fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in pipes
        )
        for end in pipes:
            os.close(end)

        def adopt():  # the browser reads commands from descriptor 3 and answers on 4
            os.dup2(from_us, 3)
            os.dup2(to_us, 4)

        command = [find_chromium(), f"--user-data-dir={self._home.name}", *FLAGS]
        null = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command,
            preexec_fn=adopt,
            pass_fds=(3, 4),
            stdout=null,
            stderr=null,
            start_new_session=True,
        )
        os.close(from_us)
        os.close(to_us)
        self._commands = os.fdopen(to_browser, "wb", buffering=0)
        self._messages = queue.Queue()
        threading.Thread(
            target=self._listen, args=(os.fdopen(from_browser, "rb"),), daemon=True
        ).start()
        self._number, self._session = 0, None
        self.console, self.requests = [], []

    def __enter__(self):
        try:
            target = self._call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)[
                "sessionId"
            ]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self._call(f"{domain}.enable")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._commands.close()
        for _ in range(20):  # its children may still write there
            shutil.rmtree(self._home.name, ignore_errors=True)
            time.sleep(0.05)
        self._home.cleanup()

    def open(self, path, *, query="", width, height=900, dark=False):
        """Load a file, with the real width of a screen and the colours its user prefers."""
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._page = Path(path).resolve().as_uri() + query
        self.console.clear()
        self.requests.clear()
        self._call("Page.navigate", url=self._page)
        self.wait_for(
            f"location.href === {json.dumps(self._page)} && document.readyState === 'complete'"
        )

    def resize(self, width, height=900):
        """Show the page on a screen of another size."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def evaluate(self, script):
        """Return the value of a JavaScript expression."""
        answer = self._call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, condition):
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise TimeoutError(f"after {PATIENCE:g} s still not: {condition}")
            time.sleep(0.05)

    def screenshot(self, path, *, full=False, element=None):
        """Write a PNG of what is seen, of the full page, or of the first element of a selector."""
        beyond = full or element is not None
        clip = self._clip_of(element) if element else self._clip(full)
        picture = self._call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=beyond, **clip
        )
        Path(path).write_bytes(base64.b64decode(picture["data"]))

    def _clip_of(self, element):
        box = f"document.querySelector({json.dumps(element)}).getBoundingClientRect()"
        found = self.evaluate(
            f"(({{x, y, width, height}}) => [x + scrollX, y + scrollY, width, height])({box})"
        )
        return {"clip": dict(zip(("x", "y", "width", "height"), found, strict=True), scale=1)}

    def _clip(self, full):
        if not full:
            return {}
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        return {
            "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        }

    def _call(self, method, **parameters):
        """Send a command, note what happens meanwhile, and return the answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while True:
            try:
                answer = self._messages.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"no answer to {method} in {PATIENCE:g} s") from None
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self._note(answer.get("method"), answer.get("params", {}))

    def _note(self, event, details):
        if event in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.console.append(json.dumps(details)[:1000])
        elif event == "Network.requestWillBeSent":
            url = details["request"]["url"]
            if url != self._page and not url.startswith(("data:", "blob:")):
                self.requests.append(url)

    def _listen(self, pipe):
        with pipe:
            rest = b""
            while chunk := pipe.read1(2**16):
                *messages, rest = (rest + chunk).split(b"\0")
                for message in messages:
                    self._messages.put(json.loads(message))


def main():
    parser = argparse.ArgumentParser(description="Take a picture of a page.")
    parser.add_argument("page")
    parser.add_argument("picture")
    parser.add_argument("--width", type=int, default=1440)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument(
        "--full", action="store_true", help="the full page, not only what is seen first"
    )
    parser.add_argument("--element", help="CSS selector of what the picture shows alone")
    options = parser.parse_args()
    with Browser() as browser:
        browser.open(options.page, width=options.width, height=options.height, dark=options.dark)
        time.sleep(1)
        browser.screenshot(options.picture, full=options.full, element=options.element)
        print(*browser.console, *browser.requests, sep="\n")


if __name__ == "__main__":
    main()
