"""Plans: the steps that bring a registry to what Git approved, with the answer expected for each."""
