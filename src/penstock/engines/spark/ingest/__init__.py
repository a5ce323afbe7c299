"""Operators that read from outside: what they bring, and what waits in front of them."""
