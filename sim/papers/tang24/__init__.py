"""The features of an audio signal of Tang 2024, §4.4.4, by Taylor series."""
