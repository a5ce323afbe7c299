"""Files: text files, atomic writes, locks."""
