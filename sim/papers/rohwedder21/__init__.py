"""The experiments of Rohwedder 2021, chapter 5, on the simulated chip: poolings by five methods."""
