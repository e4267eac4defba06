"""The wings beside the core: each folder registers its commands, units and names (common.wings)."""
