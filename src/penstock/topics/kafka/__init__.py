"""Kafka topics: addresses, settings of clients, shares of offsets, values; needs the extra `kafka`.

Nothing here imports Spark. `range_reader` reads ranges of offsets.
"""
