"""Simulated engines at three resolutions (fluid, records, batches), one profile per engine."""
