"""Files: text files that people name, atomic writes, locks."""
