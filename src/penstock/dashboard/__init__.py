"""Shows runs in a browser, live or finished; everything is read from run directories."""
