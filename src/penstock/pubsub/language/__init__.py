"""The language of subscriptions: predicates over JSON objects, compiled to boxes."""
