"""The page in a real browser: `make test-browser`."""

from pathlib import Path

import pytest
from tests.pubsub.server.conftest import Rig, make_token
from tests.pubsub.server.test_publications import ENCRYPTED
from tests.tools.browser import find_browser, open_page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed"),
]
CONNECTED = "document.querySelector('#connection').innerText.startsWith('connected')"
#: The engine that the page shows; the broker of these tests has none.
ENGINE = {
    "kind": "spark",
    "state": "running",
    "hosts": [
        {"name": "host-0", "cpu": 0.62, "slices": {"access": [0, 1], "match": [0, 1, 2, 3]}},
        {"name": "host-1", "cpu": 0.31, "slices": {"match": [4, 5], "exit": [0, 1]}},
    ],
    "operators": [{"name": "match", "replicas": 2, "slices": 6, "waiting": 12}],
}


def test_a_visitor_subscribes_publishes_and_sees_events(rig: Rig, tmp_path: Path) -> None:
    rig.engine_status = ENGINE
    rig.start()
    token = make_token(rig.directory, "alice")
    with open_page(rig.url) as page:
        page.wait_for("document.querySelector('#token')")
        assert page.text("#connection") == "not connected"
        page.type("#token", token)
        page.click("#sign-in button")
        page.wait_for(CONNECTED)
        assert page.text("#attributes") == "price, symbol, data.price"

        page.type("#predicate", "price > 10 AND prise = 3")
        page.click("#subscribe button")
        error = page.wait_for("document.querySelector('#predicate-error').innerText")
        line, caret, *_ = error.split("\n")
        assert line == "price > 10 AND prise = 3"
        assert caret.index("^") == line.index("prise")
        assert "did you mean 'price'?" in error
        selected = "(e => e.value.slice(e.selectionStart, e.selectionEnd))"
        assert page.evaluate(f"{selected}(document.querySelector('#predicate'))") == "p"
        page.screenshot(tmp_path / "mistake.png")

        page.type("#predicate", "price > 10")
        page.click("#subscribe button")
        page.wait_for("document.querySelector('#subscriptions').innerText.includes('active')")
        assert page.evaluate("document.querySelector('#predicate-error').hidden")

        page.type("#event", '{"price": 12.5, "note": "<img src=x onerror=alert(1)>"}')
        page.click("#publish button")
        page.wait_for("document.querySelectorAll('#events li').length == 1")
        assert '{"price":12.5,"note":"<img src=x onerror=alert(1)>"}' in page.text("#events li")
        assert page.evaluate("document.querySelectorAll('#events img').length") == 0
        page.type("#event", '{"price": 3')
        page.click("#publish button")
        page.wait_for("document.querySelector('#publish-answer').innerText.includes('not JSON')")

        page.wait_for("document.querySelectorAll('.host').length == 2")
        assert "host-0: 62 % CPU" in page.text("#hosts")
        assert page.evaluate("document.querySelectorAll('.slice').length") == 10
        page.prefer("light")
        page.screenshot(tmp_path / "light.png")
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.prefer("dark")
        page.screenshot(tmp_path / "dark.png")
        page.resize(420, 900)
        page.screenshot(tmp_path / "narrow.png")
        page.wait_for("document.body.scrollWidth <= 420")
        page.resize(1200, 900)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light

        page.click("#subscriptions button")
        page.wait_for("document.querySelectorAll('#subscriptions tr').length == 0")
        page.poll()
        # a refused request is logged by the browser; nothing else is wrong
        assert [text for text in page.problems if "400 (Bad Request)" not in text] == []
        assert {url.partition("?")[0].startswith(rig.url) for url in page.requests} == {True}


def test_the_page_continues_after_a_restart(rig: Rig) -> None:
    rig.start()
    port = int(rig.url.rpartition(":")[2])
    client = rig.client()
    client.post("/subscriptions", json={"predicate": "price >= 0"}).raise_for_status()
    with open_page(f"{rig.url}/#token={make_token(rig.directory, 'alice')}") as page:
        page.wait_for(CONNECTED)
        assert "token" not in page.evaluate("location.href")
        client.post("/publications", json={"price": 1})
        page.wait_for("document.querySelectorAll('#events li').length == 1")
        rig.stop()
        page.wait_for("document.querySelector('#connection').dataset.state == 'bad'")
        rig.start(port=port)
        rig.client().post("/publications", json={"price": 2})
        page.wait_for("document.querySelectorAll('#events li').length == 2")
        page.wait_for(CONNECTED)


def test_a_wrong_token_and_an_encrypted_space_are_explained(rig: Rig) -> None:
    rig.start(ENCRYPTED)
    with open_page(f"{rig.url}/#token=pst_00_x") as page:
        page.wait_for("document.querySelector('#connection').innerText == 'refused'")
        assert "the token is not valid" in page.text("#notice")
        page.type("#token", make_token(rig.directory, "alice"))
        page.click("#sign-in button")
        page.wait_for(CONNECTED)
        assert "This space is encrypted" in page.text("#notice")
        assert page.evaluate("document.querySelector('#publish button').disabled")
