"""Nexmark: persons who sell things in auctions, and the bids on them.

Every event is a pure function of its number: any part of the stream can be made again, anywhere,
and is the same as within a longer one. An event's draws are those of the reference's random
source, seeded with the event's id.
"""
