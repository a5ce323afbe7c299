"""Publish and subscribe with a running service: penstock pubsub serve --dir ticks --local.

Set PENSTOCK_PUBSUB_TOKEN to a token with the role both; see docs/pubsub.md.
"""

import os
from itertools import islice

from penstock.pubsub import Client

url = os.environ.get("PENSTOCK_PUBSUB_URL", "http://127.0.0.1:8080")
key = os.environ.get("PENSTOCK_PUBSUB_KEY")  # the key file of an encrypted space
with Client(url, os.environ["PENSTOCK_PUBSUB_TOKEN"], key) as client:
    cheap = client.subscribe("symbol = 'ACME' AND price < 10")
    client.publish_many({"symbol": "ACME", "price": price} for price in range(20))
    for event in islice(cheap, 10):  # without islice: for ever
        print(event.publication, event.content)
    client.unsubscribe(cheap.id)
