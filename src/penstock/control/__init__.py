"""The MAPE loop: clock, loop, journal, replay; and which policies there are."""
