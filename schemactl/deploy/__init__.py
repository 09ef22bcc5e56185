"""Plans: the steps that bring a registry to the approved state, with the expected answer for each."""
