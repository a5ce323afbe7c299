"""A pipeline of operator instances in discrete time, each of which decides alone."""
