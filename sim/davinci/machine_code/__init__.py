"""Programs as words of 64 bits: encoder, decoder, assembly text, and files."""
