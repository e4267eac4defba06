"""A unit that runs matrix instructions on a matrix unit."""
