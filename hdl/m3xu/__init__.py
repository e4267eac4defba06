"""M³XU: wide significands on narrow multipliers, limb by limb in several steps."""
