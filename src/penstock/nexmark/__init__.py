"""Nexmark: persons who sell items in auctions, and the bids on them.

Every event is a pure function of its number, so any part of the stream can be generated anywhere
with the same result. The random numbers of an event are those of the reference generator, seeded
with the event's id.
"""
