"""One published policy per file or folder; the registry discovers modules with `POLICY`."""
