"""What a start checks and repairs in a run directory."""
