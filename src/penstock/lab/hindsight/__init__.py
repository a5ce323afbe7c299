"""The cheapest run that would have met the objective, computed afterwards."""
