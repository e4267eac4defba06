"""Area and delay in a standard-cell library: mapping, delay calculation, tables and baselines."""
