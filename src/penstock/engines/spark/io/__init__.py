"""How rows enter and leave a query: source, plans, tasks, sink, batch log."""
