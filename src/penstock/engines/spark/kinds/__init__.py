"""What a task of each kind of operator does."""
