"""Simulated engines: resolutions fluid, records, batches and hosts; one profile per engine."""
