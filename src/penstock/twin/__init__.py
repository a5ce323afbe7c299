"""Calibration of the simulator on real runs, and twins of them."""
